"""Files of an export as one download."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence

from lab.export import ExportFile


def zipped(files: Sequence[ExportFile]) -> bytes:
    """All files in one archive; the same files give the same bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(zipfile.ZipInfo(file.name), file.text.encode("utf-8"))
    return target.getvalue()


def file_word(name: str) -> str:
    """An arm's name as part of a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "arm"
