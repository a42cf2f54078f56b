"""Each reservation from outside: a measurement that deserves it, and its neighbour that does not."""

from __future__ import annotations

import pytest

from lab.messages import messages
from lab.metrics import summarise
from lab.records.plan import Slo
from lab.records.request import ClientUsage, RequestRecord
from lab.records.summary import Summary
from lab.records.workload import Workload
from tests.factories import make_failure, make_request, make_result

BURST = Workload(kind="burst", requests=4)


def one_after_the_other(count: int = 100, **changes: object) -> list[RequestRecord]:
    """100 ms to the first of five tokens, 20 ms each: over after 180 ms, one every second."""
    return [make_request(i, t0_ms=i * 1000.0, **changes) for i in range(count)]  # type: ignore[arg-type]


def measured(
    records: list[RequestRecord], workload: Workload = BURST, cache_hit_ratio: float | None = None, **changes: object
) -> Summary:
    return summarise(make_result(records, **changes), slo=Slo(), workload=workload, cache_hit_ratio=cache_hit_ratio)


def codes(summary: Summary) -> set[str]:
    return {mark.code for mark in summary.marks}


def lag(p99_ms: float) -> ClientUsage:
    return ClientUsage(cpu_s=1.0, lag_p99_ms=p99_ms, lag_max_ms=p99_ms)


CASES: dict[str, tuple[Summary, Summary]] = {
    "client-lag": (measured(one_after_the_other(), client=lag(21)), measured(one_after_the_other(), client=lag(20))),
    "client-late": (
        measured(one_after_the_other(client_wait_ms=51.0)),
        measured(one_after_the_other(client_wait_ms=49.0)),
    ),
    "concurrency-not-reached": (
        measured(one_after_the_other(), concurrency_asked=2),
        measured(one_after_the_other(), concurrency_asked=1),
    ),
    "rate-not-achieved": (
        # due every 970 ms, sent every 1,000 ms: 97 % of the rate
        measured(
            [make_request(i, t0_ms=i * 970.0, sent_ms=i * 1000.0, scheduled_ms=i * 970.0) for i in range(100)],
            rate_asked_per_s=1 / 0.97,
        ),
        measured(
            [make_request(i, t0_ms=i * 990.0, sent_ms=i * 1000.0, scheduled_ms=i * 990.0) for i in range(100)],
            rate_asked_per_s=1 / 0.99,
        ),
    ),
    "cache-hits": (
        measured(one_after_the_other(), cache_hit_ratio=0.01),
        measured(one_after_the_other(), cache_hit_ratio=0.009),
    ),
    "output-length-differs": (
        measured(one_after_the_other(), output_tokens_asked=6),
        measured(one_after_the_other(), output_tokens_asked=5),
    ),
    "natural-length": (
        measured(one_after_the_other(), BURST.model_copy(update={"ignore_eos": False}), output_tokens_asked=64),
        measured(one_after_the_other(), output_tokens_asked=64),
    ),
    "failures": (measured([*one_after_the_other(), make_failure(100)]), measured(one_after_the_other())),
    "stopped-early": (measured(one_after_the_other(), stopped=True), measured(one_after_the_other())),
    "low-samples-p95": (measured(one_after_the_other(19)), measured(one_after_the_other(20))),
    "low-samples-p99": (measured(one_after_the_other(99)), measured(one_after_the_other(100))),
    "tokens-estimated": (measured(one_after_the_other(tokens_estimated=True)), measured(one_after_the_other())),
    "tokens-unknown": (
        measured(one_after_the_other(completion_tokens=None, tpot_ms=0.0)),
        measured(one_after_the_other()),
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_a_reservation_stands_where_it_belongs_and_only_there(code: str) -> None:
    deserved, spared = CASES[code]
    assert code in codes(deserved)
    assert code not in codes(spared)
    assert code in messages()
