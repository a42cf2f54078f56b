"""A load that grows to its full value first: what is sent meanwhile counts in no figure but throughput."""

from __future__ import annotations

import numpy as np
import pytest

from lab.findings import LabError
from lab.load.schedule import ramp_arrivals
from lab.metrics import summarise
from lab.records.plan import Slo
from lab.records.workload import Workload
from tests.factories import make_request, make_result


def test_slots_open_one_after_the_other_and_the_clock_starts_when_all_are_open(timed_server, measure) -> None:
    server = timed_server(first_ms=250, gap_ms=10, tokens=10)
    result = measure(server.base_url, concurrency=(4,), requests=12, ramp_s=0.8)
    ramp = [record for record in result.records if record.marks == ("ramp",)]
    measured = [record for record in result.records if not record.warmup]
    assert all(record.warmup for record in ramp)
    # one slot each 0.2 s; each comes round every 0.34 s, so the first two go round before the clock starts
    first_of_each = sorted(record.t0_ms for record in ramp)
    assert first_of_each[0] == pytest.approx(-800, abs=150)
    assert len(measured) == 12
    assert min(record.t0_ms for record in measured) >= 0
    assert max(record.t0_ms for record in ramp) < 0
    summary = summarise(result, slo=Slo(), workload=Workload(kind="closed", requests=12))
    assert (summary.requests, summary.ttft_ms.n, summary.peak_in_flight) == (12, 12, 4)


def test_a_window_after_the_ramp_sees_the_full_load_from_its_first_moment(timed_server, measure) -> None:
    # 4 slots that write one token each 20 ms all the time: 200 tokens a second
    server = timed_server(first_ms=20, gap_ms=20, tokens=50)
    result = measure(server.base_url, concurrency=(4,), duration_s=2.0, output_tokens=50, ramp_s=1.0)
    summary = summarise(result, slo=Slo(), workload=Workload(kind="closed", duration_s=2.0))
    assert summary.output_tokens_per_s == pytest.approx(200, rel=0.1)
    carried = next(mark for mark in summary.marks if mark.code == "ramp-tokens-counted")
    assert 0 < carried.params["tokens"] < summary.output_tokens
    assert summary.steady_s == pytest.approx(2.0, abs=0.2)


def test_the_rate_of_an_open_loop_grows_evenly_and_its_moments_stay(timed_server, measure) -> None:
    server = timed_server(first_ms=5, gap_ms=5, tokens=2)
    asked = {"kind": "open", "rate_per_s": (40.0,), "requests": 20, "output_tokens": 2, "arrival": "constant"}
    result = measure(server.base_url, **asked, ramp_s=1.0)
    ramp = [record.scheduled_ms for record in result.records if record.warmup]
    assert len(ramp) == 20  # half the rate on average
    assert sum(at < -500 for at in ramp) == 5  # a quarter of them in the first half
    measured = [record.scheduled_ms for record in result.records if not record.warmup]
    assert measured == pytest.approx([25.0 * number for number in range(20)])
    assert "rate-not-achieved" not in {
        mark.code for mark in summarise(result, slo=Slo(), workload=Workload(kind="open", requests=20)).marks
    }


def test_random_arrivals_of_a_ramp_grow_on_average() -> None:
    found = [ramp_arrivals(100.0, 10.0, "poisson", burstiness=1.0, seed=seed) for seed in range(20)]
    assert np.mean([len(moments) for moments in found]) == pytest.approx(500, rel=0.05)
    early = np.mean([sum(at < -5 for at in moments) for moments in found])
    assert early == pytest.approx(125, rel=0.1)
    assert all(-10 <= at < 0 for moments in found for at in moments)


def test_a_kind_that_cannot_grow_says_so(timed_server, measure) -> None:
    with pytest.raises(LabError, match="ramp-without-meaning"):
        measure("http://127.0.0.1:1/v1", kind="burst", requests=4, ramp_s=1.0)


def test_tokens_of_the_ramp_count_once_where_they_arrived() -> None:
    # sent 0.5 s before the clock, a token each 100 ms from 100 ms on: the fifth comes with the clock, five after it
    ramp = make_request(9, t0_ms=-500.0, tpot_ms=100.0, tokens=10, warmup=True, marks=("ramp",))
    measured = make_request(0, t0_ms=0.0, tpot_ms=100.0, tokens=10)
    result = make_result([measured, ramp], concurrency_asked=2)
    summary = summarise(result, slo=Slo(), workload=Workload(kind="closed", requests=1))
    assert (summary.requests, summary.output_tokens, summary.completed_tokens_per_s) == (1, 10 + 5, 10.0)
    assert summary.output_tokens_per_s == pytest.approx(15.0)
    assert summary.peak_in_flight == 2
    assert "concurrency-not-reached" not in {mark.code for mark in summary.marks}
