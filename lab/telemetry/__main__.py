"""The sampling process: a job on standard input, readings to a file, until that input ends (also with its parent)."""

from __future__ import annotations

import json
import select
import sys
import time
from typing import TextIO

from lab.host.nvml import Nvml
from lab.telemetry.job import SamplerJob, read_job
from lab.telemetry.sources import EngineSource, GpuSource, HostSource, Reading, Source


def main() -> int:
    try:
        job = read_job(sys.stdin.readline())
    except (ValueError, TypeError) as problem:
        sys.stderr.write(f"no job: {problem}\n")
        return 2
    nvml = Nvml()
    try:
        with job.path.open("w", encoding="utf-8", buffering=1) as out:
            _sample(job, _sources(job, nvml), out)
    except OSError as problem:  # a full disk ends the readings, not the measurement
        sys.stderr.write(f"{job.out}: {problem.strerror}\n")
        return 1
    finally:
        nvml.close()
    return 0


def _sources(job: SamplerJob, nvml: Nvml) -> list[Source]:
    """The sources there are; without a GPU its series are absent."""
    sources: list[Source] = [HostSource()]
    if job.metrics_url is not None:
        sources.append(EngineSource(job.metrics_url, job.series))
    if job.gpu_indices and nvml.count():
        sources.append(GpuSource(nvml, job.gpu_indices))
    return sources


def _sample(job: SamplerJob, sources: list[Source], out: TextIO) -> None:
    due = time.monotonic()
    while not _ended(due):
        at_ms = (time.monotonic_ns() - job.zero_ns) / 1e6
        values: Reading = {name: value for source in sources for name, value in source.read().items()}
        out.write(json.dumps({"at_ms": at_ms, "values": values}) + "\n")
        due = max(due + job.interval_s, time.monotonic())  # what was missed is not made up for


def _ended(due: float) -> bool:
    """Wait for the moment of the next reading; True as soon as standard input has ended."""
    ready, _, _ = select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))
    return bool(ready) and sys.stdin.read(1) == ""


if __name__ == "__main__":
    sys.exit(main())
