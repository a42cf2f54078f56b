"""run, list, show, stop and runner, with real processes against a stub server."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from lab.environment import ROOT
from lab.host.lock import read_lock
from lab.store import list_experiments
from tests.cli.test_app import lab_command
from tests.runner.labs import Lab, wait_for


@pytest.fixture
def experiment_file(lab: Lab, start_stub, tmp_path: Path) -> Path:
    server = start_stub(first_ms=20, gap_ms=5)
    return write_experiment(tmp_path, server.root_url)


@pytest.fixture(autouse=True)
def no_runner_left(lab: Lab):
    yield
    done = lab_command("runner", "--stop")
    assert done.returncode == 0, done.stderr


def start_waiting(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lab", "run", str(path), "--wait"],
        cwd=ROOT,
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


def write_experiment(folder: Path, url: str, tokens: int = 4) -> Path:
    path = folder / "attach.toml"
    path.write_text(
        f'name = "attached"\nrepeats = 2\n[workload]\nkind = "burst"\nrequests = 4\noutput_tokens = {tokens}\n'
        f'warmup_requests = 0\n[[arm]]\nname = "running"\ntarget = "attach"\nbase_url = "{url}"\n',
        "utf-8",
    )
    return path


def test_run_wait_json_prints_only_the_result_and_exits_0(lab: Lab, experiment_file: Path) -> None:
    done = lab_command("run", str(experiment_file), "--wait", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["experiment"]["state"] == "done"
    assert [(row["arm"], row["repeat"], row["succeeded"]) for row in result["rows"]] == [
        ("running", 1, 4),
        ("running", 2, 4),
    ]
    assert result["verdicts"] == []
    assert "[1/2] running, repeat 1: " in done.stderr
    shown = lab_command("show", "latest", "--json")
    assert json.loads(shown.stdout) == result
    assert "P95 TTFT" in lab_command("show", "latest").stdout
    listed = json.loads(lab_command("list", "--json").stdout)
    assert [(each["name"], each["state"], each["trials_done"]) for each in listed] == [("attached", "done", 2)]


def test_run_exits_1_where_nothing_could_be_measured(lab: Lab, tmp_path: Path) -> None:
    path = write_experiment(tmp_path, "http://127.0.0.1:9")
    done = lab_command("run", str(path), "--wait", "--json")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["experiment"]["state"] == "failed"
    assert {row["failure"] for row in result["rows"]} == {"load-failed"}
    assert "refused" in done.stderr


def test_a_typo_in_the_file_is_found_before_anything_is_queued(lab: Lab, experiment_file: Path) -> None:
    experiment_file.write_text(experiment_file.read_text("utf-8").replace("repeats", "repeat"), "utf-8")
    done = lab_command("run", str(experiment_file), "--wait")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "attach.toml:2" in done.stderr and "repeats" in done.stderr
    assert list_experiments(lab.store) == ()
    assert read_lock(lab.env.lock_file) is None


def test_ctrl_c_while_waiting_leaves_the_experiment_running_and_says_so(lab: Lab, start_stub, tmp_path: Path) -> None:
    server = start_stub(gap_ms=100)
    path = write_experiment(tmp_path, server.root_url, tokens=30)
    waiting = start_waiting(path)
    wait_for(lambda: [row for row in list_experiments(lab.store) if row.state == "running"])
    wait_for(lambda: server.running() == 4)
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=20)
    assert waiting.returncode == 130
    assert "goes on" in said and "python -m lab stop 1" in said and "Traceback" not in said
    assert server.running() == 4
    stopped = lab_command("stop", "1")
    assert (stopped.returncode, "stopped" in stopped.stdout) == (0, True)
    wait_for(lambda: server.running() == 0, timeout_s=3)


def test_a_preset_is_found_by_its_name(lab: Lab, experiment_file: Path) -> None:
    experiment_file.rename(lab.config_dir / "experiments" / "mine.toml")
    done = lab_command("run", "mine", "--repeats", "1", "--wait", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["rows"]) == 1


def test_the_runner_in_the_foreground_ends_with_ctrl_c(lab: Lab) -> None:
    runner = subprocess.Popen([sys.executable, "-m", "lab", "runner"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: read_lock(lab.env.lock_file))
    holder = read_lock(lab.env.lock_file)
    assert holder is not None and holder.pid == runner.pid
    time.sleep(0.1)
    runner.send_signal(signal.SIGINT)
    _, said = runner.communicate(timeout=20)
    assert runner.returncode == 0 and "Traceback" not in said
    assert lab_command("runner", "--stop").stdout == "No runner runs here.\n"


def test_waiting_on_a_locked_database_says_why(lab: Lab, start_stub, tmp_path: Path) -> None:
    server = start_stub(gap_ms=100)
    path = write_experiment(tmp_path, server.root_url, tokens=30)
    waiting = start_waiting(path)
    assert waiting.stderr is not None
    wait_for(lambda: server.running() == 4, timeout_s=60)
    with closing(sqlite3.connect(lab.run_dir / "experiments.db", timeout=10, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        said = iter(waiting.stderr.readline, "")
        assert any("Waiting: The database" in line and "held by another program" in line for line in said)
        holder.execute("ROLLBACK")
    _, rest = waiting.communicate(timeout=90)
    assert waiting.returncode == 0, rest
