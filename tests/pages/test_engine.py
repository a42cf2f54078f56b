"""The engine page: the live launch, start and stop through the runner, what was launched before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from lab.host.lock import hold_lock
from lab.runner.status import READING_OPTIONS
from lab.store import Store, add_launch, heartbeat, list_launches, open_intents, update_launch
from pages.components.command import readable
from pages.components.context import host_name
from pages.components.effective import asked_flags
from tests.engine.model_folders import model_folder
from tests.pages.test_home import texts

OpenPage = Callable[..., AppTest]


@pytest.fixture
def model(own_place: Path) -> Path:
    """The pair's own model, whole on the disk."""
    return model_folder(own_place / "run" / "models" / "smollm2-135m-instruct", {})


def live(store: Store, state: str = "serving", trial_id: int | None = None, log: str = "x.log") -> int:
    argv = ["python", "-m", "vllm", "--model", "m", "--max-num-seqs", "64", "--no-enable-prefix-caching"]
    launch = add_launch(store, host_name(), "vllm", argv, ["PATH"], log, 1, 1, 1.0, 8123, "smollm2")
    effective = {"max_num_seqs": 64, "enable_prefix_caching": True, "kv_cache_size_tokens": 93184}
    update_launch(store, launch, state="ready", ready_s=28.4, effective=effective)
    heartbeat(store, host_name(), runner_pid=1, state=state, detail=None, trial_id=trial_id, launch_id=launch)
    return launch


def lock(place: Path) -> object:
    return hold_lock(place / "runner.lock", f"sqlite:///{place / 'experiments.db'}")


@pytest.mark.usefixtures("model")
def test_start_asks_the_runner_for_the_live_pair_once(open_page: OpenPage, store: Store, own_place: Path) -> None:
    heartbeat(store, host_name(), runner_pid=1, state="idle", detail=None, trial_id=None, launch_id=None)
    with lock(own_place):
        app, other_tab = open_page("engine"), open_page("engine")
        app.button(key="serve").click().run()
        other_tab.button(key="serve").click().run()
        assert app.button(key="serve").disabled
    wishes = open_intents(store, host_name())
    assert [wish.kind for wish in wishes] == ["serve"]
    assert wishes[0].payload is not None
    assert wishes[0].payload["settings_text"] == (own_place / "configs" / "settings.json").read_text("utf-8")
    assert wishes[0].payload["config_text"] == (own_place / "configs" / "config.toml").read_text("utf-8")


def test_stop_asks_the_runner(open_page: OpenPage, store: Store, own_place: Path) -> None:
    live(store)
    with lock(own_place):
        app = open_page("engine")
        app.button(key="stop-engine").click().run()
        assert app.button(key="stop-engine").disabled
    assert [wish.kind for wish in open_intents(store, host_name())] == ["stop-engine"]


def test_an_engine_that_a_trial_uses_has_no_stop_button(open_page: OpenPage, store: Store, own_place: Path) -> None:
    live(store, state="measuring", trial_id=7)
    with lock(own_place):
        app = open_page("engine")
    assert "A trial uses it." in texts(app)
    assert not [button for button in app.button if button.key in ("serve", "stop-engine")]


def test_what_the_engine_did_not_take_stands_first(open_page: OpenPage, store: Store, own_place: Path) -> None:
    live(store)
    with lock(own_place):
        app = open_page("engine")
    table = app.dataframe[0].value
    assert list(table.iloc[0]) == ["enable_prefix_caching", "Prefix cache", "false", "true", "differs"]
    assert "93184" in list(table["In force"])
    assert any("enable_prefix_caching" in warning.value for warning in app.warning)


def test_the_log_is_shown_and_filtered(open_page: OpenPage, store: Store, own_place: Path) -> None:
    log = own_place / "run" / "logs" / "engine.log"
    log.parent.mkdir(parents=True)
    log.write_text("INFO one\nWARNING two\nINFO three\n", "utf-8")
    launch = live(store, log=str(log))
    with lock(own_place):
        app = open_page("engine")
        assert "INFO one\nWARNING two\nINFO three" in [code.value for code in app.code]
        app.selectbox(key=f"log-{launch}-level").set_value("WARNING").run()
        assert "WARNING two" in [code.value for code in app.code]


