"""The lab's own loader, run as the runner runs it."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from bench.row import Row
from bench.server import KnownServer
from lab.load.supervisor import run_load
from lab.metrics import summarise
from lab.records.plan import Slo
from lab.records.workload import LoadJob, Workload


def measure_ours(concurrency: int, requests: int, tokens: int, first_ms: float, gap_ms: float) -> Row:
    workload = Workload(
        kind="closed", concurrency=(concurrency,), requests=requests, output_tokens=tokens, warmup_requests=0
    )
    memory = _Memory()
    with KnownServer(first_ms=first_ms, gap_ms=gap_ms, tokens=tokens) as server, tempfile.TemporaryDirectory() as place:
        job = LoadJob(base_url=f"{server.root}/v1", model="m", workload=workload)
        with memory:
            result = run_load(job, run_dir=Path(place), variables=dict(os.environ))
        truth = server.truth(requests)
    summary = summarise(result, slo=Slo(), workload=workload)
    cpu_s = result.client.cpu_s
    return Row(
        client="lab load",
        concurrency=concurrency,
        ttft_p50_ms=summary.ttft_ms.p50,
        ttft_p95_ms=summary.ttft_ms.p95,
        tokens_per_s=summary.output_tokens_per_s,
        tokens=summary.output_tokens,
        truth=truth,
        cpu_us_per_token=cpu_s / truth.tokens * 1e6 if cpu_s is not None else None,
        rss_mb=memory.most_mb,
    )


class _Memory:
    """The most that this process's loaders (with their decoders) held together."""

    def __init__(self) -> None:
        self.most_mb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._over.is_set():
            total = 0
            for child in me.children(recursive=True):
                with suppress(psutil.Error):
                    if "lab.load" in " ".join(child.cmdline()):
                        total += child.memory_info().rss
            self.most_mb = max(self.most_mb, total / 1e6)
            time.sleep(0.25)
