"""A log file for each attempt of a trial, beside the runner's own."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_log = logging.getLogger(__name__)


@contextmanager
def trial_log(folder: Path, trial_id: int, attempt: int) -> Iterator[Path]:
    """Everything logged inside goes to `trial-<id>-<attempt>.log` (mode 0600) as well, where that can be written."""
    path = folder / f"trial-{trial_id}-{attempt}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as problem:
        _log.warning("no log of its own for trial %s: %s", trial_id, problem)
        yield path
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield path
    finally:
        root.removeHandler(handler)
        with suppress(OSError):  # on a full disk closing tries once more to write what is left
            handler.close()
