"""What one job asks for in numbers: how many requests, slots, which rate and lengths."""

from __future__ import annotations

from dataclasses import dataclass

from lab.findings import error
from lab.records.workload import LoadJob, WorkloadKind

INTRUDER_RATE_PER_S = 0.5
INTRUDER_DELAY_S = 2.0
RAMPED_KINDS = ("closed", "open")


@dataclass(frozen=True, slots=True)
class Shape:
    """`requests` None: until the duration is over. `slots` None where the kind has no concurrency of its own."""

    kind: WorkloadKind
    requests: int | None
    duration_s: float | None
    slots: int | None
    rate_per_s: float | None
    lengths: tuple[int, ...]
    ramp_s: float = 0.0


def read_shape(job: LoadJob) -> Shape:
    """The stage's value wins over the workload's list. Raises LabError when something needed is missing."""
    workload = job.workload
    kind = workload.kind
    requests = workload.repeat if kind == "ladder" else workload.requests
    if requests is None and workload.duration_s is None:
        requests = workload.repeat if kind == "interference" else None
    if requests is None and (workload.duration_s is None or kind in ("burst", "gang")):
        raise error("workload-without-end", kind=kind)
    if workload.ramp_s and kind not in RAMPED_KINDS:
        raise error("ramp-without-meaning", kind=kind)
    return Shape(
        kind=kind,
        requests=requests,
        duration_s=workload.duration_s,
        slots=_slots(job),
        rate_per_s=_rate(job),
        lengths=_lengths(job),
        ramp_s=workload.ramp_s or 0.0,
    )


def _slots(job: LoadJob) -> int | None:
    kind, stage = job.workload.kind, job.stage
    if kind == "ladder":
        return job.workload.concurrency[0] if job.workload.concurrency else 1
    if kind in ("burst", "open"):
        return None
    if stage.kind == "concurrency" and stage.value is not None:
        return int(stage.value)
    return job.workload.concurrency[0] if job.workload.concurrency else 1


def _rate(job: LoadJob) -> float | None:
    kind, stage = job.workload.kind, job.stage
    if kind not in ("open", "interference"):
        return None
    if stage.kind == "rate" and stage.value is not None:
        return stage.value
    if job.workload.rate_per_s:
        return job.workload.rate_per_s[0]
    if kind == "interference":
        return INTRUDER_RATE_PER_S
    raise error("rate-missing")


def _lengths(job: LoadJob) -> tuple[int, ...]:
    workload, stage = job.workload, job.stage
    if stage.kind == "prompt_tokens" and stage.value is not None:
        return (int(stage.value),)
    if workload.kind == "ladder":
        return workload.prompt_tokens[:1]
    return workload.prompt_tokens if workload.prompts == "exact" or workload.kind == "interference" else ()
