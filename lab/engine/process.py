"""The engine as a process: started in a session of its own, ended whole, and proved gone.

An engine must not outlive its runner. Three things see to it: `stop`; the next runner's `end_orphan`; and a guard
(`lab.engine.guard`), a small process that reads a pipe whose other end only the runner holds. When the runner dies,
however it dies, the guard reads the end of the pipe and ends the group. It is there before the engine, and the
engine's first step (`lab.engine.gate`) is to tell it its pid: at no moment is there an engine that it does not know.
PR_SET_PDEATHSIG is not used: it fires when the thread that forked ends, not the process; it reaches the API process
only, not the engine core and the workers; and setting it means Python code between fork and exec in a process with
threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from lab.engine.command import EngineCommand
from lab.engine.orphan import end_orphan, launched_members, own_members
from lab.engine.port import port_is_free, port_owner
from lab.environment import ROOT
from lab.findings import error
from lab.host.held_memory import held_by
from lab.host.process_group import StopProof, end_processes
from lab.host.process_identity import ProcessIdentity, identity

__all__ = ["EngineProcess", "StopProof", "end_orphan", "launch", "stop"]

STOP_GRACE_S = 15.0
# vLLM may ignore SIGTERM for a minute while it loads, and there is no request to finish
STARTING_GRACE_S = 3.0
_PORT_WAIT_S = 5.0
_REAP_WAIT_S = 10.0
_GATE = Path(__file__).with_name("gate.py")


class EngineProcess:
    """A started engine, the leader of its own session and group from its first moment on (`pgid` equals `pid`)."""

    def __init__(
        self, popen: subprocess.Popen[bytes], guard: subprocess.Popen[bytes], command: EngineCommand, log_path: Path
    ) -> None:
        self.pid = popen.pid
        self.pgid = popen.pid
        self.command = command
        self.port = command.port
        self.log_path = log_path
        self.started_ns = time.monotonic_ns()
        self.ready = False
        self.shared: frozenset[str] = frozenset()
        # a child that died already is a zombie until it is polled, so its start can always be read
        self.identity = identity(popen.pid, even_zombie=True) or ProcessIdentity(popen.pid, 0.0)
        self._popen = popen
        self._guard = guard

    @property
    def start_time(self) -> float:
        return self.identity.start_time

    @property
    def age_s(self) -> float:
        """Seconds since the launch."""
        return (time.monotonic_ns() - self.started_ns) / 1e9

    def poll(self) -> int | None:
        """The exit status of the launched process (negative: the signal), None while it runs; reaps it."""
        return self._popen.poll()

    def became_ready(self) -> None:
        """It may take its time to end from now on, and is known by what it uses in case it is killed from outside."""
        self.ready = True
        self.shared = held_by(member.pid for member in own_members(self.identity, self.pgid)).shared

    def close(self) -> None:
        """Reap the process and let the guard go; only after the group is gone."""
        _reap(self._popen)
        _let_go(self._guard)


def launch(command: EngineCommand, log_path: Path) -> EngineProcess:
    """Start the engine; its output goes to `log_path` (emptied, mode 0600; a file, so that it can never block).

    Raises `LabError`: "port-taken" (with the owner where it can be read), "engine-not-started",
    "launch-log-unwritable".
    """
    if not port_is_free(command.port):
        owner = port_owner(command.port)
        raise error(
            "port-taken", port=command.port, pid=owner.pid if owner else None, name=owner.name if owner else None
        )
    log = _open_log(log_path)
    try:
        guard = _start_guard(log_path)
        try:
            return EngineProcess(_start(command, guard, log, log_path.parent), guard, command, log_path)
        except BaseException:
            _let_go(guard)
            raise
    except OSError as problem:  # no room for one more process, or a command of too many words
        raise error("engine-not-started", reason=str(problem)) from problem
    finally:
        os.close(log)


def _start(command: EngineCommand, guard: subprocess.Popen[bytes], log: int, folder: Path) -> subprocess.Popen[bytes]:
    """The engine, once it runs under its own command. Raises `LabError` "engine-not-started"."""
    assert guard.stdin is not None  # noqa: S101
    told = guard.stdin.fileno()
    reads, report = os.pipe()
    with os.fdopen(reads, "rb") as reports:
        try:
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_GATE), str(told), str(report), *command.argv],
                cwd=folder,
                env=dict(command.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(told, report),
                start_new_session=True,
            )
        finally:
            os.close(report)
        # ends when the gate has become the engine, or is gone
        problem = reports.read()
    if problem:
        _reap(popen)
        raise error("engine-not-started", reason=f"{command.argv[0]}: {os.strerror(int(problem))}")
    return popen


def stop(process: EngineProcess, grace_s: float = STOP_GRACE_S) -> StopProof:
    """End the whole group and what descends from it: SIGTERM, `grace_s` to finish, SIGKILL. Can be called again.

    One that was not ready yet has nothing to finish and gets 3 s at most.
    The proof says that no member is left (zombies are reaped or hold nothing), whether the port is free and the memory
    came back.
    """
    members = launched_members(process.identity, process.pgid)

    def alive() -> tuple[ProcessIdentity, ...]:
        process.poll()
        return members()

    proof = end_processes(alive, grace_s if process.ready else min(grace_s, STARTING_GRACE_S), process.shared)
    if proof.ended:
        process.close()
    return replace(proof, port_free=_wait_for_port(process.port))


def _wait_for_port(port: int) -> bool:
    deadline = time.monotonic() + _PORT_WAIT_S
    while not port_is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _open_log(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(log, 0o600)
    except OSError as problem:
        raise error("launch-log-unwritable", path=str(path), reason=problem.strerror) from problem
    return log


def _start_guard(log_path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "lab.engine.guard", str(log_path.absolute())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _let_go(guard: subprocess.Popen[bytes]) -> None:
    if guard.stdin is not None:
        with suppress(BrokenPipeError):
            guard.stdin.close()
    _reap(guard)


def _reap(child: subprocess.Popen[bytes]) -> None:
    try:
        child.wait(_REAP_WAIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
