"""One stage of a trial: a quiet target, telemetry beside the load, the numbers, the database."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from lab.configs.pair import ConfigPair
from lab.findings import LabError
from lab.load.supervisor import run_load
from lab.metrics import Telemetry, summarise
from lab.records.plan import Experiment
from lab.records.request import LoadResult
from lab.records.sample import Sample
from lab.records.summary import Mark, Summary
from lab.records.table import RequestTable
from lab.records.workload import LoadJob, Stage
from lab.runner.counters import Counters
from lab.runner.outcome import failed_by
from lab.runner.patience import insist
from lab.runner.site import Site
from lab.runner.space import refuse_full_disk
from lab.runner.targets import TrialTarget
from lab.runner.telling import ProgressTeller
from lab.runner.watch import Watch
from lab.store import TrialWork, get_client_ceiling, save_measurement, set_trial_state
from lab.telemetry import Sampler

DEATH_SHOWS_AS = frozenset({"server", "connection-lost", "refused", "truncated", "stream-error"})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageCount:
    """The stage in hand and its place among the stages of the trial, from 1."""

    stage: Stage
    number: int
    total: int


def measure_stage(
    site: Site,
    work: TrialWork,
    target: TrialTarget,
    count: StageCount,
    job: LoadJob,
    marks: tuple[Mark, ...],
    watch: Watch,
) -> Summary:
    """Load the target with one stage, store requests, samples and summary, and return the summary.

    `marks` are those that the job carries from the start. Raises `TrialInterrupted`, or `TrialFailed` "engine-died"
    or "load-failed"; then nothing of the stage is stored.
    """
    set_trial_state(site.store, work.trial_id, "warming")
    site.heartbeat.show(state="warming")
    unsettled = target.settle(watch)
    before = _Before(target)
    started_at = datetime.now(UTC)
    interval_s = sample_interval_s(work.experiment)
    with _sampled(site, work, target, interval_s) as sampler:
        result = _load(site, work, target, count, job, watch, before.read)
        samples = sampler.stop()
    after = target.counters()
    summary = summarise(
        result,
        slo=work.experiment.slo,
        workload=job.workload,
        cache_hit_ratio=before.counters.hit_ratio_until(after),
        extra_marks=(*target.marks, *marks, *unsettled, *before.counters.marks_until(after)),
        telemetry=Telemetry(samples, interval_s, sampler.clock_ms(result.clock_ns)),
        ceiling=get_client_ceiling(site.store, site.host),
    )
    _store(site, work, count.stage, result, summary, samples, started_at)
    return summary


class _Before:
    """The engine's counters between warm-up and measurement: what the warm-up found in a cache is not measured."""

    def __init__(self, target: TrialTarget) -> None:
        self._target = target
        self.counters = Counters()

    def read(self) -> None:
        self.counters = self._target.counters()


def sample_interval_s(experiment: Experiment) -> float:
    """Seconds between two readings of telemetry, as the experiment's config asks for; one where it says nothing."""
    asked = ConfigPair(experiment.settings_text, experiment.config_text).lab_values().get("sample_hz")
    return 1 / float(asked) if isinstance(asked, int | float) and asked > 0 else 1.0


def load_job(work: TrialWork, target: TrialTarget, stage: Stage) -> LoadJob:
    """The job for the loader: the same seed for all arms of a block, a salt that no earlier request had."""
    return LoadJob(
        base_url=target.base_url,
        model=target.model,
        workload=work.experiment.workload,
        stage=stage,
        api_key_env=target.api_key_env,
        include_usage=target.include_usage,
        ignore_eos=target.ignore_eos and work.experiment.workload.ignore_eos,
        max_tokens_field=target.max_tokens_field,
        request_fields=target.request_fields,
        tokenizer_dir=target.tokenizer_dir,
        seed=work.experiment.seed + work.block,
        salt=f"{work.trial_id}-{work.attempt}-{secrets.token_hex(4)}",
        use_proxy=target.use_proxy,
    )


def _load(
    site: Site,
    work: TrialWork,
    target: TrialTarget,
    count: StageCount,
    job: LoadJob,
    watch: Watch,
    on_warm: Callable[[], None],
) -> LoadResult:
    """Raises what ended the load early: a result that was cut short is never stored."""
    try:
        result = run_load(
            job,
            run_dir=site.env.run_dir.absolute(),
            variables=target.variables,
            on_progress=ProgressTeller(site, work.trial_id, count.number, count.total),
            cancelled=lambda: watch.must_end() or not target.alive(),
            on_warm=on_warm,
        )
    except LabError as problem:
        # Ctrl-C in a terminal reaches the loader too
        watch.raise_if_due(now=True)
        target.raise_if_dead(False)
        refuse_full_disk(site.env.run_dir)
        raise failed_by(problem.findings[0], "load-failed") from problem
    watch.raise_if_due()
    failures = RequestTable.of(result.records).counted_words("failure")
    target.raise_if_dead(not DEATH_SHOWS_AS.isdisjoint(failures))
    return result


@contextmanager
def _sampled(site: Site, work: TrialWork, target: TrialTarget, interval_s: float) -> Iterator[Sampler]:
    observed = target.observed
    metrics = observed.definition.metrics if observed is not None else None
    out = site.env.run_dir.absolute() / "telemetry" / f"trial-{work.trial_id}-{work.attempt}.jsonl"
    sampler = Sampler()
    sampler.start(
        observed.metrics_url if observed is not None else None,
        target.gpu_indices,
        interval_s,
        out,
        None if metrics is None else metrics.series,
    )
    try:
        yield sampler
    finally:
        sampler.stop()
        out.unlink(missing_ok=True)


def _store(
    site: Site,
    work: TrialWork,
    stage: Stage,
    result: LoadResult,
    summary: Summary,
    samples: tuple[Sample, ...],
    started_at: datetime,
) -> None:
    ended_at = datetime.now(UTC)
    store, trial_id = site.store, work.trial_id
    insist(
        lambda: save_measurement(store, trial_id, stage, result, summary, samples, started_at, ended_at),
        ending=site.shutdown,
    )
    _log.info(
        "stored: %s of %s requests, %s tok/s, P95 TTFT %s ms, marks %s",
        summary.succeeded,
        summary.requests,
        summary.output_tokens_per_s,
        summary.ttft_ms.p95,
        [mark.code for mark in summary.marks],
    )
