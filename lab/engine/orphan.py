"""Ending an engine that nobody holds any more, known by pid and start time and never by name or by its port."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from lab.host.process_group import StopProof, end_processes, group_identities
from lab.host.process_identity import ProcessIdentity, identity, same_boot

ORPHAN_GRACE_S = 15.0


def end_orphan(
    who: ProcessIdentity, pgid: int, grace_s: float = ORPHAN_GRACE_S, log_path: Path | None = None
) -> StopProof:
    """End what is left of a launch: the members of its group that started no earlier than it did, in this boot.

    Where another process has the pid by now, its group is not ours and nothing is touched. Where the launched process
    is gone, `log_path` (if given) is a further proof: only members that write to it are ours. `ended` is True where
    nothing of the launch is left.
    """
    return end_processes(lambda: own_members(who, pgid, log_path), grace_s)


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
