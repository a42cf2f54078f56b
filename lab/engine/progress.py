"""Whether a starting engine gets on: told from a stuck one by what moves, not by how long it takes.

Three things move in an engine that gets on: its log says something new, its processes read or write, they compute. A
line that differs from an earlier one in its figures only is nothing new: an engine logs each of our own questions.
Computing alone counts for a limited time, since a process that waits in a loop computes too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from lab.host.process_identity import ProcessIdentity

# a look asks every process of the host, so it is taken no more often than this
_LOOK_S = 1.0
# below this share of one core it is housekeeping
_CPU_SHARE = 0.05
_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of a group have used since they began."""

    cpu_s: float = 0.0
    bytes_moved: int = 0


class Progress:
    """Watches one start. Moments come from `clock`, in seconds."""

    def __init__(
        self,
        members: Callable[[], tuple[ProcessIdentity, ...]],
        news: Callable[[], int],
        *,
        stuck_s: float,
        spinning_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members = members
        self._news = news
        self._stuck_s = stuck_s
        self._spinning_s = spinning_s
        self._clock = clock
        self._seen = news()
        self._usage = usage_of(members())
        self._looked = self._moved = self._told = clock()

    def still_for_s(self) -> float | None:
        """How long it has not got on; None while it does."""
        now = self._clock()
        if self._news() != self._seen:
            self._seen = self._news()
            self._moved = self._told = now
        if now - self._looked >= min(_LOOK_S, self._stuck_s / 4):
            self._look(now)
        if now - self._moved >= self._stuck_s:
            return now - self._moved
        return now - self._told if now - self._told >= self._spinning_s else None

    def _look(self, now: float) -> None:
        usage, passed_s = usage_of(self._members()), now - self._looked
        if abs(usage.bytes_moved - self._usage.bytes_moved) >= _BYTES:
            self._moved = self._told = now
        # a process that ended takes its use out of the sum, and that is progress too
        elif abs(usage.cpu_s - self._usage.cpu_s) >= _CPU_SHARE * passed_s:
            self._moved = now
        self._usage, self._looked = usage, now


def usage_of(members: tuple[ProcessIdentity, ...]) -> Usage:
    """The sums over these processes; those that ended meanwhile are left out."""
    cpu_s, moved = 0.0, 0
    for member in members:
        try:
            process = psutil.Process(member.pid)
            times = process.cpu_times()
            cpu_s += times.user + times.system
            io = process.io_counters() if hasattr(process, "io_counters") else None
        except (psutil.Error, OSError):
            continue
        if io is not None:
            moved += io.read_bytes + io.write_bytes + getattr(io, "read_chars", 0) + getattr(io, "write_chars", 0)
    return Usage(cpu_s, moved)
