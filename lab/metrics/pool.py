"""The repeats of an arm taken together: requests are pooled, percentiles never averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.metrics.compare import Comparable
from lab.metrics.percentiles import Values, as_values, distribution
from lab.records.states import Target
from lab.records.summary import Distribution, Summary
from lab.records.workload import Stage


@dataclass(frozen=True, slots=True)
class PooledArm:
    """One arm in one stage over its repeats.

    `wall_s` adds the repeats up, `output_tokens_per_s` is all tokens over all of it; both are None, like
    `output_tokens`, as soon as one repeat has none. `lowest` and `highest` are the throughputs of single repeats.
    """

    arm_id: int
    arm_name: str
    target: Target
    stage: Stage
    repeats: int
    requests: int
    succeeded: int
    failed: Mapping[str, int]
    ttft_ms: Distribution
    output_tokens: int | None
    wall_s: float | None
    output_tokens_per_s: float | None
    lowest_tokens_per_s: float | None
    highest_tokens_per_s: float | None
    marks: tuple[str, ...]
    measurement_ids: tuple[int, ...]


def pool_arms(rows: Iterable[Comparable], ttft_ms: Mapping[int, Sequence[float] | Values]) -> tuple[PooledArm, ...]:
    """Article 2's table: a row per arm and stage, in the order given; `ttft_ms` by the number of the measurement."""
    groups: dict[tuple[int, Stage], list[Comparable]] = {}
    for row in rows:
        groups.setdefault((row.arm_id, row.stage), []).append(row)
    return tuple(_pool(members, ttft_ms) for members in groups.values())


def _pool(members: Sequence[Comparable], ttft_ms: Mapping[int, Sequence[float] | Values]) -> PooledArm:
    first, summaries = members[0], [row.summary for row in members]
    tokens = add_up(s.output_tokens for s in summaries)
    wall_s = add_up(s.wall_s for s in summaries)
    rates = [s.output_tokens_per_s for s in summaries if s.output_tokens_per_s is not None]
    samples = [value for row in members for value in as_values(ttft_ms.get(row.id, ()))]
    return PooledArm(
        arm_id=first.arm_id,
        arm_name=first.arm_name,
        target=first.target,
        stage=first.stage,
        repeats=len({row.repeat for row in members}),
        requests=sum(s.requests for s in summaries),
        succeeded=sum(s.succeeded for s in summaries),
        failed=_failures(summaries),
        ttft_ms=distribution(samples),
        output_tokens=None if tokens is None else int(tokens),
        wall_s=wall_s,
        output_tokens_per_s=tokens / wall_s if tokens is not None and wall_s else None,
        lowest_tokens_per_s=min(rates, default=None),
        highest_tokens_per_s=max(rates, default=None),
        marks=tuple(dict.fromkeys(mark.code for row in members for mark in row.marks)),
        measurement_ids=tuple(row.id for row in members),
    )


def add_up(values: Iterable[float | None]) -> float | None:
    """The sum, or None as soon as one value is missing: a sum with holes is no total."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if known and len(known) == len(listed) else None


def _failures(summaries: Sequence[Summary]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for summary in summaries:
        for name, count in summary.failed.items():
            found[name] = found.get(name, 0) + count
    return found
