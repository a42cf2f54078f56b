"""Remedies on the pages: what they say, and that a click makes an arm, a start or a draft, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from streamlit.testing.v1 import AppTest

from lab.engine.remedies import Remedy, to_store
from lab.host.facts import host_facts
from lab.host.lock import hold_lock
from lab.plan import plan_trials
from lab.records.plan import Arm
from lab.store import (
    Store,
    add_launch,
    get_experiment,
    heartbeat,
    list_experiments,
    next_trial,
    open_intents,
    queue_experiment,
    set_trial_state,
    trial_of_launch,
    update_launch,
)
from pages.components.context import host_name
from tests.factories import make_experiment
from tests.pages.test_home import texts

OpenPage = Callable[..., AppTest]
NUMBERS = {"knob": "gpu_memory_utilization", "was": 0.9, "to": 0.85}
LOWER = Remedy("remedy-lower-utilization-step-in-numbers", NUMBERS, {"gpu_memory_utilization": 0.85})
DRIVER = Remedy("remedy-driver", {}, {})
MESSAGE: dict[str, Any] = {
    "code": "trial-out-of-memory-under-load",
    "line": "torch.OutOfMemoryError: CUDA out of memory.",
    "remedies": to_store((LOWER, DRIVER)),
}


def failed_launch(store: Store, message: dict[str, Any] = MESSAGE) -> int:
    launch = add_launch(
        store, host_name(), "vllm", ["py", "--max-num-seqs", "64"], [], "x.log", None, None, None, 1, "m"
    )
    update_launch(store, launch, state="failed", failure="out-of-memory", ended={"message": message})
    heartbeat(store, host_name(), runner_pid=1, state="idle", detail=None, trial_id=None, launch_id=None)
    return launch


def failed_experiment(store: Store) -> int:
    arms = (Arm(name="one", set={"max_num_seqs": 8}), Arm(name="two", set={"max_num_seqs": 64}))
    experiment = make_experiment(arms=arms, repeats=1)
    number = queue_experiment(store, experiment, plan_trials(experiment), person="Ada", host=host_name())
    for _ in experiment.arms:
        work = next_trial(store, host_name())
        assert work is not None
        set_trial_state(store, work.trial_id, "failed", failure="out-of-memory", message=MESSAGE)
    return number


def give_launch(store: Store, trial: int, launch: int) -> None:
    with store.writing() as session:
        session.execute(text("update trial set launch_id = :launch where id = :id"), {"launch": launch, "id": trial})


def runner(place: Path) -> Any:
    return hold_lock(place / "runner.lock", f"sqlite:///{place / 'experiments.db'}")


def test_a_failed_start_names_its_remedies_with_numbers(open_page: OpenPage, store: Store, own_place: Path) -> None:
    launch = failed_launch(store)
    with runner(own_place):
        app = open_page("engine")
    said = texts(app)
    assert "0.9 → 0.85" in said
    assert "nvidia-smi" in said
    keys = [button.key for button in app.button]
    assert f"launch-{launch}:start:0" in keys
    assert f"launch-{launch}:start:1" not in keys  # advice that no knob carries out has no button


def test_start_with_it_asks_for_the_changed_pair_and_writes_no_file(
    open_page: OpenPage, store: Store, own_place: Path
) -> None:
    launch = failed_launch(store)
    settings = own_place / "configs" / "settings.json"
    before = settings.read_text("utf-8")
    with runner(own_place):
        app = open_page("engine")
        app.button(key=f"launch-{launch}:start:0").click().run()
    (wish,) = open_intents(store, host_name())
    assert wish.payload is not None
    assert json.loads(wish.payload["settings_text"])["decode"]["gpu_memory_utilization"] == 0.85
    assert wish.payload["explicit"] == ["gpu_memory_utilization"]
    assert settings.read_text("utf-8") == before


def test_start_with_it_on_the_launch_of_a_trial_starts_the_arm_and_not_the_live_pair(
    open_page: OpenPage, store: Store, own_place: Path
) -> None:
    number = failed_experiment(store)
    launch = failed_launch(store)
    (first, second) = get_experiment(store, number).trials
    assert trial_of_launch(store, launch) is None
    give_launch(store, second.id, launch)
    assert trial_of_launch(store, launch) == (number, "two")
    with runner(own_place):
        app = open_page("engine")
        button = app.button(key=f"launch-{launch}:start:0")
        assert "two" in button.help
        button.click().run()
    (wish,) = open_intents(store, host_name())
    assert wish.payload is not None
    decode = json.loads(wish.payload["settings_text"])["decode"]
    assert (decode["max_num_seqs"], decode["gpu_memory_utilization"]) == (64, 0.85)
    assert sorted(wish.payload["explicit"]) == ["gpu_memory_utilization", "max_num_seqs"]
    assert first.launch_id is None


def test_into_the_configs_makes_a_draft_and_writes_no_file(open_page: OpenPage, store: Store, own_place: Path) -> None:
    fewer = Remedy("remedy-fewer-sequences", {}, {"max_num_seqs": 16})
    launch = failed_launch(store, {**MESSAGE, "remedies": to_store((fewer,))})
    settings = own_place / "configs" / "settings.json"
    before = settings.read_text("utf-8")
    with runner(own_place):
        app = open_page("engine")
        app.button(key=f"launch-{launch}:draft:0").click().run()
    assert app.title[0].value == "Configs"
    assert any('"max_num_seqs": 16' in code.value for code in app.code)
    assert settings.read_text("utf-8") == before


@pytest.mark.skipif(host_facts().kind != "cpu", reason="an overlay of a CPU")
def test_a_value_that_this_host_takes_back_is_not_written_into_the_configs(
    open_page: OpenPage, store: Store, own_place: Path
) -> None:
    raised = Remedy("remedy-raise-utilization", {}, {"block_size": 100})
    launch = failed_launch(store, {**MESSAGE, "remedies": to_store((raised,))})
    with runner(own_place):
        app = open_page("engine")
        draft = app.button(key=f"launch-{launch}:draft:0")
    assert not app.button(key=f"launch-{launch}:start:0").disabled
    # a CPU has blocks of multiples of 32 tokens only
    assert draft.disabled
    assert "block_size = 128" in draft.help


def test_a_failed_trial_becomes_an_arm_with_the_remedy(open_page: OpenPage, store: Store, own_place: Path) -> None:
    number = failed_experiment(store)
    trials = get_experiment(store, number).trials
    with runner(own_place):
        app = open_page("results", experiment=number)
        app.button(key=f"remedy:{trials[1].id}:0").click().run()
        app.button(key="remedy:queue").click().run()
    newest = max(row.id for row in list_experiments(store))
    arms = get_experiment(store, newest).experiment.arms
    assert newest != number
    assert [(arm.name, dict(arm.set)) for arm in arms] == [
        ("one", {"max_num_seqs": 8}),
        ("two, gpu_memory_utilization=0.85", {"max_num_seqs": 64, "gpu_memory_utilization": 0.85}),
    ]
    assert [dict(arm.set) for arm in get_experiment(store, number).experiment.arms] == [
        {"max_num_seqs": 8},
        {"max_num_seqs": 64},
    ]


def test_the_arm_can_be_measured_alone(open_page: OpenPage, store: Store, own_place: Path) -> None:
    number = failed_experiment(store)
    trials = get_experiment(store, number).trials
    with runner(own_place):
        app = open_page("results", experiment=number)
        app.button(key=f"remedy:{trials[0].id}:0").click().run()
        app.radio(key="remedy:alone").set_value(True).run()
        app.button(key="remedy:queue").click().run()
    newest = max(row.id for row in list_experiments(store))
    assert [arm.name for arm in get_experiment(store, newest).experiment.arms] == ["one, gpu_memory_utilization=0.85"]


def test_nothing_can_be_started_while_an_engine_lives(open_page: OpenPage, store: Store, own_place: Path) -> None:
    launch = failed_launch(store)
    alive = add_launch(store, host_name(), "vllm", ["py"], [], "x.log", 1, 1, 1.0, 8123, "m")
    update_launch(store, alive, state="ready", ready_s=1.0)
    heartbeat(store, host_name(), runner_pid=1, state="serving", detail=None, trial_id=None, launch_id=alive)
    with runner(own_place):
        app = open_page("engine", launch=launch)
    assert not [button.key for button in app.button if ":start:" in str(button.key)]
