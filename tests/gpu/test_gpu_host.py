"""The layer that only a host with an NVIDIA GPU can run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.environment import ROOT
from lab.host.facts import host_facts
from lab.telemetry import Sampler
from tests.runner.labs import wait_for

pytestmark = pytest.mark.gpu

EXPERIMENT = """
name = "One launch on the GPU"
[workload]
kind = "burst"
requests = 32
output_tokens = 64
[[arm]]
name = "as configured"
[[arm]]
name = "fp8 cache"
set = { kv_cache_dtype = "fp8" }
"""


def _nvidia_smi(*fields: str) -> list[list[str]]:
    query = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return [[value.strip() for value in line.split(",")] for line in answer.splitlines()]


def test_the_gpus_are_those_that_nvidia_smi_lists() -> None:
    listed = _nvidia_smi("index", "name", "memory.total", "compute_cap")
    gpus = host_facts().gpus
    assert [[str(gpu.index), gpu.name, gpu.capability] for gpu in gpus] == [[row[0], row[1], row[3]] for row in listed]
    for gpu, row in zip(gpus, listed, strict=True):
        assert gpu.memory_total_bytes == pytest.approx(float(row[2]) * 2**20, rel=0.02)


def test_every_series_of_a_gpu_has_values_that_nvidia_smi_confirms(tmp_path: Path) -> None:
    out = tmp_path / "samples.jsonl"
    sampler = Sampler()
    sampler.start(None, (0,), 0.1, out)
    try:
        wait_for(lambda: out.exists() and len(out.read_text().splitlines()) > 30)
    finally:
        samples = sampler.stop()
    values = {sample.series: sample.value for sample in samples}
    temperature_c, power_w = (float(value) for value in _nvidia_smi("temperature.gpu", "power.draw")[0])
    assert values["gpu0_temperature_c"] == pytest.approx(temperature_c, abs=5)
    assert values["gpu0_power_w"] == pytest.approx(power_w, rel=0.5)
    assert 0 <= (values["gpu0_utilization_ratio"] or 0) <= 1
    assert (values["gpu0_memory_used_bytes"] or 0) > 0


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_an_experiment_runs_on_the_gpu_and_gives_its_memory_back(separate_lab: Path, smol_model: Path) -> None:
    models = separate_lab / "models"
    models.mkdir()
    (models / "smollm2-135m-instruct").symlink_to(smol_model.resolve(), target_is_directory=True)
    file = separate_lab / "gpu.toml"
    file.write_text(EXPERIMENT)
    before = host_facts().gpus[0].memory_used_bytes or 0
    try:
        done = _lab("run", str(file), "--wait", "--json")
    finally:
        _lab("runner", "--stop")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["succeeded"] for row in rows] == [32, 32]
    wait_for(lambda: (host_facts().gpus[0].memory_used_bytes or 0) < before + 2**30)


def _lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lab", *arguments]
    return subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
