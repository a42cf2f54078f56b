"""The page Experiments: presets and own experiments are checked, queued once, watched and stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from lab.host.lock import hold_lock
from lab.plan import plan_trials
from lab.store import Store, get_experiment, list_experiments
from pages.components.context import host_name
from tests.factories import seed_finished_experiment, seed_running_experiment
from tests.pages.test_configs import field, fine, texts

OpenPage = Callable[..., AppTest]
BATCHING = "preset:batching"


@pytest.fixture
def runner_there(own_place: Path) -> Iterator[None]:
    """This test holds the runner's lock, so that the page starts none."""
    with hold_lock(own_place / "runner.lock", os.environ["LAB_DATABASE_URL"]):
        yield


def stored(store: Store) -> list[Any]:
    return [get_experiment(store, row.id) for row in list_experiments(store)]


def test_presets_show_their_question_and_what_they_will_do(store: Store, open_page: OpenPage) -> None:
    app = fine(open_page("experiments"))
    assert "What does continuous batching bring, and what does it cost?" in texts(app)
    assert "2 arms × 2 repeats \\= 4 trials" in texts(app) or "2 arms × 2 repeats = 4 trials" in texts(app)
    assert "Nothing runs and nothing is queued" in texts(app)


def test_a_preset_is_queued_with_person_and_host(store: Store, open_page: OpenPage, runner_there: None) -> None:
    app = fine(open_page("experiments"))
    field(app.text_input, "Your name").set_value("Grace").run()
    app.button(key=BATCHING).click().run()
    (view,) = stored(store)
    assert (view.row.name, view.row.state) == ("Continuous batching on and off", "queued")
    assert (view.row.person, view.row.host) == ("Grace", host_name())
    assert [(t.arm_name, t.block) for t in view.trials] == [
        (view.experiment.arms[planned.arm].name, planned.block) for planned in plan_trials(view.experiment)
    ]
    assert "Queued as experiment 1" in texts(fine(app))


def test_a_second_press_from_anywhere_queues_nothing_more(
    store: Store, open_page: OpenPage, runner_there: None
) -> None:
    first, second = open_page("experiments"), open_page("experiments")
    first.button(key=BATCHING).click().run()
    first.button(key=BATCHING).click().run()
    second.button(key=BATCHING).click().run()
    assert len(stored(store)) == 1
    assert "not queued twice" in texts(fine(second))


def test_a_runner_that_cannot_start_is_said_and_the_experiment_stays(
    store: Store, open_page: OpenPage, own_place: Path
) -> None:
    with hold_lock(own_place / "runner.lock", "sqlite:////somewhere/else.db"):
        app = open_page("experiments")
        app.button(key=BATCHING).click().run()
    assert "else.db" in str(fine(app).error[0].value)
    assert len(stored(store)) == 1


def test_a_broken_preset_is_shown_with_its_finding_beside_the_others(
    store: Store, open_page: OpenPage, own_place: Path
) -> None:
    folder = own_place / "configs" / "experiments"
    (folder / "typo.toml").write_text('name = "Typo"\nrepeat = 2\n\n[[arm]]\nset = { max_num_seqz = 1 }\n')
    (folder / "broken.toml").write_text("name = \n")
    (folder / "binary.toml").write_bytes(b"\xff\xfe\x00")
    app = fine(open_page("experiments"))
    assert "experiments/typo.toml\\:2" in texts(app)
    assert "experiments/broken.toml\\:1" in texts(app)
    assert app.button(key="preset:typo").disabled and app.button(key="preset:broken").disabled
    assert app.button(key="preset:binary").disabled
    assert not app.button(key=BATCHING).disabled


