"""The memory that processes hold, and the proof that it came back after they ended.

A process that is gone holds no memory of its own any more; what can stay behind are files in shared memory, which
Python's multiprocessing gives back only where its resource tracker outlived the others, and memory on a GPU until the
driver has noticed. Both are known by the processes that were ended, since others may use the same memory and card.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lab.host.nvml import Nvml, open_nvml

# made for one run by Python and by torch; a file of any other name may be meant to stay
_SHARED = re.compile(r"/dev/shm/(?:psm_|sem\.mp-|torch_)\S+")  # noqa: S108  read and removed, never made
_GPU_WAIT_S = 10.0
# a resource tracker gives them back as soon as its processes are gone
_SHARED_WAIT_S = 0.5
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Held:
    """What processes hold: resident memory, files in shared memory, memory on GPUs (None: the driver does not tell)."""

    pids: frozenset[int] = frozenset()
    host_bytes: int = 0
    shared: frozenset[str] = frozenset()
    gpu_bytes: int | None = None

    def and_shared(self, names: Iterable[str]) -> Held:
        """The same with files that were seen earlier."""
        return Held(self.pids, self.host_bytes, self.shared | frozenset(names), self.gpu_bytes)


@dataclass(frozen=True, slots=True)
class MemoryProof:
    """What was held before, and what of it is left: `left_bytes` in shared memory, `gpu_pids` on a GPU.

    `given_back` are the files in shared memory that nobody used any more and that were removed here.
    """

    host_bytes: int
    gpu_bytes: int | None
    left_bytes: int = 0
    gpu_pids: tuple[int, ...] = ()
    given_back: tuple[str, ...] = field(default=())


def held_by(pids: Iterable[int], make_nvml: Callable[[], Nvml] = Nvml) -> Held:
    """What these processes hold now; those that have ended hold nothing."""
    chosen = frozenset(pids)
    if not chosen:
        return Held()
    host_bytes = 0
    shared: set[str] = set()
    for pid in chosen:
        with suppress(psutil.Error, OSError):
            host_bytes += psutil.Process(pid).memory_info().rss
        shared |= shared_files(pid)
    return Held(chosen, host_bytes, frozenset(shared), _on_gpus(chosen, make_nvml)[0])


def shared_files(pid: int) -> frozenset[str]:
    """The files of one run in shared memory that a process uses."""
    try:
        return frozenset(_SHARED.findall(Path(f"/proc/{pid}/maps").read_text("utf-8", "replace")))
    except OSError:
        return frozenset()


def prove_returned(held: Held, make_nvml: Callable[[], Nvml] = Nvml) -> MemoryProof:
    """What is left of it, once its processes have ended; waits 10 s at most for the driver of a GPU.

    Files in shared memory that no process uses any more are removed: whoever should have done it is gone.
    """
    _wait(lambda: not _existing(held.shared), _SHARED_WAIT_S)
    given_back = tuple(name for name in _existing(held.shared) if not _used_by_anybody(name) and _removed(name))
    if held.gpu_bytes is not None:
        _wait(lambda: not _on_gpus(held.pids, make_nvml)[1], _GPU_WAIT_S)
    left_bytes = sum(map(_size_bytes, held.shared))
    gpu_pids = _on_gpus(held.pids, make_nvml)[1] if held.gpu_bytes is not None else ()
    return MemoryProof(held.host_bytes, held.gpu_bytes, left_bytes, gpu_pids, given_back)


def _on_gpus(pids: frozenset[int], make_nvml: Callable[[], Nvml]) -> tuple[int | None, tuple[int, ...]]:
    """Bytes that these processes hold on all GPUs, None where no driver tells; and which of them hold any."""
    with open_nvml(make_nvml) as nvml:
        devices = [device for index in range(nvml.count()) if (device := nvml.device(index)) is not None]
        found = [(pid, used) for device in devices for pid, used in device.processes() if pid in pids]
    if not devices:
        return None, ()
    return sum(used or 0 for _, used in found), tuple(sorted({pid for pid, _ in found}))


def _existing(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if Path(name).exists()))


def _size_bytes(name: str) -> int:
    """0 for a file that is gone: a resource tracker may give it back at any moment."""
    try:
        return Path(name).stat().st_size
    except OSError:
        return 0


def _used_by_anybody(name: str) -> bool:
    return any(name in shared_files(pid) for pid in psutil.pids())


def _removed(name: str) -> bool:
    try:
        if Path(name).stat().st_uid != os.geteuid():
            return False
        Path(name).unlink()
    except OSError:
        return False
    return True


def _wait(condition: Callable[[], bool], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
