"""Writing exported files into a folder, never over a file that is not the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.findings import error

if TYPE_CHECKING:
    from lab.export.arm_files import ExportFile


def write_export(files: Sequence[ExportFile], directory: Path) -> None:
    """Writes all files; raises "export-exists" before anything is written where one with another text is there."""
    for file in files:
        if Path(file.name).name != file.name or file.name in ("", ".", ".."):
            raise error("export-name", name=file.name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file in files:
            path = directory / file.name
            if path.exists() and path.stat().st_size and path.read_bytes() != file.text.encode("utf-8"):
                raise error("export-exists", file=str(path))
        for file in files:
            (directory / file.name).write_bytes(file.text.encode("utf-8"))
    except OSError as problem:
        raise error("export-unwritable", directory=str(directory), reason=problem.strerror) from None
