"""A constructed NVML: answers as drivers have been seen to give them, made up here, since no driver can be made to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

ALL_ONES = 0xFFFFFFFFFFFFFFFF


class NVMLError_NotSupported(Exception):  # noqa: N801, N818  named as the real one
    pass


class NVMLError_GpuIsLost(Exception):  # noqa: N801, N818
    pass


class ConstructedNvml:
    """One GPU in good health; a test replaces an answer with another value or with an exception to raise."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetCount": 1,
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlDeviceGetName": "NVIDIA L4",
            "nvmlDeviceGetCudaComputeCapability": (8, 9),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=24 * 2**30, used=2**30),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=37, memory=12),
            "nvmlDeviceGetPowerUsage": 71_500,
            "nvmlDeviceGetTemperature": 55,
            "nvmlDeviceGetClockInfo": 2040,
            "nvmlDeviceGetComputeRunningProcesses": [],
            **answers,
        }
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)

        def function(*_: Any) -> Any:
            self.calls.append(name)
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return function
