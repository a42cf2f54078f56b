"""A host's memory without the processes that are about to end."""

from __future__ import annotations

import os
import subprocess
import sys

from lab.host.facts import Gpu, GpuProcess, HostFacts
from lab.host.occupants import without_group, without_processes

GIB = 2**30


def host(*gpus: Gpu) -> HostFacts:
    return HostFacts("h", "cuda", None, 2, 24 * GIB, gpus, None, "3.11", "Linux", {}, 10 * GIB, 24 * GIB)


def test_on_a_gpu_what_others_hold_stays() -> None:
    ours, others = (
        GpuProcess(2**22 + 1, "me", "VLLM::Worker", 60 * GIB),
        GpuProcess(2**22 + 2, "ann", "python", 9 * GIB),
    )
    untold = GpuProcess(2**22 + 3, "me", "x", None)
    card = Gpu(0, "NVIDIA H100", 80 * GIB, 70 * GIB, (ours, others, untold))
    left = without_processes(host(card), frozenset({ours.pid, untold.pid})).gpus[0]
    assert (left.memory_used_bytes, left.processes) == (10 * GIB, (others,))


def test_a_gpu_that_tells_nothing_stays_unknown() -> None:
    assert without_processes(host(Gpu(0, "MIG", None, None)), frozenset({1})).gpus[0].memory_used_bytes is None


def test_the_memory_of_a_real_group_counts_as_available() -> None:
    program = "held = bytearray(b'x' * 200_000_000); print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", program], start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        before = host()
        after = without_group(before, os.getpgid(child.pid))
        assert after.memory_available_bytes is not None
        assert 200_000_000 < after.memory_available_bytes - 10 * GIB < 400_000_000
    finally:
        child.communicate(b"\n", timeout=60)
    assert without_group(before, None) is before
