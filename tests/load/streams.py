"""The shorthand of stream cases: chunks as bytes, and streams as (milliseconds, bytes)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from lab.load.call import Call, End
from lab.load.decode import decode
from lab.records.request import RequestRecord

Timed = tuple[float, bytes]


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


def envelope(delta: object, finish: str | None = None) -> dict[str, object]:
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def content(text: str) -> bytes:
    return event(envelope({"content": text}))


def reasoning(text: str, name: str = "reasoning_content") -> bytes:
    return event(envelope({name: text}))


def usage(prompt: int, completion: int) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return event({**envelope({}), "choices": [], "usage": counts})


ROLE = event(envelope({"role": "assistant", "content": ""}))
STOP = event(envelope({}, "stop"))
LENGTH = event(envelope({}, "length"))
DONE = b"data: [DONE]\n\n"


def read(
    stream: Sequence[Timed],
    *,
    end: End = "complete",
    status: int | None = 200,
    count_tokens: Callable[[str], int | None] | None = None,
    secret: str | None = None,
    scheduled_ms: float | None = None,
) -> RequestRecord:
    """Decode a stream whose request was sent at 0 ms."""
    reads = [(round(at_ms * 1e6), data) for at_ms, data in stream]
    ended_ns = reads[-1][0] if reads else 0
    scheduled_ns = None if scheduled_ms is None else round(scheduled_ms * 1e6)
    call = Call(0, False, scheduled_ns or 0, ended_ns, end, sent_ns=0, scheduled_ns=scheduled_ns, status=status)
    return decode(reads, call, clock_ns=0, count_tokens=count_tokens, secret=secret)