def test_the_gateway_preset_says_what_is_missing(
    store: Store, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "`TAOTOKEN_API_KEY` is not set" in texts(fine(open_page("experiments")))
    monkeypatch.setenv("TAOTOKEN_API_KEY", "sk-test-LEAK")
    app = fine(open_page("experiments"))
    assert "The gateway arm will fail" not in texts(app)
    assert "sk-test-LEAK" not in texts(app)


def test_a_grid_of_two_knobs_is_built_checked_and_queued(store: Store, open_page: OpenPage, runner_there: None) -> None:
    app = fine(open_page("experiments"))
    app.multiselect(key="build:knobs").set_value(["max_num_seqs", "kv_cache_dtype"]).run()
    app.text_input(key="build:values:max_num_seqs").set_value("8, 16，32").run()
    app.multiselect(key="build:values:kv_cache_dtype").set_value(["auto", "fp8"]).run()
    app.checkbox(key="build:plain").uncheck().run()
    app.checkbox(key="build:gateway").check().run()
    app.number_input(key="build:repeats").set_value(3).run()
    assert "7 arms × 3 repeats" in texts(fine(app))
    assert "kv\\_cache\\_dtype=fp8" in texts(app) and "kv_cache_dtype = fp8" not in texts(app)
    app.button(key="build:queue").click().run()
    (view,) = stored(store)
    assert view.row.name == "max_num_seqs × kv_cache_dtype"
    assert [(arm.target, dict(arm.set)) for arm in view.experiment.arms] == [
        ("gateway", {}),
        *(
            ("engine", {"max_num_seqs": number, "kv_cache_dtype": kind})
            for number in (8, 16, 32)
            for kind in ("auto", "fp8")
        ),
    ]
    assert len(view.trials) == 21
    assert view.experiment.workload.kind == "burst" and view.experiment.workload.prompt_tokens == ()
    assert "Queued as experiment 1" in texts(fine(app))


def test_any_flag_of_the_engine_can_be_swept(store: Store, open_page: OpenPage) -> None:
    app = fine(open_page("experiments"))
    app.multiselect(key="build:knobs").set_value(["async_scheduling"]).run()
    assert "2 repeats" in texts(fine(app))
    assert "async\\_scheduling" in texts(app)


@pytest.mark.parametrize("text", ["0", "many", "8, 1.5"])
def test_a_value_that_a_knob_cannot_have_is_said(text: str, store: Store, open_page: OpenPage) -> None:
    app = fine(open_page("experiments"))
    app.multiselect(key="build:knobs").set_value(["max_num_seqs"]).run()
    app.text_input(key="build:values:max_num_seqs").set_value(text).run()
    assert ":red[" in texts(fine(app))
    assert app.button(key="build:queue").disabled


def test_an_unknown_knob_is_said_with_the_nearest_one(store: Store, open_page: OpenPage) -> None:
    app = fine(open_page("experiments"))
    app.multiselect(key="build:knobs").set_value(["max_num_seqz"]).run()
    assert "max\\_num\\_seqs" in texts(fine(app))


def test_nothing_to_compare_cannot_be_queued(store: Store, open_page: OpenPage) -> None:
    app = fine(open_page("experiments"))
    app.checkbox(key="build:plain").uncheck().run()
    assert fine(app).button(key="build:queue").disabled


def test_too_many_trials_are_refused_with_the_reason(store: Store, open_page: OpenPage) -> None:
    app = fine(open_page("experiments"))
    app.number_input(key="build:repeats").set_value(100).run()
    assert fine(app).button(key="build:queue").disabled


def test_a_workload_without_what_it_needs_is_said(store: Store, open_page: OpenPage) -> None:
    app = fine(open_page("experiments"))
    app.selectbox(key="build:workload:kind").select("closed").run()
    assert fine(app).button(key="build:queue").disabled
    app.text_input(key="build:workload:concurrency").set_value("1, 4").run()
    assert not fine(app).button(key="build:queue").disabled
    assert "2 measurements in each" in texts(app)


def test_a_running_server_becomes_an_arm(store: Store, open_page: OpenPage, runner_there: None) -> None:
    app = fine(open_page("experiments"))
    app.text_input(key="build:attach").set_value("http://127.0.0.1:8000/v1").run()
    app.button(key="build:queue").click().run()
    (view,) = stored(store)
    assert [(arm.target, arm.base_url) for arm in view.experiment.arms] == [
        ("engine", None),
        ("attach", "http://127.0.0.1:8000/v1"),
    ]


def test_what_runs_is_shown_with_a_stop(store: Store, open_page: OpenPage) -> None:
    number = seed_running_experiment(store, host=host_name())
    app = fine(open_page("experiments"))
    assert "12 of 40 requests" in texts(app)
    app.button(key=f"stop-{number}").click().run()
    assert get_experiment(store, number).row.stop_requested


def test_the_time_of_the_last_run_is_the_estimate(store: Store, open_page: OpenPage) -> None:
    assert "never run on this host yet" in texts(fine(open_page("experiments")))
    seed_finished_experiment(store, host=host_name(), name="Continuous batching on and off")
    assert fine(open_page("experiments"))


def test_a_broken_config_pair_is_said_before_anything_else(store: Store, open_page: OpenPage, own_place: Path) -> None:
    (own_place / "configs" / "settings.json").write_text("{")
    app = fine(open_page("experiments"))
    assert texts(app).count("configs/settings.json") == 1
    assert not app.tabs


def test_errors_of_the_config_pair_are_said_once(store: Store, open_page: OpenPage, own_place: Path) -> None:
    settings = own_place / "configs" / "settings.json"
    settings.write_text(settings.read_text().replace('"max_num_seqs": 32', '"max_num_seqs": "many"'))
    app = fine(open_page("experiments"))
    assert texts(app).count("configs/settings.json") == 1
    assert app.button(key=BATCHING).disabled and app.button(key="build:queue").disabled


def test_the_page_speaks_chinese(open_page: OpenPage) -> None:
    assert fine(open_page("experiments", lang="zh")).title[0].value == "实验"


def test_a_running_server_is_an_arm_with_its_model_and_its_key_by_name(
    open_page: OpenPage, store: Store, runner_there: None
) -> None:
    app = open_page("experiments")
    app.text_input(key="build:attach").set_value("http://127.0.0.1:9/v1").run()
    app.text_input(key="build:attach:model").set_value("qwen").run()
    app.text_input(key="build:attach:variable").set_value("MY_SERVER_KEY").run()
    app.button(key="build:queue").click().run()
    arm = get_experiment(store, list_experiments(store)[0].id).experiment.arms[-1]
    assert (arm.target, arm.base_url, arm.api_key_env) == ("attach", "http://127.0.0.1:9/v1", "MY_SERVER_KEY")
    assert dict(arm.set) == {"model": "qwen"}


def test_a_key_typed_for_the_name_of_its_variable_queues_nothing(open_page: OpenPage) -> None:
    app = open_page("experiments")
    app.text_input(key="build:attach").set_value("http://127.0.0.1:9/v1").run()
    app.text_input(key="build:attach:variable").set_value("sk-test-LEAK-0001").run()
    assert app.button(key="build:queue").disabled
    assert "LEAK-0001" not in texts(app)
