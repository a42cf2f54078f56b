"""A lab of its own for each test: config folder, database, runner processes, servers; all of them ended afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.labs import STUB, Lab, StubServer, configs_with_stub, wait_for


@pytest.fixture(autouse=True)
def sigint_reaches_children() -> Iterator[None]:
    """A test run started in the background ignores SIGINT, and its children would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def lab(separate_lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    configs_with_stub(tmp_path / "configs")
    home = Lab(separate_lab, tmp_path / "configs", monkeypatch)
    yield home
    home.close()


@pytest.fixture
def start_stub(lab: Lab) -> Iterator[object]:
    """Starts OpenAI-compatible servers."""
    processes: list[subprocess.Popen[str]] = []

    def start(**behaviour: object) -> StubServer:
        process = subprocess.Popen(
            [sys.executable, str(STUB), "--port", "0"],
            env={**os.environ, "OPENAI_STUB": json.dumps(behaviour)},
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        return StubServer(int(process.stdout.readline()))

    yield start
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    wait_for(lambda: all(process.poll() is not None for process in processes))
