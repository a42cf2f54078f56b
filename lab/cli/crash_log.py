"""Where the traceback of an unexpected failure goes."""

from __future__ import annotations

import os
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path


def write_crash_log(bug: BaseException) -> Path:
    """Write the traceback to a new file (mode 0600) in the run directory and return its path.

    Falls back to the system's temporary folder where the run directory cannot be had.
    """
    text = "".join(traceback.format_exception(bug))
    for folder in (_log_dir(), Path(tempfile.gettempdir())):
        try:
            return _write_new(folder, text)
        except OSError:
            continue
    return Path(os.devnull)


def _log_dir() -> Path:
    from lab.environment import read_environment

    return read_environment().run_dir / "logs"


def _write_new(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    descriptor, name = tempfile.mkstemp(prefix=f"crash-{stamp}-", suffix=".log", dir=folder)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(name)
