"""The facts of this very host, and of one with a constructed GPU."""

from __future__ import annotations

import json
import os
import platform
from types import SimpleNamespace

from lab.host.facts import Gpu, GpuProcess, _gpu, host_facts
from lab.host.nvml import Nvml
from tests.host.constructed_nvml import ConstructedNvml


def test_this_host_is_described_and_can_be_stored_as_json() -> None:
    facts = host_facts()
    assert (facts.name, facts.python) == (platform.node(), platform.python_version())
    assert facts.cores == len(os.sched_getaffinity(0))
    assert facts.memory_bytes > 2**28
    assert "streamlit" in facts.packages
    assert (facts.kind == "cuda") == bool(facts.gpus) == (facts.gpu_note is None)
    assert json.loads(json.dumps(facts.as_json()))["cores"] == facts.cores


def test_a_gpu_and_who_uses_it_on_constructed_answers() -> None:
    me = SimpleNamespace(pid=os.getpid(), usedGpuMemory=2**20)
    gone = SimpleNamespace(pid=2**22 + 1, usedGpuMemory=None)
    device = Nvml(ConstructedNvml(nvmlDeviceGetComputeRunningProcesses=[me, gone])).device(0)
    assert device is not None
    gpu = _gpu(0, device)
    assert gpu == Gpu(0, "NVIDIA L4", 24 * 2**30, 2**30, gpu.processes, "8.9")
    assert (gpu.processes[0].pid, gpu.processes[0].used_bytes) == (os.getpid(), 2**20)
    assert gpu.processes[0].user is not None
    assert gpu.processes[1] == GpuProcess(2**22 + 1, None, None, None)
