"""The server of known timing in a process of its own, and what it really did."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from lab.environment import ROOT


@dataclass(frozen=True, slots=True)
class Truth:
    """What the server wrote: first-token times from each request's arrival, tokens per second over the whole run."""

    ttft_p50_ms: float
    ttft_p95_ms: float
    tokens: int
    tokens_per_s: float
    requests: int


class KnownServer:
    def __init__(self, *, first_ms: float, gap_ms: float, tokens: int) -> None:
        command = [sys.executable, "-m", "lab.load.timed_server", "--first-ms", str(first_ms)]
        command += ["--gap-ms", str(gap_ms), "--tokens", str(tokens)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.root = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def truth(self, requests: int) -> Truth:
        """Of the last `requests` that came: some clients send others before they measure."""
        log = np.array(self._stats()["log"][-requests:])
        arrived, first, last, tokens = log.T
        p50, p95 = np.percentile((first - arrived) / 1e6, [50, 95])
        span_s = (last.max() - arrived.min()) / 1e9
        return Truth(float(p50), float(p95), int(tokens.sum()), float(tokens.sum() / span_s), len(log))

    def _stats(self) -> dict[str, Any]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.root}/stats", timeout=30) as answer:
            return dict(json.load(answer))
