"""One load by several loader processes: what each sends, and what becomes of it when one of them dies."""

from __future__ import annotations

import os
import signal
import threading
import time

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.findings import LabError
from lab.load.shape import Shape, read_shape
from lab.load.share import Share, count_processes
from lab.metrics import summarise
from lab.records.plan import Slo
from lab.records.workload import LoadJob, Workload
from tests.load.conftest import until


def job(processes: int | None = None, **workload: object) -> LoadJob:
    given_workload = Workload(**{"kind": "closed", "requests": 4096, **workload})  # type: ignore[arg-type]
    return LoadJob(base_url="http://127.0.0.1:1/v1", model="m", workload=given_workload, processes=processes)


@given(st.integers(1, 8), st.integers(1, 200), st.integers(1, 500))
def test_the_shares_are_the_whole(of: int, slots: int, requests: int) -> None:
    shares = [Share(number, of) for number in range(of)]
    parts = [share.of_shape(Shape("closed", requests, None, slots, None, ())) for share in shares]
    assert sum(part.slots or 0 for part in parts) == slots
    assert sum(part.requests or 0 for part in parts) == requests
    assert not [part for part in parts if part.slots == 0 and part.requests]
    assert sorted(item for share in shares for item in share.pick(range(requests))) == list(range(requests))


@pytest.mark.parametrize(
    ("cores", "workload", "expected"),
    [
        (2, {"concurrency": (2048,)}, 1),  # an engine and a loader share these
        (16, {"concurrency": (64,)}, 1),  # one keeps up
        (16, {"concurrency": (1024,)}, 2),
        (16, {"concurrency": (9000,), "requests": 9000}, 4),
        (16, {"kind": "open", "rate_per_s": (1000.0,), "output_tokens": 60}, 3),
        (16, {"kind": "burst", "requests": 1000}, 2),
        (64, {"kind": "gang", "concurrency": (4096,)}, 1),
    ],
)
def test_several_are_taken_where_the_load_needs_them_and_the_cores_allow(cores, workload, expected) -> None:
    asked = job(**workload)
    assert count_processes(asked, read_shape(asked), cores) == expected


def test_the_number_asked_for_wins_up_to_the_slots() -> None:
    asked = job(processes=3, concurrency=(2,))
    assert count_processes(asked, read_shape(asked), 1) == 2
    with pytest.raises(LabError, match="load-not-split"):
        refused = job(processes=2, kind="gang", concurrency=(4,))
        count_processes(refused, read_shape(refused), 8)


def test_two_processes_share_slots_and_requests_and_begin_together(timed_server, measure) -> None:
    server = timed_server(first_ms=50, gap_ms=10, tokens=10)
    result = measure(server.base_url, concurrency=(5,), requests=41, warmup_requests=3, job={"processes": 2})
    measured = [record for record in result.records if not record.warmup]
    assert (len(measured), len(result.records)) == (41, 44)
    assert len({record.index for record in result.records}) == 44
    assert all(record.ok and record.completion_tokens == 10 for record in measured)
    assert len(server.stats()["log"]) == 44
    summary = summarise(result, slo=Slo(), workload=Workload(kind="closed", requests=41))
    assert summary.peak_in_flight == 5
    assert max(sorted(record.t0_ms for record in measured)[:5]) < 1000  # all slots of both at one moment
    assert min(record.t0_ms for record in measured) >= 0
    assert len(result.client.processes) == 2
    assert result.client.cpu_s == pytest.approx(sum(each.cpu_s for each in result.client.processes), abs=0.2)
    assert result.client.lag_p99_ms == max(each.lag_p99_ms for each in result.client.processes)
    assert (result.concurrency_asked, result.requests_asked) == (5, 41)


def test_two_processes_keep_the_moments_of_one(timed_server, measure) -> None:
    server = timed_server(first_ms=20, gap_ms=5, tokens=2)
    open_loop = {"kind": "open", "rate_per_s": (60.0,), "requests": 30, "output_tokens": 2}
    one = measure(server.base_url, **open_loop, job={"seed": 5})
    two = measure(server.base_url, **open_loop, job={"seed": 5, "processes": 2})
    assert [record.scheduled_ms for record in two.records] == pytest.approx(
        [record.scheduled_ms for record in one.records]
    )
    assert [record.index for record in two.records] == list(range(30))


def test_a_window_of_time_is_one_for_all(timed_server, measure) -> None:
    # a token each 300 ms: whole answers at 1,200 ms, then tokens at 1,500 and 1,800; the next would come at 2,100
    server = timed_server(first_ms=300, gap_ms=300, tokens=4)
    result = measure(server.base_url, concurrency=(4,), duration_s=2.05, output_tokens=4, job={"processes": 2})
    summary = summarise(result, slo=Slo(), workload=Workload(kind="closed", duration_s=2.05))
    assert (summary.succeeded, summary.incomplete, summary.output_tokens) == (4, 4, 4 * 4 + 4 * 2)


@pytest.mark.parametrize("ramp_s", [0.25, 0.3])
def test_a_ramp_loses_no_request_however_its_own_are_shared_out(timed_server, measure, ramp_s) -> None:
    # 40 a second: 5 or 6 requests of the ramp, which fall to the processes in turn
    server = timed_server(first_ms=20, gap_ms=5, tokens=2)
    asked = {"kind": "open", "rate_per_s": (40.0,), "requests": 11, "arrival": "constant", "output_tokens": 2}
    result = measure(server.base_url, **asked, ramp_s=ramp_s, job={"processes": 2})
    measured = [record for record in result.records if not record.warmup]
    assert [record.scheduled_ms for record in measured] == pytest.approx([25.0 * number for number in range(11)])
    assert len(result.records) == len(server.stats()["log"]) == 11 + round(40 * ramp_s / 2)


def loaders() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "lab.load" in each.cmdline()]


def test_stopping_ends_every_process_at_once(timed_server, measure) -> None:
    server = timed_server(first_ms=60_000, gap_ms=10, tokens=10)
    stopped = threading.Event()
    threading.Thread(target=lambda: (until(lambda: server.stats()["running"] == 4), stopped.set())).start()
    result = measure(
        server.base_url, concurrency=(4,), requests=8, job={"processes": 2}, run={"cancelled": stopped.is_set}
    )
    assert result.stopped
    assert {record.failure for record in result.records} == {"cancelled"}
    until(lambda: server.stats()["running"] == 0)


def test_the_death_of_one_fails_the_whole_and_ends_the_others(timed_server, measure) -> None:
    server = timed_server(first_ms=60_000, gap_ms=10, tokens=10)

    def kill_one() -> None:
        until(lambda: server.stats()["running"] == 4)
        os.kill(loaders()[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    began = time.monotonic()
    with pytest.raises(LabError, match="loader-died"):
        measure(server.base_url, concurrency=(4,), requests=8, job={"processes": 2})
    killer.join()
    assert time.monotonic() - began < 40
    assert loaders() == []
    until(lambda: server.stats()["running"] == 0)
