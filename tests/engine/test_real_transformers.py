"""The engine without a KV cache, for real: launched once, asked both ways, ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.configs.pair import ConfigPair
from lab.engine.command import EngineCommand, build_command
from lab.engine.definition import EngineDefinition, load_definition
from lab.engine.effective import compare_effective, read_effective
from lab.engine.model import find_model
from lab.engine.process import launch, stop
from lab.engine.readiness import wait_ready
from lab.engine.request_fields import request_fields
from lab.environment import ROOT, read_environment
from lab.host.facts import host_kind
from lab.host.process_identity import group_members
from lab.load.supervisor import run_load
from lab.records.request import RequestRecord
from lab.records.workload import LoadJob, Scalar, Workload
from tests.engine.fakes import unused_port

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

TOKENS = 12


@dataclass
class Running:
    definition: EngineDefinition
    command: EngineCommand
    url: str
    run_dir: Path


@pytest.fixture(scope="module")
def running(smol_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    env, run_dir = read_environment(), tmp_path_factory.mktemp("run")
    definition = load_definition("transformers", ROOT / "configs")
    command = build_command(
        definition,
        {"model": str(smol_model), "dtype": "bfloat16"},
        frozenset(),
        host_kind=host_kind(),
        model=find_model(str(smol_model), env),
        port=unused_port(),
        python=env.engine_python,
        devices=None,
        variables=env.variables,
    )
    process = launch(command, run_dir / "launch.log")
    url = f"http://127.0.0.1:{command.port}"
    try:
        report = wait_ready(process, definition, url, command.served_name, None, 200)
        assert {"loading-weights", "opening-port"} <= set(report.phases)
        yield Running(definition, command, url, run_dir)
    finally:
        proof = stop(process)
    assert (proof.ended, proof.left, proof.port_free) == (True, (), True)
    assert group_members(process.pgid) == ()


def ask(running: Running, knobs: Mapping[str, Scalar]) -> RequestRecord:
    """One measured request, sent by the loader as in a trial."""
    pair = ConfigPair('{"model": "m"}', "").with_knobs({"temperature": 0, **knobs})
    job = LoadJob(
        base_url=f"{running.url}/v1",
        model=running.command.served_name,
        workload=Workload(
            kind="closed", concurrency=(1,), requests=1, output_tokens=TOKENS, prompts="mixed", warmup_requests=0
        ),
        include_usage=running.definition.request.include_usage,
        ignore_eos=running.definition.request.ignore_eos,
        request_fields=request_fields(running.definition, pair, TOKENS),
        seed=1,
    )
    (record,) = run_load(job, run_dir=running.run_dir, variables={}).records
    assert record.failure is None, record.message
    return record


def test_it_answers_with_and_without_its_kv_cache(running: Running) -> None:
    cached, uncached = ask(running, {"use_cache": True}), ask(running, {"use_cache": False})
    for record in (cached, uncached):
        assert (record.completion_tokens, record.tokens_estimated) == (TOKENS, False)
        assert record.ttft_ms and record.tpot_ms and record.finish_reason == "length"
    assert cached.prompt_tokens == uncached.prompt_tokens
    assert uncached.tpot_ms > 1.3 * cached.tpot_ms  # type: ignore[operator]


def test_what_it_does_not_tell_is_unknown_and_never_zero(running: Running) -> None:
    effective = read_effective(running.url, running.definition)
    assert effective == {}
    assert [mark.code for mark in compare_effective(running.command.flags, effective)] == ["effective-unknown"]
    assert running.definition.metrics is None
