"""One trial from claim to end state."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from lab.findings import LabError
from lab.plan import stages
from lab.records.summary import Mark, Summary
from lab.records.workload import Stage
from lab.runner.ending import end_failed, end_interrupted
from lab.runner.engine_keeper import EngineKeeper
from lab.runner.fitting import context_limit, fit_stage
from lab.runner.measuring import StageCount, load_job, measure_stage
from lab.runner.outcome import TrialFailed, TrialInterrupted, failed, failed_by
from lab.runner.patience import insist
from lab.runner.preparing import Targets
from lab.runner.site import Site
from lab.runner.space import refuse_full_disk
from lab.runner.targets import TrialTarget
from lab.runner.trial_log import trial_log
from lab.runner.watch import Watch
from lab.store import TrialWork, finish_experiment_if_done, set_trial_state

_log = logging.getLogger(__name__)


def run_trial(site: Site, keeper: EngineKeeper, targets: Targets, work: TrialWork) -> None:
    """Run one claimed trial; whatever happens to it, its end is written and the loop can go on."""
    detail = f"{work.experiment.name}: {work.arm.name}, repeat {work.block}"
    site.heartbeat.show(state="starting", detail=detail, trial_id=work.trial_id)
    started = time.monotonic()
    with trial_log(site.log_dir, work.trial_id, work.attempt) as log_path:
        _log.info("trial %s, attempt %s: %s", work.trial_id, work.attempt, detail)
        _run_to_its_end(site, keeper, targets, work, log_path)
        _log.info("ended after %.1f s", time.monotonic() - started)
    site.heartbeat.show(state="idle", detail=None, trial_id=None)
    insist(lambda: finish_experiment_if_done(site.store, work.experiment_id), ending=site.shutdown)


def _run_to_its_end(site: Site, keeper: EngineKeeper, targets: Targets, work: TrialWork, log_path: Path) -> None:
    try:
        _measure_all(site, keeper, targets, work)
    except TrialInterrupted as end:
        _log.info("interrupted: %s", end.reason)
        end_interrupted(site, keeper, work, end.reason)
    except TrialFailed as problem:
        _log.warning("failed: %s %s", problem.failure, problem.message)
        end_failed(site, keeper, work, problem)
    except LabError as problem:
        _log.exception("internal failure")
        end_failed(site, keeper, work, failed_by(problem.findings[0], "internal"))
    except Exception as bug:  # the edge of a trial: a bug met in one of them must not hold up the queue
        _log.exception("internal failure")
        end_failed(site, keeper, work, failed("internal", problem=f"{type(bug).__name__}: {bug}", log=str(log_path)))


def _measure_all(site: Site, keeper: EngineKeeper, targets: Targets, work: TrialWork) -> None:
    planned = stages(work.experiment.workload)
    left = [stage for stage in planned if stage not in work.done_stages]
    watch = _watch(site, work)
    watch.raise_if_due()
    skipped: list[Mark] = []
    if left:
        refuse_full_disk(site.env.run_dir)
        target = targets.prepare(work, watch)
        keeper.show_busy(target.launch_id is not None)
        set_trial_state(site.store, work.trial_id, "warming", launch_id=target.launch_id)
        counts = [_count(planned, stage) for stage in left]
        measured, skipped = _measure_what_fits(site, work, target, counts, watch)
        keeper.show_busy(False)
        if not measured and not work.done_stages:
            _refuse_unfit(site, work, skipped)
        _refuse_when_all_failed(measured)
    insist(lambda: set_trial_state(site.store, work.trial_id, "done", marks=skipped), ending=site.shutdown)


def _measure_what_fits(
    site: Site, work: TrialWork, target: TrialTarget, counts: Sequence[StageCount], watch: Watch
) -> tuple[list[Summary], list[Mark]]:
    """The summaries of the stages whose requests the target takes, and marks that name the others."""
    limit = context_limit(site.store, target)
    measured: list[Summary] = []
    skipped: list[Mark] = []
    for count in counts:
        job = load_job(work, target, count.stage)
        fit = fit_stage(job, limit, target.variables, may_try=target.observed is not None)
        watch.raise_if_due()
        if fit.job is None:
            _log.warning("left out: %s", fit.marks)
            skipped += fit.marks
        else:
            measured.append(measure_stage(site, work, target, count, fit.job, fit.marks, watch))
    return measured, skipped


def _refuse_unfit(site: Site, work: TrialWork, skipped: Sequence[Mark]) -> None:
    """A trial of which nothing fits failed as not applicable: its cell is no zero."""
    set_trial_state(site.store, work.trial_id, "warming", marks=skipped)
    reason = skipped[0]
    raise TrialFailed("not-applicable", {"code": reason.code, **reason.params})


def _count(planned: Sequence[Stage], stage: Stage) -> StageCount:
    return StageCount(stage, planned.index(stage) + 1, len(planned))


def _watch(site: Site, work: TrialWork) -> Watch:
    """The limit counts from the experiment's start, the time under earlier runners included."""
    started_at = work.experiment_started_at
    used_s = (datetime.now(UTC) - started_at).total_seconds() if started_at else 0.0
    return Watch(
        site.store,
        site.host,
        experiment_id=work.experiment_id,
        uses_engine=work.arm.target == "engine",
        shutdown=site.shutdown,
        seconds_left=work.experiment.limits.max_minutes * 60 - used_s,
    )


def _refuse_when_all_failed(measured: Sequence[Summary]) -> None:
    """The measurements stay stored, since their failures tell why."""
    if any(summary.succeeded or summary.incomplete for summary in measured):
        return
    counts: dict[str, int] = {}
    for summary in measured:
        for name, count in summary.failed.items():
            counts[name] = counts.get(name, 0) + count
    classes = ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none was sent"
    raise failed("all-requests-failed", requests=sum(each.requests for each in measured), classes=classes)
