"""Starts and ends the sampling process, and reads what it wrote."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from lab.environment import ROOT
from lab.records.sample import Sample
from lab.telemetry.job import VLLM_SERIES, SamplerJob

_END_TIMEOUT_S = 5.0
_log = logging.getLogger(__name__)


class Sampler:
    """Readings from `start` to `stop`. Nothing here fails a measurement: without the process there are no samples."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._out: Path | None = None
        self._zero_ns: int | None = None

    def start(
        self,
        metrics_url: str | None,
        gpu_indices: tuple[int, ...],
        interval_s: float,
        out: Path,
        series: Mapping[str, str] | None = None,
    ) -> None:
        """Begin; `out` is overwritten. `series` None are vLLM's; a `metrics_url` of None leaves the engine out."""
        job = SamplerJob(
            out=str(out.absolute()),
            zero_ns=time.monotonic_ns(),
            interval_s=interval_s,
            metrics_url=metrics_url,
            gpu_indices=tuple(gpu_indices),
            series=dict(VLLM_SERIES if series is None else series),
        )
        self._out = out
        self._zero_ns = job.zero_ns
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.unlink(missing_ok=True)
            self._process = _start(job)
        except OSError:
            _log.exception("no telemetry for this measurement")

    def clock_ms(self, clock_ns: int | None) -> float | None:
        """A moment of the host's monotonic clock as the samples count it; None before the start and for None."""
        return None if clock_ns is None or self._zero_ns is None else (clock_ns - self._zero_ns) / 1e6

    def stop(self) -> tuple[Sample, ...]:
        """End the process and give all samples in the order of time, none where there are none; can be called again."""
        if self._process is not None:
            _end(self._process)
            self._process = None
        return tuple(read_samples(self._out)) if self._out is not None else ()


def read_samples(path: Path) -> Iterator[Sample]:
    """The samples of a file; a line that was cut off by a crash is left out."""
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError:
        return
    for line in lines:
        try:
            table = json.loads(line)
        except ValueError:
            continue
        for series, value in table["values"].items():
            yield Sample(float(table["at_ms"]), series, value)


def _start(job: SamplerJob) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.telemetry"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C in the terminal is the runner's business
    )
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.write(job.to_line())
            process.stdin.flush()
    return process


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
