"""`lab doctor --ceiling`: what this host's load generator keeps up with, against a server of known timing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from lab.environment import ROOT
from lab.findings import error
from lab.load.supervisor import run_load
from lab.metrics import percentile, summarise
from lab.records.ceiling import ClientCeiling
from lab.records.plan import Slo
from lab.records.workload import LoadJob, Workload

STEPS = (64, 128, 256, 512, 1024, 2048)
FIRST_MS, GAP_MS, TOKENS = 200.0, 20.0, 100
KEPT_RATIO = 0.96
SERVER_RATIO = 0.9
LATE_LIMIT_MS = 40.0
"""The fidelity that is asked of the loader at its largest: tokens per second, and P95 of TTFT."""


@dataclass(frozen=True, slots=True)
class Step:
    """One concurrency: what the server wrote, what the loader saw, and how much later it saw first tokens (P95)."""

    in_flight: int
    written_per_s: float
    seen_per_s: float
    late_p95_ms: float

    @property
    def server_kept(self) -> bool:
        """Whether the server wrote as fast as it was told to; otherwise the step says nothing about the loader."""
        answer_s = (FIRST_MS + (TOKENS - 1) * GAP_MS) / 1000
        return self.written_per_s >= SERVER_RATIO * self.in_flight * TOKENS / answer_s

    @property
    def kept(self) -> bool:
        return self.seen_per_s >= KEPT_RATIO * self.written_per_s and self.late_p95_ms <= LATE_LIMIT_MS


def measure_ceiling(
    run_dir: Path, variables: Mapping[str, str], on_step: Callable[[Step], None] = lambda _step: None
) -> ClientCeiling:
    """The ceiling of this host as it is now. Raises `LabError` "ceiling-unknown" where nothing is kept."""

    def measure(in_flight: int) -> Step:
        step = measure_step(in_flight, run_dir, variables)
        on_step(step)
        return step

    return climb(map(measure, STEPS))


def climb(steps: Iterable[Step]) -> ClientCeiling:
    """The last step before the loader, or the server itself, fell behind; no later one is asked for.

    Raises `LabError` "ceiling-unknown" where not even the first one was kept.
    """
    best: Step | None = None
    reached = False
    for step in steps:
        if not (step.kept and step.server_kept):
            reached = not step.kept
            break
        best = step
    if best is None:
        raise error("ceiling-unknown", in_flight=STEPS[0])
    return ClientCeiling(
        tokens_per_s=round(best.seen_per_s, 1),
        in_flight=best.in_flight,
        reached=reached,
        cores=len(os.sched_getaffinity(0)),
        measured_at=datetime.now(UTC),
    )


def measure_step(in_flight: int, run_dir: Path, variables: Mapping[str, str]) -> Step:
    """Two rounds of requests in a closed loop."""
    requests = in_flight * 2
    workload = Workload(
        kind="closed", concurrency=(in_flight,), requests=requests, output_tokens=TOKENS, warmup_requests=0
    )
    with KnownServer() as server:
        job = LoadJob(base_url=f"{server.root}/v1", model="m", workload=workload)
        result = run_load(job, run_dir=run_dir, variables=variables)
        arrived, first, last, tokens = server.log(requests)
    summary = summarise(result, slo=Slo(), workload=workload)
    seen_p95, true_p95 = summary.ttft_ms.p95, percentile((first - arrived) / 1e6, 95)
    if seen_p95 is None or true_p95 is None or summary.output_tokens_per_s is None:
        raise error("ceiling-unknown", in_flight=in_flight)
    return Step(
        in_flight=in_flight,
        written_per_s=float(tokens.sum() / ((last.max() - arrived.min()) / 1e9)),
        seen_per_s=summary.output_tokens_per_s,
        late_p95_ms=seen_p95 - true_p95,
    )


class KnownServer:
    """The server of known timing in a process of its own, which ends with this one."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "lab.load.timed_server", "--first-ms", str(FIRST_MS)]
        command += ["--gap-ms", str(GAP_MS), "--tokens", str(TOKENS)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        port = self._process.stdout.readline() if self._process.stdout is not None else b""
        self.root = f"http://127.0.0.1:{int(port)}"
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _what: BaseException | None, _where: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=20)

    def log(self, requests: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Nanoseconds of arrival, first and last token, and tokens, each for all requests."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.root}/stats", timeout=30) as answer:
            return np.array(json.load(answer)["log"][-requests:], dtype=np.float64).T
