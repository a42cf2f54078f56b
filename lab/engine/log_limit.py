"""The size of an engine's log: the beginning and the end are kept, what lies between goes.

The engine writes into the file itself, in append mode, so no reader and no pump can ever hold it up. Another process
looks now and then and cuts the file. What the engine writes in the moment between the last look and the cut is lost:
microseconds, and only in a log that has outgrown its limit.
"""

from __future__ import annotations

import os
from pathlib import Path

LIMIT_BYTES = 16 * 1024 * 1024
# so often is read what came meanwhile, before a log that grows all the time is cut in mid-growth
_ROUNDS = 1000
NOTICE = b"[lab] output left out here: the log had outgrown its limit\n"


def keep_within(path: Path, limit_bytes: int = LIMIT_BYTES) -> bool:
    """Cut a log that is longer than the limit to its first and last quarter; True where it was cut."""
    try:
        if path.stat().st_size <= limit_bytes:
            return False
        # append mode: the part that is written back lands behind whatever the engine wrote meanwhile
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        _cut(file, limit_bytes // 4)
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _cut(file: int, part_bytes: int) -> None:
    head = os.pread(file, part_bytes, 0)
    earlier = head.find(NOTICE)
    head_ends = earlier if earlier >= 0 else head.rfind(b"\n") + 1 or len(head)
    end = os.fstat(file).st_size - part_bytes
    tail = [b""]
    for _ in range(_ROUNDS):
        # nothing stands between the last look and the cut but one call; half a line is a write that goes on
        if os.fstat(file).st_size == end and tail[-1].endswith(b"\n"):
            break
        if piece := os.pread(file, part_bytes, end):
            tail.append(piece)
            end += len(piece)
    os.ftruncate(file, head_ends)
    os.writev(file, [NOTICE, tail[1][tail[1].find(b"\n") + 1 :], *tail[2:]])
