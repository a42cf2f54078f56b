"""Rules between knobs, model and host, checked before anything is launched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.configs.pair import ConfigPair
from lab.engine.definition import EngineDefinition
from lab.engine.model_facts import facts_of
from lab.engine.parallel_rules import parallel_rules
from lab.engine.preflight import Outlook, look_ahead, look_ahead_arms
from lab.environment import ROOT, read_environment
from lab.findings import Finding
from lab.host.facts import Gpu, HostFacts
from lab.messages import messages
from lab.records.plan import Arm, Experiment
from lab.records.workload import Workload
from tests.engine import model_configs as published
from tests.engine.model_folders import model_folder
from tests.engine.test_memory_forecast import gpu, host

Ahead = Callable[..., Outlook]


@pytest.fixture
def ahead(tmp_path: Path, vllm: EngineDefinition) -> Ahead:
    """Look ahead at a launch of a model like Llama-3-8B (8,192 tokens) with these knobs."""

    def look(
        knobs: dict[str, Any], on: HostFacts | None = None, config: dict[str, Any] | None = None, **more: Any
    ) -> Outlook:
        model_folder(tmp_path, config or published.LLAMA_3_8B)
        settings = json.dumps({"model": str(tmp_path)}, indent=2)
        pair = ConfigPair(settings, "", "settings.json", "config.toml").with_knobs(knobs)
        variables = more.pop("variables", {})
        return look_ahead(pair, vllm, read_environment(variables), on or host(gpu(0)), **more)

    return look


def codes(outlook: Outlook, severity: str | None = None) -> list[str]:
    return [each.code for each in outlook.findings if severity in (None, each.severity)]


def test_a_sound_pair_has_nothing_against_it_and_a_forecast(ahead: Ahead) -> None:
    found = ahead({"max_model_len": 8192, "max_num_batched_tokens": 2048})
    assert found.findings == ()
    assert found.forecast is not None
    assert found.forecast.kv_bytes_per_token == 131_072


def test_a_context_beyond_the_models_own_is_refused_with_the_models(ahead: Ahead) -> None:
    found = ahead({"max_model_len": 16384})
    assert codes(found) == ["context-beyond-model"]
    finding = found.findings[0]
    assert (finding.severity, finding.params["context"], finding.file) == ("error", 8192, "settings.json")
    assert finding.line is not None
    assert codes(ahead({"max_model_len": 8192})) == []
    # the variable that makes vLLM take it
    longer = ahead({"max_model_len": 16384}, variables={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"})
    assert [each.severity for each in longer.findings] == ["warning"]
    assert codes(ahead({"max_model_len": 16384, "hf_overrides": '{"rope_scaling": {}}'})) == []


def test_case_38_without_chunked_prefill_the_models_context_counts_where_none_is_set(ahead: Ahead) -> None:
    off = {"enable_chunked_prefill": False, "max_num_batched_tokens": 2048}
    found = ahead(off)
    assert codes(found, "error") == ["chunked-prefill-off-needs-tokens"]
    assert found.findings[0].params["max_model_len"] == 8192
    assert codes(ahead({**off, "max_num_batched_tokens": 8192})) == []
    assert codes(ahead({**off, "enable_chunked_prefill": True})) == []


def test_a_chunk_longer_than_the_context_is_refused(ahead: Ahead) -> None:
    assert "chunk-beyond-context" in codes(ahead({"long_prefill_token_threshold": 9000}), "error")
    assert "chunk-beyond-context" not in codes(ahead({"long_prefill_token_threshold": 8192}))


@pytest.mark.parametrize(
    ("knobs", "on", "nearest"),
    [
        ({"num_gpu_blocks_override": 64, "block_size": 32}, host(gpu(0)), 256),  # 8,192 / 32
        ({"num_gpu_blocks_override": 64, "block_size": 32, "max_model_len": 2048}, host(gpu(0)), None),
        ({"num_gpu_blocks_override": 64, "block_size": 16}, host(), None),  # on a CPU a block has 128 tokens
        ({"num_gpu_blocks_override": 63, "block_size": 16}, host(), 64),
    ],
)
def test_blocks_times_size_must_hold_one_context(
    ahead: Ahead, knobs: dict[str, Any], on: HostFacts, nearest: int | None
) -> None:
    found = [each for each in ahead(knobs, on).findings if each.code == "blocks-below-context"]
    assert [each.params["nearest"] for each in found] == ([] if nearest is None else [nearest])


@pytest.mark.parametrize(
    ("output", "code"), [(8192, "request-too-long"), (7000, None), (7150, "request-may-be-too-long")]
)
def test_a_workload_longer_than_the_models_context_is_told(ahead: Ahead, output: int, code: str | None) -> None:
    workload = Workload(kind="burst", requests=1, prompts="exact", prompt_tokens=(1024,), output_tokens=output)
    assert codes(ahead({}, workload=workload)) == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("knobs", "capability", "code", "severity"),
    [
        ({"kv_cache_dtype": "fp8"}, "8.6", "fp8-cache-on-old-gpu", "warning"),
        ({"kv_cache_dtype": "fp8_e5m2"}, "8.9", None, None),
        ({"dtype": "bfloat16"}, "7.5", "bfloat16-on-old-gpu", "error"),
        ({"dtype": "half"}, "7.5", None, None),
        ({"block_size": 8}, "9.0", "block-size-odd", "warning"),
        ({"kv_cache_dtype": "fp8"}, None, None, None),
    ],
)
def test_what_an_old_gpu_cannot_do(
    ahead: Ahead, knobs: dict[str, Any], capability: str | None, code: str | None, severity: str | None
) -> None:
    card = Gpu(0, "NVIDIA A10", 24 * 2**30, 0, (), capability)
    found = ahead(knobs, host(card))
    assert [(each.code, each.severity) for each in found.findings] == ([] if code is None else [(code, severity)])


def test_only_the_gpus_that_are_chosen_count(ahead: Ahead) -> None:
    mixed = host(Gpu(0, "Tesla T4", 16 * 2**30, 0, (), "7.5"), gpu(1))
    assert codes(ahead({"dtype": "bfloat16"}, mixed), "error") == ["bfloat16-on-old-gpu"]
    assert codes(ahead({"dtype": "bfloat16", "devices": "1"}, mixed), "error") == []


def parallel(knobs: dict[str, Any], gpus: int, config: dict[str, Any] | None = None) -> list[Finding]:
    facts = facts_of("m", config or published.LLAMA_3_8B)
    return [finding for _name, finding in parallel_rules(knobs, facts, host(*(gpu(i) for i in range(gpus))))]


@pytest.mark.parametrize(
    ("knobs", "gpus", "code", "nearest"),
    [
        ({"tensor_parallel_size": 2}, 2, None, None),
        ({"tensor_parallel_size": 4}, 2, "more-shards-than-gpus", 2),
        ({"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, 3, "more-shards-than-gpus", 1),
        ({"tensor_parallel_size": 2, "devices": "0"}, 8, "more-shards-than-gpus", 1),
        ({"tensor_parallel_size": 3}, 8, "heads-not-divisible", 2),  # 32 heads, 8 of keys and values
        ({"tensor_parallel_size": 6}, 8, "heads-not-divisible", 4),
        ({"devices": "0,7"}, 2, "device-unknown", None),
        ({"devices": "0,0", "tensor_parallel_size": 2}, 2, "device-twice", None),
        ({"devices": "GPU-3f2a"}, 2, None, None),
    ],
)
def test_gpus_and_heads(knobs: dict[str, Any], gpus: int, code: str | None, nearest: int | None) -> None:
    found = parallel(knobs, gpus)
    assert [each.code for each in found] == ([] if code is None else [code])
    assert [each.severity for each in found] == ([] if code is None else ["error"])
    assert nearest is None or found[0].params["nearest"] == nearest


def test_qwens_28_heads_do_not_split_over_8(ahead: Ahead) -> None:
    found = parallel({"tensor_parallel_size": 8}, 8, published.QWEN_25_7B)
    assert [(each.code, each.params["nearest"]) for each in found] == [("heads-not-divisible", 4)]


def test_on_a_host_without_gpu_it_says_so() -> None:
    assert [each.code for each in parallel({"devices": "0"}, 0)] == ["devices-without-gpu"]
    assert [each.severity for each in parallel({"tensor_parallel_size": 2}, 0)] == ["warning"]


def test_a_model_that_is_not_here_has_no_forecast_and_no_rules_of_its_own(vllm: EngineDefinition) -> None:
    pair = ConfigPair('{"model": "org/not-here", "decode": {"max_model_len": 10}}', "")
    found = look_ahead(pair, vllm, read_environment({"HF_HOME": "/nowhere"}), host(gpu(0)))
    assert (found.facts, found.forecast, found.findings) == (None, None, ())


def test_what_the_hub_tells_of_a_model_is_enough_for_a_forecast(vllm: EngineDefinition) -> None:
    pair = ConfigPair('{"model": "org/not-here", "decode": {"max_model_len": 16384}}', "")
    told = facts_of("org/not-here", published.LLAMA_3_8B)
    found = look_ahead(pair, vllm, read_environment({"HF_HOME": "/nowhere"}), host(gpu(0)), told=told)
    assert found.forecast is not None
    assert found.forecast.weights_bytes == 16_060_522_496
    assert codes(found) == ["context-beyond-model"]


def test_a_model_with_missing_files_is_told_before_the_start(ahead: Ahead, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00001-of-00002.safetensors"}}')
    assert codes(ahead({}), "error") == ["model-weights-missing"]


def test_arms_are_looked_ahead_at_each_with_its_own_knobs(tmp_path: Path, separate_lab: Path) -> None:
    model_folder(tmp_path, published.LLAMA_3_8B)
    settings = json.dumps({"model": str(tmp_path), "prefill": {"chunked_prefill": True}})
    workload = Workload(kind="burst", requests=1, prompts="exact", prompt_tokens=(9000,), output_tokens=16)
    arms = (
        Arm(name="fits"),
        Arm(name="too long", set={"max_model_len": 16384}),
        Arm(name="elsewhere", target="gateway", engine=None),
    )
    experiment = Experiment(name="e", workload=workload, arms=arms, settings_text=settings, config_text="")
    found = look_ahead_arms(experiment, read_environment(), host(gpu(0)))
    assert [(each.severity, each.params["arm"], each.params["rule"]) for each in found] == [
        ("error", "fits", "request-too-long"),
        ("error", "too long", "context-beyond-model"),
    ]
    shared = experiment.model_copy(update={"arms": (Arm(name="a"), Arm(name="b", set={"max_num_seqs": 8}))})
    assert [each.code for each in look_ahead_arms(shared, read_environment(), host(gpu(0)))] == ["request-too-long"]


def test_every_rule_has_its_words() -> None:
    text = "".join(
        (ROOT / "lab" / "engine" / f"{name}.py").read_text("utf-8")
        for name in ("preflight", "parallel_rules", "forecast", "kv_cache", "model_facts")
    )
    used = {part.split('"')[0] for part in text.split('Finding("')[1:]}
    assert len(used) >= 15
    assert used <= set(messages())
