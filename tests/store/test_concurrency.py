"""Real processes on one real file (R68)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from lab.environment import ROOT
from lab.findings import LabError
from lab.store import (
    Store,
    count_experiments,
    get_experiment,
    get_host,
    heartbeat,
    history_totals,
    list_experiments,
    list_requests,
    open_store,
    queue_experiment,
    queue_experiment_once,
    request_stop,
    write_problem,
)
from lab.store import database as database_module
from tests.factories import make_experiment, make_trials


def start(verb: str, url: str, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-m", "tests.store.contender", verb, url, *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> object:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


@contextmanager
def held(url: str, seconds: float) -> Iterator[None]:
    """Somebody else has the writer's place."""
    holder = start("holds", url, str(seconds))
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
    finally:
        holder.kill()
        holder.communicate()


def test_processes_that_open_a_new_file_together_all_get_on(url: str) -> None:
    processes = [start("opened", url) for _ in range(3)]
    assert sorted(int(str(answer(process))) for process in processes) == [1, 2, 3]


def test_threads_that_open_a_new_file_together_all_get_on(url: str) -> None:
    errors: list[Exception] = []

    def work() -> None:
        try:
            heartbeat(open_store(url), "h", runner_pid=1, state="idle")
        except Exception as problem:
            errors.append(problem)

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_no_trial_is_claimed_twice(store: Store, url: str) -> None:
    experiment = make_experiment(repeats=5)
    for _ in range(3):
        queue_experiment(store, experiment, make_trials(experiment), person="Ada", host="h")
    processes = [start("claims", url) for _ in range(2)]
    claimed = [answer(process) for process in processes]
    together = [number for found in claimed if isinstance(found, list) for number in found]
    assert sorted(together) == list(range(1, 46))


def test_writers_lose_and_double_nothing(store: Store, url: str) -> None:
    writers = [start("writes", url, host) for host in ("one", "two", "three")]
    reader = start("reads", url)
    assert {str(answer(writer)) for writer in writers} == {"one", "two", "three"}
    assert float(str(answer(reader))) < 2
    totals = history_totals(store)
    # 3 experiments of 6 trials of one measurement of 300 requests
    assert (totals.experiments, totals.measurements, totals.requests) == (3, 18, 5400)
    measurements = [m for row in list_experiments(store) for m in get_experiment(store, row.id).measurements]
    stored = sum(len(list_requests(store, m.id)) for m in measurements)
    assert stored == 18 * (300 + 2)


def test_reading_goes_on_while_somebody_writes(store: Store, url: str) -> None:
    with held(url, 30):
        begun = time.monotonic()
        assert count_experiments(store) == 0
        assert time.monotonic() - begun < 1


def test_opening_an_existing_file_does_not_wait_for_a_writer(store: Store, url: str) -> None:
    with held(url, 30):
        begun = time.monotonic()
        open_store(url).close()
        assert time.monotonic() - begun < 1


def test_a_write_waits_for_its_turn(store: Store, url: str) -> None:
    with held(url, 3):
        begun = time.monotonic()
        heartbeat(store, "h", runner_pid=1, state="idle")
        assert 0.5 < time.monotonic() - begun < 10
    assert get_host(store, "h") is not None


def test_a_write_that_never_gets_its_turn_is_one_line(store: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_S", 1)
    impatient = open_store(url)
    with held(url, 30), pytest.raises(LabError, match="database-busy"):
        heartbeat(impatient, "h", runner_pid=1, state="idle")
    impatient.close()


def test_a_killed_writer_leaves_no_trace(store: Store, url: str, database: Path) -> None:
    writer = start("writes", url, "killed")
    deadline = time.monotonic() + 60
    while history_totals(store).measurements == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    writer.kill()
    writer.communicate()
    again = open_store(url)
    for row in list_experiments(again):
        for measurement in get_experiment(again, row.id).measurements:
            assert len(list_requests(again, measurement.id)) == 302
    again.close()


def test_of_several_servers_that_queue_the_same_at_once_one_does(url: str) -> None:
    open_store(url).close()
    answers = [answer(process) for process in [start("queues_once", url) for _ in range(4)]]
    numbers, made = {each[0] for each in answers}, [each[1] for each in answers]  # type: ignore[index]
    assert len(numbers) == 1
    assert sorted(made) == [False, False, False, True]


def test_an_experiment_that_has_ended_is_queued_again(store: Store) -> None:
    experiment = make_experiment()
    first = queue_experiment_once(store, experiment, make_trials(experiment), person="Ada", host="h")
    again = queue_experiment_once(store, experiment, make_trials(experiment), person="Bob", host="h")
    elsewhere = queue_experiment_once(store, experiment, make_trials(experiment), person="Ada", host="another")
    assert (again, elsewhere[1]) == ((first[0], False), True)
    request_stop(store, first[0], "Ada")
    assert queue_experiment_once(store, experiment, make_trials(experiment), person="Ada", host="h")[1]


def test_why_nothing_can_be_written_is_told(url: str) -> None:
    store = open_store(url)
    assert write_problem(store) is None
    with held(url, 20):
        finding = write_problem(store)
        assert finding is not None
        assert finding.code == "database-held"
    assert write_problem(store) is None
    store.close()
