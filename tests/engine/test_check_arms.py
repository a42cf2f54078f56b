"""What the engines of an experiment lack is said before it is queued."""

from __future__ import annotations

from lab.configs.experiment_file import read_experiment
from lab.configs.pair import read_pair
from lab.engine.pair_command import check_arms
from lab.environment import ROOT, read_environment
from lab.findings import Finding

HEAD = '[workload]\nkind = "burst"\nrequests = 2\noutput_tokens = 8\n'


def found(arms: str, **variables: str) -> list[tuple[str, str, object]]:
    experiment, findings = read_experiment(HEAD + arms, "x.toml", read_pair(ROOT / "configs"))
    assert experiment is not None, findings
    env = read_environment({"LAB_CONFIG_DIR": str(ROOT / "configs"), **variables})
    return [_short(finding) for finding in check_arms(experiment, env, "cuda")]


def _short(finding: Finding) -> tuple[str, str, object]:
    return finding.code, finding.severity, finding.params.get("rule") or finding.params.get("engine")


def test_an_engine_that_is_not_here_is_a_warning_said_once() -> None:
    arms = "".join(f'[[arm]]\nname = "{n}"\nengine = "sglang"\nset = {{ max_num_seqs = {n} }}\n' for n in (1, 2))
    assert found(arms) == [("engine-not-installed", "warning", "SGLang")]


def test_an_interpreter_that_cannot_be_run_is_told() -> None:
    arms = '[[arm]]\nname = "a"\nengine = "sglang"\n'
    assert found(arms, LAB_ENGINE_PYTHON_SGLANG="/nowhere/python") == [("engine-python-unusable", "warning", None)]


def test_what_an_arm_asks_in_vain_is_an_error_and_what_the_pair_asks_is_not() -> None:
    arms = '[[arm]]\nname = "a"\nengine = "transformers"\nset = { kv_cache_dtype = "fp8" }\n'
    assert found(arms) == [("arm-rule", "error", "knob-absent")]


def test_arms_that_start_nothing_are_left_out() -> None:
    assert found('[[arm]]\nname = "a"\n[[arm]]\nname = "g"\ntarget = "gateway"\n') == []
