"""The definitions of DESIGN section 3 on records whose right answers were worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.metrics import summarise
from lab.records.plan import Slo
from lab.records.request import ClientUsage, RequestRecord
from lab.records.summary import Mark, Summary
from lab.records.workload import Workload
from tests.factories import make_failure, make_request, make_result, make_summary

BURST = Workload(kind="burst", requests=10)


def summary_of(
    records: list[RequestRecord], *, slo: Slo | None = None, workload: Workload = BURST, **result: object
) -> Summary:
    return summarise(make_result(records, **result), slo=slo or Slo(), workload=workload)


def codes(summary: Summary) -> set[str]:
    return {mark.code for mark in summary.marks}


def mark(summary: Summary, code: str) -> Mark:
    return next(m for m in summary.marks if m.code == code)


# Several tokens per chunk (R01): chunks at 100, 200, 300 ms, 10 tokens by the server's count.
R01 = make_request(
    ttft_ms=100.0, e2e_ms=300.0, tpot_ms=200 / 9, chunk_times_ms=(100.0, 200.0, 300.0), completion_tokens=10
)


def test_chunks_are_not_tokens() -> None:
    found = summary_of([R01])
    assert found.output_tokens == 10
    assert found.tokens_per_chunk == pytest.approx(10 / 3)
    assert found.ttft_ms.p50 == 100.0
    assert found.tpot_ms.p50 == pytest.approx(200 / 9)


def test_gaps_between_chunks_are_never_taken_for_gaps_between_tokens() -> None:
    found = summary_of([R01])
    assert (found.inter_chunk_ms.p50, found.inter_chunk_ms.max, found.inter_chunk_ms.n) == (100.0, 100.0, 2)
    assert found.itl_ms.max == pytest.approx(200 / 9)
    assert found.itl_ms.mean == pytest.approx(found.tpot_ms.mean)
    assert mark(found, "several-tokens-per-chunk").params["tokens_per_chunk"] == 3.33


def test_itl_shows_the_longest_stall_where_each_chunk_is_a_token() -> None:
    times = (100.0, 120.0, 620.0, 640.0)
    stalled = make_request(tokens=4, chunk_times_ms=times, e2e_ms=640.0, tpot_ms=180.0)
    found = summary_of([stalled, make_request(1, tokens=4)])
    assert found.itl_ms.max == 500.0
    assert found.itl_ms.n == 6
    assert "several-tokens-per-chunk" not in codes(found)


def test_a_buffered_stream_has_no_gaps() -> None:
    buffered = make_request(tokens=4, tpot_ms=0.01, marks=("buffered",))
    found = summary_of([RequestRecord(**{**_fields(buffered), "tpot_ms": None})])
    assert (found.tpot_ms.n, found.itl_ms.n, found.inter_chunk_ms.n) == (0, 0, 0)
    assert found.ttft_ms.n == 1
    assert mark(found, "buffered").params == {"requests": 1}


def _fields(record: RequestRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in RequestRecord.__dataclass_fields__}


def test_one_token_answers_have_no_tpot_and_do_not_win_with_zero() -> None:
    # R08: (a) one token at 120 ms; (b) mixed with answers of five tokens
    single = make_request(ttft_ms=120.0, tokens=1, e2e_ms=120.0)
    alone = summary_of([single, single])
    assert (alone.tpot_ms.n, alone.tpot_ms.p50, alone.itl_ms.n, alone.e2e_ms.p50) == (0, None, 0, 120.0)
    mixed = summary_of([single, make_request(1), make_request(2)])
    assert (mixed.tpot_ms.n, mixed.tpot_ms.p50) == (2, 20.0)


def test_empty_answers_are_failures_and_leave_the_latencies_alone() -> None:
    # R09: three with tokens at 300 and 400 ms, three empty
    good = [make_request(i, ttft_ms=300.0, tokens=2, tpot_ms=100.0) for i in range(3)]
    empty = [make_failure(i, "empty-answer", first_byte_ms=50.0) for i in range(3, 6)]
    found = summary_of([*good, *empty])
    assert (found.requests, found.succeeded, found.failed) == (6, 3, {"empty-answer": 3})
    assert (found.ttft_ms.p50, found.ttft_ms.n) == (300.0, 3)
    assert (found.output_tokens, found.tpot_ms.p50) == (6, 100.0)
    assert mark(found, "failures").params == {"failed": 3, "requests": 6, "classes": "empty-answer 3"}


def test_throughput_of_two_waves_is_tokens_over_wall_time() -> None:
    # R11 (a): 32 requests of 64 tokens, 16 at a time, one second each wave; all sent at 0
    waves = [
        make_request(i, ttft_ms=wave * 1000 + 10, tokens=64, e2e_ms=(wave + 1) * 1000.0, tpot_ms=15.0)
        for wave in (0, 1)
        for i in range(16)
    ]
    found = summary_of(waves)
    assert (found.output_tokens, found.wall_s) == (2048, 2.0)
    assert found.output_tokens_per_s == pytest.approx(1024.0)


def test_throughput_with_two_slots_is_not_the_sum_of_rates() -> None:
    # R11 (b): six requests of 10 tokens and 1 s each, two at a time
    records = [make_request(i, t0_ms=(i // 2) * 1000.0, ttft_ms=100.0, tokens=10, tpot_ms=100.0) for i in range(6)]
    found = summary_of(records)
    assert found.output_tokens_per_s == pytest.approx(60 / 3.0)
    assert found.requests_per_s == pytest.approx(2.0)
    assert found.decode_tokens_per_s.p50 == pytest.approx(10.0)
    assert found.peak_in_flight == 2


def test_requests_cut_off_by_the_window_count_with_what_had_arrived() -> None:
    # R19: 10 s, four slots, 70 tokens at one per 100 ms: 4 x 70 finished + 4 x 30 inside the window
    whole = [make_request(i, ttft_ms=100.0, tokens=70, tpot_ms=100.0) for i in range(4)]
    cut = [
        make_request(
            4 + i, t0_ms=7000.0, ttft_ms=100.0, tokens=30, tpot_ms=100.0, completion_tokens=None, e2e_ms=None,
            incomplete=True, finish_reason=None,
        )
        for i in range(4)
    ]  # fmt: skip
    whole = [RequestRecord(**{**_fields(r), "tpot_ms": 100.0}) for r in whole]
    cut = [RequestRecord(**{**_fields(r), "tpot_ms": None}) for r in cut]
    found = summary_of([*whole, *cut], window_s=10.0, workload=Workload(kind="closed", duration_s=10, concurrency=(4,)))
    assert found.output_tokens == 400
    assert found.output_tokens_per_s == pytest.approx(40.0)
    assert found.completed_tokens_per_s == pytest.approx(28.0)
    assert (found.succeeded, found.incomplete, found.failed) == (4, 4, {})
    assert (found.ttft_ms.n, found.tpot_ms.n, found.e2e_ms.n) == (8, 4, 4)
    assert mark(found, "cut-off-shared-out").params == {"requests": 4}
    assert not found.tokens_estimated


def test_a_request_that_ends_after_the_window_counts_in_part() -> None:
    # 10 tokens at 100 .. 1000 ms; the window ends at 550 ms: five of them
    late = make_request(ttft_ms=100.0, tokens=10, tpot_ms=100.0)
    found = summary_of([late], window_s=0.55)
    assert (found.output_tokens, found.requests_per_s, found.completed_tokens_per_s) == (5, 0.0, 0.0)


def test_warmup_is_left_out_of_every_number() -> None:
    warm = make_request(0, t0_ms=-5000.0, ttft_ms=4000.0, tokens=99, warmup=True)
    with_warmup, without = summary_of([warm, make_request(1)]), summary_of([make_request(1)])
    assert with_warmup == without


def test_an_unknown_token_count_makes_no_throughput() -> None:
    found = summary_of([make_request(0), make_request(1, completion_tokens=None)])
    assert (found.output_tokens, found.output_tokens_per_s) == (None, None)
    assert found.ttft_ms.n == 2
    assert "tokens-unknown" in codes(found)


def test_estimated_tokens_are_marked() -> None:
    found = summary_of([make_request(0, tokens_estimated=True)])
    assert found.tokens_estimated
    assert mark(found, "tokens-estimated").params == {"requests": 1}


def test_nothing_but_failures_divides_by_nothing() -> None:
    found = summary_of([make_failure(i, "refused") for i in range(200)])
    assert (found.wall_s, found.output_tokens_per_s, found.requests_per_s, found.ttft_ms.p95) == (None,) * 4
    assert found.failed == {"refused": 200}


def test_no_requests_at_all() -> None:
    found = summary_of([])
    assert (found.requests, found.wall_s, found.peak_in_flight, found.tokens_per_chunk) == (0, None, 0, None)


def test_an_answer_in_one_body_has_no_first_token_time() -> None:
    body = make_request(ttft_ms=None, tokens=8, e2e_ms=900.0, marks=("not-streamed",))
    found = summary_of([body])
    assert (found.e2e_ms.p50, found.output_tokens, found.ttft_ms.n) == (900.0, 8, 0)
    assert found.output_tokens_per_s == pytest.approx(8 / 0.9)


def test_goodput_counts_what_kept_every_limit() -> None:
    # ends at 1.0 s; of four requests one is late, one failed
    slo = Slo(ttft_p95_ms=150, tpot_p95_ms=25)
    records = [
        make_request(0, ttft_ms=100.0, tokens=2, e2e_ms=1000.0), make_request(1, ttft_ms=100.0),
        make_request(2, ttft_ms=151.0), make_failure(3),
    ]  # fmt: skip
    assert summary_of(records, slo=slo).goodput_per_s == pytest.approx(2.0)
    assert summary_of(records).goodput_per_s is None


def test_few_samples_carry_marks() -> None:
    assert {"low-samples-p95", "low-samples-p99"} <= codes(make_summary([make_request(i) for i in range(19)]))
    assert codes(make_summary([make_request(i) for i in range(20)])) == {"low-samples-p99"}
    assert codes(make_summary([make_request(i) for i in range(100)])) == set()


def test_concurrency_not_reached_names_both_numbers() -> None:
    # R17: 64 asked, 10 requests
    found = summary_of([make_request(i) for i in range(10)], concurrency_asked=64)
    assert mark(found, "concurrency-not-reached").params == {"asked": 64, "reached": 10}
    assert "concurrency-not-reached" not in codes(
        summary_of([make_request(i) for i in range(10)], concurrency_asked=10)
    )


def test_peak_in_flight_does_not_count_a_slot_twice() -> None:
    chain = [make_request(i, t0_ms=i * 180.0, ttft_ms=100.0, tokens=5, tpot_ms=20.0) for i in range(10)]
    assert summary_of(chain).peak_in_flight == 1


def test_requests_that_never_end_stay_in_flight() -> None:
    stuck = [make_request(i, t0_ms=i * 100.0, ttft_ms=None, tokens=0, incomplete=True) for i in range(5)]
    assert summary_of(stuck, window_s=60.0).peak_in_flight == 5


def test_requests_that_ran_into_their_time_limit_were_in_flight_until_then() -> None:
    # no byte came: the second is sent while the first still waits, the third when both have given up
    silent = [
        make_failure(i, "timeout", t0_ms=t0_ms, first_byte_ms=None) for i, t0_ms in enumerate((0.0, 900.0, 2000.0))
    ]
    workload = Workload(kind="closed", requests=3, request_timeout_s=1.0)
    found = summary_of(silent, workload=workload, concurrency_asked=2)
    assert found.peak_in_flight == 2
    assert "concurrency-not-reached" not in codes(found)


def test_the_longest_stall_is_seen_in_answers_that_the_end_cut_off_however_their_tokens_are_known() -> None:
    cut = {"chunk_times_ms": (100.0, 120.0, 620.0), "tpot_ms": None, "e2e_ms": None, "incomplete": True}
    for counted in ({"completion_tokens": None}, {"completion_tokens": 3, "tokens_estimated": True}):
        records = [make_request(0), RequestRecord(**{**_fields(make_request(1)), **cut, **counted})]
        assert summary_of(records, window_s=1.0).longest_stall_ms == 500.0


def test_chunks_of_cut_off_answers_are_not_taken_for_tokens_where_no_whole_answer_tells() -> None:
    cut = make_request(tokens=4, completion_tokens=None, e2e_ms=None, incomplete=True, finish_reason=None)
    found = summary_of([cut], window_s=1.0)
    assert (found.output_tokens, found.output_tokens_per_s, found.completed_tokens_per_s) == (None, None, 0.0)
    assert mark(found, "cut-off-uncounted").params == {"requests": 1}
    assert "cut-off-shared-out" not in codes(found)
    counted = make_request(tokens=4, completion_tokens=8, e2e_ms=None, incomplete=True, tokens_estimated=True)
    assert summary_of([counted], window_s=1.0).output_tokens == 8


def test_a_late_client_is_marked() -> None:
    usage = ClientUsage(cpu_s=1.9, lag_p99_ms=45.0)
    records = [make_request(i, client_wait_ms=80.0, tokens=100) for i in range(20)]
    found = summary_of(records, client=usage)
    assert {"client-lag", "client-late", "client-near-ceiling"} <= codes(found)
    assert mark(found, "client-lag").params["lag_p99_ms"] == 45.0


def test_a_rate_below_98_percent_of_the_schedule_is_marked() -> None:
    # 10 per second scheduled; sent at 9.7 per second
    late = [make_request(i, t0_ms=i * 100.0, scheduled_ms=i * 100.0, sent_ms=i * 100 / 0.97) for i in range(30)]
    found = summary_of(late, rate_asked_per_s=10.0)
    assert mark(found, "rate-not-achieved").params == {"asked": 10.0, "achieved": 9.7}
    on_time = [make_request(i, t0_ms=i * 100.0, scheduled_ms=i * 100.0, sent_ms=i * 100 / 0.99) for i in range(30)]
    assert "rate-not-achieved" not in codes(summary_of(on_time, rate_asked_per_s=10.0))


def test_a_chance_schedule_is_judged_against_itself() -> None:
    # a Poisson draw may come out slower than its nominal rate without the client being late
    slow = [make_request(i, t0_ms=i * 130.0, scheduled_ms=i * 130.0, sent_ms=i * 130.0) for i in range(30)]
    assert "rate-not-achieved" not in codes(summary_of(slow, rate_asked_per_s=10.0))


def test_cache_hits_from_one_percent_on_are_marked() -> None:
    # R15
    result, slo = make_result([make_request(i) for i in range(100)]), Slo()
    assert codes(summarise(result, slo=slo, workload=BURST, cache_hit_ratio=0.0099)) == set()
    assert codes(summarise(result, slo=slo, workload=BURST, cache_hit_ratio=0.01)) == {"cache-hits"}
    shared = Workload(kind="burst", requests=10, prefix="shared")
    assert codes(summarise(result, slo=slo, workload=shared, cache_hit_ratio=0.4)) == {"cache-on-purpose"}


def test_cached_tokens_of_the_servers_stand_in_for_counters() -> None:
    records = [make_request(i, prompt_tokens=100, cached_tokens=25) for i in range(4)]
    assert summary_of(records).cache_hit_ratio == 0.25
    assert summary_of([make_request(0)]).cache_hit_ratio is None


def test_output_lengths_that_were_not_asked_for_are_marked() -> None:
    # R20: 64 asked, 16 came
    short = [make_request(i, tokens=16, finish_reason="stop") for i in range(20)]
    found = summary_of(short, output_tokens_asked=64)
    assert mark(found, "output-length-differs").params["mean"] == 16.0
    natural = Workload(kind="burst", requests=20, ignore_eos=False)
    assert "output-length-differs" not in codes(summary_of(short, output_tokens_asked=64, workload=natural))


def test_notes_and_marks_of_the_loader_are_carried_once() -> None:
    records = [make_request(i, marks=("no-finish-reason",)) for i in range(3)]
    found = summary_of(records, notes=("ignore-eos-refused", "ignore-eos-refused"))
    assert mark(found, "no-finish-reason").params == {"requests": 3}
    assert [m.code for m in found.marks].count("ignore-eos-refused") == 1


REQUEST = st.builds(
    make_request,
    index=st.integers(0, 1000),
    t0_ms=st.floats(0, 1e5),
    ttft_ms=st.floats(0.1, 1e4),
    tpot_ms=st.floats(0.1, 100),
    tokens=st.integers(1, 12),
)


@given(st.lists(REQUEST, min_size=1, max_size=30), st.one_of(st.none(), st.floats(0.1, 200)))
def test_sums_hold_for_any_requests(records: list[RequestRecord], window_s: float | None) -> None:
    found = summary_of(records, window_s=window_s)
    assert found.succeeded == found.ttft_ms.n == len(records)
    assert 1 <= found.peak_in_flight <= len(records)
    total = sum(r.completion_tokens or 0 for r in records)
    assert found.output_tokens is not None
    assert found.output_tokens == total if window_s is None else found.output_tokens <= total
    if found.itl_ms.n:
        assert found.itl_ms.n == sum(len(r.chunk_times_ms) - 1 for r in records)


def test_a_lone_chunk_of_two_tokens_among_many_is_no_reservation() -> None:
    times = tuple(100.0 + 10 * number for number in range(32))
    steady = [make_request(index, tokens=32, chunk_times_ms=times) for index in range(24)]
    paired = make_request(24, tokens=32, chunk_times_ms=times[:31])
    found = summary_of([*steady, paired])
    assert found.tokens_per_chunk == pytest.approx(800 / 799)
    assert "several-tokens-per-chunk" not in codes(found)
