"""What a chart shows, as data: one point per measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.metrics.validity import spoils
from lab.metrics.verdict import Verdict
from lab.records.states import Target
from lab.records.workload import Stage
from lab.store.views import ExperimentView, MeasurementRow

NEAR_CEILING = frozenset({"near-client-ceiling", "client-near-ceiling"})


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement in the plane of throughput and P95 TTFT.

    `marks` are the codes of its reservations, `doubtful` whether one of them may have spoiled it, `near_ceiling`
    whether it lies near the most that the client was seen to keep up with, `origin` the name of the experiment it was
    taken from where that is another one.
    """

    measurement_id: int
    arm: str
    target: Target
    repeat: int
    stage: Stage
    tokens_per_s: float
    ttft_p95_ms: float
    n: int
    marks: tuple[str, ...] = ()
    doubtful: bool = False
    near_ceiling: bool = False
    origin: str | None = None

    @property
    def is_baseline(self) -> bool:
        return self.target == "gateway"


def throughput_ttft_points(
    view: ExperimentView, baselines: Iterable[tuple[str, MeasurementRow]] = ()
) -> tuple[Point, ...]:
    """The points of an experiment, then those of gateway measurements of others (with the experiment's name).

    A measurement without throughput or TTFT has no place in this plane and is left out.
    """
    own = [_point(row, None) for row in view.measurements]
    known = {row.id for row in view.measurements}
    others = [_point(row, origin) for origin, row in baselines if row.id not in known]
    return tuple(point for point in (*own, *others) if point is not None)


def knees(verdicts: Iterable[Verdict]) -> Mapping[str, float]:
    """The concurrency from which on throughput no longer grows, by arm, where the verdicts say one."""
    found = {str(v.params["arm"]): v.params["concurrency"] for v in verdicts if v.code == "verdict-knee"}
    return {arm: float(at) for arm, at in found.items() if isinstance(at, int | float)}


def _point(row: MeasurementRow, origin: str | None) -> Point | None:
    tokens_per_s, ttft_p95_ms = row.summary.output_tokens_per_s, row.summary.ttft_ms.p95
    if tokens_per_s is None or ttft_p95_ms is None:
        return None
    return Point(
        measurement_id=row.id,
        arm=row.arm_name,
        target=row.target,
        repeat=row.repeat,
        stage=row.stage,
        tokens_per_s=tokens_per_s,
        ttft_p95_ms=ttft_p95_ms,
        n=row.summary.ttft_ms.n,
        marks=tuple(mark.code for mark in row.marks),
        doubtful=any(spoils(mark, ttft_p95_ms) for mark in row.marks),
        near_ceiling=any(mark.code in NEAR_CEILING for mark in row.marks),
        origin=origin,
    )


@dataclass(frozen=True, slots=True)
class LadderPoint:
    """Mean TTFT of one step of a ladder; `prompt_tokens` as the server counted them, else as they were asked for."""

    measurement_id: int
    arm: str
    target: Target
    repeat: int
    prompt_tokens: float
    ttft_mean_ms: float
    n: int


def ladder_points(view: ExperimentView) -> tuple[LadderPoint, ...]:
    """One point per measured step, in the order of arms, repeats and lengths."""
    points = [_ladder_point(row) for row in view.measurements if row.stage.kind == "prompt_tokens"]
    return tuple(point for point in points if point is not None)


def _ladder_point(row: MeasurementRow) -> LadderPoint | None:
    summary = row.summary
    tokens = row.stage.value
    if summary.prompt_tokens is not None and summary.succeeded:
        tokens = summary.prompt_tokens / summary.succeeded
    if tokens is None or summary.ttft_ms.mean is None:
        return None
    return LadderPoint(row.id, row.arm_name, row.target, row.repeat, tokens, summary.ttft_ms.mean, summary.ttft_ms.n)


@dataclass(frozen=True, slots=True)
class CachePoint:
    """The largest share (0..1) of the KV cache in use at one context length (prompt and answer together, in tokens)."""

    measurement_id: int
    arm: str
    target: Target
    repeat: int
    context_tokens: float
    kv_peak_ratio: float
    in_flight: int


def cache_points(view: ExperimentView) -> tuple[CachePoint, ...]:
    """One point per step of prompt lengths whose KV cache was sampled."""
    points = [_cache_point(row) for row in view.measurements if row.stage.kind == "prompt_tokens"]
    return tuple(point for point in points if point is not None)


def _cache_point(row: MeasurementRow) -> CachePoint | None:
    summary = row.summary
    if summary.kv_peak_ratio is None or not summary.succeeded:
        return None
    if summary.prompt_tokens is None or summary.output_tokens is None:
        return None
    context = (summary.prompt_tokens + summary.output_tokens) / summary.succeeded
    peak, in_flight = summary.kv_peak_ratio, summary.peak_in_flight
    return CachePoint(row.id, row.arm_name, row.target, row.repeat, context, peak, in_flight)


def wants_log_axis(values: Sequence[float], factor: float = 20.0) -> bool:
    """Whether the values span so much that a linear axis would press most of them together."""
    positive = [value for value in values if value > 0]
    return len(positive) == len(values) and len(values) > 1 and max(positive) / min(positive) > factor
