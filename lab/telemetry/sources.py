"""Where readings come from. A source gives a value per series, None for a gap, and never raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import httpx
import psutil

from lab.host.metrics_page import read_metrics
from lab.host.nvml import Device, Nvml

Reading = dict[str, float | None]
_TIMEOUT_S = 2.0

# a GPU's series and how each is asked
_GPU_SERIES: Mapping[str, Callable[[Device], float | None]] = {
    "utilization_ratio": Device.utilization_ratio,
    "memory_used_bytes": Device.memory_used_bytes,
    "power_w": Device.power_w,
    "temperature_c": Device.temperature_c,
    "sm_clock_mhz": Device.sm_clock_mhz,
}


class Source(Protocol):
    def read(self) -> Reading: ...


class EngineSource:
    """The engine's own metrics. A page that cannot be had is a gap in all; a metric it lacks is not in the reading."""

    def __init__(self, url: str, series: Mapping[str, str]) -> None:
        self._url = url
        self._series = series
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)

    def read(self) -> Reading:
        try:
            answer = self._client.get(self._url).raise_for_status()
            found = read_metrics(answer.text, set(self._series.values()))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            return dict.fromkeys(self._series)
        return {name: found[metric] for name, metric in self._series.items() if metric in found}


class HostSource:
    """Processor and memory of the host. The processor's share is of the time since the last reading."""

    def __init__(self) -> None:
        psutil.cpu_percent()  # the first answer is about no time at all
        self._first = True

    def read(self) -> Reading:
        share = psutil.cpu_percent() / 100
        first, self._first = self._first, False
        memory: Reading = {"host_memory_used_bytes": float(psutil.virtual_memory().used)}
        return memory if first else {"host_cpu_ratio": share, **memory}


class GpuSource:
    """The chosen GPUs. Each is looked up anew, so that one that was lost is seen again when it is back."""

    def __init__(self, nvml: Nvml, indices: tuple[int, ...]) -> None:
        self._nvml = nvml
        self._indices = indices

    def read(self) -> Reading:
        return {name: value for index in self._indices for name, value in self._gpu(index).items()}

    def _gpu(self, index: int) -> Reading:
        device = self._nvml.device(index)
        return {
            f"gpu{index}_{name}": None if device is None else _float(ask(device)) for name, ask in _GPU_SERIES.items()
        }


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
