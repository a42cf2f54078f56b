"""Tokens and requests per second: the whole run, or what fell inside a window of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.records.plan import Slo
from lab.records.request import RequestRecord


@dataclass(frozen=True, slots=True)
class Output:
    """Tokens over a stretch of time.

    `wall_s` is None where nothing ran; `tokens` is None where a successful request has no token count.
    `completed_tokens` leaves out what was cut off; `finished` are the successful requests that ended inside the window.
    `cut_off` counts the requests of which only a part fell inside.
    """

    wall_s: float | None
    tokens: int | None
    completed_tokens: int | None
    finished: Sequence[RequestRecord]
    cut_off: int

    def per_second(self, amount: float | None) -> float | None:
        return None if amount is None or not self.wall_s else amount / self.wall_s


def last_token_ms(record: RequestRecord) -> float | None:
    """The last generated output on the measurement's clock; None where none came."""
    if record.e2e_ms is not None:
        return record.t0_ms + record.e2e_ms
    return record.t0_ms + record.chunk_times_ms[-1] if record.chunk_times_ms else None


def measure_output(measured: Sequence[RequestRecord], window_s: float | None) -> Output:
    """Output of the measured requests (warm-up already left out)."""
    if not measured:
        return Output(None, None, None, (), 0)
    return _whole_run(measured) if window_s is None else _inside_window(measured, window_s)


def _whole_run(measured: Sequence[RequestRecord]) -> Output:
    ok = [r for r in measured if r.ok]
    tokens = _sum_tokens(ok)
    ends = [end for r in ok if (end := last_token_ms(r)) is not None]
    wall_s = (max(ends) - min(r.t0_ms for r in measured)) / 1000 if ends else None
    return Output(wall_s, tokens, tokens, ok, 0)


def _inside_window(measured: Sequence[RequestRecord], window_s: float) -> Output:
    """The window opens with the measurement's clock; a request's tokens are spread over the arrivals of its chunks."""
    end_ms = window_s * 1000
    finished = [r for r in measured if r.ok and (last_token_ms(r) or 0) <= end_ms]
    running = [r for r in measured if r.incomplete or (r.ok and (last_token_ms(r) or 0) > end_ms)]
    completed = _sum_tokens(finished)
    per_chunk = _tokens_per_chunk(finished)
    parts = [_tokens_until(r, end_ms, per_chunk) for r in running]
    cut_off = sum(1 for r in running if r.chunk_times_ms)
    tokens = None if completed is None else round(completed + sum(parts))
    return Output(window_s, tokens, completed, finished, cut_off)


def _sum_tokens(records: Sequence[RequestRecord]) -> int | None:
    """None as soon as one count is missing: a sum with holes is no total."""
    counts = [r.completion_tokens for r in records]
    known = [c for c in counts if c is not None]
    return int(sum(known)) if len(known) == len(counts) else None


def _tokens_per_chunk(records: Sequence[RequestRecord]) -> float:
    counted = [r for r in records if r.completion_tokens is not None and r.chunk_times_ms]
    chunks = sum(len(r.chunk_times_ms) for r in counted)
    return sum(r.completion_tokens or 0 for r in counted) / chunks if chunks else 1.0


def _tokens_until(record: RequestRecord, end_ms: float, per_chunk: float) -> float:
    if not record.chunk_times_ms:
        return 0.0
    inside = sum(1 for t in record.chunk_times_ms if record.t0_ms + t <= end_ms)
    if record.completion_tokens is not None:
        per_chunk = record.completion_tokens / len(record.chunk_times_ms)
    return inside * per_chunk


def meets_slo(record: RequestRecord, slo: Slo) -> bool:
    """Whether one successful request kept every limit that is set; what cannot be had misses it."""
    too_short = record.completion_tokens is not None and record.completion_tokens < 2
    return (
        record.ok
        and _within(record.ttft_ms, slo.ttft_p95_ms)
        and (too_short or _within(record.tpot_ms, slo.tpot_p95_ms))
        and _within(record.e2e_ms, slo.e2e_p95_ms)
    )


def _within(value: float | None, limit: float | None) -> bool:
    return limit is None or (value is not None and value <= limit)


def has_slo(slo: Slo) -> bool:
    return any(limit is not None for limit in (slo.ttft_p95_ms, slo.tpot_p95_ms, slo.e2e_p95_ms))
