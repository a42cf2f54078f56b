"""A runner is started once, in a session of its own, and ended on request."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from lab.environment import ROOT, Environment, read_environment
from lab.findings import LabError
from lab.host.runner_process import RunnerInfo, ensure_runner, runner_alive, runner_variables, stop_runner

# what a runner does as far as this module is concerned
STAND_IN = """
import signal, sys, threading
from lab.environment import read_environment
from lab.host.lock import hold_lock
end = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: end.set())
env = read_environment()
with hold_lock(env.lock_file, env.database_url):
    end.wait(60)
"""
COMMAND = (sys.executable, "-c", STAND_IN)


@pytest.fixture
def env(separate_lab: Path) -> Environment:
    return read_environment()


@pytest.fixture
def runner(env: Environment):  # type: ignore[no-untyped-def]
    yield ensure_runner(env, COMMAND)
    stop_runner(env, 20)


def test_a_runner_is_started_in_a_session_of_its_own(env: Environment, runner: RunnerInfo) -> None:
    assert runner.started
    assert runner_alive(env)
    assert os.getsid(runner.pid) == runner.pid != os.getsid(0)


def test_a_second_call_finds_the_first_runner(env: Environment, runner: RunnerInfo) -> None:
    assert ensure_runner(env, COMMAND) == RunnerInfo(runner.pid, started=False)


def test_a_runner_of_another_database_is_told(env: Environment, runner: RunnerInfo) -> None:
    other = read_environment({**env.variables, "LAB_DATABASE_URL": "sqlite:///other.db"})
    with pytest.raises(LabError) as caught:
        ensure_runner(other, COMMAND)
    finding = caught.value.findings[0]
    assert (finding.code, finding.params["pid"], finding.params["database"]) == (
        "runner-lock-taken",
        runner.pid,
        env.database_url,
    )


def test_stopping_waits_until_it_is_gone_and_says_whether_one_ran(env: Environment) -> None:
    ensure_runner(env, COMMAND)
    assert stop_runner(env, 20) is True
    assert not runner_alive(env)
    assert stop_runner(env, 20) is False


def test_a_runner_that_dies_at_once_is_told_with_its_last_line(env: Environment) -> None:
    command = (sys.executable, "-c", "raise SystemExit('no database here')")
    with pytest.raises(LabError) as caught:
        ensure_runner(env, command)
    finding = caught.value.findings[0]
    assert (finding.code, finding.params["tail"]) == ("runner-not-started", "no database here")


def test_two_starters_at_once_get_one_runner(env: Environment) -> None:
    found: list[RunnerInfo] = []
    threads = [threading.Thread(target=lambda: found.append(ensure_runner(env, COMMAND))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({info.pid for info in found}) == 1
    assert len(found) == 3
    stop_runner(env, 20)


def test_the_runner_gets_the_same_folders_as_its_starter(env: Environment) -> None:
    seen = read_environment(runner_variables(env), ROOT)
    assert (seen.run_dir, seen.lock_file, seen.database_url) == (env.run_dir, env.lock_file, env.database_url)
