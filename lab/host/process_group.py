"""Ending a whole process group, with proof: ask, wait, kill, wait, and look whether anything is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Literal

import psutil

from lab.host.held_memory import MemoryProof, held_by, prove_returned
from lab.host.process_identity import ProcessIdentity, group_members, identity, is_same

How = Literal["exited", "sigterm", "sigkill"]
_POLL_S = 0.05
_KILL_WAIT_S = 10.0
# Python's resource tracker outlives the processes it serves to give back what they left in shared memory
_TRACKER = "multiprocessing.resource_tracker"
_TRACKER_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class StopProof:
    """What ending a group came to: `left` are the pids that still run, `port_free` is None where no port was asked.

    `how` is what it took: nothing ("exited"), SIGTERM, or SIGKILL. `memory` is None where members are left.
    """

    ended: bool
    how: How
    seconds: float
    left: tuple[int, ...]
    port_free: bool | None = None
    memory: MemoryProof | None = None

    def as_json(self) -> dict[str, object]:
        told: dict[str, object] = {"how": self.how, "seconds": round(self.seconds, 2), "left": list(self.left)}
        if self.port_free is not None:
            told["port_free"] = self.port_free
        if self.memory is not None:
            told["memory"] = asdict(self.memory)
        return told


def end_processes(
    members: Callable[[], tuple[ProcessIdentity, ...]], grace_s: float, shared: Iterable[str] = ()
) -> StopProof:
    """End all that `members` gives, asked anew each time: SIGTERM, `grace_s` to follow it, SIGKILL, 10 s to die.

    Then their memory must have come back; `shared` are files in shared memory that they were seen to use earlier.
    """
    held = held_by(member.pid for member in members()).and_shared(shared)
    began = time.monotonic()
    how: How = "exited"
    if members():
        how = "sigterm"
        _signal(members(), signal.SIGTERM)
        if not _wait_until_gone(members, grace_s):
            how = "sigkill"
            _kill_until_gone(members)
    left = tuple(member.pid for member in members())
    seconds = time.monotonic() - began
    return StopProof(not left, how, seconds, left, memory=None if left else prove_returned(held))


def group_identities(pgid: int) -> tuple[ProcessIdentity, ...]:
    """Who belongs to a process group now."""
    return tuple(found for pid in group_members(pgid) if (found := identity(pid)) is not None)


def descendants(pid: int) -> tuple[ProcessIdentity, ...]:
    """The children of a process and theirs; empty where it is gone. They may have left its group."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return ()
    return tuple(found for child in children if (found := identity(child.pid)) is not None)


def _kill_until_gone(members: Callable[[], tuple[ProcessIdentity, ...]]) -> None:
    began = time.monotonic()
    while (alive := members()) and (waited_s := time.monotonic() - began) < _KILL_WAIT_S:
        doomed = alive if waited_s > _TRACKER_GRACE_S else tuple(each for each in alive if not _tracks(each.pid))
        _signal(doomed, signal.SIGKILL)  # again each time: a dying process may have forked
        time.sleep(_POLL_S)


def _tracks(pid: int) -> bool:
    """Whether it is a resource tracker; killed with the others, it would leave their shared memory behind."""
    try:
        return any(_TRACKER in word for word in psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def _wait_until_gone(members: Callable[[], tuple[ProcessIdentity, ...]], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while members():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _signal(members: tuple[ProcessIdentity, ...], number: signal.Signals) -> None:
    for member in members:
        if is_same(member):
            try:
                os.kill(member.pid, number)
            except (ProcessLookupError, PermissionError):
                continue
