"""How long an experiment still takes, from the trials that are done."""

from __future__ import annotations

from lab.plan import TrialTime, estimate_s
from lab.store import ExperimentView, TrialRow
from pages.components.status import age_s

_RUNNING = ("starting", "warming", "measuring")


def seconds_left(view: ExperimentView) -> float | None:
    """Seconds left; None before the first trial is done. Failed and cancelled trials say nothing about the others."""
    counted = [trial for trial in view.trials if trial.state not in ("failed", "cancelled")]
    return estimate_s([_time(trial) for trial in counted])


def _time(trial: TrialRow) -> TrialTime:
    if trial.state == "done" and trial.started_at and trial.ended_at:
        return TrialTime(trial.arm_id, (trial.ended_at - trial.started_at).total_seconds())
    return TrialTime(trial.arm_id, elapsed_s=(age_s(trial.started_at) or 0.0) if trial.state in _RUNNING else 0.0)
