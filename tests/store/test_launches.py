"""The steps of a launch: which may follow which, when each came, and what a start should take."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.findings import LabError
from lab.store import Store, add_launch, expected_start, get_launch, list_launches, open_store, update_launch

HOST = "gpu-1"


def begin(store: Store, served: str = "smol", engine: str = "vllm") -> int:
    return add_launch(store, HOST, engine, ["vllm"], ["PATH"], "/log", 7, 7, 1.5, 8001, served, "launching")


def started(store: Store, loading_s: float, ready_s: float, served: str = "smol") -> int:
    launch = begin(store, served)
    update_launch(store, launch, phase="loading-weights", last_line="loading", after_s=loading_s)
    update_launch(store, launch, state="ready", ready_s=ready_s, after_s=ready_s)
    return launch


def test_each_state_and_phase_becomes_a_step_with_its_time_and_its_last_line(store: Store) -> None:
    launch = begin(store)
    update_launch(store, launch, phase="launching", last_line="hello", after_s=0.5)
    update_launch(store, launch, phase="loading-weights", last_line="loading 1", after_s=4.0)
    update_launch(store, launch, phase="loading-weights", last_line="loading 2", after_s=6.0)
    update_launch(store, launch, state="ready", ready_s=9.0, after_s=9.0)
    update_launch(store, launch, state="busy", after_s=12.0)
    update_launch(store, launch, state="stopping", after_s=20.0)
    update_launch(store, launch, state="stopped", after_s=22.0, ended={"how": "sigterm"})
    history = get_launch(store, launch).history
    assert [(step.state, step.phase, step.after_s, step.line) for step in history] == [
        ("starting", "launching", 0.0, "hello"),
        ("starting", "loading-weights", 4.0, "loading 2"),
        ("ready", None, 9.0, "loading 2"),
        ("busy", None, 12.0, "loading 2"),
        ("stopping", None, 20.0, "loading 2"),
        ("stopped", None, 22.0, "loading 2"),
    ]
    assert all(step.at.tzinfo is not None for step in history)
    assert sorted(step.at for step in history) == [step.at for step in history]


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ((), "busy"),
        (("ready",), "starting"),
        (("ready", "stopping"), "ready"),
        (("ready", "busy", "stopping"), "busy"),
        (("stopped",), "starting"),
        (("failed",), "ready"),
    ],
)
def test_a_state_that_cannot_follow_is_refused_and_no_step(store: Store, path: tuple[str, ...], refused: str) -> None:
    launch = begin(store)
    for state in path:
        update_launch(store, launch, state=state)  # type: ignore[arg-type]
    before = get_launch(store, launch)
    with pytest.raises(LabError, match="transition-refused"):
        update_launch(store, launch, state=refused)  # type: ignore[arg-type]
    assert get_launch(store, launch) == before


def test_an_engine_that_served_a_thousand_trials_keeps_the_steps_of_its_start(store: Store) -> None:
    launch = started(store, 4.0, 9.0)
    for number in range(150):
        update_launch(store, launch, state="busy", after_s=10.0 + number)
        update_launch(store, launch, state="ready", after_s=10.5 + number)
    history = get_launch(store, launch).history
    assert [step.phase for step in history[:2]] == ["launching", "loading-weights"]
    assert history[-1].after_s == 159.5
    assert len(history) <= 121


def test_a_start_is_expected_to_take_the_median_of_earlier_ones_of_the_same_model(store: Store) -> None:
    assert expected_start(store, HOST, "vllm", "smol") is None
    for loading_s, ready_s in ((4.0, 30.0), (5.0, 31.0), (40.0, 300.0)):
        started(store, loading_s, ready_s)
    started(store, 1.0, 2.0, served="another")
    update_launch(store, begin(store), state="failed", failure="crash", after_s=1.0)
    found = expected_start(store, HOST, "vllm", "smol")
    assert found is not None
    assert (found.starts, found.ready_s) == (3, 31.0)
    assert dict(found.phases) == {"launching": 0.0, "loading-weights": 5.0}
    assert expected_start(store, "another host", "vllm", "smol") is None


def test_launches_of_a_database_of_revision_3_open_without_steps(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent / "assets" / "revision_0003.db", tmp_path / "old.db")
    store = open_store(f"sqlite:///{tmp_path / 'old.db'}")
    assert all(launch.history == () for launch in list_launches(store))
    launch = begin(store)
    assert len(get_launch(store, launch).history) == 1
    store.close()
