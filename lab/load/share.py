"""How one load is split among several loader processes: each request belongs to one of them, by its number."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lab.findings import error
from lab.load.shape import Shape
from lab.records.workload import LoadJob, WorkloadKind

SPLIT_KINDS: frozenset[WorkloadKind] = frozenset({"burst", "closed", "open"})
"""The others release requests by what became of the ones before: one process has to see them all."""
SLOTS_EACH = 512
TOKENS_PER_S_EACH = 20_000.0
CORES_PER_PROCESS = 4
"""A loader keeps a core busy, its decoder takes of another, and the engine's own front end wants some too."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Share:
    """Process `number` (from 0) of so many."""

    number: int = 0
    of: int = 1

    def count(self, total: int) -> int:
        return len(range(self.number, total, self.of))

    def pick(self, items: Sequence[Item]) -> Sequence[Item]:
        return items[self.number :: self.of]

    def of_shape(self, whole: Shape) -> Shape:
        """What this process does of it: its slots, and as many of the requests as these would take."""
        if self.of == 1:
            return whole
        requests, slots = whole.requests, whole.slots
        if slots is None:
            return replace(whole, requests=None if requests is None else self.count(requests))
        before = sum(Share(number, self.of).count(slots) for number in range(self.number))
        own = self.count(slots)
        if requests is not None:
            requests = requests * (before + own) // slots - requests * before // slots
        return replace(whole, slots=own, requests=requests)


ALL_OF_IT = Share()


def count_processes(job: LoadJob, shape: Shape, cores: int | None = None) -> int:
    """As many as the job names, else as the load needs and the cores allow; never more than it has slots or requests.

    Raises LabError where more than one is asked of a kind of load that cannot be split.
    """
    splits = shape.kind in SPLIT_KINDS
    if job.processes is not None and job.processes > 1 and not splits:
        raise error("load-not-split", kind=shape.kind, processes=job.processes)
    if not splits:
        return 1
    wanted = job.processes or min(_needed(job, shape), max(1, (cores or _cores()) // CORES_PER_PROCESS))
    return max(1, min(wanted, shape.slots or shape.requests or wanted))


def _needed(job: LoadJob, shape: Shape) -> int:
    if shape.rate_per_s is not None:
        return math.ceil(shape.rate_per_s * job.workload.output_tokens / TOKENS_PER_S_EACH)
    return math.ceil((shape.slots or shape.requests or 1) / SLOTS_EACH)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
