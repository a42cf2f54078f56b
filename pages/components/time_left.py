"""How long an experiment still takes, from the trials that are done."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

from lab.store import ExperimentView, TrialRow
from pages.components.status import age_s

_RUNNING = ("starting", "warming", "measuring")


def seconds_left(view: ExperimentView) -> float | None:
    """Seconds left: per arm the mean of its done trials, else of all; None before the first trial is done."""
    took: dict[int, list[float]] = defaultdict(list)
    for trial in view.trials:
        if trial.state == "done" and trial.started_at and trial.ended_at:
            took[trial.arm_id].append((trial.ended_at - trial.started_at).total_seconds())
    known = [seconds for values in took.values() for seconds in values]
    if not known:
        return None
    expected = {trial.id: fmean(took[trial.arm_id] or known) for trial in view.trials}
    waiting = sum(expected[trial.id] for trial in view.trials if trial.state == "queued")
    return waiting + sum(_rest(trial, expected[trial.id]) for trial in view.trials if trial.state in _RUNNING)


def _rest(trial: TrialRow, expected: float) -> float:
    """What the trial in hand still takes: at least what its requests say, else what others of its arm took."""
    spent = age_s(trial.started_at) or 0.0
    told = (trial.progress or {}).get("eta_s")
    return max(expected - spent, float(told or 0.0), 0.0)
