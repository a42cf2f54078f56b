"""The real engine: launched once, asked, read back, killed, ended; and one that dies of a wrong flag."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from lab.engine.catalogue import Catalogue, cached_catalogue, read_catalogue
from lab.engine.command import EngineCommand, build_command
from lab.engine.definition import EngineDefinition
from lab.engine.diagnosis import read_log
from lab.engine.effective import compare_effective, read_effective
from lab.engine.forecast import forecast
from lab.engine.http_client import EngineClient
from lab.engine.installation import engine_version
from lab.engine.model import find_model
from lab.engine.model_facts import read_model_facts
from lab.engine.overlays import apply_overlays
from lab.engine.process import EngineProcess, launch, stop
from lab.engine.readiness import EngineFailed, ReadyReport, wait_ready
from lab.environment import read_environment
from lab.host.facts import host_facts, host_kind
from lab.host.process_identity import group_members
from lab.records.workload import Scalar
from tests.engine.fakes import unused_port, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

# the real parts of a config pair of an article, as a CPU host gets them: a block size of 16 is overlaid
KNOBS: dict[str, Scalar] = {
    "max_num_seqs": 4,
    "max_model_len": 1024,
    "kv_cache_dtype": "fp8",
    "block_size": 16,
    "gpu_memory_utilization": 0.15,
    "enable_prefix_caching": False,
    "enforce_eager": True,
    "async_scheduling": False,
}


@dataclass
class Running:
    definition: EngineDefinition
    command: EngineCommand
    process: EngineProcess
    report: ReadyReport
    url: str


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def catalogue(vllm: EngineDefinition, run_dir: Path) -> Catalogue:
    found = read_catalogue(vllm, read_environment().engine_python, run_dir)
    assert found is not None
    return found


def real_command(
    definition: EngineDefinition, model: Path, catalogue: Catalogue | None, knobs: dict[str, Scalar]
) -> EngineCommand:
    env = read_environment()
    return build_command(
        definition,
        knobs,
        frozenset({"max_num_seqs"}),
        host_kind=host_kind(),
        model=find_model(str(model), env),
        port=unused_port(),
        python=env.engine_python,
        devices=None,
        variables=env.variables,
        catalogue=catalogue,
    )


@pytest.fixture(scope="module")
def running(vllm: EngineDefinition, smol_model: Path, catalogue: Catalogue, run_dir: Path) -> Iterator[Running]:
    command = real_command(vllm, smol_model, catalogue, KNOBS)
    assert command.findings == ()
    process = launch(command, run_dir / "launch.log")
    url = f"http://127.0.0.1:{command.port}/v1"
    try:
        report = wait_ready(process, vllm, url, command.served_name, None, 400)
        yield Running(vllm, command, process, report, url)
    finally:
        stop(process)


def test_the_catalogue_is_the_engines_own_and_is_kept(
    vllm: EngineDefinition, catalogue: Catalogue, run_dir: Path
) -> None:
    python = read_environment().engine_python
    version = engine_version(vllm, python)
    assert version is not None
    assert (catalogue.distribution, catalogue.version) == (version.distribution, version.version)
    assert cached_catalogue(vllm, python, run_dir) == catalogue
    dtype, chunked = catalogue.find("kv_cache_dtype"), catalogue.find("enable_chunked_prefill")
    assert dtype is not None
    assert {"auto", "fp8"} <= set(dtype.choices or ())
    assert chunked is not None
    assert (chunked.type, chunked.off) == ("bool", "--no-enable-chunked-prefill")
    assert catalogue.find("swap_space") is None
    assert all(flag.help for flag in catalogue.flags)


def test_every_knob_of_the_definition_is_a_flag_of_this_release(vllm: EngineDefinition, catalogue: Catalogue) -> None:
    assert [knob for knob in vllm.flags if catalogue.find(knob) is None] == []
    assert [knob for knob in vllm.absent if catalogue.find(knob) is not None] == []
    gone = [absent.nearest or "" for absent in vllm.absent.values() if absent.code == "flag-gone"]
    assert [name for name in gone if catalogue.find(name) is None] == []


def test_it_became_ready_through_the_steps_of_its_log(running: Running) -> None:
    phases = running.report.phases
    assert next(iter(phases)) == "launching"
    assert {"loading-weights", "warming-up"} <= set(phases)
    assert sorted(phases.values()) == list(phases.values())
    assert phases["loading-weights"] < running.report.seconds


def test_it_took_what_was_asked(running: Running) -> None:
    effective = read_effective(running.url, running.definition)
    assert compare_effective(running.command.flags, effective) == ()
    assert {knob: effective[knob] for knob in ("max_num_seqs", "max_model_len", "kv_cache_dtype")} == {
        "max_num_seqs": 4,
        "max_model_len": 1024,
        "kv_cache_dtype": "fp8",
    }
    assert effective["enable_prefix_caching"] is False
    tokens = effective["kv_cache_size_tokens"]
    assert isinstance(tokens, int)
    assert tokens >= 1024


def test_the_memory_forecast_comes_close_to_what_the_engine_reports(running: Running, smol_model: Path) -> None:
    host = host_facts()
    knobs, _overlays, _warnings = apply_overlays(running.definition.overlay, KNOBS, frozenset(), host.kind)
    found = forecast(read_model_facts("smol", smol_model), knobs, host)
    tokens = read_effective(running.url, running.definition)["kv_cache_size_tokens"]
    assert found.kv_bytes_per_token == 11_520  # 30 layers × 2 × 3 heads × 64 × 1 byte
    assert found.kv_tokens == pytest.approx(tokens, rel=0.1)


def test_it_answers_under_its_served_name_and_counts(running: Running) -> None:
    names = ("vllm:generation_tokens_total", "vllm:prompt_tokens_total")
    with EngineClient(running.url, paths=running.definition.client) as client:
        assert client.models() == (running.command.served_name,)
        before = client.metrics(names)
        answer = complete(running, max_tokens=5)
        after = client.metrics(names)
        assert client.running_requests() == 0
        assert client.reset_prefix_cache() in (True, False)
    assert after[names[0]] - before[names[0]] == answer["usage"]["completion_tokens"] == 5
    assert after[names[1]] - before[names[1]] == answer["usage"]["prompt_tokens"]


def complete(running: Running, max_tokens: int) -> dict:  # type: ignore[type-arg]
    body = {
        "model": running.command.served_name,
        "messages": [{"role": "user", "content": "Name a colour."}],
        "max_tokens": max_tokens,
        "ignore_eos": True,
    }
    answer = httpx.post(f"{running.url}/chat/completions", json=body, timeout=60, trust_env=False)
    found: dict = answer.raise_for_status().json()  # type: ignore[type-arg]
    return found


def test_every_metric_of_the_definition_is_on_its_page(running: Running) -> None:
    assert running.definition.metrics is not None
    series = running.definition.metrics.series
    with EngineClient(running.url) as client:
        assert set(client.metrics(tuple(series.values()))) == set(series.values())


def test_killed_from_outside_it_is_still_ended_whole(running: Running) -> None:
    process = running.process
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: process.poll() is not None)
    assert group_members(process.pgid), "the engine core was expected to live on"
    proof = stop(process)
    assert (proof.ended, proof.left, proof.port_free) == (True, (), True)
    assert group_members(process.pgid) == ()


def test_a_flag_it_does_not_know_is_named_within_seconds(
    vllm: EngineDefinition, smol_model: Path, tmp_path: Path
) -> None:
    command = real_command(vllm, smol_model, None, {"max_num_sekwences": 4})
    process = launch(command, tmp_path / "launch.log")
    try:
        with pytest.raises(EngineFailed) as caught:
            wait_ready(process, vllm, f"http://127.0.0.1:{command.port}", command.served_name, None, 120)
    finally:
        stop(process)
    assert caught.value.failure_class == "bad-flag", read_log(process.log_path)[-2000:]
    assert "--max-num-sekwences" in caught.value.lines[0]
