"""The body of one answer: its reads, in any cut, gathered into what the server said and when."""

from __future__ import annotations

import re
import zlib
from array import array
from typing import Any, Literal

from lab.load.chunks import NOTHING, Chunk, Usage, is_done, parse, read_chunk
from lab.load.sse import BOM, SseDecoder, SseEvent

HEAD_BYTES = 4_096
BODY_LIMIT_BYTES = 32 << 20
_GZIP = b"\x1f\x8b"
_CONTENT = b'"content":"'
_NOT_PLAIN = re.compile(rb'["\\\x00-\x1f]')


class Answer:
    """Fed read by read; `times` are the arrivals of the chunks that carry generated output, in nanoseconds.

    `finish_reason`, `error` and the engine's own times are None where the server said nothing of the kind.
    """

    __slots__ = (
        "_body", "_body_bytes", "_compacted", "_inflate", "_prefix", "_sse", "_suffix", "aside", "bad_events", "done",
        "error", "events", "finish_reason", "first_answer_ns", "first_ns", "head", "kind", "last_ns", "prefill_ms",
        "queue_ms", "text", "times", "usage",
    )  # fmt: skip

    def __init__(self) -> None:
        self.kind: Literal["unknown", "sse", "json", "html"] = "unknown"
        self.head = b""
        self.first_ns: int | None = None
        self.last_ns = 0
        self.times: array[int] = array("q")
        self.first_answer_ns: int | None = None
        self.text: list[str] = []
        self.aside: list[str] = []  # reasoning and tool calls
        self.usage = Usage()
        self.finish_reason: str | None = None
        self.error: str | None = None
        self.done = False
        self.events = 0
        self.bad_events = 0
        self.queue_ms: float | None = None
        self.prefill_ms: float | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._sse = SseDecoder()
        self._inflate: Any = None
        self._prefix: bytes | None = None
        self._suffix = b""
        self._compacted = (0, 0)

    @property
    def is_over(self) -> bool:
        """True once the stream itself has said that it ended."""
        return self.done or self.finish_reason is not None

    @property
    def body(self) -> bytes:
        """The whole body where it was no stream, else its start."""
        return b"".join(self._body) or self.head

    def feed(self, at_ns: int, read: bytes) -> None:
        if not read or (self._prefix is not None and self._take_like_an_earlier(at_ns, read)):
            return
        if self.first_ns is None:
            self.first_ns = at_ns
            if read[:2] == _GZIP:
                self._inflate = zlib.decompressobj(wbits=47)
        if self._inflate is not None:
            read = self._inflated(read)
        self.last_ns = at_ns
        if self.kind != "sse" or len(self.head) < HEAD_BYTES:
            self._keep(read)
        if self.kind == "unknown":
            self.kind = _kind_of(self.head)
            read = self.body
        if self.kind == "sse":
            self._body.clear()
            for event in self._sse.feed(read):
                self._take(at_ns, event)

    def compact(self) -> None:
        """Join the tokens that have come so far: a long answer holds each by itself otherwise."""
        done_text, done_aside = self._compacted
        self._compacted = (_join_from(self.text, done_text), _join_from(self.aside, done_aside))

    def end(self) -> bool:
        """Nothing more comes. False when the answer should have been one JSON body and is none."""
        if self.kind == "sse" and is_done(self._sse.pending()):
            self.done = True
        if self.kind != "json":
            return True
        try:
            value = parse(self.body.removeprefix(BOM))
        except (ValueError, RecursionError):
            return False
        self._add(self.last_ns, read_chunk(value))
        return isinstance(value, dict)

    def _inflated(self, read: bytes) -> bytes:
        try:
            return bytes(self._inflate.decompress(read))
        except zlib.error:
            self._inflate = None
            return read

    def _keep(self, read: bytes) -> None:
        if len(self.head) < HEAD_BYTES:
            self.head += read[: HEAD_BYTES - len(self.head)]
        if self._body_bytes < BODY_LIMIT_BYTES:
            self._body.append(read)
            self._body_bytes += len(read)

    def _take(self, at_ns: int, event: SseEvent) -> None:
        if self.done:
            return
        data = event.data
        if not data.strip():
            return
        if is_done(data):
            self.done = True
            self._prefix = None
            return
        self.events += 1
        try:
            chunk = read_chunk(parse(data), event.name)
        except (ValueError, RecursionError):
            self.bad_events += 1
            return
        if chunk is not NOTHING:
            self._add(at_ns, chunk)
            self._learn(data, chunk)

    def _take_like_an_earlier(self, at_ns: int, read: bytes) -> bool:
        """The short way for a read that is one event and differs from an earlier one in nothing but its text."""
        prefix, suffix = self._prefix or b"", self._suffix
        if not (read.startswith(prefix) and read.endswith(suffix) and self._sse.is_between_events()):
            return False
        middle = read[len(prefix) : len(read) - len(suffix)]
        if not middle or _NOT_PLAIN.search(middle) is not None:
            return False
        try:
            text = middle.decode()
        except UnicodeDecodeError:
            return False
        self.last_ns = at_ns
        self.events += 1
        self.times.append(at_ns)
        self.text.append(text)
        return True

    def _learn(self, data: bytes, chunk: Chunk) -> None:
        """Remember what surrounds the text of a chunk that carries nothing else."""
        plain = chunk.answer and not chunk.aside and not chunk.finish_reason and chunk.usage is None
        needle = _CONTENT + chunk.answer.encode("utf-8", "replace") + b'"'
        if plain and chunk.queue_ms is None and data.count(b'content"') == 1 and data.count(needle) == 1:
            start = data.index(needle) + len(_CONTENT)
            self._prefix = b"data: " + data[:start]
            self._suffix = data[start + len(needle) - len(_CONTENT) - 1 :] + b"\n\n"

    def _add(self, at_ns: int, chunk: Chunk) -> None:
        if chunk.generated:
            self.times.append(at_ns)
            if chunk.answer:
                self.text.append(chunk.answer)
                if self.first_answer_ns is None:
                    self.first_answer_ns = at_ns
            if chunk.aside:
                self.aside.append(chunk.aside)
        if chunk.usage is not None:
            self.usage = self.usage.updated(chunk.usage)
        self.finish_reason = chunk.finish_reason or self.finish_reason
        self.error = self.error or chunk.error
        self.queue_ms = self.queue_ms if chunk.queue_ms is None else chunk.queue_ms
        self.prefill_ms = self.prefill_ms if chunk.prefill_ms is None else chunk.prefill_ms


def _join_from(parts: list[str], start: int) -> int:
    parts[start:] = ["".join(parts[start:])]
    return len(parts)


def _kind_of(head: bytes) -> Literal["unknown", "sse", "json", "html"]:
    """Judged by the bytes: the content type that relays send is often wrong."""
    start = head.removeprefix(BOM).lstrip(b" \t\r\n")
    if not start or BOM.startswith(head):
        return "unknown"
    if start[:1] in b"{[":
        return "json"
    return "html" if start[:1] == b"<" else "sse"
