"""Arms of other engines: chosen for one arm or a whole grid, and not judged by vLLM's rules."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from lab.configs.experiment_file import read_experiment
from lab.configs.pair import read_pair
from lab.environment import ROOT
from lab.findings import has_errors
from lab.records.plan import Experiment

BURST = '[workload]\nkind = "burst"\nrequests = 2\noutput_tokens = 8\n'


def read(text: str) -> tuple[Experiment | None, list[str]]:
    experiment, findings = read_experiment(BURST + text, "x.toml", read_pair(ROOT / "configs"))
    return experiment, [finding.code for finding in findings if finding.severity == "error"]


def arms(text: str) -> list[tuple[str, str | None, dict[str, object]]]:
    experiment, errors = read(text)
    assert experiment is not None, errors
    return [(arm.name, arm.engine, dict(arm.set)) for arm in experiment.arms]


def test_a_grid_runs_on_the_engine_it_names() -> None:
    assert arms('[sweep]\nengine = "sglang"\nmax_num_seqs = [8, 16]\n') == [
        ("max_num_seqs=8", "sglang", {"max_num_seqs": 8}),
        ("max_num_seqs=16", "sglang", {"max_num_seqs": 16}),
    ]


def test_a_grid_over_engines_runs_whole_on_each() -> None:
    assert arms('[sweep]\nengine = ["vllm", "sglang"]\nmax_num_seqs = [8, 16]\n') == [
        ("vllm: max_num_seqs=8", "vllm", {"max_num_seqs": 8}),
        ("vllm: max_num_seqs=16", "vllm", {"max_num_seqs": 16}),
        ("sglang: max_num_seqs=8", "sglang", {"max_num_seqs": 8}),
        ("sglang: max_num_seqs=16", "sglang", {"max_num_seqs": 16}),
    ]


def test_engines_alone_are_compared_as_configured() -> None:
    assert arms('[sweep]\nengine = ["vllm", "transformers"]\n') == [
        ("vllm: as configured", "vllm", {}),
        ("transformers: as configured", "transformers", {}),
    ]


def test_an_engine_that_nothing_defines_is_told() -> None:
    assert read('[sweep]\nengine = ["vllm", "slang"]\nmax_num_seqs = [8]\n')[1] == ["arm-unknown-engine"]


@pytest.mark.parametrize(("engine", "errors"), [("vllm", ["arm-rule"]), ("sglang", [])])
def test_rules_between_knobs_are_those_of_vllm(engine: str, errors: list[str]) -> None:
    """The pair has 4,096 tokens a step and a context of 8,192: vLLM refuses that without chunked prefill."""
    text = f'[[arm]]\nname = "whole prompts"\nengine = "{engine}"\nset = {{ enable_chunked_prefill = false }}\n'
    assert read(text)[1] == errors


def test_the_preset_of_the_cache_is_without_errors() -> None:
    text = (ROOT / "configs" / "experiments" / "kv-cache-on-off.toml").read_text("utf-8")
    experiment, findings = read_experiment(text, "x.toml", read_pair(ROOT / "configs"))
    assert experiment is not None
    assert not has_errors(findings)
    assert [(arm.engine, arm.set["use_cache"]) for arm in experiment.arms] == [
        ("transformers", True),
        ("transformers", False),
    ]


def test_the_kinds_are_those_of_the_config_folder_whatever_name_is_shown_for_it(tmp_path, monkeypatch) -> None:
    shutil.copytree(ROOT / "configs", tmp_path / "own")
    monkeypatch.setenv("LAB_CONFIG_DIR", str(tmp_path / "own"))
    engines = tmp_path / "own" / "engines"
    (engines / "sglang.toml").rename(engines / "toy.toml")
    pair = replace(
        read_pair(tmp_path / "own"), settings_file="configs/settings.json", config_file="configs/config.toml"
    )
    for kind, expected in (("toy", []), ("sglang", ["arm-unknown-engine"])):
        text = BURST + f'[[arm]]\nname = "a"\nengine = "{kind}"\n[[arm]]\nname = "b"\n'
        findings = read_experiment(text, "x.toml", pair)[1]
        assert [each.code for each in findings if each.severity == "error"] == expected


@pytest.mark.parametrize("value", ['"${N}"', '"{env:N}"'])
def test_a_placeholder_for_a_number_is_told_for_what_it_is(monkeypatch, value) -> None:
    monkeypatch.setenv("N", "8")
    assert read(f'[[arm]]\nname = "a"\nset = {{ max_num_seqs = {value} }}\n') == (None, ["arm-placeholder"])
