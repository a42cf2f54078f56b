"""The steps of a launch on the pages: where a start stands against earlier ones, what each step took."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lab.store import Store, add_launch, expected_start, get_launch, heartbeat, update_launch
from pages.components.context import host_name
from pages.components.launch import end_text
from pages.components.launch_steps import start_ratio
from tests.pages.test_engine import lock
from tests.pages.test_home import texts

OpenPage = Callable[..., AppTest]


def begin(store: Store) -> int:
    return add_launch(store, host_name(), "vllm", ["python"], [], "x.log", 1, 1, 1.0, 8123, "smollm2", "launching")


def earlier(store: Store, weights_s: float = 10.0, ready_s: float = 30.0) -> int:
    launch = begin(store)
    update_launch(store, launch, phase="loading-weights", last_line="loading", after_s=weights_s)
    update_launch(store, launch, state="ready", ready_s=ready_s, after_s=ready_s)
    update_launch(store, launch, state="stopping", after_s=90.0)
    update_launch(store, launch, state="stopped", after_s=92.0)
    return launch


def test_a_start_is_shown_against_earlier_ones(open_page: OpenPage, store: Store, own_place: Path) -> None:
    earlier(store)
    starting = begin(store)
    update_launch(store, starting, phase="loading-weights", last_line="Loading safetensors: 45 %", after_s=11.0)
    heartbeat(store, host_name(), runner_pid=1, state="starting", detail=None, trial_id=None, launch_id=starting)
    with lock(own_place):
        app = open_page("engine")
    bar = next(each for each in app.get("progress"))
    assert "loading weights" in bar.proto.text
    assert "usually ready after 30 s (1 earlier start)" in bar.proto.text
    assert any("Loading safetensors: 45 %" in each.value for each in app.code)


def test_the_first_start_of_a_model_has_no_bar(open_page: OpenPage, store: Store, own_place: Path) -> None:
    starting = begin(store)
    heartbeat(store, host_name(), runner_pid=1, state="starting", detail=None, trial_id=None, launch_id=starting)
    with lock(own_place):
        app = open_page("engine")
    assert list(app.get("progress")) == []
    assert "process started" in texts(app)


def test_a_launch_shows_what_each_step_took(open_page: OpenPage, store: Store, own_place: Path) -> None:
    launch = earlier(store)
    app = open_page("engine", launch=str(launch))
    assert "process started 10 s → loading weights 20 s → Ready 1 min 00 s → Stopping 2 s → Stopped" in texts(app)


@pytest.mark.parametrize(
    ("phase", "passed_s", "ratio"),
    [
        ("launching", 5.0, 5 / 30),
        # still at what was over after 10 s: no further than that
        ("launching", 25.0, 10 / 30),
        ("loading-weights", 25.0, 25 / 30),
        ("loading-weights", 300.0, 0.97),
        # a phase that no earlier start had
        ("compiling", 3.0, 3 / 30),
    ],
)
def test_a_bar_never_runs_ahead_of_the_phase_in_hand(store: Store, phase: str, passed_s: float, ratio: float) -> None:
    earlier(store)
    starting = begin(store)
    update_launch(store, starting, phase=phase)
    expected = expected_start(store, host_name(), "vllm", "smollm2")
    assert expected is not None
    assert start_ratio(get_launch(store, starting), expected, passed_s) == pytest.approx(ratio)


def test_an_end_tells_whether_the_memory_came_back() -> None:
    ended = {"how": "sigterm", "left": [], "memory": {"host_bytes": 3 * 2**30, "gpu_bytes": None, "left_bytes": 0}}
    assert end_text(ended) == "ended when asked; 3.0 GiB of memory returned"
    ended["memory"] = {"host_bytes": 1, "gpu_bytes": 6 * 2**30, "gpu_pids": [41], "left_bytes": 0}
    assert end_text(ended) == "ended when asked; memory not returned"
