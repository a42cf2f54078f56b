"""Memory is proved to have come back: files in shared memory, memory on a GPU by pid."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.host.held_memory import Held, held_by, prove_returned
from lab.host.nvml import Nvml
from lab.host.process_group import end_processes
from lab.host.process_identity import identity
from tests.host.constructed_nvml import ConstructedNvml

HOLDER = """
import sys, time
from multiprocessing import resource_tracker, shared_memory
block = shared_memory.SharedMemory(create=True, size=4_000_000)
if sys.argv[1] == "untracked":
    resource_tracker.unregister(block._name, "shared_memory")
print("/dev/shm/" + block.name, flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that holds a block of shared memory, and the block's file."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, request.param], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        yield process, name
        process.kill()
    Path(name).unlink(missing_ok=True)


@pytest.mark.parametrize("holder", ["untracked"], indirect=True)
def test_shared_memory_of_a_killed_process_is_given_back(holder: tuple[subprocess.Popen[str], str]) -> None:
    process, name = holder
    held = held_by([process.pid])
    assert name in held.shared and held.host_bytes > 1_000_000
    process.kill()
    process.wait()
    assert Path(name).exists(), "it outlives its process"
    proof = prove_returned(held)
    assert (proof.left_bytes, proof.given_back) == (0, (name,))
    assert not Path(name).exists()


@pytest.mark.parametrize("holder", ["untracked"], indirect=True)
def test_shared_memory_that_somebody_else_uses_is_not_touched(holder: tuple[subprocess.Popen[str], str]) -> None:
    _, name = holder
    proof = prove_returned(Held(frozenset({1}), 0, frozenset({name})))
    assert (proof.left_bytes, proof.given_back) == (4_000_000, ())
    assert Path(name).exists()


@pytest.mark.parametrize("holder", ["tracked"], indirect=True)
def test_a_killed_group_gives_its_shared_memory_back_by_its_tracker(
    holder: tuple[subprocess.Popen[str], str],
) -> None:
    process, name = holder
    who = identity(process.pid)
    assert who is not None

    def alive() -> tuple:  # type: ignore[type-arg]
        return () if process.poll() is not None else (who,)

    proof = end_processes(alive, 0.0)
    assert proof.ended and proof.memory is not None
    assert (proof.memory.left_bytes, Path(name).exists()) == (0, False)
    assert proof.as_json()["left"] == []


def test_memory_on_a_gpu_is_known_by_pid_and_waited_for() -> None:
    """Constructed answers: first our process 41 and a stranger, then the stranger alone."""
    ours, strangers = SimpleNamespace(pid=41, usedGpuMemory=6_000), SimpleNamespace(pid=7, usedGpuMemory=9_000)
    driver = ConstructedNvml(nvmlDeviceGetComputeRunningProcesses=[ours, strangers])
    held = held_by([41], lambda: Nvml(driver))
    assert held.gpu_bytes == 6_000
    driver.answers["nvmlDeviceGetComputeRunningProcesses"] = [strangers]
    proof = prove_returned(held, lambda: Nvml(driver))
    assert (proof.gpu_bytes, proof.gpu_pids) == (6_000, ())


def test_memory_that_stays_on_a_gpu_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.host.held_memory._GPU_WAIT_S", 0.2)
    ours = SimpleNamespace(pid=41, usedGpuMemory=6_000)
    driver = ConstructedNvml(nvmlDeviceGetComputeRunningProcesses=[ours])
    proof = prove_returned(held_by([41], lambda: Nvml(driver)), lambda: Nvml(driver))
    assert proof.gpu_pids == (41,)


def test_without_a_driver_nothing_is_said_of_a_gpu() -> None:
    driver = ConstructedNvml(nvmlDeviceGetCount=0)
    held = held_by([41], lambda: Nvml(driver))
    assert held.gpu_bytes is None
    assert prove_returned(held, lambda: Nvml(driver)).gpu_pids == ()
