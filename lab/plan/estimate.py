"""How long the rest of an experiment takes, from what its trials took so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True)
class TrialTime:
    """One trial of the plan: `duration_s` once it is over, `elapsed_s` while it runs (else 0)."""

    arm: int
    duration_s: float | None = None
    elapsed_s: float = 0.0


def estimate_s(trials: Sequence[TrialTime]) -> float | None:
    """Seconds left: for each open trial the mean of its arm's finished ones, else of all; None before any finished.

    A running trial counts with what is left of its mean, at least zero.
    """
    done = [(trial.arm, trial.duration_s) for trial in trials if trial.duration_s is not None]
    if not done:
        return None
    overall = fmean(seconds for _, seconds in done)
    left = 0.0
    for trial in trials:
        if trial.duration_s is None:
            same = [seconds for arm, seconds in done if arm == trial.arm]
            left += max(0.0, (fmean(same) if same else overall) - trial.elapsed_s)
    return left
