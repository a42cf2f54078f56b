"""A thin layer over NVML: every answer that is missing, refused or a sentinel is None, and nothing raises."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_NOT_AVAILABLE = (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF)


class Nvml:
    """NVML as far as it answers. `note` is the message code of why there is no data, None where there is.

    A driver that breaks while the lab runs turns values into None and the note into "nvml-failed".
    """

    def __init__(self, library: Any | None = None) -> None:
        self._library: Any | None = None
        self.note: str | None = None
        try:
            self._library = _import_pynvml() if library is None else library
            self._library.nvmlInit()
        except ImportError:
            self._library, self.note = None, "pynvml-missing"
        except (
            Exception
        ) as problem:  # NVML's errors are made at run time and old packages lack some: any of them means no data
            self._library, self.note = None, _note_of(problem)

    def close(self) -> None:
        if self._library is not None:
            self.ask(self._library, "nvmlShutdown")
            self._library = None

    def count(self) -> int:
        """GPUs that can be asked; 0 without a driver."""
        return int(self.ask(self._library, "nvmlDeviceGetCount") or 0)

    def device(self, index: int) -> Device | None:
        """The GPU with this index; None where it cannot be had now (lost, no permission, no driver)."""
        handle = self.ask(self._library, "nvmlDeviceGetHandleByIndex", index)
        return None if handle is None else Device(self, self._library, handle)

    def ask(self, library: Any | None, function: str, *arguments: Any) -> Any | None:
        if library is None:
            return None
        try:
            return getattr(library, function)(*arguments)
        except (
            Exception
        ) as problem:  # as above: "not supported", "GPU is lost" and a missing function are all "no value"
            self.note = _note_of(problem)
            return None


class Device:
    """One GPU. Units stand in the names; None is "not available here" (MIG, WSL, WDDM, no permission)."""

    def __init__(self, nvml: Nvml, library: Any, handle: Any) -> None:
        self._nvml, self._library, self._handle = nvml, library, handle

    def _ask(self, function: str, *arguments: Any) -> Any | None:
        return self._nvml.ask(self._library, function, self._handle, *arguments)

    def name(self) -> str | None:
        name = self._ask("nvmlDeviceGetName")
        return name.decode("utf-8", "replace") if isinstance(name, bytes) else name

    def capability(self) -> str | None:
        """CUDA compute capability as "8.6"."""
        pair = self._ask("nvmlDeviceGetCudaComputeCapability")
        return None if pair is None else f"{pair[0]}.{pair[1]}"

    def memory_total_bytes(self) -> int | None:
        return _number(getattr(self._ask("nvmlDeviceGetMemoryInfo"), "total", None))

    def memory_used_bytes(self) -> int | None:
        return _number(getattr(self._ask("nvmlDeviceGetMemoryInfo"), "used", None))

    def utilization_ratio(self) -> float | None:
        percent = _number(getattr(self._ask("nvmlDeviceGetUtilizationRates"), "gpu", None))
        return None if percent is None else percent / 100

    def power_w(self) -> float | None:
        milliwatts = _number(self._ask("nvmlDeviceGetPowerUsage"))
        return None if milliwatts is None else milliwatts / 1000

    def temperature_c(self) -> int | None:
        return _number(self._ask("nvmlDeviceGetTemperature", 0))

    def sm_clock_mhz(self) -> int | None:
        return _number(self._ask("nvmlDeviceGetClockInfo", 1))

    def processes(self) -> tuple[tuple[int, int | None], ...]:
        """(pid, used bytes) of the processes that compute on it."""
        found = self._ask("nvmlDeviceGetComputeRunningProcesses") or ()
        return tuple((int(p.pid), _number(getattr(p, "usedGpuMemory", None))) for p in found)


@contextmanager
def open_nvml(make: Callable[[], Nvml] = Nvml) -> Iterator[Nvml]:
    """NVML for the length of the block; never raises."""
    nvml = make()
    try:
        yield nvml
    finally:
        nvml.close()


def _import_pynvml() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the package warns about its own name at every import
        import pynvml
    return pynvml


def _number(value: Any) -> int | None:
    return None if value is None or value in _NOT_AVAILABLE else int(value)


def _note_of(problem: Exception) -> str:
    text = f"{type(problem).__name__} {problem}".lower()
    if "librarynotfound" in text or "shared library" in text:
        return "no-nvidia-driver"
    if "mismatch" in text:
        return "nvidia-driver-mismatch"
    if "notsupported" in text or "not supported" in text:
        return "gpu-value-not-supported"
    if "permission" in text:
        return "gpu-no-permission"
    return "nvml-failed"
