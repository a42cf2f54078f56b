"""Steady state, stalls and looping answers on records worked out by hand."""

from __future__ import annotations

import pytest

from lab.metrics import summarise
from lab.metrics.looping import loops
from lab.metrics.steady import steady_state
from lab.records.plan import Slo
from lab.records.request import RequestRecord
from lab.records.summary import Summary
from lab.records.workload import Workload
from tests.factories import make_failure, make_request, make_result

CLOSED = Workload(kind="closed", concurrency=(2,), requests=6)


def summary_of(records: list[RequestRecord], **result: object) -> Summary:
    return summarise(make_result(records, **result), slo=Slo(), workload=CLOSED)


def one_second(index: int, t0_ms: float) -> RequestRecord:
    """Ten tokens, one each 100 ms."""
    return make_request(index, t0_ms=t0_ms, ttft_ms=100.0, tpot_ms=100.0, tokens=10)


def test_steady_throughput_leaves_out_the_last_request_that_runs_alone() -> None:
    # two slots: 0-1-2-3 s and 0.5-1.5-2.5-3.5 s; both are filled from 0.5 to 3.0 s
    records = [one_second(i, i * 1000.0) for i in range(3)] + [one_second(3 + i, 500 + i * 1000.0) for i in range(3)]
    found = summary_of(records, concurrency_asked=2)
    assert found.steady_s == pytest.approx(2.5)
    assert found.steady_tokens_per_s == pytest.approx(20.0)
    assert found.output_tokens_per_s == pytest.approx(60 / 3.5)


def test_there_is_no_steady_state_without_a_concurrency_or_below_it() -> None:
    records = [one_second(i, i * 1000.0) for i in range(6)]
    assert summary_of(records).steady_tokens_per_s is None
    assert summary_of(records, concurrency_asked=2).steady_tokens_per_s is None


def test_there_is_no_steady_state_where_the_concurrency_was_not_kept() -> None:
    # gangs of two whose members end at 1 and at 3 s: two thirds of the time only one is in flight
    gangs = [
        make_request(2 * i + j, t0_ms=i * 3000.0, ttft_ms=100.0, tpot_ms=100.0, tokens=10 if j else 30)
        for i in range(4)
        for j in range(2)
    ]
    assert steady_state(gangs, 2) is None


def test_a_start_and_an_end_without_a_middle_are_no_steady_state() -> None:
    assert steady_state([one_second(i, 0.0) for i in range(2)], 3) is None
    # four at once, all ending at the very end but one: fewer than four ended inside
    early = [one_second(0, 0.0), *(make_request(i, ttft_ms=100.0, tpot_ms=100.0, tokens=30) for i in range(1, 4))]
    assert steady_state(early, 4) is None


def test_a_window_of_time_ends_the_steady_state_and_its_cut_off_requests_count() -> None:
    # two slots for 2.5 s; the requests sent at 2.0 s are cut off, five of their tokens had come
    whole = [one_second(2 * i + j, i * 1000.0) for i in range(2) for j in range(2)]
    cut = [
        make_request(
            4 + j, t0_ms=2000.0, ttft_ms=100.0, tpot_ms=100.0, tokens=5, completion_tokens=None, incomplete=True
        )
        for j in range(2)
    ]
    found = summary_of([*whole, *cut], concurrency_asked=2, window_s=2.5)
    assert found.steady_s == pytest.approx(2.5)
    assert found.steady_tokens_per_s == pytest.approx(50 / 2.5)


def test_steady_throughput_is_unknown_where_an_answer_has_no_token_count() -> None:
    records = [make_request(i, t0_ms=i * 80.0, completion_tokens=None, tpot_ms=20.0) for i in range(4)]
    found = steady_state(records, 1)
    assert found is not None
    assert found.tokens_per_s is None


def test_failed_requests_hold_a_slot_but_bring_no_tokens() -> None:
    failed = make_failure(9, "server", t0_ms=1000.0, sent_ms=1000.0, first_byte_ms=1000.0)
    found = steady_state([one_second(0, 0.0), failed, one_second(1, 2000.0)], 1)
    assert found is not None
    assert (found.seconds, found.tokens) == (pytest.approx(2.9 + 0.1), pytest.approx(20))


def test_the_longest_stall_counts_answers_that_were_cut_off() -> None:
    cut = make_request(1, chunk_times_ms=(100.0, 900.0), incomplete=True, completion_tokens=None, tpot_ms=20.0)
    assert summary_of([make_request(0), cut]).longest_stall_ms == pytest.approx(800.0)
    assert summary_of([make_request(0, tokens=1)]).longest_stall_ms is None


def test_only_the_steady_decoders_stall_where_long_prompts_are_thrown_in() -> None:
    decoder = make_request(0, chunk_times_ms=(100.0, 400.0, 420.0), tokens=3, marks=("decoder",))
    intruder = make_request(1, chunk_times_ms=(100.0, 5000.0), tokens=2, marks=("intruder",))
    assert summary_of([decoder, intruder]).longest_stall_ms == pytest.approx(300.0)


PROSE = (
    "Prefill reads the whole prompt at once and fills the cache, so it is bound by arithmetic. Decode writes one token "
    "after another and reads the cache each time, so it is bound by memory. Batching shares the weights between them."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROSE, False),
        ("The capital of France is Paris. " * 10, True),
        (PROSE + " It is so." * 40, True),
        ("no no no no no", False),  # too short to tell
        ("la " * 40, True),
        ("今天天气很好我们去公园散步看见很多花和树木还有小鸟在唱歌孩子们笑得很开心老人坐着聊天", False),
        ("今天天气很好" * 12, True),
        ("", False),
    ],
)
def test_an_answer_loops_when_its_second_half_was_said_before(text: str, expected: bool) -> None:
    assert loops(text) is expected


def test_looping_answers_are_marked_with_their_share() -> None:
    records = [make_request(i, text="again and again " * 20 if i < 3 else PROSE) for i in range(10)]
    found = summary_of(records)
    assert found.looping_ratio == pytest.approx(0.3)
    assert [m.params for m in found.marks if m.code == "answers-loop"] == [{"percent": 30.0}]
    assert summary_of([make_request(0, text="")]).looping_ratio is None
