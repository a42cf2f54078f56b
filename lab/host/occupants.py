"""Who holds this host's memory now, with the processes of one group (the lab's own engine) taken out."""

from __future__ import annotations

from dataclasses import replace

import psutil

from lab.host.facts import Gpu, HostFacts
from lab.host.process_identity import group_members


def without_group(facts: HostFacts, pgid: int | None) -> HostFacts:
    """The facts as they will be once the processes of a group have ended; the same where None is given.

    What a GPU driver does not tell of a process (MIG, WSL) stays counted as used.
    """
    pids = frozenset(group_members(pgid)) if pgid is not None else frozenset()
    return facts if not pids else without_processes(facts, pids)


def without_processes(facts: HostFacts, pids: frozenset[int]) -> HostFacts:
    """The same for processes by their pids."""
    available = facts.memory_available_bytes
    return replace(
        facts,
        gpus=tuple(_without(gpu, pids) for gpu in facts.gpus),
        memory_available_bytes=None if available is None else available + sum(_resident_bytes(pid) for pid in pids),
    )


def _without(gpu: Gpu, pids: frozenset[int]) -> Gpu:
    held = sum(process.used_bytes or 0 for process in gpu.processes if process.pid in pids)
    used = None if gpu.memory_used_bytes is None else max(0, gpu.memory_used_bytes - held)
    others = tuple(process for process in gpu.processes if process.pid not in pids)
    return replace(gpu, memory_used_bytes=used, processes=others)


def _resident_bytes(pid: int) -> int:
    """Private memory where the system tells it: what several processes share is not freed twice."""
    try:
        process = psutil.Process(pid)
        return int(getattr(process.memory_full_info(), "uss", 0) or process.memory_info().rss)
    except (psutil.Error, OSError):
        return 0
