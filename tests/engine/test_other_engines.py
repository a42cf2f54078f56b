"""Engines with names of their own: what of vLLM's knobs they have, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.engine.command import EngineCommand, build_command
from lab.engine.definition import EngineDefinition, list_engines, load_definition
from lab.engine.model import ModelRef
from lab.environment import ROOT
from lab.findings import Finding
from lab.host.facts import HostKind
from lab.messages import word_finding
from lab.records.workload import Scalar

FOLDER = ModelRef("smol", Path("/models/smol"), "folder", "smol")


def definition(kind: str) -> EngineDefinition:
    return load_definition(kind, ROOT / "configs")


def command(kind: str, knobs: dict[str, Scalar], *explicit: str, host: HostKind = "cuda") -> EngineCommand:
    return build_command(
        definition(kind),
        knobs,
        frozenset(explicit),
        host_kind=host,
        model=FOLDER,
        port=8123,
        python=Path("/venv/bin/python"),
        devices=None,
        variables={},
    )


def codes(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in found]


@pytest.mark.parametrize("kind", list_engines(ROOT / "configs"))
def test_every_definition_is_valid_and_named_as_its_file(kind: str) -> None:
    assert definition(kind).kind == kind


@pytest.mark.parametrize("kind", list_engines(ROOT / "configs"))
def test_every_code_of_a_definition_has_words(kind: str) -> None:
    engine = definition(kind)
    codes = [each.code for each in engine.note] + [each.code for each in engine.clash]
    codes += [each.reason for each in engine.overlay] + [each.code for each in engine.absent.values()]
    codes += [remedy for each in engine.failure for remedy in each.remedies]
    for code in codes:
        assert code not in word_finding(Finding(code, "advice", {"engine": "x", "knob": "k", "value": 1}))


def test_transformers_is_named_by_the_folder_it_serves() -> None:
    built = command("transformers", {"model": "smol", "dtype": "bfloat16"}, host="cpu")
    assert built.shown == (
        "/venv/bin/python -c 'from transformers.cli.transformers import app; app()' serve /models/smol "
        "--host 127.0.0.1 --port 8123 --dtype bfloat16 --device cpu"
    )
    assert built.served_name == "/models/smol"
    assert codes(built.findings) == [("engine-serves-one-by-one", "advice")]


def test_with_its_continuous_batching_it_is_not_said_to_serve_one_by_one() -> None:
    built = command("transformers", {"continuous_batching": True, "block_size": 64})
    assert built.argv[-3:] == ("--continuous-batching", "--cb-block-size", "64")
    assert built.findings == ()


@pytest.mark.parametrize(("explicit", "severity"), [((), "warning"), (("block_size",), "error")])
def test_a_knob_that_counts_only_with_a_switch_is_told(explicit: tuple[str, ...], severity: str) -> None:
    built = command("transformers", {"block_size": 64}, *explicit)
    assert ("knob-needs-switch", severity) in codes(built.findings)
    assert "--cb-block-size" not in built.argv


def test_no_cache_beside_a_paged_cache_is_refused() -> None:
    built = command("transformers", {"use_cache": False, "continuous_batching": True}, "use_cache")
    assert ("clash-cache-off-with-paged-cache", "error") in codes(built.findings)


@pytest.mark.parametrize("knob", ["long_prefill_token_threshold", "max_model_len", "async_scheduling"])
@pytest.mark.parametrize(("explicit", "severity"), [(False, "warning"), (True, "error")])
def test_a_vllm_knob_without_a_counterpart_is_never_passed_on(knob: str, explicit: bool, severity: str) -> None:
    built = command("transformers", {knob: 64}, *((knob,) if explicit else ()))
    assert [each for each in codes(built.findings) if each[1] != "advice"] == [("knob-without-counterpart", severity)]
    assert "64" not in built.argv
