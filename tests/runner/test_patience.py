"""Results outlast a database that is busy."""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest

from lab.findings import LabError, error
from lab.runner import patience
from lab.runner.patience import insist
from lab.store import add_intent
from tests.runner.labs import Lab, wait_for


def test_a_passing_failure_is_tried_again() -> None:
    answers = iter([error("database-busy"), None])

    def act() -> str:
        problem = next(answers)
        if problem is not None:
            raise problem
        return "stored"

    assert insist(act, within_s=5.0) == "stored"


def test_a_full_disk_is_waited_for_as_someone_may_make_room() -> None:
    answers = iter([error("database-disk-full"), None])

    def act() -> str:
        problem = next(answers)
        if problem is not None:
            raise problem
        return "stored"

    assert insist(act, within_s=5.0) == "stored"


def test_a_runner_that_must_end_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "ENDING_WITHIN_S", 0.5)
    ending = threading.Event()
    ending.set()

    def act() -> None:
        raise error("database-busy")

    began = time.monotonic()
    with pytest.raises(LabError):
        insist(act, ending=ending)
    assert time.monotonic() - began < 5.0


def test_another_failure_is_raised_at_once() -> None:
    def act() -> None:
        raise error("trial-unknown", id=1)

    began = time.monotonic()
    with pytest.raises(LabError):
        insist(act)
    assert time.monotonic() - began < 0.5


def test_a_writer_that_holds_the_database_for_seconds_costs_no_result(lab: Lab, start_stub) -> None:
    server = start_stub(gap_ms=20)
    arm = f'[[arm]]\nname = "running"\ntarget = "attach"\nbase_url = "{server.root_url}"\n'
    experiment = lab.queue(arm, tokens=30, head='name = "test"\nrepeats = 2\n')
    lab.start_runner()
    lab.wait_state(experiment, "measuring")
    blocker = sqlite3.connect(lab.run_dir / "experiments.db", isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    threading.Timer(8.0, lambda: (blocker.execute("COMMIT"), blocker.close())).start()
    lab.wait_ended(experiment)
    view = lab.view(experiment)
    assert [trial.state for trial in view.trials] == ["done", "done"], lab.log()
    assert [row.summary.succeeded for row in view.measurements] == [4, 4]
    add_intent(lab.store, lab.host, "shutdown", person="tester")
    wait_for(lambda: lab.runners[0].poll() == 0)
