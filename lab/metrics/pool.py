"""The repeats of an arm taken together: requests are pooled, percentiles never averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lab.metrics.percentiles import Values, as_values, distribution
from lab.metrics.verdict import Comparable
from lab.records.states import Target
from lab.records.summary import Distribution, Summary
from lab.records.workload import Stage


@dataclass(frozen=True, slots=True)
class PooledInterference:
    """Steady answers and long prompts over all repeats: the longest standstill of any, means of all; None without."""

    decoders: int
    intruders: int
    longest_stall_ms: float | None
    decoder_tpot_mean_ms: float | None
    quiet_gap_mean_ms: float | None
    disturbed_gap_mean_ms: float | None
    intruder_ttft_mean_ms: float | None


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
    interference: PooledInterference | None = None


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
        interference=_pool_interference(summaries),
    )


def _pool_interference(summaries: Sequence[Summary]) -> PooledInterference | None:
    parts = [s.interference for s in summaries if s.interference is not None]
    if not parts:
        return None
    stalls = [part.longest_stall_ms for part in parts if part.longest_stall_ms is not None]
    return PooledInterference(
        decoders=sum(part.decoders for part in parts),
        intruders=sum(part.intruders for part in parts),
        longest_stall_ms=max(stalls, default=None),
        decoder_tpot_mean_ms=mean_of_all(part.decoder_tpot_ms for part in parts),
        quiet_gap_mean_ms=mean_of_all(part.quiet_gap_ms for part in parts),
        disturbed_gap_mean_ms=mean_of_all(part.disturbed_gap_ms for part in parts),
        intruder_ttft_mean_ms=mean_of_all(part.intruder_ttft_ms for part in parts),
    )


def mean_of_all(parts: Iterable[Distribution]) -> float | None:
    """The mean of all values together: means, unlike percentiles, add up. None without any."""
    known = [(part.mean, part.n) for part in parts if part.mean is not None]
    n = sum(count for _, count in known)
    return sum(mean * count for mean, count in known) / n if n else None


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
