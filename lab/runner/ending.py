"""How trials end other than done."""

from __future__ import annotations

from collections.abc import Callable

from lab.runner.engine_keeper import EngineKeeper
from lab.runner.outcome import Interruption, TrialFailed
from lab.runner.patience import insist
from lab.runner.site import Site
from lab.store import (
    TrialWork,
    close_intent,
    get_experiment,
    give_back_trial,
    open_intents,
    set_trial_state,
)


def end_failed(site: Site, keeper: EngineKeeper, work: TrialWork, problem: TrialFailed) -> None:
    """Write the failure; an engine that died is put away, so that the next trial starts a fresh one."""
    if problem.failure == "engine-died":
        keeper.end(problem)
    insist(
        lambda: set_trial_state(
            site.store,
            work.trial_id,
            "failed",
            failure=problem.failure,
            message=problem.message,
            log_tail=problem.log_tail,
            launch_id=problem.launch_id,
        ),
        ending=site.shutdown,
    )


def end_interrupted(site: Site, keeper: EngineKeeper, work: TrialWork, reason: Interruption) -> None:
    """Give the trial back on a shutdown, cancel it otherwise. The engine ends in each case."""
    site.heartbeat.show(state="stopping")
    keeper.end()
    for act in _after_interruption(site, work, reason):
        insist(act, ending=site.shutdown)


def _after_interruption(site: Site, work: TrialWork, reason: Interruption) -> tuple[Callable[[], object], ...]:
    """Each is tried again by itself: none of them may be done twice."""
    if reason == "shutdown":
        return (lambda: give_back_trial(site.store, work.trial_id),)
    if reason == "stop":
        return (
            lambda: set_trial_state(site.store, work.trial_id, "cancelled", message={"code": "trial-stopped"}),
            lambda: close_stops(site, work.experiment_id),
        )
    if reason == "engine-stop":
        stopped = {"code": "trial-engine-stopped"}
        return (lambda: set_trial_state(site.store, work.trial_id, "cancelled", message=stopped),)
    return (lambda: _end_of_time(site, work),)


def close_stops(site: Site, experiment_id: int) -> None:
    """Close the stop intents of an experiment that has been stopped."""
    for intent in open_intents(site.store, site.host):
        if intent.kind == "stop-experiment" and intent.experiment_id == experiment_id:
            close_intent(site.store, intent.id, "done")


def _end_of_time(site: Site, work: TrialWork) -> None:
    message = {"code": "trial-time-limit", "minutes": work.experiment.limits.max_minutes}
    for trial in get_experiment(site.store, work.experiment_id).trials:
        if trial.ended_at is None:
            set_trial_state(site.store, trial.id, "cancelled", message=message)
