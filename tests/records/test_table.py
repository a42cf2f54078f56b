"""Requests as columns give back what was put in, and count what they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.records.arrivals import LONGEST_GAP_US, Arrivals, pack_arrivals
from lab.records.request import RequestRecord
from lab.records.table import RequestTable
from tests.factories import make_failure, make_request

WHOLE = RequestRecord(
    index=3, warmup=False, t0_ms=12.5, sent_ms=13.0, scheduled_ms=12.5, client_wait_ms=0.5, connect_ms=1.25,
    first_byte_ms=90.0, ttft_ms=100.0, first_answer_ms=140.0, e2e_ms=180.001, tpot_ms=40.0005,
    chunk_times_ms=(100.0, 140.0, 180.001), prompt_tokens=31, completion_tokens=3, cached_tokens=16,
    tokens_estimated=True, finish_reason="length", message="…", http_status=200, text="a 中🌍 b",
    engine_queue_ms=2.5, engine_prefill_ms=60.0, marks=("buffered", "one-chunk"),
)  # fmt: skip
EMPTY = RequestRecord(index=0, warmup=True, t0_ms=0.0, sent_ms=None)


@given(st.lists(st.lists(st.integers(0, 10**7), max_size=20), max_size=20))
def test_packed_times_come_back_to_the_microsecond(gaps: list[list[int]]) -> None:
    requests = [tuple(float(t) for t in np.cumsum(each) / 1000) if each else () for each in gaps]
    assert [tuple(Arrivals(packed)) for packed in pack_arrivals(requests)] == requests


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_packing_rounds_each_arrival_once(times: list[float]) -> None:
    (packed,) = pack_arrivals([sorted(times)])
    assert np.abs(np.array(Arrivals(packed)) - np.array(sorted(times))).max() <= 0.000_501


def test_arrivals_are_a_sequence_of_milliseconds() -> None:
    arrivals = Arrivals.of_moments(np.array([1_100_000_400, 1_140_000_000, 1_180_001_000]), 1_000_000_000)
    assert arrivals == (100.0, 140.0, 180.001)
    assert (len(arrivals), arrivals[0], arrivals[-1], arrivals[1:]) == (3, 100.0, 180.001, (140.0, 180.001))
    assert hash(arrivals) == hash((100.0, 140.0, 180.001))
    assert np.asarray(arrivals).tolist() == [100.0, 140.0, 180.001]
    with pytest.raises(IndexError):
        arrivals[3]
    assert not Arrivals()


def test_a_gap_too_long_to_be_kept_is_cut_and_does_not_turn_negative() -> None:
    (packed,) = pack_arrivals([(5e6,)])
    assert tuple(Arrivals(packed)) == (LONGEST_GAP_US / 1000,)


def test_records_come_back_whole_and_in_order() -> None:
    records = [WHOLE, EMPTY, make_failure(7, "too-long"), make_request(9, incomplete=True, e2e_ms=None)]
    table = RequestTable.of(records)
    assert table == records
    assert list(table) == records
    assert table[0] == WHOLE
    assert table[-1].incomplete
    assert list(table[1:3]) == records[1:3]
    assert RequestTable.of(table) is table
    assert table != records[:3]


def test_what_is_missing_is_no_number() -> None:
    table = RequestTable.of([WHOLE, EMPTY])
    assert table.column("ttft_ms")[0] == 100.0
    assert np.isnan(table.column("ttft_ms")[1])
    assert np.isnan(table.last_chunk_ms[1])
    assert table.words("finish_reason") == ["length", None]
    assert list(table[1:]) == [EMPTY]


def test_a_mask_picks_requests_and_their_chunks() -> None:
    table = RequestTable.of([make_request(index, t0_ms=index * 10.0, tokens=index) for index in range(6)])
    odd = table.where(table.chunks % 2 == 1)
    assert [record.index for record in odd] == [1, 3, 5]
    gaps, order = odd.gaps_between_chunks()
    assert gaps.tolist() == [20_000] * (2 + 4)  # the first has one chunk, so no gap
    assert order.tolist() == [0, 1, 2]


def test_marks_and_failures_are_counted() -> None:
    records = [
        make_request(0, marks=("decoder", "buffered")), make_request(1, marks=("decoder",)), make_failure(2, "server"),
        make_failure(3, "timeout"), make_failure(4, "server"),
    ]  # fmt: skip
    table = RequestTable.of(records)
    assert table.marked("decoder").tolist() == [True, True, False, False, False]
    assert table.marked("deco").sum() == 0
    assert list(table.counted_words("failure").items()) == [("server", 2), ("timeout", 1)]


REQUEST = st.builds(
    make_request,
    index=st.integers(0, 1000),
    t0_ms=st.integers(0, 1000).map(float),
    ttft_ms=st.integers(1, 500).map(float),
    tpot_ms=st.integers(1, 50).map(float),
    tokens=st.integers(0, 12),
)


@given(st.lists(REQUEST, max_size=20), st.integers(0, 2000))
def test_chunks_until_a_moment_are_those_that_had_arrived(records: list[RequestRecord], moment: int) -> None:
    expected = [sum(r.t0_ms + at <= moment for at in r.chunk_times_ms) for r in records]
    assert RequestTable.of(records).chunks_until(moment).tolist() == expected
