"""What a driver does not give is None, never 0 and never an absurd size (R64, R66); all on constructed answers."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from lab.environment import ROOT
from lab.host.nvml import Device, Nvml
from tests.host.constructed_nvml import ALL_ONES, ConstructedNvml, NVMLError_GpuIsLost, NVMLError_NotSupported


def gpu(**answers: Any) -> Device:
    device = Nvml(ConstructedNvml(**answers)).device(0)
    assert device is not None
    return device


def test_a_healthy_gpu_on_constructed_answers() -> None:
    device = gpu()
    assert (device.name(), device.capability()) == ("NVIDIA L4", "8.9")
    assert (device.memory_total_bytes(), device.memory_used_bytes()) == (25769803776, 1073741824)
    assert (device.utilization_ratio(), device.power_w()) == (0.37, 71.5)
    assert (device.temperature_c(), device.sm_clock_mhz()) == (55, 2040)


@pytest.mark.parametrize(
    "answers",
    [
        {"nvmlDeviceGetUtilizationRates": NVMLError_NotSupported("Not Supported")},
        {"nvmlDeviceGetUtilizationRates": None},
        {"nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=0xFFFFFFFF)},
    ],
)
def test_a_utilisation_that_is_not_there_is_none(answers: dict[str, Any]) -> None:
    assert gpu(**answers).utilization_ratio() is None


def test_an_idle_gpu_is_zero_and_not_none() -> None:
    assert gpu(nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=0)).utilization_ratio() == 0


def test_power_that_is_not_supported_is_none() -> None:
    assert gpu(nvmlDeviceGetPowerUsage=NVMLError_NotSupported("Not Supported")).power_w() is None


def test_all_ones_is_no_memory() -> None:
    memory = SimpleNamespace(total=ALL_ONES, used=ALL_ONES)
    device = gpu(nvmlDeviceGetMemoryInfo=memory)
    assert (device.memory_total_bytes(), device.memory_used_bytes()) == (None, None)


def test_the_memory_of_a_process_may_be_unknown() -> None:
    processes = [
        SimpleNamespace(pid=7, usedGpuMemory=None),
        SimpleNamespace(pid=8, usedGpuMemory=ALL_ONES),
        SimpleNamespace(pid=9, usedGpuMemory=5),
    ]
    assert gpu(nvmlDeviceGetComputeRunningProcesses=processes).processes() == ((7, None), (8, None), (9, 5))


def test_a_module_without_a_function_is_survived() -> None:
    library = ConstructedNvml()
    del library.answers["nvmlDeviceGetMemoryInfo"]
    device = Nvml(library).device(0)
    assert device is not None
    assert device.memory_used_bytes() is None
    assert device.name() == "NVIDIA L4"


def test_a_lost_gpu_is_seen_again_when_it_is_back() -> None:
    library = ConstructedNvml(nvmlDeviceGetHandleByIndex=NVMLError_GpuIsLost("GPU is lost"))
    nvml = Nvml(library)
    assert nvml.device(0) is None
    library.answers["nvmlDeviceGetHandleByIndex"] = "handle"
    assert nvml.device(0) is not None


@pytest.mark.parametrize(
    ("problem", "note"),
    [
        (RuntimeError("NVML Shared Library Not Found"), "no-nvidia-driver"),
        (RuntimeError("Driver/library version mismatch"), "nvidia-driver-mismatch"),
        (RuntimeError("Insufficient Permissions"), "gpu-no-permission"),
        (RuntimeError("Unknown Error"), "nvml-failed"),
    ],
)
def test_a_driver_that_does_not_start_is_one_note(problem: Exception, note: str) -> None:
    nvml = Nvml(ConstructedNvml(nvmlInit=problem))
    assert (nvml.note, nvml.count(), nvml.device(0)) == (note, 0, None)


def test_a_driver_that_breaks_later_gives_gaps() -> None:
    library = ConstructedNvml()
    nvml = Nvml(library)
    assert nvml.count() == 1
    library.answers["nvmlDeviceGetCount"] = RuntimeError("Driver/library version mismatch")
    assert (nvml.count(), nvml.note) == (0, "nvidia-driver-mismatch")


def test_it_is_shut_down_once() -> None:
    library = ConstructedNvml()
    nvml = Nvml(library)
    nvml.close()
    nvml.close()
    assert library.calls.count("nvmlShutdown") == 1


def test_the_real_package_is_imported_late_and_its_warning_about_itself_is_no_error() -> None:
    program = (
        "import sys; from lab.host.facts import host_facts; assert 'pynvml' not in sys.modules; "
        "print(host_facts().kind)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True, env=dict(os.environ)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() in ("cpu", "cuda")
