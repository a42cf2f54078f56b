"""`lab doctor` says what is here and what is broken, and never shows a key."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lab.cli.doctor import doctor_command
from lab.cli.host_ahead import host_for_a_launch
from lab.environment import ROOT, read_environment
from lab.host.facts import host_facts
from lab.host.lock import hold_lock
from lab.host.process_identity import identity
from lab.store import add_launch, open_store
from tests.engine.model_configs import LLAMA_3_8B
from tests.engine.model_folders import model_folder

LEAK = "sk-test-LEAK-0001"


@pytest.fixture
def config_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config directory of the test's own, whose model is a folder."""
    configs = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", configs)
    model = model_folder(tmp_path / "model", LLAMA_3_8B)
    settings = configs / "settings.json"
    settings.write_text(settings.read_text("utf-8").replace("smollm2-135m-instruct", str(model)), "utf-8")
    monkeypatch.setenv("LAB_CONFIG_DIR", str(configs))
    return configs


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(doctor_command, list(arguments))


def told() -> dict:  # type: ignore[type-arg]
    found: dict = json.loads(doctor("--json").stdout)  # type: ignore[type-arg]
    return found


def test_all_parts_are_there_and_a_sound_host_gives_status_0(config_dir: Path) -> None:
    done = doctor("--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0, done.output
    assert list(found) == [
        "host",
        "gpu",
        "configs",
        "engine",
        "engines",
        "model",
        "memory",
        "gateway",
        "database",
        "folder",
        "runner",
    ]
    assert found["model"]["context_tokens"] == 8192
    assert found["memory"]["kv_bytes_per_token"] == 131_072
    assert found["engine"]["version"]
    assert (found["database"]["state"], found["runner"]["pid"]) == ("warning", None)


def test_the_gateway_is_configured_or_not_and_its_key_is_never_shown(
    config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told()["gateway"]["configured"] is False
    monkeypatch.setenv("TAOTOKEN_API_KEY", LEAK)
    monkeypatch.setenv("TAOTOKEN_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("TAOTOKEN_MODEL", "m")
    assert told()["gateway"]["configured"] is True
    assert LEAK not in doctor().output + doctor("--json").output


def test_a_running_runner_is_named(config_dir: Path, separate_lab: Path) -> None:
    with hold_lock(separate_lab / "runner.lock", "postgresql://ann:hidden@db/lab") as holder:
        runner = told()["runner"]
    assert (runner["pid"], runner["database"]) == (holder.pid, "postgresql://ann:***@db/lab")


def test_a_model_that_is_missing_gives_status_1_and_says_where(config_dir: Path) -> None:
    settings = config_dir / "settings.json"
    table = json.loads(settings.read_text("utf-8"))
    table["model"] = "/no/such/model"
    settings.write_text(json.dumps(table), "utf-8")
    done = doctor()
    assert done.exit_code == 1
    assert "The model folder /no/such/model does not exist." in done.output


def test_an_interpreter_that_is_not_there_gives_status_1(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_ENGINE_PYTHON", "/no/such/python")
    engine = told()["engine"]
    assert (engine["state"], engine["code"]) == ("problem", "engine-python-unusable")


def test_a_folder_for_logs_that_cannot_be_gives_status_1(
    config_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LAB_RUN_DIR", str(tmp_path / "file" / "below"))
    folder = told()["folder"]
    assert (folder["state"], folder["code"]) == ("problem", "run-folder-unusable")
    assert "LAB_RUN_DIR" in folder["text"]


def test_unreadable_files_do_not_keep_the_rest_from_being_looked_at(config_dir: Path) -> None:
    (config_dir / "settings.json").unlink()
    found = told()
    assert found["configs"]["state"] == "problem"
    assert found["engine"]["state"] == "ok"


def test_a_runner_for_another_database_is_no_runner_for_this_one(config_dir: Path, separate_lab: Path) -> None:
    with hold_lock(separate_lab / "runner.lock", "sqlite:////elsewhere/other.db"):
        found = told()["runner"]
    assert found["state"] == "warning"
    assert "/elsewhere/other.db" in found["text"]


def test_what_the_own_engine_holds_is_free_for_the_next_launch(
    separate_lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{separate_lab / 'own.db'}"
    monkeypatch.setenv("LAB_DATABASE_URL", url)
    held = 512 * 2**20
    code = f"kept = bytearray({held}); print('there', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as engine:
        assert engine.stdout is not None
        engine.stdout.readline()
        who = identity(engine.pid)
        assert who is not None
        store = open_store(url)
        add_launch(store, host_facts().name, "vllm", ["x"], [], "x", who.pid, who.pid, who.start_time, 1, "m")
        free = host_facts().memory_available_bytes or 0
        with hold_lock(separate_lab / "runner.lock", url):
            ahead = host_for_a_launch(read_environment()).memory_available_bytes or 0
        without_a_runner = host_for_a_launch(read_environment()).memory_available_bytes or 0
        engine.communicate(b"\n")
    # other processes of this machine come and go
    assert abs(ahead - free - held) < held / 2
    assert abs(without_a_runner - free) < held / 2
