"""Article 1's ladder as a table: how TTFT and the whole answer grow with the prompt, and which phase dominates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lab.findings import Param
from lab.metrics.pool import mean_of_all
from lab.metrics.verdict import Comparable, Verdict, shown

Dominating = Literal["prefill", "decode", "neither"]
EVEN_RATIO = 0.05
"""Closer to one half than this, no phase dominates."""


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One arm at one prompt length over its repeats.

    `prompt_tokens` is the mean that the server counted, the length asked for where it counted none. `prefill_ratio` is
    the share (0..1) of TTFT in E2E: network and queue are part of it, which one request at a time keeps small.
    """

    arm_name: str
    prompt_tokens: float
    requests: int
    ttft_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    prefill_ratio: float | None

    @property
    def dominating(self) -> Dominating | None:
        if self.prefill_ratio is None:
            return None
        if abs(self.prefill_ratio - 0.5) < EVEN_RATIO:
            return "neither"
        return "prefill" if self.prefill_ratio > 0.5 else "decode"


def ladder_steps(rows: Iterable[Comparable]) -> tuple[LadderStep, ...]:
    """A row per arm and prompt length, in the order of arms and lengths; empty where no stage is a prompt length."""
    groups: dict[tuple[int, float], list[Comparable]] = {}
    for row in rows:
        if row.stage.kind == "prompt_tokens" and row.stage.value is not None:
            groups.setdefault((row.arm_id, row.stage.value), []).append(row)
    return tuple(_step(groups[key], key[1]) for key in sorted(groups))


def judge_tpot(rows: Iterable[Comparable]) -> tuple[Verdict, ...]:
    """What the time per token does from the shortest to the longest prompt, for each arm where both are known.

    Several requests at a time wait for each other's prompts between two tokens: nothing is said of them.
    """
    arms: dict[str, list[LadderStep]] = {}
    for step in ladder_steps(row for row in rows if row.summary.peak_in_flight <= 1):
        arms.setdefault(step.arm_name, []).append(step)
    return tuple(verdict for steps in arms.values() if (verdict := _tpot_verdict(steps[0], steps[-1])) is not None)


def _tpot_verdict(first: LadderStep, last: LadderStep) -> Verdict | None:
    if first.prompt_tokens >= last.prompt_tokens or not first.tpot_ms or not last.tpot_ms:
        return None
    params: dict[str, Param] = {"arm": first.arm_name}
    params |= {"low": round(first.prompt_tokens), "high": round(last.prompt_tokens)}
    params |= {"low_ms": round(first.tpot_ms, 1), "high_ms": round(last.tpot_ms, 1)}
    return Verdict("verdict-ladder-tpot", {**params, "ratio": shown(last.tpot_ms / first.tpot_ms)})


def _step(rows: Sequence[Comparable], asked_tokens: float) -> LadderStep:
    summaries = [row.summary for row in rows]
    succeeded = sum(s.succeeded for s in summaries)
    counted = [s.prompt_tokens for s in summaries if s.prompt_tokens is not None]
    complete = len(counted) == len(summaries) and succeeded > 0
    ttft, e2e = mean_of_all(s.ttft_ms for s in summaries), mean_of_all(s.e2e_ms for s in summaries)
    return LadderStep(
        arm_name=rows[0].arm_name,
        prompt_tokens=sum(counted) / succeeded if complete else asked_tokens,
        requests=succeeded,
        ttft_ms=ttft,
        tpot_ms=mean_of_all(s.tpot_ms for s in summaries),
        e2e_ms=e2e,
        prefill_ratio=ttft / e2e if ttft is not None and e2e else None,
    )
