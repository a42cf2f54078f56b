"""The way to the first token, with parts that must add up to what the client saw."""

from __future__ import annotations

import pytest

from lab.metrics.waterfall import Waterfall, mean_parts, waterfalls
from lab.records.request import RequestRecord
from tests.factories import make_failure, make_request


def only(record: RequestRecord) -> Waterfall:
    (found,) = waterfalls([record])
    return found


def test_what_the_engine_does_not_account_for_is_network_and_front_end() -> None:
    record = make_request(3, ttft_ms=100.0, client_wait_ms=2.0, engine_queue_ms=30.0, engine_prefill_ms=55.0)
    assert only(record) == Waterfall(3, 2.0, None, 15.0, 30.0, 55.0, None)


def test_without_the_engines_times_all_is_unknown() -> None:
    found = only(make_request(ttft_ms=100.0, client_wait_ms=0.0))
    assert (found.network, found.queue, found.prefill, found.unknown) == (None, None, None, 100.0)


def test_with_one_of_the_engines_times_the_rest_is_unknown() -> None:
    found = only(make_request(ttft_ms=100.0, engine_prefill_ms=60.0))
    assert (found.network, found.queue, found.prefill, found.unknown) == (None, None, 60.0, 40.0)


def test_in_an_open_loop_wait_and_connection_are_part_of_ttft() -> None:
    # due at 1000, sent at 1025: 5 ms wait and 20 ms for the connection; first token at 1100
    record = make_request(
        t0_ms=1000.0, scheduled_ms=1000.0, sent_ms=1025.0, ttft_ms=100.0, client_wait_ms=5.0, connect_ms=20.0,
        engine_queue_ms=10.0, engine_prefill_ms=60.0,
    )  # fmt: skip
    found = only(record)
    assert found.network == pytest.approx(5.0)
    assert sum(value for value in found.parts.values() if value is not None) == pytest.approx(100.0)


def test_an_engine_that_claims_more_time_than_passed_is_not_believed() -> None:
    found = only(make_request(ttft_ms=100.0, engine_queue_ms=50.0, engine_prefill_ms=60.0))
    assert (found.queue, found.prefill, found.unknown) == (None, None, 100.0)
    assert only(make_request(ttft_ms=100.0, engine_queue_ms=40.0, engine_prefill_ms=60.5)).network == 0.0


def test_warmup_failures_and_answers_without_a_first_token_have_no_waterfall() -> None:
    assert waterfalls([make_request(warmup=True), make_failure(1, "server"), make_request(ttft_ms=None)]) == ()


def test_means_add_up_to_the_mean_of_the_whole_way() -> None:
    falls = [Waterfall(0, 2.0, None, 10.0, 0.0, 50.0, None), Waterfall(1, 0.0, 8.0, None, None, None, 40.0)]
    assert mean_parts(falls) == {
        "client_wait": 1.0, "connection": 4.0, "network": 5.0, "queue": 0.0, "prefill": 25.0, "unknown": 20.0,
    }  # fmt: skip
    assert mean_parts([]) == {}
