"""The end of an engine's log, with a level for each line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
TAIL_BYTES = 256 * 1024
_LEVEL = re.compile(r"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# a level stands near the start of a line: "(EngineCore_DP0 pid=411) ERROR 11-29 22:10:01 [core.py:12] …"
_HEAD_CHARS = 60


@dataclass(frozen=True, slots=True)
class LogLine:
    """`level` of a line without one (a traceback) is that of the line before it."""

    level: str
    text: str


def read_tail(path: Path, folder: Path) -> str | None:
    """The last 256 KiB of a log as whole lines; None where it is not there or not below `folder`."""
    real = path.resolve()
    if not real.is_relative_to(folder.resolve()) or not real.is_file():
        return None
    with real.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        data = file.read()
    if size > TAIL_BYTES:
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")


def log_lines(text: str) -> Iterator[LogLine]:
    """Lines with their levels; colour codes and progress bars that overwrite themselves are left out."""
    level = "INFO"
    for raw in text.split("\n"):
        line = _COLOUR.sub("", raw).rstrip("\r").rpartition("\r")[2].rstrip()
        if not line:
            continue
        named = _LEVEL.search(line[:_HEAD_CHARS])
        level = named.group() if named else level
        yield LogLine(level, line)


def filtered(lines: Sequence[LogLine], least: str, search: str, limit: int) -> list[LogLine]:
    """The last `limit` lines at or above a level that contain the text, case ignored."""
    wanted = LEVELS[LEVELS.index(least) :]
    needle = search.casefold()
    return [line for line in lines if line.level in wanted and needle in line.text.casefold()][-limit:]
