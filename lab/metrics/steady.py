"""The stretch of a measurement in which the concurrency that was asked for was really held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.metrics.overlap import InFlight, in_flight
from lab.metrics.rates import last_token_ms, tokens_per_chunk
from lab.records.request import RequestRecord
from lab.records.table import RequestTable

HELD_RATIO = 0.95
"""Slots are empty for a moment between two requests; more than that is not a concurrency held."""


@dataclass(frozen=True, slots=True)
class Steady:
    """`tokens` are those that arrived inside the stretch, None where one answer does not tell when its tokens came."""

    start_ms: float
    end_ms: float
    tokens: float | None

    @property
    def seconds(self) -> float:
        return (self.end_ms - self.start_ms) / 1000

    @property
    def tokens_per_s(self) -> float | None:
        return None if self.tokens is None else self.tokens / self.seconds


def steady_state(
    measured: Sequence[RequestRecord],
    concurrency: int | None,
    window_s: float | None = None,
    *,
    timeout_ms: float | None = None,
) -> Steady | None:
    """From the first to the last moment with that many requests in flight.

    Warm-up is already left out, but not what the ramp started: it held its slots when the clock started, at 0.

    None without a concurrency, where it was never reached, where fewer than 95 % of it were in flight on average, and
    where fewer answers ended inside than are asked for at once: that is a start and an end without a middle.
    """
    window_ms = None if window_s is None else window_s * 1000
    course = in_flight(measured, window_ms, timeout_ms=timeout_ms) if concurrency else None
    if course is None or concurrency is None:
        return None
    stretch = _stretch(course, concurrency, window_ms)
    table = RequestTable.of(measured)
    if stretch is None or _held_ratio(course, concurrency, *stretch) < HELD_RATIO:
        return None
    if _ended_inside(table, *stretch) < concurrency:
        return None
    return Steady(*stretch, _tokens_inside(table, *stretch))


def _stretch(course: InFlight, concurrency: int, window_ms: float | None) -> tuple[float, float] | None:
    full = np.flatnonzero(course.counts >= concurrency)
    if not full.size:
        return None
    start, end = float(course.moments_ms[full[0]]), float(course.moments_ms[full[-1] + 1])
    start, end = max(start, 0.0), end if window_ms is None else min(end, window_ms)
    return (start, end) if end > start else None


def _held_ratio(course: InFlight, concurrency: int, start_ms: float, end_ms: float) -> float:
    edges = np.clip(course.moments_ms, start_ms, end_ms)
    held = np.minimum(course.counts[:-1], concurrency) * np.diff(edges)
    return float(held.sum() / (concurrency * (end_ms - start_ms)))


def _ended_inside(measured: RequestTable, start_ms: float, end_ms: float) -> int:
    ends = last_token_ms(measured.where(measured.ok))
    return int(((ends > start_ms) & (ends <= end_ms)).sum())


def _tokens_inside(measured: RequestTable, start_ms: float, end_ms: float) -> float | None:
    """The tokens of an answer are spread evenly over its chunks; one that was cut off has the average of the others."""
    answers = measured.where(~measured.failed)
    whole = answers.where(answers.ok)
    tokens, chunks = whole.column("completion_tokens"), whole.chunks
    if np.isnan(tokens).any() or not chunks.all():
        return None
    average = float(tokens.sum() / chunks.sum()) if chunks.size else 1.0
    inside = answers.chunks_until(end_ms) - answers.chunks_until(start_ms)
    return float((inside * tokens_per_chunk(answers, average)).sum())
