"""Bytes and their arrival times → one `RequestRecord`, by the definitions of DESIGN section 3."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from lab.load.answer import Answer
from lab.load.call import Call
from lab.load.failures import one_line
from lab.load.verdict import is_incomplete, judge
from lab.records.arrivals import Arrivals
from lab.records.request import RequestRecord

CountTokens = Callable[[str], int | None]

# No engine writes one stream's tokens this fast; what arrives so was held back on the way and let go at once.
BUFFERED_GAP_NS = 100_000
BUFFERED_SHARE = 0.01
BUFFERED_WIDE_GAP_NS = 500_000


def decode(
    reads: Iterable[tuple[int, bytes]],
    call: Call,
    *,
    clock_ns: int,
    count_tokens: CountTokens | None = None,
    secret: str | None = None,
) -> RequestRecord:
    """One call from its body's reads; `clock_ns` is the start of the measurement."""
    answer = Answer()
    for at_ns, read in reads:
        answer.feed(at_ns, read)
    return to_record(answer, call, clock_ns=clock_ns, count_tokens=count_tokens, secret=secret)


def to_record(
    answer: Answer, call: Call, *, clock_ns: int, count_tokens: CountTokens | None = None, secret: str | None = None
) -> RequestRecord:
    """The record of a call whose answer has been fed whole; `secret` is masked in its message."""
    marks = list(call.marks)
    json_ok = answer.end()
    failure, message = judge(call, answer, json_ok=json_ok, marks=marks)
    incomplete = is_incomplete(call, answer)
    ok = failure is None and not incomplete
    streamed = answer.kind != "json"
    if not streamed and ok:
        marks.append("not-streamed")
    tokens, estimated = _tokens(answer, count_tokens if failure is None else None, marks)
    times, t0 = answer.times, call.t0_ns
    last = answer.last_ns if not streamed else times[-1] if times else None
    return RequestRecord(
        index=call.index,
        warmup=call.warmup,
        t0_ms=(t0 - clock_ns) / 1e6,
        sent_ms=_ms(call.sent_ns, clock_ns),
        scheduled_ms=_ms(call.scheduled_ns, clock_ns),
        client_wait_ms=_client_wait_ms(call),
        connect_ms=_ms(call.connect_ns, 0),
        first_byte_ms=_ms(answer.first_ns, t0),
        ttft_ms=_ms(times[0], t0) if streamed and times else None,
        first_answer_ms=_ms(answer.first_answer_ns, t0) if streamed else None,
        e2e_ms=_ms(last, t0) if ok else None,
        tpot_ms=_tpot_ms(answer, tokens, t0, marks) if streamed and ok else None,
        chunk_times_ms=Arrivals.of_moments(np.frombuffer(times, dtype=np.int64), t0) if streamed else Arrivals(),
        prompt_tokens=answer.usage.prompt_tokens,
        completion_tokens=tokens,
        cached_tokens=answer.usage.cached_tokens,
        tokens_estimated=estimated,
        finish_reason=answer.finish_reason,
        failure=failure,
        message=None if message is None else one_line(message, secret),
        http_status=call.status,
        incomplete=incomplete,
        text=_whole_characters("".join(answer.text)),
        engine_queue_ms=answer.queue_ms,
        engine_prefill_ms=answer.prefill_ms,
        marks=tuple(marks),
    )


def _tokens(answer: Answer, count_tokens: CountTokens | None, marks: list[str]) -> tuple[int | None, bool]:
    """The server's own count, else that of the joined text; the flag says that it is an estimate."""
    said = answer.usage.completion_tokens
    if said is not None:
        if said == 0 and answer.times:
            marks.append("usage-contradicts-text")
        return said, False
    if count_tokens is None or not answer.times:
        return None, False
    texts = (_whole_characters("".join(part)) for part in (answer.aside, answer.text))
    counts = [count_tokens(text) for text in texts if text]
    known = [count for count in counts if count is not None]
    return (sum(known), True) if len(known) == len(counts) else (None, False)


def _tpot_ms(answer: Answer, tokens: int | None, t0_ns: int, marks: list[str]) -> float | None:
    times = answer.times
    gaps, span = len(times) - 1, times[-1] - times[0]
    if gaps and _was_buffered(gaps, span, times[0] - t0_ns):
        marks.append("buffered")
        return None
    if tokens is None or tokens < 2:
        return None
    if not gaps:
        marks.append("one-chunk")
        return None
    return span / (tokens - 1) / 1e6


def _was_buffered(gaps: int, span_ns: int, ttft_ns: int) -> bool:
    if span_ns <= BUFFERED_GAP_NS * gaps:
        return True
    return span_ns < BUFFERED_SHARE * ttft_ns and span_ns < BUFFERED_WIDE_GAP_NS * gaps


def _ms(at_ns: int | None, from_ns: int) -> float | None:
    return None if at_ns is None else (at_ns - from_ns) / 1e6


def _client_wait_ms(call: Call) -> float | None:
    """How long the client itself held the request back, opening a connection not counted."""
    due = call.scheduled_ns if call.scheduled_ns is not None else call.free_ns
    if due is None or call.sent_ns is None:
        return None
    return max(0, call.sent_ns - due - (call.connect_ns or 0)) / 1e6


def _whole_characters(text: str) -> str:
    """Join surrogate halves that were escaped in two chunks; a lone half becomes one replacement character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
