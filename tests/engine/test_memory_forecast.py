"""What a launch will take, against numbers computed by hand, published, or reported by vLLM itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.engine.forecast import forecast, memory_size
from lab.engine.kv_cache import bytes_per_token
from lab.engine.model_facts import ModelFacts, facts_of, read_model_facts
from lab.host.facts import Gpu, GpuProcess, HostFacts
from tests.engine import model_configs as published

GIB = 2**30


def host(*gpus: Gpu, free: int = 20 * GIB) -> HostFacts:
    kind = "cuda" if gpus else "cpu"
    return HostFacts("h", kind, None, 2, 24 * GIB, gpus, None, "3.11", "Linux", {}, free, 22 * GIB)


def gpu(index: int, total: int = 80 * GIB, used: int = 0, *held: GpuProcess) -> Gpu:
    return Gpu(index, "NVIDIA H100", total, used, held, "9.0")


@pytest.fixture
def llama() -> ModelFacts:
    return facts_of("llama-3-8b", published.LLAMA_3_8B)


@pytest.mark.parametrize(
    ("config", "dtype", "expected"),
    [
        (published.LLAMA_2_13B, "auto", 819_200),  # 40 layers × 2 × 5,120 × 2 bytes, no grouped heads
        (published.LLAMA_2_13B, "fp8", 409_600),
        (published.LLAMA_3_8B, "auto", 131_072),  # 32 × 2 × 8 heads × 128 × 2
        (published.LLAMA_3_8B, "fp8_e5m2", 65_536),
        (published.QWEN_25_7B, "auto", 57_344),  # 28 × 2 × 4 × 128 × 2
        (published.MIXTRAL_8X7B, "auto", 131_072),  # experts keep no keys and values of their own
        (published.MIXTRAL_8X7B, "int8_per_token_head", 67_584),  # 32 × 2 × 8 × (128 + 4)
        (published.MIXTRAL_8X7B, "int4_per_token_head", 34_816),  # 32 × 2 × 8 × (64 + 4)
        (published.DEEPSEEK_V2_LITE, "auto", 31_104),  # 27 × (512 + 64) × 2, one latent vector a layer
        (published.LLAMA_3_8B, "turboquant_k8v4", None),
    ],
)
def test_bytes_per_token(config: dict[str, Any], dtype: str, expected: int | None) -> None:
    found, why = bytes_per_token(facts_of("model", config), {"kv_cache_dtype": dtype})
    assert found == expected
    assert (why is None) == (expected is not None)


def test_weights_and_cache_of_32_bits_take_twice_as_much(llama: ModelFacts) -> None:
    found = forecast(llama, {"dtype": "float"}, host(gpu(0)))
    assert (found.kv_bytes_per_token, found.weights_bytes) == (262_144, 32_121_044_992)


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (published.MISTRAL_7B_V01, "forecast-sliding-window"),
        (published.GEMMA_3_1B, "forecast-mixed-attention"),
        ({**published.LLAMA_3_8B, "layer_types": ["linear_attention", "full_attention"]}, "forecast-other-attention"),
        ({**published.LLAMA_3_8B, "is_encoder_decoder": True}, "forecast-encoder-decoder"),
        ({**published.DEEPSEEK_V2_LITE, "model_type": "deepseek_v32"}, "forecast-other-attention"),
        ({}, "forecast-shape-unknown"),
    ],
)
def test_what_cannot_be_counted_says_why(config: dict[str, Any], code: str) -> None:
    found = forecast(facts_of("model", config), {}, host())
    assert (found.kv_bytes_per_token, found.kv_tokens, found.contexts) == (None, None, None)
    assert code in [each.code for each in found.unknown]


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        (published.LLAMA_2_13B, 13_015_864_320),
        (published.LLAMA_3_8B, 8_030_261_248),
        (published.QWEN_25_7B, 7_615_616_512),
        (published.MIXTRAL_8X7B, 46_702_792_704),
        (published.MISTRAL_7B_V01, 7_241_732_096),
        (published.GEMMA_3_1B, None),
    ],
)
def test_parameters_are_those_their_authors_publish(config: dict[str, Any], parameters: int | None) -> None:
    found = facts_of("model", config)
    assert (found.parameters, found.counted) == (parameters, parameters is not None)


def test_grouped_heads_are_shared_by_shards_and_repeated_beyond(llama: ModelFacts) -> None:
    per_device = [bytes_per_token(llama, {}, shards)[0] for shards in (1, 2, 8, 16)]
    assert per_device == [131_072, 65_536, 16_384, 16_384]
    assert bytes_per_token(llama, {}, 2, 4)[0] == 16_384  # 8 of 32 layers on each stage


@pytest.mark.parametrize(("dtype", "tokens"), [("auto", 93_184), ("fp8", 186_368)])
def test_the_default_model_holds_what_vllm_reported_on_a_cpu(smol_model: Path, dtype: str, tokens: int) -> None:
    knobs = {"kv_cache_memory_bytes": str(2 * GIB), "max_model_len": 8192, "kv_cache_dtype": dtype}
    found = forecast(read_model_facts("smol", smol_model), knobs, host())
    assert (found.kv_tokens, found.kv_fixed, found.block_size) == (tokens, True, 128)


@pytest.mark.parametrize(
    ("node_bytes", "share", "context", "tokens"),
    [
        # "Auto set (3.33/22.09) GiB … 1.09 GiB memory was consumed by non-kv usages", then 155,264 tokens
        (23_716_900_864, 0.20, 8192, 155_264),
        # recordings/cache_too_small.log: "Auto set (0.63/11.46) GiB … 1.08 GiB … consumed"; 0.63 GiB / 23,040 B
        (int(11.46 * GIB), 0.15, None, 29_360),
    ],
)
def test_on_a_cpu_the_guess_comes_within_some_percent_of_what_vllm_said(
    smol_model: Path, node_bytes: int, share: float, context: int | None, tokens: int
) -> None:
    cpu = replace(host(), node_memory_bytes=node_bytes)
    knobs = {"gpu_memory_utilization": share, **({"max_model_len": context} if context else {})}
    found = forecast(read_model_facts("smol", smol_model), knobs, cpu)
    assert found.kv_tokens == pytest.approx(tokens, rel=0.03)


def test_whole_contexts_that_fit(llama: ModelFacts) -> None:
    # 16 GiB / (16 × 131,072) = 8,192 blocks of 16 tokens = 131,072 tokens = 16 contexts of 8,192
    found = forecast(llama, {"kv_cache_memory_bytes": "16G"}, host(gpu(0)))
    assert (found.kv_tokens, found.context_tokens, found.contexts) == (131_072, 8192, 16.0)
    # a context of 8,000 tokens takes 500 blocks: 16.384 of them, and vLLM counts 16.384 × 8,000 tokens
    shorter = forecast(llama, {"kv_cache_memory_bytes": "16G", "max_model_len": 8000}, host(gpu(0)))
    assert (shorter.kv_tokens, shorter.contexts) == (131_072, 16.384)


def test_the_budget_is_a_share_of_the_device_and_the_cache_gets_what_is_left(llama: ModelFacts) -> None:
    found = forecast(llama, {"gpu_memory_utilization": 0.9}, host(gpu(0)))
    assert found.budget_bytes == 77_309_411_328  # 0.9 × 80 GiB
    assert found.weights_bytes == 16_060_522_496  # 8,030,261,248 × 2
    assert found.overhead_bytes is not None
    assert found.kv_bytes == 77_309_411_328 - 16_060_522_496 - found.overhead_bytes
    assert found.findings == ()


def test_more_share_gives_the_cache_more_room_and_two_gpus_halve_the_weights(llama: ModelFacts) -> None:
    less, more = (forecast(llama, {"gpu_memory_utilization": share}, host(gpu(0))) for share in (0.85, 0.9))
    assert less.kv_tokens is not None
    assert more.kv_tokens is not None
    assert less.kv_tokens < more.kv_tokens
    two = forecast(llama, {"tensor_parallel_size": 2}, host(gpu(0), gpu(1)))
    assert (two.weights_bytes, two.kv_bytes_per_token, two.devices) == (8_030_261_248, 65_536, (0, 1))


def test_what_others_hold_is_part_of_the_forecast(llama: ModelFacts) -> None:
    # case R37a: 31.4 of 47.4 GiB free, 0.95 asked; 31.4 / 47.4 = 0.662
    total = int(47.4 * GIB)
    taken = gpu(0, total, total - int(31.4 * GIB), GpuProcess(7, "ann", "python", 16 * GIB))
    found = forecast(llama, {"gpu_memory_utilization": 0.95}, host(taken))
    assert [(each.code, each.severity) for each in found.findings] == [("forecast-beyond-free", "warning")]
    assert found.findings[0].params["nearest"] == 0.66


def test_the_chosen_gpu_counts_not_the_first(llama: ModelFacts) -> None:
    busy, idle = gpu(0, 24 * GIB, 23 * GIB), gpu(1, 80 * GIB)
    found = forecast(llama, {"devices": "1"}, host(busy, idle))
    assert (found.devices, found.total_bytes, found.findings) == ((1,), 80 * GIB, ())
    both = forecast(llama, {"tensor_parallel_size": 2}, host(busy, idle))
    assert (both.total_bytes, both.free_bytes) == (24 * GIB, GIB)


def test_a_model_that_does_not_fit_is_told_with_the_cure_that_helps(llama: ModelFacts) -> None:
    # 24 GiB hold the weights (15 GiB) but not half of it: raise the share, do not lower it
    low = forecast(llama, {"gpu_memory_utilization": 0.5}, host(gpu(0, 24 * GIB)))
    assert [each.code for each in low.findings] == ["forecast-no-kv-room"]
    nearest = low.findings[0].params["nearest"]
    assert isinstance(nearest, float)
    assert forecast(llama, {"gpu_memory_utilization": nearest}, host(gpu(0, 24 * GIB))).findings == ()
    small = forecast(llama, {}, host(gpu(0, 12 * GIB)))
    assert [each.code for each in small.findings] == ["forecast-model-too-large"]


def test_a_context_longer_than_the_cache_is_told_with_one_that_fits(llama: ModelFacts) -> None:
    knobs = {"num_gpu_blocks_override": 64, "block_size": 32}  # 2,048 tokens
    found = forecast(llama, knobs, host(gpu(0)))
    assert [each.code for each in found.findings] == ["forecast-context-beyond-cache"]
    assert (found.kv_tokens, found.findings[0].params["nearest"]) == (2048, 2048)
    assert forecast(llama, {**knobs, "max_model_len": 2048}, host(gpu(0))).findings == ()


def test_without_numbers_of_the_gpu_the_rest_is_still_told(llama: ModelFacts) -> None:
    blind = Gpu(0, "NVIDIA MIG", None, None)
    found = forecast(llama, {}, host(blind))
    assert (found.budget_bytes, found.kv_bytes, found.kv_tokens) == (None, None, None)
    assert (found.weights_bytes, found.kv_bytes_per_token) == (16_060_522_496, 131_072)


def test_quantised_weights_count_as_they_lie_and_quantising_on_load_is_unknown(llama: ModelFacts) -> None:
    lying = replace(llama.weights, format="safetensors", bytes=5_700_000_000, by_type={"I32": 5_700_000_000})
    config = {**published.LLAMA_3_8B, "quantization_config": {"quant_method": "awq"}}
    found = forecast(facts_of("llama-awq", config, lying), {}, host(gpu(0)))
    assert found.weights_bytes == 5_700_000_000
    on_load = forecast(llama, {"quantization": "fp8"}, host(gpu(0)))
    assert on_load.weights_bytes is None
    assert [each.code for each in on_load.unknown] == ["forecast-quantised-on-load"]


def test_a_model_that_brings_an_fp8_cache_takes_half(llama: ModelFacts) -> None:
    scheme = {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}
    model = facts_of("m", {**published.LLAMA_3_8B, "quantization_config": scheme})
    assert bytes_per_token(model, {})[0] == 65_536
    assert bytes_per_token(model, {"kv_cache_dtype": "bfloat16"})[0] == 131_072


@pytest.mark.parametrize(
    ("text", "size"),
    [("2147483648", 2147483648), ("2G", 2147483648), ("2g", 2000000000), ("1.5K", 1536), ("much", None), ("", None)],
)
def test_sizes_are_read_as_vllm_reads_them(text: str, size: int | None) -> None:
    assert memory_size(text) == size


def test_nothing_is_said_of_the_memory_of_a_gpu_that_is_named_by_its_address(llama: ModelFacts) -> None:
    two = host(gpu(0), gpu(1, used=70 * GIB))
    by_number = forecast(llama, {"devices": "1"}, two)
    by_address = forecast(llama, {"devices": "GPU-3fa1"}, two)
    assert (by_number.devices, by_number.free_bytes) == ((1,), 10 * GIB)
    assert (by_address.devices, by_address.total_bytes, by_address.free_bytes) == ((), None, None)
