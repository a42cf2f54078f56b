"""The most memory that this process has held."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def most_memory_bytes() -> int:
    """Resident, since the program began.

    Where the system tells, its own mark is read: the other one counts the parent that started the program too.
    """
    try:
        for line in _STATUS.read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
