"""Ending an engine that nobody holds any more, known by pid and start time and never by name or by its port."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psutil

from lab.host.process_group import StopProof, descendants, end_processes, group_identities
from lab.host.process_identity import ProcessIdentity, identity, is_same, same_boot

# nobody waits for its answers any more; vLLM may ignore SIGTERM for a minute while it loads
ORPHAN_GRACE_S = 5.0


def end_orphan(
    who: ProcessIdentity, pgid: int, grace_s: float = ORPHAN_GRACE_S, log_path: Path | None = None
) -> StopProof:
    """End what is left of a launch: the members of its group that started no earlier than it did, in this boot.

    Where another process has the pid by now, its group is not ours and nothing is touched. Where the launched process
    is gone, `log_path` (if given) is a further proof: only members that write to it are ours. `ended` is True where
    nothing of the launch is left.
    """
    return end_processes(launched_members(who, pgid, log_path), grace_s)


def launched_members(
    who: ProcessIdentity, pgid: int, log_path: Path | None = None
) -> Callable[[], tuple[ProcessIdentity, ...]]:
    """Asks who is left of a launch: its group, and what descends from it now even where it left the group."""
    inside = own_members(who, pgid, log_path)
    strays = {child for member in inside for child in descendants(member.pid)} - set(inside)

    def left() -> tuple[ProcessIdentity, ...]:
        now = own_members(who, pgid, log_path)
        return (*now, *sorted((one for one in strays if one not in now and is_same(one)), key=lambda one: one.pid))

    return left


def own_members(who: ProcessIdentity, pgid: int, log_path: Path | None = None) -> tuple[ProcessIdentity, ...]:
    """Who is left of a launch: empty as soon as another process has its pid (it may then lead a group of its own)."""
    leader = identity(pgid)
    if leader is not None and pgid == who.pid and leader != who:
        return ()
    return tuple(
        member
        for member in group_identities(pgid)
        if _belongs(member, who) and (leader is not None or log_path is None or _writes_to(member.pid, log_path))
    )


def _belongs(member: ProcessIdentity, launched: ProcessIdentity) -> bool:
    later = same_boot(member.start_time, launched.start_time) and member.start_time >= launched.start_time
    return later and _is_own_user(member.pid)


def _is_own_user(pid: int) -> bool:
    try:
        return psutil.Process(pid).uids().effective == os.geteuid()
    except psutil.Error:
        return False


def _writes_to(pid: int, log_path: Path) -> bool:
    """Whether its standard output or error goes to the launch's log; an unreadable process is not ours."""
    for descriptor in (1, 2):
        try:
            if os.path.samestat(Path(f"/proc/{pid}/fd/{descriptor}").stat(), log_path.stat()):
                return True
        except OSError:
            continue
    return False
