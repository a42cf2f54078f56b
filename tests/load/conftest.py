"""Servers of known behaviour, and the loader run against them in its own process, as the runner does it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.environment import ROOT
from lab.load.supervisor import run_load
from lab.records.request import LoadResult
from lab.records.workload import LoadJob, Workload


class TimedServer:
    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "lab.load.timed_server", *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.base_url = f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> dict[str, Any]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}/stats") as answer:
            return json.load(answer)

    def stop(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def timed_server() -> Iterator[Callable[..., TimedServer]]:
    servers: list[TimedServer] = []

    def start(**options: float) -> TimedServer:
        arguments = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        servers.append(TimedServer(*arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def measure(separate_lab: Path) -> Callable[..., LoadResult]:
    """`measure(base_url, kind=…, requests=…)` runs one load; the workload has no warm-up unless asked."""

    def run(base_url: str, *, job: dict[str, Any] | None = None, run: dict[str, Any] | None = None, **workload: Any):
        given = Workload(**{"kind": "closed", "output_tokens": 10, "warmup_requests": 0, **workload})
        asked = LoadJob(base_url=base_url, model="m", workload=given, **(job or {}))
        options = {"run_dir": separate_lab, "variables": dict(os.environ), **(run or {})}
        return run_load(asked, **options)

    return run


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)
