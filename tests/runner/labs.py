"""What the runner's tests are made of: a lab in a folder, its runner as a process, the stub in vLLM's place."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.configs.experiment_file import read_experiment
from lab.configs.pair import read_pair
from lab.environment import ROOT, Environment, read_environment
from lab.host.facts import host_facts
from lab.plan import plan_trials
from lab.store import ExperimentView, Store, get_experiment, open_store, queue_experiment

STUB = ROOT / "tests" / "servers" / "openai_stub.py"
BURST = """
[workload]
kind = "burst"
requests = {requests}
output_tokens = {tokens}
prompts = "mixed"
warmup_requests = {warmup}
request_timeout_s = 60
"""


def wait_for(condition: Callable[[], object], timeout_s: float = 40.0) -> None:
    """Poll until the condition holds; fails the test when it does not within the time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.02)


@dataclass(frozen=True)
class StubServer:
    port: int

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stats(self) -> list[dict[str, Any]]:
        return list(httpx.get(f"{self.root_url}/stats", trust_env=False).json())

    def running(self) -> int:
        page = httpx.get(f"{self.root_url}/metrics", trust_env=False).text
        line = next(each for each in page.splitlines() if each.startswith("vllm:num_requests_running"))
        return int(float(line.split()[-1]))


def configs_with_stub(config_dir: Path) -> None:
    """The shipped config folder, but the stub in the place of vLLM and a model that needs no folder."""
    shutil.copytree(ROOT / "configs", config_dir)
    path = config_dir / "engines" / "vllm.toml"
    head, _, rest = path.read_text("utf-8").partition("command = [\n")
    _, _, tail = rest.partition("]\n")
    command = f'["{{python}}", "{STUB}", "--served-model-name", "{{served_name}}", "--port", "{{port}}"]'
    # asking the real engine for its switches takes long, and the stub takes them all
    tail = re.sub(r"\[\[observe\]\]\n(?:\w.*\n)+", "", tail)
    path.write_text(f"{head}command = {command}\n{tail}", "utf-8")
    settings = config_dir / "settings.json"
    settings.write_text(settings.read_text("utf-8").replace("smollm2-135m-instruct", "stub-model"), "utf-8")


class Lab:
    """A config folder, a database, and the runners that were started for them."""

    def __init__(self, run_dir: Path, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run_dir = run_dir
        self.config_dir = config_dir
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("LAB_CONFIG_DIR", str(config_dir))
        self.runners: list[subprocess.Popen[bytes]] = []
        self._store: Store | None = None

    def set(self, name: str, value: str) -> None:
        self._monkeypatch.setenv(name, value)

    def engine_behaves(self, **behaviour: object) -> None:
        """How the stub behaves when the runner launches it."""
        self.set("OPENAI_STUB", json.dumps(behaviour))

    @property
    def env(self) -> Environment:
        return read_environment()

    @property
    def host(self) -> str:
        return host_facts().name

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = open_store(self.env.database_url)
        return self._store

    def queue(
        self, arms: str, *, requests: int = 4, tokens: int = 4, warmup: int = 1, head: str = 'name = "test"\n'
    ) -> int:
        """Queue an experiment of these [[arm]] tables with a burst."""
        text = head + BURST.format(requests=requests, tokens=tokens, warmup=warmup) + arms
        experiment, findings = read_experiment(text, "test.toml", read_pair(self.config_dir))
        assert experiment is not None, findings
        return queue_experiment(self.store, experiment, plan_trials(experiment), person="tester", host=self.host)

    def view(self, experiment_id: int) -> ExperimentView:
        return get_experiment(self.store, experiment_id)

    def start_runner(self) -> subprocess.Popen[bytes]:
        with (self.run_dir / "runner.log").open("ab") as log:
            runner = subprocess.Popen(
                [sys.executable, "-m", "lab.runner"], cwd=ROOT, env=dict(os.environ), stdout=log, stderr=log
            )
        self.runners.append(runner)
        return runner

    def run_until_ended(self, experiment_id: int, timeout_s: float = 60.0) -> ExperimentView:
        """Start a runner unless one runs, wait for the experiment's end, leave the runner up."""
        if not any(runner.poll() is None for runner in self.runners):
            self.start_runner()
        self.wait_ended(experiment_id, timeout_s)
        return self.view(experiment_id)

    def wait_ended(self, experiment_id: int, timeout_s: float = 60.0) -> None:
        def ended() -> bool:
            assert any(runner.poll() is None for runner in self.runners), self.log()
            return self.view(experiment_id).row.state in ("done", "failed", "stopped")

        wait_for(ended, timeout_s)

    def wait_state(self, experiment_id: int, state: str, position: int = 0) -> None:
        wait_for(lambda: self.view(experiment_id).trials[position].state == state)

    def log(self) -> str:
        return (self.run_dir / "runner.log").read_text("utf-8")

    def close(self) -> None:
        for runner in self.runners:
            if runner.poll() is None:
                runner.send_signal(signal.SIGTERM)
        for runner in self.runners:
            try:
                runner.wait(30)
            except subprocess.TimeoutExpired:
                runner.kill()
                runner.wait()
        if self._store is not None:
            self._store.close()
