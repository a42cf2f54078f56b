"""GPU readings on constructed answers: what is not there is a gap, never zero (R66)."""

from __future__ import annotations

from lab.host.nvml import Nvml
from lab.telemetry.sources import GpuSource
from tests.host.constructed_nvml import ConstructedNvml, NVMLError_GpuIsLost, NVMLError_NotSupported

GAP = {
    "gpu0_utilization_ratio": None,
    "gpu0_memory_used_bytes": None,
    "gpu0_power_w": None,
    "gpu0_temperature_c": None,
    "gpu0_sm_clock_mhz": None,
}
GOOD = {
    "gpu0_utilization_ratio": 0.37,
    "gpu0_memory_used_bytes": 1073741824.0,
    "gpu0_power_w": 71.5,
    "gpu0_temperature_c": 55.0,
    "gpu0_sm_clock_mhz": 2040.0,
}


def test_all_series_of_a_healthy_gpu() -> None:
    assert GpuSource(Nvml(ConstructedNvml()), (0,)).read() == GOOD


def test_a_value_the_driver_refuses_is_a_gap_and_the_others_stay() -> None:
    library = ConstructedNvml(nvmlDeviceGetPowerUsage=NVMLError_NotSupported("Not Supported"))
    assert GpuSource(Nvml(library), (0,)).read() == {**GOOD, "gpu0_power_w": None}


def test_a_gpu_lost_for_three_readings_is_a_gap_and_then_back() -> None:
    library = ConstructedNvml()
    source = GpuSource(Nvml(library), (0,))
    readings = [source.read()]
    library.answers["nvmlDeviceGetHandleByIndex"] = NVMLError_GpuIsLost("GPU is lost")
    readings += [source.read() for _ in range(3)]
    library.answers["nvmlDeviceGetHandleByIndex"] = "handle"
    readings.append(source.read())
    assert readings == [GOOD, GAP, GAP, GAP, GOOD]


def test_each_chosen_gpu_has_its_own_series() -> None:
    read = GpuSource(Nvml(ConstructedNvml()), (0, 3)).read()
    assert (read["gpu0_power_w"], read["gpu3_power_w"], len(read)) == (71.5, 71.5, 10)
