"""Reading and replacing the two files on disk: all or nothing per file, never over somebody else's change."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from lab.findings import error

_SUFFIX = ".lab-save"
_NEW_MODE = 0o644


def read_text(path: Path) -> str:
    """The text with its line ends and byte-order mark as they are."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device could be read for ever
            raise error("config-unreadable", file=str(path), reason="it is not a file")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise error("config-missing", file=str(path)) from None
    except UnicodeDecodeError as problem:
        raise error("config-not-utf8", file=str(path), offset=problem.start) from None
    except OSError as problem:
        raise error("config-unreadable", file=str(path), reason=problem.strerror) from None


def replace_files(folder: Path, texts: Mapping[Path, tuple[str | None, str]]) -> None:
    """Replaces each file whose text changed (old, new), after all were found to hold their old text.

    An old text of None: there is no such file, and it is made.
    """
    with _locked(folder):
        for path, (old, _) in texts.items():
            there = None if old is None and not path.exists() else read_text(path)
            if there != old:
                raise error("changed-meanwhile", file=str(path))
        _replace_all({path: new for path, (old, new) in texts.items() if new != old})


def _replace_all(texts: Mapping[Path, str]) -> None:
    """All new texts stand on disk, synced, before the first file is replaced: a full disk changes none of them.

    Each rename is atomic on one file system; mode, owner and symlink stay.
    """
    prepared: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            _sweep(path)
            prepared[path] = _prepared(path, text)
        for path, new in prepared.items():
            new.replace(path.resolve())
            _sync_folder(path.resolve().parent)
    except OSError as problem:
        raise error("config-unwritable", file=str(path), reason=problem.strerror) from None
    finally:
        for new in prepared.values():
            new.unlink(missing_ok=True)


def _prepared(path: Path, text: str) -> Path:
    """The new text beside the target. Raises "config-unwritable"."""
    target = path.resolve()
    is_new = not target.exists()
    # renaming over it would work all the same: who made it read-only wants it kept
    if not is_new and (not target.stat().st_mode & 0o222 or not os.access(target, os.W_OK)):
        raise error("config-unwritable", file=str(path), reason="it is read-only")
    handle, name = tempfile.mkstemp(_SUFFIX, f".{target.name}.", target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            if is_new:
                os.fchmod(file.fileno(), _NEW_MODE)
            else:
                _keep_owner_and_mode(file.fileno(), target)
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _sweep(path: Path) -> None:
    """What a killed save left beside the file; under the lock nobody is writing one."""
    target = path.resolve()
    for left in target.parent.glob(f".{glob.escape(target.name)}.*{_SUFFIX}"):
        left.unlink(missing_ok=True)


def _keep_owner_and_mode(handle: int, target: Path) -> None:
    old = target.stat()
    os.fchmod(handle, stat.S_IMODE(old.st_mode))
    # only root may give a file away; the content matters more
    with contextlib.suppress(OSError):
        os.fchown(handle, old.st_uid, old.st_gid)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two writers of the lab wait for each other; the folder itself is the lock, so that no file is left behind."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as problem:
        raise error("config-unreadable", file=str(folder), reason=problem.strerror) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
