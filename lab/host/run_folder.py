"""The folder of what runs: logs, measurements in hand, the default model. Where it cannot be used nothing can start."""

from __future__ import annotations

from pathlib import Path

from lab.findings import error


def ready_run_folder(run_dir: Path) -> Path:
    """The folder, absolute and made where it was not there; raises "run-folder-unusable" where it cannot be written."""
    folder = run_dir.absolute()
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as problem:
        raise error("run-folder-unusable", folder=str(folder), reason=problem.strerror) from None
    return folder
