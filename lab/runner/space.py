"""Room for what a trial writes: without it the engine has no log and the loader no records, and neither can say so."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.findings import Param
from lab.runner.outcome import TrialFailed

NEEDED_BYTES = 16 * 1024 * 1024


def refuse_full_disk(folder: Path) -> None:
    """Raises `TrialFailed` "internal" where the folder's disk has less than 16 MiB left."""
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        params: dict[str, Param] = {"folder": str(folder.absolute())}
        params |= {"free_mib": free // 2**20, "needed_mib": NEEDED_BYTES // 2**20}
        raise TrialFailed("internal", {"code": "trial-disk-full", **params})
