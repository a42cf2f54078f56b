"""Random streams, random cuts: the same record every time, and no input that breaks the decoder."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lab.load.call import Call, End
from lab.load.decode import decode
from tests.load.random_streams import check


@given(st.integers(0, 2**63))
@settings(max_examples=1500, deadline=None)
def test_a_random_stream_in_random_cuts_gives_what_was_written(seed: int) -> None:
    check(seed)


PIECES = st.sampled_from(
    [b"data: ", b'{"choices":[{"delta":{"content":"a"}}]}', b'{"choices":[{"delta":', b"\n\n", b"\r\n", b"\x00",
     b"\xff",
     b"[DONE]", b'"', b"\\", b"{", b"}", b"[" * 50, b"<html>", b"\xef\xbb\xbf", b'{"error":', b"\x1f\x8b"]
)  # fmt: skip
ENDS: list[End] = ["complete", "closed", "finished", "lost", "timeout", "cancelled", "window", "failed"]


@given(
    st.lists(st.one_of(st.binary(max_size=20), PIECES), max_size=20),
    st.sampled_from(ENDS),
    st.sampled_from([None, 200, 204, 302, 400, 404, 429, 500]),
)
@settings(max_examples=500, deadline=None)
def test_no_bytes_break_the_decoder(reads: list[bytes], end: End, status: int | None) -> None:
    call = Call(0, False, 0, 99, end, sent_ns=0, status=status, failure="refused" if end == "failed" else None)
    record = decode(list(enumerate(reads)), call, clock_ns=0, count_tokens=len)
    assert record.ok or record.failure is not None or record.incomplete
    assert record.message is None or "\n" not in record.message
