"""Over several concurrencies: the smallest one that no larger one outdoes.

The rule: throughput has stopped growing at the smallest concurrency from which on no larger one gives more than 10 %
more, on the tokens of all repeats over their time. It is said only with at least three concurrencies and two repeats,
without a reservation that spoils a comparison, and where every single repeat has the same knee.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from lab.findings import Param
from lab.metrics.pool import add_up
from lab.metrics.validity import spoils
from lab.metrics.verdict import Comparable, Verdict
from lab.records.summary import Summary

GROWTH_RATIO = 1.1
LEAST_STAGES = 3
LEAST_REPEATS = 2
Curve = Mapping[float, float]


def find_knees(rows: Iterable[Comparable]) -> tuple[Verdict, ...]:
    """One verdict per arm that was measured at several concurrencies; arms with fewer than three are left out."""
    climbing = sorted((r for r in rows if r.stage.kind == "concurrency"), key=lambda r: r.arm_id)
    arms = [list(group) for _, group in groupby(climbing, key=lambda r: r.arm_id)]
    return tuple(_judge(arm) for arm in arms if len({row.stage.value for row in arm}) >= LEAST_STAGES)


def knee(curve: Curve) -> float:
    """The smallest concurrency from which on no larger one gives more than 10 % more throughput."""
    stages = sorted(curve)
    return next(s for i, s in enumerate(stages) if all(curve[t] <= GROWTH_RATIO * curve[s] for t in stages[i + 1 :]))


def _judge(rows: Sequence[Comparable]) -> Verdict:
    arm: Param = rows[0].arm_name
    repeats = {row.repeat for row in rows}
    spoiled = next((mark.code for row in rows for mark in row.marks if spoils(mark)), None)
    if spoiled is not None:
        return Verdict("cannot-tell-knee-marks", {"arm": arm, "mark": spoiled}, said=False)
    curves = [_curve([r for r in rows if r.repeat == repeat]) for repeat in sorted(repeats)]
    whole = _curve(rows)
    if whole is None or any(curve is None or set(curve) != set(whole) for curve in curves):
        return Verdict("cannot-tell-knee-missing", {"arm": arm}, said=False)
    if len(repeats) < LEAST_REPEATS:
        return Verdict("cannot-tell-knee-repeats", {"arm": arm}, said=False)
    found = [knee(curve) for curve in curves if curve is not None]
    if len({*found, knee(whole)}) > 1:
        return Verdict("cannot-tell-knee-spread", {"arm": arm, "low": min(found), "high": max(found)}, said=False)
    return _said(rows[0].arm_name, knee(whole), whole)


def _said(arm: str, at: float, curve: Curve) -> Verdict:
    params: dict[str, Param] = {"arm": arm, "concurrency": int(at), "tokens_per_s": round(curve[at], 1)}
    if at == max(curve):
        return Verdict("verdict-no-knee", params)
    larger = max(value for stage, value in curve.items() if stage > at)
    return Verdict("verdict-knee", {**params, "most_tokens_per_s": round(larger, 1), "largest": int(max(curve))})


def _curve(rows: Sequence[Comparable]) -> Curve | None:
    """Throughput by concurrency over all given rows; None as soon as one has none."""
    stages: dict[float, list[Summary]] = {}
    for row in rows:
        stages.setdefault(row.stage.value or 0.0, []).append(row.summary)
    curve: dict[float, float] = {}
    for stage, summaries in stages.items():
        tokens = add_up(s.output_tokens for s in summaries)
        wall_s = add_up(s.wall_s for s in summaries)
        if tokens is None or not wall_s:
            return None
        curve[stage] = tokens / wall_s
    return curve
