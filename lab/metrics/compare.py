"""Verdicts between arms: what the data can carry, and why not where they cannot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from lab.findings import Param
from lab.metrics.percentiles import Values, as_values, percentile
from lab.metrics.quantities import METRICS, Metric, Side, metrics_of, throughput
from lab.metrics.validity import P95_SAMPLES, spoils
from lab.metrics.verdict import Comparable, Verdict, shown
from lab.records.plan import Slo
from lab.records.workload import Stage

FAILED_LIMIT_RATIO = 0.01
LENGTH_LIMIT_RATIO = 0.05
SAME_RATIO = 1.02
"""Arms that differ by less in every repeat are called the same: nobody chooses by such a difference."""


def compare_arms(
    rows: Iterable[Comparable], *, ttft_ms: Mapping[int, Sequence[float] | Values] | None = None, slo: Slo | None = None
) -> tuple[Verdict, ...]:
    """Each arm against the reference, per stage; `ttft_ms` holds the TTFT of the requests of each measurement by id.

    A ratio stands on the requests of all repeats together; its spread is the lowest and highest ratio of a single
    repeat, and it is only said where all of these point the same way.
    """
    groups = [list(group) for _, group in groupby(sorted(rows, key=_stage_key), key=_stage_key)]
    return tuple(
        replace(verdict, params={**_stage_params(members[0].stage, shown=len(groups) > 1), **verdict.params})
        for members in groups
        for verdict in _judge_stage(_sides(members, ttft_ms or {}), slo)
    )


def reference_arm(rows: Iterable[Comparable]) -> str | None:
    """The name of the arm that the others are compared with; None where nothing is measured.

    It is the first of one's own: a gateway is compared with it, wherever it stands in the list.
    """
    ordered = sorted(rows, key=lambda row: (row.target == "gateway", row.arm_id))
    return ordered[0].arm_name if ordered else None


def _judge_stage(sides: Sequence[Side], slo: Slo | None) -> list[Verdict]:
    own = [side for side in sides if not side.is_baseline]
    reference = (own or sides)[0]
    verdicts = [verdict for arm in sides if arm is not reference for verdict in _compare(arm, reference)]
    mixed = any(side.interfered for side in sides)
    if slo is not None and slo.ttft_p95_ms is not None and len(own) > 1 and not mixed:
        verdicts += _winner(own, slo.ttft_p95_ms)
    return verdicts


def _stage_params(stage: Stage, *, shown: bool) -> dict[str, Param]:
    """`stage` begins the sentence; it is empty where there is one stage only."""
    named = shown and stage.kind is not None and stage.value is not None
    return {
        "stage": f"{stage.kind} {stage.value:g}: " if named else "",
        "stage_kind": stage.kind,
        "stage_value": stage.value,
    }


def _stage_key(row: Comparable) -> tuple[str, float]:
    return (row.stage.kind or "", row.stage.value or 0.0)


def _sides(rows: Sequence[Comparable], ttft_ms: Mapping[int, Sequence[float] | Values]) -> list[Side]:
    found: dict[int, dict[int, Comparable]] = {}
    for row in sorted(rows, key=lambda r: (r.arm_id, r.repeat)):
        found.setdefault(row.arm_id, {})[row.repeat] = row
    return [_side(repeats, ttft_ms) for repeats in found.values()]


def _side(repeats: Mapping[int, Comparable], ttft_ms: Mapping[int, Sequence[float] | Values]) -> Side:
    samples = [as_values(ttft_ms[row.id]) for row in repeats.values() if row.id in ttft_ms]
    first = next(iter(repeats.values()))
    return Side(first.arm_name, repeats, np.concatenate(samples) if samples else np.empty(0))


def _compare(arm: Side, other: Side) -> list[Verdict]:
    """One pair: a single reason where it holds for all metrics, otherwise metric by metric."""
    names: dict[str, Param] = {"arm": arm.name, "other": other.name}
    reason = _not_comparable(arm, other, names)
    if reason is not None:
        return [reason]
    metrics = metrics_of(arm, other)
    return [verdict for metric in metrics if (verdict := _judge(metric, arm, other, names)) is not None]


def _cannot(code: str, names: Mapping[str, Param], **params: Param) -> Verdict:
    return Verdict(code, {**names, **params}, said=False)


def _not_comparable(arm: Side, other: Side, names: Mapping[str, Param]) -> Verdict | None:
    for side in (arm, other):
        failed = sum(sum(s.failed.values()) for s in side.summaries)
        requests = sum(s.requests for s in side.summaries)
        if failed > FAILED_LIMIT_RATIO * requests:
            return _cannot("cannot-tell-failures", names, failing=side.name, failed=failed, requests=requests)
    for side in (arm, other):
        spoiling = [m.code for row in side.repeats.values() for m in row.marks if spoils(m)]
        if spoiling:
            return _cannot("cannot-tell-marks", names, marked=side.name, mark=spoiling[0])
    if len(arm.repeats.keys() & other.repeats.keys()) < 2:
        return _cannot("cannot-tell-one-repeat", names)
    return None


def _judge(metric: Metric, arm: Side, other: Side, names: Mapping[str, Param]) -> Verdict | None:
    reason = _metric_not_comparable(metric, arm, other, names)
    if reason is not None:
        return reason
    ratios = _ratios_per_repeat(metric, arm, other)
    if not ratios:
        return _cannot("cannot-tell-missing", names, metric=metric.name)
    low, high = min(ratios), max(ratios)
    if low <= 1 <= high:
        return _cannot("cannot-tell-spread", names, metric=metric.name, low=shown(low), high=shown(high))
    if max(high, 1 / low) <= SAME_RATIO:
        percent = shown((SAME_RATIO - 1) * 100)
        return Verdict("verdict-same", {**names, "metric": metric.name, "percent": percent, "repeats": len(ratios)})
    if high < 1:
        arm, other, low, high = other, arm, 1 / high, 1 / low
    params: dict[str, Param] = {"arm": arm.name, "other": other.name, "repeats": len(ratios)}
    ratio = (metric.pooled(arm) or 0) / (metric.pooled(other) or math.nan)
    if metric.shown_ms is not None:
        params |= {"ms": round(metric.shown_ms(arm) or 0), "other_ms": round(metric.shown_ms(other) or 0)}
    return Verdict(metric.code, {**params, "ratio": shown(ratio), "low": shown(low), "high": shown(high)})


def _metric_not_comparable(metric: Metric, arm: Side, other: Side, names: Mapping[str, Param]) -> Verdict | None:
    lengths = (arm.mean_length, other.mean_length)
    if metric.needs_equal_length and _differ(*lengths):
        mean, other_mean = (None if length is None else round(length, 1) for length in lengths)
        return _cannot("cannot-tell-length", names, metric=metric.name, mean=mean, other_mean=other_mean)
    if metric.needs_tokens and arm.estimated != other.estimated:
        return _cannot("cannot-tell-estimated", names, metric=metric.name)
    for side in (arm, other):
        late = [m.code for row in side.repeats.values() for m in row.marks if spoils(m, metric.scale_ms(row.summary))]
        if late:
            return _cannot("cannot-tell-late", names, metric=metric.name, marked=side.name, mark=late[0])
    n = min(arm.pooled_ttft_ms.size, other.pooled_ttft_ms.size)
    if metric.needs_p95 and 0 < n < P95_SAMPLES:
        return _cannot("cannot-tell-samples", names, metric=metric.name, n=int(n))
    return None


def _differ(length: float | None, other: float | None) -> bool:
    """An unknown length is not known to differ; metrics that need tokens have no value then."""
    if length is None or other is None:
        return False
    return abs(length - other) > LENGTH_LIMIT_RATIO * max(length, other)


def _ratios_per_repeat(metric: Metric, arm: Side, other: Side) -> list[float]:
    """Empty as soon as one repeat has no value, or the pooled figure cannot be had."""
    if metric.pooled(arm) is None or metric.pooled(other) is None:
        return []
    shared = sorted(arm.repeats.keys() & other.repeats.keys())
    pairs = [(metric.better(arm.repeats[i].summary), metric.better(other.repeats[i].summary)) for i in shared]
    ratios = [mine / theirs for mine, theirs in pairs if mine is not None and theirs]
    return ratios if len(ratios) == len(pairs) else []


def _shown_limit(limit_ms: float) -> float | int:
    return int(limit_ms) if limit_ms.is_integer() else limit_ms


def _winner(sides: Sequence[Side], limit_ms: float) -> list[Verdict]:
    """One sentence naming the arm to take under the SLO, where all could be judged and the gap is clear.

    The gateway is a baseline, nothing that could be taken.
    """
    if any(_not_comparable(side, sides[0], {}) is not None for side in sides[1:]) or any(s.few for s in sides):
        return []
    p95 = {side.name: percentile(side.pooled_ttft_ms, 95) for side in sides}
    keeping = [side for side in sides if all((s.ttft_ms.p95 or math.inf) <= limit_ms for s in side.summaries)]
    if not keeping:
        nearest = min(p95, key=lambda name: p95[name] or math.inf)
        params: dict[str, Param] = {
            "arm": nearest,
            "limit_ms": _shown_limit(limit_ms),
            "ttft_p95_ms": round(p95[nearest] or 0),
        }
        return [Verdict("verdict-nobody-meets-slo", params)]
    keeping.sort(key=lambda side: throughput(side) or 0, reverse=True)
    best, rate = keeping[0], throughput(keeping[0])
    if rate is None or any(not _clearly_faster(best, rival) for rival in keeping[1:]):
        return []
    params = {"arm": best.name, "limit_ms": _shown_limit(limit_ms), "tokens_per_s": shown(rate)}
    return [Verdict("verdict-winner", {**params, "ttft_p95_ms": round(p95[best.name] or 0)})]


def _clearly_faster(best: Side, rival: Side) -> bool:
    if _metric_not_comparable(METRICS[0], best, rival, {}) is not None:
        return False
    ratios = _ratios_per_repeat(METRICS[0], best, rival)
    return bool(ratios) and min(ratios) > 1
