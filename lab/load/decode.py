"""Bytes and their arrival times → one `RequestRecord`, by the definitions of DESIGN section 3."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterable
from typing import Any, Literal

from lab.load.call import Call
from lab.load.chunks import NOTHING, Chunk, Usage, is_done, parse, read_chunk
from lab.load.failures import WEB_PAGE, classify_answer, describe_answer, one_line
from lab.load.sse import BOM, SseDecoder, SseEvent
from lab.records.request import RequestRecord
from lab.records.states import RequestFailure

CountTokens = Callable[[str], int | None]
Verdict = tuple[RequestFailure | None, str | None]

HEAD_BYTES = 4_096
BODY_LIMIT_BYTES = 32 << 20
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
    decoder = AnswerDecoder()
    for at_ns, read in reads:
        decoder.feed(at_ns, read)
    return decoder.finish(call, clock_ns=clock_ns, count_tokens=count_tokens, secret=secret)


class AnswerDecoder:
    """Takes the reads of one answer's body in any cut and says at the end what they were."""

    def __init__(self) -> None:
        self._kind: Literal["unknown", "sse", "json", "html"] = "unknown"
        self._head = b""
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self._sse = SseDecoder()
        self._inflate: Any = None
        self._times: array[int] = array("q")
        self._first_answer_ns: int | None = None
        self._answer: list[str] = []
        self._aside: list[str] = []
        self._usage = Usage()
        self._finish: str | None = None
        self._error: str | None = None
        self._done = False
        self._events = 0
        self._bad_events = 0
        self._queue_ms: float | None = None
        self._prefill_ms: float | None = None
        self._prefix: bytes | None = None
        self._suffix = b""

    def feed(self, at_ns: int, read: bytes) -> None:
        if not read:
            return
        if self._first_ns is None:
            self._first_ns = at_ns
            if read[:2] == b"\x1f\x8b":
                self._inflate = zlib.decompressobj(wbits=47)
        if self._inflate is not None:
            read = self._inflated(read)
        self._last_ns = at_ns
        if self._kind != "sse" or len(self._head) < HEAD_BYTES:
            self._keep(read)
        if self._kind == "unknown":
            self._kind = _kind_of(self._head)
            read = b"".join(self._body)
        if self._kind == "sse":
            self._body.clear()
            for event in self._sse.feed(read):
                self._take(at_ns, event)

    @property
    def is_over(self) -> bool:
        """True once the stream itself said that it has ended."""
        return self._done or self._finish is not None

    def _inflated(self, read: bytes) -> bytes:
        try:
            return bytes(self._inflate.decompress(read))
        except zlib.error:
            self._inflate = None
            return read

    def _keep(self, read: bytes) -> None:
        if len(self._head) < HEAD_BYTES:
            self._head += read[: HEAD_BYTES - len(self._head)]
        if self._body_bytes < BODY_LIMIT_BYTES:
            self._body.append(read)
            self._body_bytes += len(read)

    def _take(self, at_ns: int, event: SseEvent) -> None:
        if self._done:
            return
        data = event.data
        if self._prefix is not None and data.startswith(self._prefix) and self._take_like_the_last(at_ns, data):
            return
        if not data.strip():
            return
        if is_done(data):
            self._done = True
            return
        self._events += 1
        try:
            chunk = read_chunk(parse(data), event.name)
        except (ValueError, RecursionError):
            self._bad_events += 1
            return
        if chunk is not NOTHING:
            self._add(at_ns, chunk)
            self._learn(data, chunk)

    def _take_like_the_last(self, at_ns: int, data: bytes) -> bool:
        """The short way for a chunk that differs from an earlier one in nothing but its text."""
        prefix, suffix = self._prefix or b"", self._suffix
        middle = data[len(prefix) : len(data) - len(suffix)]
        if not middle or not data.endswith(suffix) or b'"' in middle or b"\\" in middle:
            return False
        try:
            text = middle.decode()
        except UnicodeDecodeError:
            return False
        self._events += 1
        self._times.append(at_ns)
        self._answer.append(text)
        return True

    def _learn(self, data: bytes, chunk: Chunk) -> None:
        plain = chunk.answer and not chunk.aside and not chunk.finish_reason and chunk.usage is None
        needle = b'"content":"' + chunk.answer.encode("utf-8", "replace") + b'"'
        if plain and chunk.queue_ms is None and data.count(b'content"') == 1 and data.count(needle) == 1:
            self._prefix = data[: data.index(needle) + len(b'"content":"')]
            self._suffix = data[data.index(needle) + len(needle) - 1 :]

    def _add(self, at_ns: int, chunk: Chunk) -> None:
        if chunk.generated:
            self._times.append(at_ns)
            if chunk.answer:
                self._answer.append(chunk.answer)
                if self._first_answer_ns is None:
                    self._first_answer_ns = at_ns
            if chunk.aside:
                self._aside.append(chunk.aside)
        if chunk.usage is not None:
            self._usage = self._usage.updated(chunk.usage)
        self._finish = chunk.finish_reason or self._finish
        self._error = self._error or chunk.error
        self._queue_ms = self._queue_ms if chunk.queue_ms is None else chunk.queue_ms
        self._prefill_ms = self._prefill_ms if chunk.prefill_ms is None else chunk.prefill_ms

    def finish(
        self, call: Call, *, clock_ns: int, count_tokens: CountTokens | None = None, secret: str | None = None
    ) -> RequestRecord:
        marks = list(call.marks)
        streamed = self._kind != "json"
        json_ok = streamed or self._read_whole_answer()
        if self._kind == "sse" and is_done(self._sse.pending()):
            self._done = True
        failure, message = self._judge(call, json_ok, marks)
        ok = failure is None and call.end != "window"
        if not streamed and ok:
            marks.append("not-streamed")
        tokens, estimated = self._tokens(call, ok, count_tokens, marks)
        first, last = (self._times[0], self._times[-1]) if streamed and self._times else (None, None)
        if not streamed and ok:
            last = self._last_ns
        t0 = call.t0_ns
        return RequestRecord(
            index=call.index,
            warmup=call.warmup,
            t0_ms=_ms(t0, clock_ns),
            sent_ms=_ms_or_none(call.sent_ns, clock_ns),
            scheduled_ms=_ms_or_none(call.scheduled_ns, clock_ns),
            client_wait_ms=_client_wait_ms(call),
            connect_ms=None if call.connect_ns is None else call.connect_ns / 1e6,
            first_byte_ms=_ms_or_none(self._first_ns, t0),
            ttft_ms=_ms_or_none(first, t0),
            first_answer_ms=_ms_or_none(self._first_answer_ns, t0) if streamed else None,
            e2e_ms=_ms_or_none(last, t0) if ok else None,
            tpot_ms=self._tpot_ms(tokens, t0, marks) if streamed and ok else None,
            chunk_times_ms=tuple([(at - t0) / 1e6 for at in self._times]) if streamed else (),
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=tokens,
            cached_tokens=self._usage.cached_tokens,
            tokens_estimated=estimated,
            finish_reason=self._finish,
            failure=failure,
            message=None if message is None else one_line(message, secret),
            http_status=call.status,
            incomplete=call.end == "window",
            text=_whole_characters("".join(self._answer)),
            engine_queue_ms=self._queue_ms,
            engine_prefill_ms=self._prefill_ms,
            marks=tuple(marks),
        )

    def _read_whole_answer(self) -> bool:
        """An answer that came as one JSON body; False when it is none."""
        try:
            value = parse(b"".join(self._body).removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError):
            return False
        self._add(self._last_ns, read_chunk(value))
        return isinstance(value, dict)

    def _judge(self, call: Call, json_ok: bool, marks: list[str]) -> Verdict:
        if call.failure is not None:
            return call.failure, call.error
        if call.end == "timeout":
            return "timeout", call.error or "no whole answer within the time limit"
        if call.end == "cancelled":
            return "cancelled", call.error or "stopped before the answer was whole"
        if call.end == "window":
            return None, None
        if call.status is None:
            return "connection-lost", call.error or "the connection ended before an answer began"
        if not 200 <= call.status < 300:
            body = b"".join(self._body) or self._head
            return classify_answer(call.status, body), describe_answer(call.status, body, call.location)
        if self._error is not None:
            return "stream-error", self._error
        if self._kind == "sse":
            return self._judge_stream(call, marks)
        return self._judge_body(call, json_ok)

    def _judge_stream(self, call: Call, marks: list[str]) -> Verdict:
        if self._finish == "error":
            return "stream-error", "the server ended the answer with finish_reason error"
        if self._bad_events:
            marks.append("bad-chunk")
        over = self._done or self._finish is not None
        if not over and call.end == "lost":
            return "connection-lost", call.error or "the connection was lost in the middle of the answer"
        if self._events and self._events == self._bad_events:
            return "not-json", "the stream's events are no JSON"
        if not over and not self._events and not _looks_like_events(self._head):
            return "not-json", f"the answer is neither an event stream nor JSON; it begins: {_start(self._head)}"
        if not over and self._events:
            return "truncated", "the stream ended without a finish reason and without [DONE]"
        if not self._times:
            return "empty-answer", "the answer holds no generated text"
        if self._finish is None:
            marks.append("no-finish-reason")
        if call.end == "lost":
            marks.append("cut-after-finish")
        return None, None

    def _judge_body(self, call: Call, json_ok: bool) -> Verdict:
        if self._kind == "html":
            return "not-json", WEB_PAGE
        if call.end == "lost":
            return "connection-lost", call.error or "the connection was lost in the middle of the answer"
        if self._first_ns is None:
            return "empty-answer", "status 200 with an empty body"
        if self._kind != "json" or not json_ok:
            return "not-json", f"the answer is no whole JSON; it begins: {_start(self._head)}"
        return (None, None) if self._times else ("empty-answer", "the answer holds no generated text")

    def _tokens(
        self, call: Call, ok: bool, count_tokens: CountTokens | None, marks: list[str]
    ) -> tuple[int | None, bool]:
        said = self._usage.completion_tokens
        if said is not None:
            if said == 0 and self._times:
                marks.append("usage-contradicts-text")
            return said, False
        if count_tokens is None or not (ok or call.end == "window") or not self._times:
            return None, False
        texts = (_whole_characters("".join(part)) for part in (self._aside, self._answer))
        counts = [count_tokens(text) for text in texts if text]
        known = [count for count in counts if count is not None]
        return (sum(known), True) if len(known) == len(counts) else (None, False)

    def _tpot_ms(self, tokens: int | None, t0_ns: int, marks: list[str]) -> float | None:
        if not self._times:
            return None
        gaps, span = len(self._times) - 1, self._times[-1] - self._times[0]
        if gaps and _was_buffered(gaps, span, self._times[0] - t0_ns):
            marks.append("buffered")
            return None
        if tokens is None or tokens < 2:
            return None
        if not gaps:
            marks.append("one-chunk")
            return None
        return span / (tokens - 1) / 1e6


def _kind_of(head: bytes) -> Literal["unknown", "sse", "json", "html"]:
    """Judged by the bytes: the content type that relays send is often wrong."""
    start = head.removeprefix(BOM).lstrip(b" \t\r\n")
    if not start or BOM.startswith(head):
        return "unknown"
    if start[:1] in b"{[":
        return "json"
    return "html" if start[:1] == b"<" else "sse"


def _looks_like_events(head: bytes) -> bool:
    lines = head.removeprefix(BOM).splitlines()
    names = {line.split(b":", 1)[0] for line in lines if line}
    return not names or bool(names & {b"", b"data", b"event", b"id", b"retry"})


def _start(head: bytes) -> str:
    return head[:80].decode("utf-8", "replace")


def _was_buffered(gaps: int, span_ns: int, ttft_ns: int) -> bool:
    if span_ns <= BUFFERED_GAP_NS * gaps:
        return True
    return span_ns < BUFFERED_SHARE * ttft_ns and span_ns < BUFFERED_WIDE_GAP_NS * gaps


def _ms(at_ns: int, from_ns: int) -> float:
    return (at_ns - from_ns) / 1e6


def _ms_or_none(at_ns: int | None, from_ns: int) -> float | None:
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
