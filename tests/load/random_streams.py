"""Random streams whose meaning is known, cut at random: what a decoder must say of them is written down beside."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

from lab.load.call import Call, End
from lab.load.decode import decode
from lab.records.request import RequestRecord
from lab.records.states import RequestFailure

TEXTS = [
    "a",
    " b",
    "cd ",
    "好",
    "中文",
    "🌍",
    "é",
    '"',
    "\\",
    "\n",
    "\t",
    "\u0001",
    "[DONE]",
    "data: x",
    ":",
    "{}",
    "\u2028",
]
NOISE = [": ping", ":", "", "id: 7", "retry: 100", "event: ping", "other: 1", "data"]


@dataclass
class Known:
    """What is true of a stream; `offsets` are how many bytes had to come until each token-bearing chunk was whole."""

    text: str = ""
    offsets: list[int] = field(default_factory=list)
    answer_offsets: list[int] = field(default_factory=list)
    completion_tokens: int | None = None
    finish_reason: str | None = None
    failure: RequestFailure | None = None
    end: End = "closed"


class Writer:
    """Writes events in one framing, and keeps count of the bytes."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.line_end = source.choice([b"\n", b"\r\n", b"\r"])
        self.space = source.choice([b" ", b""])
        self.raw = bytearray(source.choice([b"", b"\xef\xbb\xbf"]))

    def event(self, value: object) -> int:
        """The number of bytes after which the event is whole."""
        text = json.dumps(
            value, ensure_ascii=self.source.random() < 0.3, separators=self.source.choice([(",", ":"), None])
        )
        parts = [text]
        if self.source.random() < 0.1:
            cut = text.index(":") + 1
            parts = [text[:cut], text[cut:]]
        return self.data(*(part.encode() for part in parts))

    def data(self, *parts: bytes) -> int:
        for part in parts:
            self.raw += b"data:" + self.space + part + self.line_end
        self.raw += self.line_end
        # the blank line is known to be one at its first byte, also where a line feed is still to follow
        return len(self.raw) - len(self.line_end) + 1

    def noise(self) -> None:
        line = self.source.choice(NOISE).encode()
        self.raw += line + self.line_end + self.line_end


def chunk(delta: object, finish: str | None = None, **more: object) -> dict[str, object]:
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def random_stream(source: random.Random) -> tuple[bytes, Known]:
    writer, known = Writer(source), Known()
    if source.random() < 0.7:
        writer.event(chunk({"role": "assistant", "content": source.choice(["", None])}))
    for _ in range(source.randrange(12)):
        _one_part(writer, known)
    _ending(writer, known)
    return bytes(writer.raw), known


def _one_part(writer: Writer, known: Known) -> None:
    source = writer.source
    kind = source.random()
    if kind < 0.55:
        text = "".join(source.choices(TEXTS, k=source.randrange(1, 4)))
        offset = writer.event(chunk({"content": text}))
        known.text += text
        known.offsets.append(offset)
        known.answer_offsets.append(offset)
    elif kind < 0.7:
        known.offsets.append(writer.event(chunk({source.choice(["reasoning", "reasoning_content"]): "hm"})))
    elif kind < 0.78:
        known.offsets.append(writer.event(chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]})))
    elif kind < 0.85:
        writer.event(source.choice([{"choices": []}, {"type": "ping"}, chunk(None), chunk({}), {"usage": None}]))
    else:
        writer.noise()


def _ending(writer: Writer, known: Known) -> None:
    source = writer.source
    said_end = False
    if source.random() < 0.8:
        known.finish_reason = source.choice(["stop", "length"])
        writer.event(chunk({}, known.finish_reason))
        said_end = True
    if source.random() < 0.7:
        known.completion_tokens = source.randrange(0, 50)
        writer.event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": known.completion_tokens}})
    if source.random() < 0.1:
        writer.event({"error": {"message": "it broke"}})
        known.failure = "stream-error"
    if source.random() < 0.7:
        writer.data(b"[DONE]")
        said_end = True
        if source.random() < 0.2:
            writer.event(chunk({"content": "after the end"}))
    known.end = source.choice(["complete", "closed", "lost"])
    if known.failure is None:
        known.failure = _failure(known, said_end, writer)


def _failure(known: Known, said_end: bool, writer: Writer) -> RequestFailure | None:
    if said_end:
        return None if known.offsets else "empty-answer"
    if not writer.raw.removeprefix(b"\xef\xbb\xbf"):
        return "connection-lost" if known.end == "lost" else "empty-answer"
    if known.end == "lost":
        return "connection-lost"
    return "truncated" if b"{" in writer.raw else "empty-answer"


def cut(raw: bytes, source: random.Random) -> list[tuple[int, bytes]]:
    """Reads of random sizes; the read number n arrives at n+1 milliseconds."""
    reads, at = [], 0
    most = source.choice([1, 3, 20, 500, 100_000])
    while at < len(raw):
        size = source.randrange(1, most + 1)
        reads.append(((len(reads) + 1) * 1_000_000, raw[at : at + size]))
        at += size
    return reads


def arrival_ms(reads: list[tuple[int, bytes]], offset: int) -> float:
    total = 0
    for at_ns, read in reads:
        total += len(read)
        if total >= offset:
            return at_ns / 1e6
    raise AssertionError("the stream is shorter than its own chunk")


def decode_random(seed: int) -> tuple[RequestRecord, Known, list[tuple[int, bytes]]]:
    source = random.Random(seed)
    raw, known = random_stream(source)
    reads = cut(raw, source)
    ended_ns = reads[-1][0] if reads else 0
    call = Call(0, False, 0, ended_ns, known.end, sent_ns=0, status=200)
    return decode(reads, call, clock_ns=0), known, reads


def check(seed: int) -> None:
    """Raises AssertionError where the decoder and the truth differ."""
    record, known, reads = decode_random(seed)
    assert record.failure == known.failure, (seed, record.failure, known.failure)
    times = tuple(arrival_ms(reads, offset) for offset in known.offsets)
    assert record.chunk_times_ms == times, seed
    assert record.text == known.text, seed
    assert record.ttft_ms == (times[0] if times else None), seed
    assert record.completion_tokens == known.completion_tokens, seed
    assert record.finish_reason == known.finish_reason, seed
    answers = [arrival_ms(reads, offset) for offset in known.answer_offsets]
    assert record.first_answer_ms == (answers[0] if answers else None), seed
    if record.ok:
        assert record.e2e_ms == times[-1], seed
