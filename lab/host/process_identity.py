"""Who a process is: its pid together with the moment it started, so that a reused pid is never taken for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

_BOOT_SPAN_S = 100_000_000


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """`start_time` is in seconds and opaque: it orders processes of one boot and equals nothing of another boot.

    On Linux it counts from the boot (a stepped system clock does not change it) and carries a mark of the boot;
    elsewhere it is psutil's wall time.
    """

    pid: int
    start_time: float


def identity(pid: int, *, even_zombie: bool = False) -> ProcessIdentity | None:
    """The process that has this pid now; None where there is none, or only a zombie (unless asked for)."""
    try:
        process = psutil.Process(pid)
        if not even_zombie and process.status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessIdentity(pid, _start_time(process))
    except (psutil.Error, OSError, ValueError):
        return None


def identity_from_ticks(pid: int, start_ticks: int) -> ProcessIdentity:
    """Who a process of this boot is that tells its start as /proc/<pid>/stat has it."""
    return ProcessIdentity(pid, _since_boot(start_ticks))


def is_same(known: ProcessIdentity) -> bool:
    """Whether that very process still runs (a zombie does not)."""
    now = identity(known.pid)
    return now is not None and now.start_time == known.start_time


def same_boot(start_time: float, other: float) -> bool:
    """Whether two start times can be compared at all."""
    return start_time // _BOOT_SPAN_S == other // _BOOT_SPAN_S


def group_members(pgid: int) -> tuple[int, ...]:
    """The pids of a process group that still run; zombies hold nothing and are left out."""
    members = []
    for pid in psutil.pids():
        try:
            if os.getpgid(pid) == pgid and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                members.append(pid)
        except (psutil.Error, OSError):
            continue
    return tuple(sorted(members))


def _start_time(process: psutil.Process) -> float:
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        return process.create_time()
    # the command's name may hold blanks and brackets: fields count from its last bracket, the start is field 22
    fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
    return _since_boot(int(fields[19]))


def _since_boot(ticks: int) -> float:
    return _boot_mark() * _BOOT_SPAN_S + ticks / os.sysconf("SC_CLK_TCK")


def _boot_mark() -> int:
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    try:
        return 1 + int(boot_id.read_text("ascii")[:4], 16)
    except (OSError, ValueError):
        return 1