def test_the_command_and_the_differences_of_this_host_are_shown(open_page: OpenPage) -> None:
    app = open_page("engine")
    command = next(code.value for code in app.code if "api_server" in code.value)
    assert "--max-num-seqs" in command
    assert "sk-" not in command


def test_a_broken_config_file_is_a_message_with_its_place(open_page: OpenPage, own_place: Path) -> None:
    (own_place / "configs" / "settings.json").write_text('{"model": }', "utf-8")
    app = open_page("engine")
    assert not app.exception
    assert any("settings.json" in error.value for error in app.error)


@pytest.mark.usefixtures("model")
def test_a_start_is_not_offered_while_the_checks_find_an_error(open_page: OpenPage, own_place: Path) -> None:
    settings = own_place / "configs" / "settings.json"
    text = settings.read_text("utf-8")
    settings.write_text(text.replace('"max_num_seqs": 32', '"max_num_seqs": 0'), "utf-8")
    app = open_page("engine")
    assert app.button(key="serve").disabled
    assert "configs/settings.json" in texts(app)
    settings.write_text(text, "utf-8")
    app.run()
    assert not app.button(key="serve").disabled


def test_a_start_without_the_model_is_not_offered_and_says_how_to_get_it(open_page: OpenPage) -> None:
    app = open_page("engine")
    assert app.button(key="serve").disabled
    assert any("smollm2-135m-instruct is not in" in said.value and "make setup" in said.value for said in app.caption)


def test_what_a_first_start_waits_for_is_said(open_page: OpenPage, store: Store, own_place: Path) -> None:
    heartbeat(store, host_name(), runner_pid=1, state="starting", detail=READING_OPTIONS, trial_id=None, launch_id=None)
    with lock(own_place):
        app = open_page("engine")
    assert "Reads the options of the installed engine" in texts(app)


def test_a_launch_is_shown_that_the_address_names(open_page: OpenPage, store: Store, own_place: Path) -> None:
    first = add_launch(store, host_name(), "vllm", ["python", "--a"], [], "x.log", None, None, None, None, "m")
    update_launch(
        store, first, state="failed", failure="crash", ended={"message": {"code": "trial-crash", "line": "boom"}}
    )
    second = add_launch(store, host_name(), "vllm", ["python", "--b"], [], "x.log", None, None, None, None, "m")
    update_launch(store, second, state="stopped")
    app = open_page("engine", launch=first)
    assert any("boom" in error.value for error in app.error)
    assert not open_page("engine", launch=99999).exception


def test_a_failed_launch_tells_why(open_page: OpenPage, store: Store, own_place: Path) -> None:
    launch = add_launch(store, host_name(), "vllm", ["python"], [], "x.log", None, None, None, None, "m")
    message = {"code": "model-folder-missing", "folder": "/nowhere", "model": "m"}
    update_launch(
        store, launch, state="failed", failure="model-missing", ended={"how": None, "left": [], "message": message}
    )
    app = open_page("engine")
    table = next(frame.value for frame in app.dataframe if "failure" in frame.value.columns)
    assert list(table["failure"]) == ["Model not found"]
    assert list(table["state"]) == ["Failed"]
    assert list_launches(store, host_name())[0].state == "failed"


def test_a_command_is_written_one_flag_a_line_for_a_shell() -> None:
    assert (
        readable(("py", "-m", "x", "--a", "1", "--b", "two words")) == "py -m x \\\n    --a 1 \\\n    --b 'two words'"
    )


def test_flags_of_a_command_are_what_was_asked() -> None:
    argv = ["py", "--model", "m", "--port", "1", "--max-num-seqs", "8", "--enforce-eager", "--no-enable-x", "--a=b"]
    assert asked_flags(argv) == {"max_num_seqs": "8", "enforce_eager": True, "enable_x": False, "a": "b"}


def test_a_start_that_fails_at_once_is_told_without_a_click(open_page: OpenPage, store: Store, own_place: Path) -> None:
    heartbeat(store, host_name(), runner_pid=1, state="idle", detail=None, trial_id=None, launch_id=None)
    with lock(own_place):
        app = open_page("engine")
        launch = add_launch(store, host_name(), "vllm", (), (), "", None, None, None, None, None)
        message = {"code": "model-folder-missing", "model": "/none", "folder": "/none"}
        update_launch(store, launch, state="failed", failure="model-missing", ended={"message": message})
        app.run()
    assert any("/none does not exist" in error.value for error in app.error)
