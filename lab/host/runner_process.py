"""The runner as a process: make sure that one runs, end it, ask whether it is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.environment import ROOT, Environment
from lab.findings import error
from lab.host.lock import LockHolder, mask_password, read_lock
from lab.host.process_identity import is_same
from lab.host.run_folder import ready_run_folder

START_TIMEOUT_S = 60.0
RUNNER_COMMAND = (sys.executable, "-m", "lab.runner")
_POLL_S = 0.05
_TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True)
class RunnerInfo:
    """`started` is True where this call started it."""

    pid: int
    started: bool


def runner_alive(env: Environment) -> bool:
    """Whether a runner holds this host's lock, for whichever database."""
    return read_lock(env.lock_file) is not None


def ensure_runner(env: Environment, command: Sequence[str] = RUNNER_COMMAND) -> RunnerInfo:
    """The runner of this host, started in a session of its own where there is none; returns when it holds the lock.

    Raises `LabError` "runner-lock-taken" where the host's runner works for another database, "run-folder-unusable",
    and "runner-not-started" (with the end of its log) where it died or took longer than a minute.
    """
    holder = read_lock(env.lock_file)
    if holder is not None:
        return RunnerInfo(_for_our_database(holder, env).pid, started=False)
    log = ready_run_folder(env.run_dir) / "runner.log"
    process = _start(env, command, log)
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        died = process.poll() is not None
        holder = read_lock(env.lock_file)
        if holder is not None:
            return RunnerInfo(_for_our_database(holder, env).pid, started=holder.pid == process.pid)
        if died:
            break
        time.sleep(_POLL_S)
    raise error("runner-not-started", log=str(log), tail=_last_line(log), exit_code=process.poll())


def stop_runner(env: Environment, timeout_s: float = 60.0) -> bool:
    """Ask the runner to end with its engine (SIGTERM) and wait for it; False where none ran.

    Raises `LabError` "runner-not-stopped" where it still runs after `timeout_s`.
    """
    holder = read_lock(env.lock_file)
    if holder is None:
        return False
    _signal(holder)
    if not _wait(lambda: not is_same(holder.identity), timeout_s):
        raise error("runner-not-stopped", pid=holder.pid, seconds=timeout_s)
    return True


def runner_variables(env: Environment) -> dict[str, str]:
    """The environment a runner gets, so that it works with the same folders and database as who starts it."""
    return {
        **env.variables,
        "LAB_CONFIG_DIR": str(env.config_dir.absolute()),
        "LAB_RUN_DIR": str(env.run_dir.absolute()),
        "LAB_DATABASE_URL": env.database_url,
        "LAB_LOCK_FILE": str(env.lock_file.absolute()),
        "LAB_ENGINE_PYTHON": str(env.engine_python.absolute()),
    }


def _start(env: Environment, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            list(command),
            cwd=ROOT,
            env=runner_variables(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)
    # whoever started it reaps it, so that a dead runner does not stay behind as a zombie of a page's process
    threading.Thread(target=process.wait, name="runner-reaper", daemon=True).start()
    return process


def _for_our_database(holder: LockHolder, env: Environment) -> LockHolder:
    if holder.database_url != mask_password(env.database_url):
        raise error(
            "runner-lock-taken", pid=holder.pid, database=holder.database_url, path=str(env.lock_file)
        )  # fmt: skip
    return holder


def _signal(holder: LockHolder) -> None:
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as problem:
        raise error("runner-not-stopped", pid=holder.pid, seconds=0.0) from problem


def _wait(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _last_line(log: Path) -> str | None:
    try:
        text = log.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else None
