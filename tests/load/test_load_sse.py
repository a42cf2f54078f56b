"""The event-stream decoder against the WHATWG specification's rules and examples."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from lab.load.sse import SseDecoder


def datas(*reads: bytes) -> list[bytes]:
    decoder = SseDecoder()
    return [event.data for each in reads for event in decoder.feed(each)]


def test_the_specification_s_stock_example_gives_one_event_of_three_lines() -> None:
    assert datas(b"data: YHOO\ndata: +2\ndata: 10\n\n") == [b"YHOO\n+2\n10"]


def test_the_specification_s_example_with_comment_id_and_only_one_blank_removed() -> None:
    stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
    assert datas(stream) == [b"first event", b"second event", b" third event"]


def test_an_event_without_the_final_blank_line_is_not_dispatched() -> None:
    assert datas(b"data\n\ndata\ndata\n\ndata:") == [b"", b"\n"]


def test_a_space_after_the_colon_is_ignored_once() -> None:
    assert datas(b"data:test\n\ndata: test\n\n") == [b"test", b"test"]


def test_carriage_returns_line_feeds_and_pairs_end_lines() -> None:
    assert datas(b"data: a\r\rdata: b\n\ndata: c\r\n\r\ndata: d\r\n\n") == [b"a", b"b", b"c", b"d"]


def test_a_pair_cut_between_two_reads_is_one_line_end() -> None:
    assert datas(b"data: a\r", b"\ndata: b\r\n\r", b"\ndata: c\n\n") == [b"a\nb", b"c"]


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    assert datas(b"\xef", b"\xbb", b"\xbfdata: a\n\n", b"\xef\xbb\xbfdata: b\n\n") == [b"a"]


def test_what_only_begins_like_a_byte_order_mark_is_kept() -> None:
    assert datas(b"\xef\xbb", b"x: y\n\ndata: a\n\n") == [b"a"]


def test_fields_other_than_data_and_event_make_no_event() -> None:
    assert datas(b"retry: 3000\n\nid: 7\n\n: ping\n\n:\n\n\n\nother: x\n\nDATA: y\n\n") == []


def test_the_name_of_an_event_ends_with_it() -> None:
    decoder = SseDecoder()
    events = decoder.feed(b"event: ping\ndata: 1\n\ndata: 2\n\nevent: lost\n\ndata: 3\n\n")
    assert [(event.name, event.data) for event in events] == [(b"ping", b"1"), (b"", b"2"), (b"", b"3")]


def test_what_stands_in_an_open_event_can_be_seen_but_is_no_event() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: [DO") == []
    assert decoder.feed(b"NE]") == []
    assert decoder.pending() == b"[DONE]"


def reference(stream: bytes) -> list[bytes]:
    """The specification read literally, on the whole stream at once."""
    events, data = [], []
    *lines, _open = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))
    for line in lines:
        if line == b"":
            if data:
                events.append(b"\n".join(data))
            data = []
        elif not line.startswith(b":"):
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value[1:] if value.startswith(b" ") else value)
    return events


PARTS = st.sampled_from(
    [b"data: ", b"data:", b"data", b"event: x", b": c", b":", b"\n", b"\n\n", b"\r", b"\r\n", b"\r\r", b"x", b" ",
     b"\xef\xbb\xbf", b"\xe5\xa5\xbd", b"\xff", b"[DONE]", b"{}", b"id: 1", b"retry: 1"]
)  # fmt: skip


@given(st.lists(PARTS, max_size=30), st.lists(st.integers(0, 80), max_size=12))
def test_any_cut_of_any_stream_gives_what_the_specification_gives(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(parts)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reads = [stream[start:stop] for start, stop in itertools.pairwise(places)]
    assert datas(*reads) == reference(stream)


@given(st.lists(PARTS, max_size=30))
def test_a_stream_read_byte_by_byte_is_the_same_stream(parts: list[bytes]) -> None:
    stream = b"".join(parts)
    assert datas(*(stream[at : at + 1] for at in range(len(stream)))) == reference(stream)
