"""How commands end: one line, an exit status, never a traceback."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from lab.cli import app
from lab.environment import ROOT


def lab_command(
    *arguments: str, timeout_s: float = 60, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab", *arguments],
        cwd=ROOT,
        env={**os.environ, **(more or {})},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def test_help_lists_every_command_of_the_design() -> None:
    done = lab_command("--help")
    assert done.returncode == 0
    named = {line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line.strip()}
    assert named == {
        "doctor", "check", "set", "diff", "restore", "convert", "paste", "command",
        "run", "list", "show", "stop", "load", "models", "probe", "export", "runner",
    }  # fmt: skip


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; from lab.cli.app import main; main(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    for heavy in ("sqlalchemy", "pydantic", "numpy", "httpx"):
        assert f"'{heavy}'" not in done.stdout


@pytest.mark.parametrize("name", list(app.COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([name, "--help"]) == 0
    assert f"python -m lab {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["list", "--limit", "many"],
        ["list", "--state", "asleep"],
        ["show"],
        ["show", "17"],
        ["show", "seventeen"],
        ["stop", "latest"],
        ["run", "no/such/file.toml"],
    ],
)
def test_wrong_input_is_one_line_and_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


def test_a_bug_becomes_one_line_that_names_its_log(
    separate_lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise RuntimeError("a bug\nin two lines")

    monkeypatch.setattr(app.lab, "main", lambda **_: broken())
    assert app.main(["list"]) == 1
    line = capsys.readouterr().err
    assert len(line.splitlines()) == 1 and "RuntimeError" in line
    (log,) = (separate_lab / "logs").glob("crash-*.log")
    assert str(log) in line
    assert "in broken" in log.read_text("utf-8")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_reader_that_goes_away_is_no_crash() -> None:
    producer = subprocess.Popen(
        [sys.executable, "-m", "lab", "list"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert producer.stdout is not None and producer.stderr is not None
    producer.stdout.close()
    assert b"Traceback" not in producer.stderr.read()
    producer.stderr.close()
    producer.wait(30)


@pytest.mark.parametrize(
    "arguments",
    [
        ["load", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--requests", "1", "--no-probe"],
        ["runner"],
        ["run", str(ROOT / "configs" / "experiments" / "batching.toml")],
    ],
)
def test_a_folder_for_logs_that_cannot_be_is_told_in_a_line(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "file").touch()
    variables = {
        "LAB_RUN_DIR": str(tmp_path / "file" / "below"),
        "LAB_LOCK_FILE": str(tmp_path / "lock"),
        "LAB_DATABASE_URL": f"sqlite:///{tmp_path / 'x.db'}",
    }
    done = lab_command(*arguments, more=variables)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].count("LAB_RUN_DIR") == 1 and "Traceback" not in done.stderr
