"""How the use of the KV cache follows the tokens that are held: article 1's observation as a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from lab.findings import Param
from lab.metrics.verdict import Comparable, Verdict, shown
from lab.records.summary import Summary

LEAST_LENGTHS = 3
STRAIGHT_RATIO = 0.1


def judge_cache(rows: Iterable[Comparable]) -> tuple[Verdict, ...]:
    """A sentence for each arm whose cache was seen in use at three lengths or more; the peaks of repeats are pooled."""
    climbing = [r for r in rows if r.stage.kind == "prompt_tokens" and held_tokens(r.summary) is not None]
    arms = groupby(sorted(climbing, key=lambda r: r.arm_id), key=lambda r: r.arm_id)
    return tuple(verdict for _, members in arms if (verdict := _judge(list(members))) is not None)


def held_tokens(summary: Summary) -> float | None:
    """Tokens of all contexts in flight at once, prompt and answer; None where the cache was never seen in use."""
    if not summary.kv_peak_ratio or not summary.succeeded:
        return None
    if summary.prompt_tokens is None or summary.output_tokens is None:
        return None
    return (summary.prompt_tokens + summary.output_tokens) / summary.succeeded * summary.peak_in_flight


def _judge(rows: Sequence[Comparable]) -> Verdict | None:
    if len({row.stage.value for row in rows}) < LEAST_LENGTHS:
        return None
    held = np.array([held_tokens(row.summary) or 0.0 for row in rows])
    used = np.array([row.summary.kv_peak_ratio or 0.0 for row in rows])
    slope, start = np.polyfit(held, used, 1)
    off = float(np.abs(used - (start + slope * held)).max() / used.max())
    params: dict[str, Param] = {
        "arm": rows[0].arm_name,
        "low": round(float(held.min())),
        "high": round(float(held.max())),
        "low_percent": shown(float(used[held.argmin()]) * 100),
        "high_percent": shown(float(used[held.argmax()]) * 100),
        "per_thousand_percent": shown(float(slope) * 1000 * 100),
        "off_percent": round(off * 100, 1),
    }
    if off > STRAIGHT_RATIO or slope <= 0:
        return Verdict("cannot-tell-cache", params, said=False)
    return Verdict("verdict-cache", params)
