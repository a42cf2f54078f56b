"""The lock of the one runner of a host: an flock, which ends with its process, on a file that says whose it is."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.findings import error
from lab.host.process_identity import ProcessIdentity, identity, is_same

_NAMING_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds the lock; a password in the database's address is masked."""

    pid: int
    start_time: float
    database_url: str

    @property
    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(self.pid, self.start_time)


@contextmanager
def hold_lock(path: Path, database_url: str) -> Iterator[LockHolder]:
    """Hold the host's lock for the length of the block.

    Raises `LabError` "runner-lock-taken" (pid, database, path) where another process has it, "lock-unusable" where
    the file cannot be used.
    """
    descriptor = _acquire(path)
    try:
        me = identity(os.getpid())
        holder = LockHolder(os.getpid(), me.start_time if me else 0.0, mask_password(database_url))
        _write(descriptor, json.dumps(asdict(holder)))
        yield holder
    finally:
        os.ftruncate(descriptor, 0)
        os.close(descriptor)


def read_lock(path: Path) -> LockHolder | None:
    """The live holder of the lock; None where nobody has it or what is written there cannot be read."""
    try:
        holder = LockHolder(**json.loads(path.read_text("utf-8")))
        return holder if is_same(holder.identity) else None
    except (OSError, ValueError, TypeError):
        return None


def mask_password(database_url: str) -> str:
    """The address without its password: `postgresql://me:***@db/lab`."""
    return re.sub(r"(://[^/@:]*):[^/]*@", r"\1:***@", database_url)


def _acquire(path: Path) -> int:
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise _taken(path) from None
        if _is_still_there(descriptor, path):
            return descriptor
        os.close(descriptor)


def _open(path: Path) -> int:
    """Never through a link that someone else may have put into a shared folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise error("lock-unusable", path=str(path), reason=problem.strerror) from problem


def _is_still_there(descriptor: int, path: Path) -> bool:
    """A file that was removed or replaced between opening and locking guards nothing."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _taken(path: Path) -> Exception:
    """Names the holder; it may need a moment to write its name after it got the lock."""
    deadline = time.monotonic() + _NAMING_TIMEOUT_S
    while (holder := read_lock(path)) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    pid, database = (holder.pid, holder.database_url) if holder else (None, None)
    return error("runner-lock-taken", pid=pid, database=database, path=str(path))


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode("utf-8"), 0)
    os.fsync(descriptor)
