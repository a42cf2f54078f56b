"""The home page: what a newcomer sees, what runs, what came out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lab.host.lock import hold_lock
from lab.store import Store, add_launch, get_experiment, heartbeat, list_experiments, update_launch
from pages.components.context import host_name
from tests.factories import seed_finished_experiment, seed_running_experiment

OpenPage = Callable[..., AppTest]


def texts(app: AppTest) -> str:
    """Everything written on the page, one element a line."""
    parts = [*app.markdown, *app.caption, *app.subheader, *app.error, *app.warning, *app.info, *app.success]
    return "\n".join(str(part.value) for part in parts)


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def test_a_newcomer_sees_one_button_for_the_first_experiment(open_page: OpenPage) -> None:
    app = open_page("home")
    assert not app.exception
    assert not app.error
    assert [button.label for button in app.button if button.key == "first"] == ["Start the first experiment"]
    assert "Start the runner" in labels(app)
    assert "Nothing runs and nothing is queued." in texts(app)


def test_the_host_panel_says_why_there_is_no_gpu_data(open_page: OpenPage) -> None:
    shown = texts(open_page("home"))
    assert "| vLLM |" in shown
    assert "| GPU |" in shown


def test_the_first_button_queues_the_preset_once(
    open_page: OpenPage, store: Store, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("home")
    url = f"sqlite:///{own_place / 'experiments.db'}"
    with hold_lock(own_place / "runner.lock", url):  # a runner is there, so the page starts none
        app.button(key="first").click().run()
        assert not app.error
        rows = list_experiments(store)
        assert [row.state for row in rows] == ["queued"]
        assert rows[0].host == host_name()
        view = get_experiment(store, rows[0].id)
        assert len(view.trials) == len(view.arms) * view.experiment.repeats
        assert all(button.key != "first" for button in app.button)
        other_tab = open_page("home")
        assert all(button.key != "first" for button in other_tab.button)


def test_a_second_click_from_an_old_tab_queues_nothing(open_page: OpenPage, store: Store, own_place: Path) -> None:
    first, second = open_page("home"), open_page("home")
    with hold_lock(own_place / "runner.lock", f"sqlite:///{own_place / 'experiments.db'}"):
        first.button(key="first").click().run()
        second.button(key="first").click().run()
    assert len(list_experiments(store)) == 1


def test_an_invalid_preset_is_a_message_and_nothing_is_queued(
    open_page: OpenPage, store: Store, own_place: Path
) -> None:
    preset = own_place / "configs" / "experiments" / "batching.toml"
    preset.write_text(preset.read_text("utf-8").replace("repeats", "repaets"), "utf-8")
    app = open_page("home")
    app.button(key="first").click().run()
    assert len(app.error) == 1
    assert "repaets" in app.error[0].value
    assert not list_experiments(store)


def test_a_running_experiment_shows_progress_and_a_stop_button(open_page: OpenPage, store: Store) -> None:
    number = seed_running_experiment(store, host=host_name())
    app = open_page("home")
    shown = texts(app)
    assert "**Batching, in progress**" in shown
    assert "12 of 40 requests" in shown
    assert "28 in flight" in shown
    app.button(key=f"stop-{number}").click().run()
    assert get_experiment(store, number).row.stop_requested or get_experiment(store, number).row.state == "stopped"


def test_the_work_of_another_host_is_not_in_this_hosts_queue(open_page: OpenPage, store: Store) -> None:
    seed_running_experiment(store, host="elsewhere")
    assert "Batching, in progress" not in texts(open_page("home"))


def test_last_results_are_listed_newest_first(open_page: OpenPage, store: Store) -> None:
    for name in ("older", "newer"):
        seed_finished_experiment(store, host=host_name(), name=name)
    app = open_page("home")
    assert all(button.key != "first" for button in app.button)
    table = app.dataframe[0].value
    assert list(table["name"]) == ["newer", "older"]
    assert list(table["trials"]) == ["6/6", "6/6"]


def test_a_runner_that_is_gone_is_said_with_the_age_of_its_heartbeat(open_page: OpenPage, store: Store) -> None:
    heartbeat(store, host_name(), runner_pid=1, state="measuring", detail=None, trial_id=None, launch_id=None)
    app = open_page("home")
    assert "Not running" in texts(app)
    assert "last heartbeat just now" in texts(app)
    assert "Start the runner" in labels(app)


def test_a_live_runner_and_its_engine_are_shown(open_page: OpenPage, store: Store, own_place: Path) -> None:
    launch = add_launch(store, host_name(), "vllm", ["python"], [], "x.log", 1, 1, 1.0, 8123, "smollm2")
    update_launch(store, launch, state="ready", ready_s=28.4)
    heartbeat(store, host_name(), runner_pid=1, state="serving", detail=None, trial_id=None, launch_id=launch)
    with hold_lock(own_place / "runner.lock", f"sqlite:///{own_place / 'experiments.db'}"):
        app = open_page("home")
    assert "Serving" in texts(app)
    assert "`smollm2`" in texts(app)
    assert "Start the runner" not in labels(app)


def test_an_unusable_database_is_a_message_not_a_traceback(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database, but it is long enough to look like a file with content" * 20)
    monkeypatch.setenv("LAB_DATABASE_URL", f"sqlite:///{broken}")
    app = open_page("home")
    assert not app.exception
    assert any("broken.db" in message.value for message in app.error)


@pytest.mark.parametrize("page", ["home", "engine", "history"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_open_empty_and_full_in_both_languages(
    open_page: OpenPage, store: Store, page: str, language: str
) -> None:
    for fill in (False, True):
        if fill:
            seed_finished_experiment(store, host=host_name())
        app = open_page(page, lang=language)
        assert not app.exception
        assert not [
            error.value for error in app.error if "default model" not in error.value and "默认模型" not in error.value
        ]
