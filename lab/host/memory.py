"""This host's memory: all of it, what nobody holds, and the part that an engine on the CPU takes its share of."""

from __future__ import annotations

import os
import re
from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")
_SYSTEM = Path("/sys/devices/system")


def memory_bytes() -> int:
    """The machine's memory, or the container's limit where that is smaller."""
    total = int(psutil.virtual_memory().total)
    limit = _number(_CGROUP / "memory.max")
    return total if limit is None else min(total, limit)


def available_bytes() -> int:
    """What can be had now without swapping, within the container's limit."""
    free = int(psutil.virtual_memory().available)
    limit, used = _number(_CGROUP / "memory.max"), _number(_CGROUP / "memory.current")
    return free if limit is None or used is None else max(0, min(free, limit - used))


def node_memory_bytes(system: Path = _SYSTEM) -> int | None:
    """The memory of the NUMA node of the first core that this process may use; None where the system has no nodes.

    vLLM on a CPU takes gpu_memory_utilization of it, not of the whole machine.
    """
    core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    node = next((path.name for path in (system / "cpu" / f"cpu{core}").glob("node[0-9]*")), None)
    try:
        text = (system / "node" / (node or "node0") / "meminfo").read_text("ascii")
    except OSError:
        return None
    found = re.search(r"MemTotal:\s+(\d+) kB", text)
    return None if found is None else min(int(found[1]) * 1024, memory_bytes())


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
