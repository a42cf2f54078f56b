"""The quantities in which arms are compared, each of one arm over its repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lab.metrics.percentiles import Values, percentile
from lab.metrics.pool import mean_of_all
from lab.metrics.validity import P95_SAMPLES
from lab.metrics.verdict import Comparable
from lab.records.summary import Summary


@dataclass(frozen=True, slots=True)
class Side:
    """One arm in one stage: its repeats in order, the TTFT of all its requests pooled."""

    name: str
    repeats: Mapping[int, Comparable]
    pooled_ttft_ms: Values = field(default_factory=lambda: np.empty(0))

    @property
    def summaries(self) -> list[Summary]:
        return [row.summary for row in self.repeats.values()]

    @property
    def is_baseline(self) -> bool:
        return next(iter(self.repeats.values())).target == "gateway"

    @property
    def estimated(self) -> bool:
        return any(s.tokens_estimated for s in self.summaries)

    @property
    def interfered(self) -> bool:
        return any(s.interference is not None for s in self.summaries)

    @property
    def few(self) -> bool:
        return self.pooled_ttft_ms.size < P95_SAMPLES

    @property
    def mean_length(self) -> float | None:
        """Tokens per whole answer; those that the end of a time window cut off would look shorter than they are."""
        sums = [_answers_of(summary) for summary in self.summaries]
        known = [each for each in sums if each is not None]
        answers = sum(count for _, count in known)
        return sum(tokens for tokens, _ in known) / answers if answers and len(known) == len(sums) else None


def _answers_of(summary: Summary) -> tuple[float, float] | None:
    """Tokens and number of the whole answers."""
    rate, answers, wall_s = summary.completed_tokens_per_s, summary.requests_per_s, summary.wall_s
    return None if rate is None or answers is None or wall_s is None else (rate * wall_s, answers * wall_s)


@dataclass(frozen=True, slots=True)
class Metric:
    """`better` turns a repeat's value into a figure that is larger where it is better, `pooled` that of all repeats.

    `scale_ms` is the stretch of time that the value is made of, against which a client's delay counts. `shown_ms` is
    what a sentence gives beside the ratio.
    """

    code: str
    name: str
    better: Callable[[Summary], float | None]
    scale_ms: Callable[[Summary], float | None]
    pooled: Callable[[Side], float | None]
    needs_equal_length: bool
    needs_tokens: bool
    needs_p95: bool = False
    shown_ms: Callable[[Side], float | None] | None = None


def throughput(side: Side) -> float | None:
    """Tokens of all repeats over the time of all repeats."""
    tokens, walls = [s.output_tokens for s in side.summaries], [s.wall_s for s in side.summaries]
    known = [(t, w) for t, w in zip(tokens, walls, strict=True) if t is not None and w]
    return sum(t for t, _ in known) / sum(w for _, w in known) if len(known) == len(tokens) and known else None


def _mean_speed(side: Side) -> float | None:
    """One over the mean TPOT of all requests."""
    return _inverse(mean_of_all(s.tpot_ms for s in side.summaries))


def _inverse(value: float | None) -> float | None:
    return None if not value else 1 / value


def _wall_ms(summary: Summary) -> float | None:
    return None if summary.wall_s is None else summary.wall_s * 1000


METRICS = (
    Metric(
        "verdict-throughput",
        "throughput",
        better=lambda s: s.output_tokens_per_s,
        scale_ms=_wall_ms,
        pooled=throughput,
        needs_equal_length=True,
        needs_tokens=True,
    ),
    Metric(
        "verdict-ttft",
        "P95 TTFT",
        better=lambda s: _inverse(s.ttft_ms.p95),
        scale_ms=lambda s: s.ttft_ms.p95,
        pooled=lambda side: _inverse(percentile(side.pooled_ttft_ms, 95)),
        needs_equal_length=True,
        needs_tokens=False,
        needs_p95=True,
    ),
    Metric(
        "verdict-tpot",
        "TPOT",
        better=lambda s: _inverse(s.tpot_ms.mean),
        scale_ms=lambda s: s.e2e_ms.mean,
        pooled=_mean_speed,
        needs_equal_length=False,
        needs_tokens=True,
    ),
)


def _stall_ms(side: Side) -> float | None:
    """The longest of all repeats; None as soon as one has none."""
    stalls = [None if s.interference is None else s.interference.longest_stall_ms for s in side.summaries]
    known = [stall for stall in stalls if stall is not None]
    return max(known) if known and len(known) == len(stalls) else None


def _intruder_ttft_ms(side: Side) -> float | None:
    """The mean of the long prompts of all repeats: there are too few of them for a percentile."""
    return mean_of_all(s.interference.intruder_ttft_ms for s in side.summaries if s.interference is not None)


# Steady answers with long prompts thrown in: TTFT of both kinds together would say nothing of either.
INTERFERENCE_METRICS = (
    Metric(
        "verdict-stall",
        "longest stall",
        better=lambda s: None if s.interference is None else _inverse(s.interference.longest_stall_ms),
        scale_ms=lambda s: None if s.interference is None else s.interference.longest_stall_ms,
        pooled=lambda side: _inverse(_stall_ms(side)),
        needs_equal_length=False,
        needs_tokens=False,
        shown_ms=_stall_ms,
    ),
    Metric(
        "verdict-intruder-ttft",
        "TTFT of long prompts",
        better=lambda s: None if s.interference is None else _inverse(s.interference.intruder_ttft_ms.mean),
        scale_ms=lambda s: None if s.interference is None else s.interference.intruder_ttft_ms.mean,
        pooled=lambda side: _inverse(_intruder_ttft_ms(side)),
        needs_equal_length=False,
        needs_tokens=False,
        shown_ms=_intruder_ttft_ms,
    ),
    METRICS[2],
)


def metrics_of(*sides: Side) -> Sequence[Metric]:
    return INTERFERENCE_METRICS if any(side.interfered for side in sides) else METRICS
