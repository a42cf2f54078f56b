"""Whole measurements by the loader's own process against servers of known timing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lab.environment import ROOT
from lab.metrics import summarise
from lab.records.plan import Slo
from lab.records.workload import Workload
from tests.load.conftest import until


def numbers(result, **workload):
    return summarise(result, slo=Slo(), workload=Workload(**workload))


def test_a_burst_over_the_servers_slots_gives_its_throughput(timed_server, measure) -> None:
    # 16 at a time, each wave 1.0 s: 2048 tokens in 2.0 s
    server = timed_server(first_ms=55, gap_ms=15, tokens=64, slots=16)
    result = measure(server.base_url, kind="burst", requests=32, output_tokens=64)
    summary = numbers(result, kind="burst")
    assert (summary.requests, summary.succeeded, summary.output_tokens) == (32, 32, 2048)
    assert summary.output_tokens_per_s == pytest.approx(1024, rel=0.1)
    assert summary.peak_in_flight == 32


def test_a_closed_loop_of_two_slots_gives_its_throughput(timed_server, measure) -> None:
    # three rounds of 0.5 s with two requests of 10 tokens each
    server = timed_server(first_ms=50, gap_ms=50, tokens=10)
    result = measure(server.base_url, concurrency=(2,), requests=6)
    summary = numbers(result, kind="closed")
    assert summary.output_tokens_per_s == pytest.approx(60 / 1.5, rel=0.1)
    assert summary.peak_in_flight == 2
    assert server.stats()["most_sockets"] <= 3  # two slots, and the one that asks


def test_all_of_150_requests_are_open_at_once_and_none_waits_for_another(timed_server, measure) -> None:
    server = timed_server(first_ms=1000, gap_ms=1, tokens=1)
    result = measure(server.base_url, concurrency=(150,), requests=150, output_tokens=1)
    assert server.stats()["most_sockets"] == 150
    assert max(record.ttft_ms for record in result.records) < 1500  # a second round would be at 2000
    assert min(record.ttft_ms for record in result.records) >= 1000
    assert all(record.connect_ms is None for record in result.records)


def test_requests_under_way_when_the_time_is_up_are_incomplete(timed_server, measure) -> None:
    # 14 tokens, one each 100 ms; in 2 s each of 4 slots completes one answer and has 6 tokens of the next
    server = timed_server(first_ms=100, gap_ms=100, tokens=14)
    result = measure(server.base_url, concurrency=(4,), duration_s=2.05, output_tokens=14)
    summary = numbers(result, kind="closed")
    assert (summary.succeeded, summary.incomplete, dict(summary.failed)) == (4, 4, {})
    assert summary.ttft_ms.n == 8
    assert summary.output_tokens == 4 * 14 + 4 * 6
    assert result.window_s == 2.05
    until(lambda: server.stats()["running"] == 0)


def test_an_open_loop_keeps_its_moments_however_slow_the_server(timed_server, measure) -> None:
    server = timed_server(first_ms=400, gap_ms=1, tokens=1, slots=2)
    result = measure(server.base_url, kind="open", rate_per_s=(20.0,), arrival="constant", requests=10, output_tokens=1)
    records = result.records
    assert [record.scheduled_ms for record in records] == pytest.approx([50.0 * n for n in range(10)])
    late = [record.sent_ms - record.scheduled_ms for record in records]
    assert min(late) >= 0
    assert sorted(late)[5] < 50  # most leave on time, also on a busy machine
    assert [record.client_wait_ms for record in records if record.connect_ms is None] == pytest.approx(
        [wait for wait, record in zip(late, records, strict=True) if record.connect_ms is None]
    )
    # two at a time, 0.4 s each: the last pair starts at 1.6 s and its first token comes at 2.0 s
    assert records[-1].ttft_ms == pytest.approx(2000 - 450, abs=150)


def test_a_gang_waits_for_all_of_its_own(timed_server, measure) -> None:
    server = timed_server(first_ms=50, gap_ms=10, tokens=10)
    result = measure(server.base_url, kind="gang", concurrency=(4,), requests=8)
    first, second = result.records[:4], result.records[4:]
    end_of_first = max(record.t0_ms + record.e2e_ms for record in first)
    assert min(record.t0_ms for record in second) >= end_of_first


def test_a_ladder_sends_one_at_a_time_with_prompts_of_its_length(timed_server, measure) -> None:
    server = timed_server(first_ms=20, gap_ms=5, tokens=4)
    stage = {"kind": "prompt_tokens", "value": 32}
    result = measure(server.base_url, kind="ladder", repeat=3, prompt_tokens=(32, 64), job={"stage": stage})
    assert len(result.records) == 3
    assert numbers(result, kind="ladder").peak_in_flight == 1


def test_interference_marks_decoders_and_intruders_apart(timed_server, measure) -> None:
    server = timed_server(first_ms=20, gap_ms=20, tokens=50)
    result = measure(
        server.base_url, kind="interference", concurrency=(3,), repeat=2, rate_per_s=(5.0,), prompt_tokens=(64,),
        output_tokens=50,
    )  # fmt: skip
    marks = [record.marks[0] for record in result.records]
    assert marks.count("intruder") == 2
    assert marks.count("decoder") >= 3
    assert all(record.failure is None for record in result.records)


@pytest.mark.parametrize(("kind", "slots"), [("closed", (2,)), ("gang", (3,)), ("burst", ())])
def test_requests_that_end_before_the_time_is_up_leave_no_empty_rest(timed_server, measure, kind, slots) -> None:
    server = timed_server(first_ms=50, gap_ms=10, tokens=10)
    result = measure(server.base_url, kind=kind, concurrency=slots, requests=6, duration_s=20.0)
    log = server.stats()["log"]
    summary = numbers(result, kind=kind)
    assert result.window_s is None
    seconds = (max(last for _, _, last, _ in log) - min(arrived for arrived, *_ in log)) / 1e9
    assert summary.wall_s == pytest.approx(seconds, abs=0.1)
    assert summary.output_tokens_per_s == pytest.approx(60 / summary.wall_s)


@pytest.mark.parametrize(("requests", "seconds"), [(None, 2.5), (4, 0.8)])
def test_an_open_loop_by_time_lasts_as_long_and_one_by_number_until_its_last_token(
    timed_server, measure, requests, seconds
) -> None:
    # due at 0, 0.25, 0.5 and 0.75 s, each answered 70 ms later; by time alone also six more
    server = timed_server(first_ms=50, gap_ms=10, tokens=3)
    result = measure(
        server.base_url, kind="open", rate_per_s=(4.0,), arrival="constant", requests=requests, duration_s=2.5
    )
    summary = numbers(result, kind="open")
    assert summary.wall_s == pytest.approx(seconds, abs=0.1)
    assert summary.requests_per_s == pytest.approx(summary.succeeded / summary.wall_s)
    assert summary.succeeded == (requests or 10)


def test_interference_by_time_keeps_its_steady_answers_from_the_first_moment_to_the_last(timed_server, measure) -> None:
    # 2 slots of 20 tokens a second each; long prompts are due at 2 s only
    server = timed_server(first_ms=50, gap_ms=50, tokens=20)
    result = measure(
        server.base_url, kind="interference", concurrency=(2,), rate_per_s=(0.25,), duration_s=3.5, prompt_tokens=(64,),
        output_tokens=20,
    )  # fmt: skip
    summary = numbers(result, kind="interference")
    decoders = [record for record in result.records if record.marks[0] == "decoder"]
    assert 0 <= min(record.t0_ms for record in decoders) < 100
    assert (result.window_s, summary.incomplete, summary.interference.intruders) == (3.5, 2, 1)
    assert summary.output_tokens == pytest.approx(2 * 20 * 3.5 + 1, abs=6)


def test_interference_by_number_counts_what_its_steady_answers_wrote_until_its_end(timed_server, measure) -> None:
    # the one long prompt is answered at 2.05 s; no steady answer is whole by then but the first of each slot
    server = timed_server(first_ms=50, gap_ms=50, tokens=30)
    result = measure(
        server.base_url, kind="interference", concurrency=(2,), repeat=1, prompt_tokens=(64,), output_tokens=30
    )
    summary = numbers(result, kind="interference")
    assert result.window_s == pytest.approx(2.05, abs=0.1)
    assert summary.output_tokens_per_s == pytest.approx(2 * 20, rel=0.1)
    assert summary.completed_tokens_per_s == pytest.approx(61 / 2.05, rel=0.1)


def test_warm_up_is_sent_first_and_flagged(timed_server, measure) -> None:
    server = timed_server(first_ms=20, gap_ms=5, tokens=4)
    result = measure(server.base_url, concurrency=(2,), requests=4, warmup_requests=3)
    assert [record.warmup for record in result.records] == [True] * 3 + [False] * 4
    assert all(record.t0_ms < 0 for record in result.records[:3])
    assert len(server.stats()["log"]) == 7
    assert numbers(result, kind="closed").requests == 4


def test_stopping_closes_every_socket_at_once(timed_server, measure) -> None:
    server = timed_server(first_ms=50, gap_ms=1000, tokens=500)
    seen = []
    started = time.monotonic()
    result = measure(
        server.base_url, kind="burst", requests=32, output_tokens=500,
        run={"on_progress": seen.append, "cancelled": lambda: bool(seen) and seen[-1].in_flight == 32},
    )  # fmt: skip
    assert result.stopped
    assert {record.failure for record in result.records} == {"cancelled"}
    until(lambda: server.stats()["running"] == 0, 2)
    assert server.stats()["sockets"] == 1  # the one that asks
    assert time.monotonic() - started < 10


def test_the_loader_ends_with_the_process_that_started_it(timed_server, separate_lab: Path) -> None:
    server = timed_server(first_ms=50, gap_ms=1000, tokens=500)
    code = (
        "import os, pathlib, sys\n"
        "from lab.load.supervisor import run_load\n"
        "from lab.records.workload import LoadJob, Workload\n"
        "work = Workload(kind='burst', requests=4, output_tokens=500, warmup_requests=0)\n"
        "job = LoadJob(base_url=sys.argv[1], model='m', workload=work)\n"
        "run_load(job, run_dir=pathlib.Path(sys.argv[2]), variables=dict(os.environ))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, server.base_url, str(separate_lab)], cwd=ROOT)
    until(lambda: server.stats()["running"] == 4, 30)
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) == 2  # the loader and its decoder
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert server.stats()["running"] == 0


def test_nothing_is_left_in_the_run_directory(timed_server, measure, separate_lab: Path) -> None:
    server = timed_server(first_ms=20, gap_ms=5, tokens=4)
    measure(server.base_url, requests=2)
    assert list((separate_lab / "load").iterdir()) == []


def test_a_ladder_may_hold_several_requests_at_once(timed_server, measure) -> None:
    server = timed_server(first_ms=20, gap_ms=5, tokens=4)
    stage = {"kind": "prompt_tokens", "value": 32}
    result = measure(
        server.base_url, kind="ladder", repeat=6, concurrency=(3,), prompt_tokens=(32, 64), job={"stage": stage}
    )
    assert result.concurrency_asked == 3
    assert numbers(result, kind="ladder").peak_in_flight == 3
