"""What a failure's remedies change, in numbers computed by hand from the launch's own values."""

from __future__ import annotations

import pytest

from lab.engine.definition import EngineDefinition, list_engines, load_definition
from lab.engine.diagnosis import diagnose
from lab.engine.remedies import Remedy, find_remedies, remedy_rules, stored_remedies, to_store
from lab.environment import ROOT
from lab.messages import messages, word, word_message
from lab.records.workload import Scalar

OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.71 GiB. GPU 0 has a total capacity of "
OUT_OF_MEMORY += "22.30 GiB of which 1.52 GiB is free."
FREE_MEMORY = (
    "ValueError: Free memory on device cuda:0 (31.4/47.4 GiB) on startup is less than desired GPU memory utilization "
    "(0.95, 45.0 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)
NO_ROOM = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`."
TOO_LONG = (
    "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in "
    "KV cache (86432)."
)
LOADING = "INFO [gpu_model_runner.py:1] Starting to load model m...\n"
LOADED = LOADING + "INFO [gpu_model_runner.py:2] Model loading took 14.9 GiB memory and 3.2 seconds\n"
CAPTURING = LOADED + "INFO Available KV cache memory: 3 GiB\nCapturing CUDA graphs (decode, FULL): 10%\n"
SERVING = CAPTURING + "INFO:     Started server process [1]\nINFO:     Application startup complete.\n"
ARTICLE = {"gpu_memory_utilization": 0.90, "max_model_len": 8192, "kv_cache_dtype": "auto"}


def remedies(vllm: EngineDefinition, log: str, knobs: dict[str, Scalar], **known: Scalar | None) -> tuple[Remedy, ...]:
    return find_remedies(diagnose(vllm, log, 1), knobs, known)


def sentences(found: tuple[Remedy, ...]) -> list[str]:
    return [word(remedy.code, remedy.params).split(":")[0] for remedy in found]


def test_the_ladder_of_the_articles_has_the_launchs_own_numbers(vllm: EngineDefinition) -> None:
    found = remedies(vllm, OUT_OF_MEMORY, ARTICLE)
    assert sentences(found) == [
        "gpu_memory_utilization 0.9 → 0.85",
        "Then max_model_len 8192 → 4096",
        "Then kv_cache_dtype auto → fp8",
    ]
    assert found[0].changes == {"gpu_memory_utilization": 0.85}
    assert found[1].changes == {"gpu_memory_utilization": 0.85, "max_model_len": 4096}
    assert found[2].changes == {"gpu_memory_utilization": 0.85, "max_model_len": 4096, "kv_cache_dtype": "fp8"}


def test_what_the_launch_did_not_set_is_taken_from_what_the_engine_took(vllm: EngineDefinition) -> None:
    found = remedies(vllm, OUT_OF_MEMORY, {}, gpu_memory_utilization=0.92, max_model_len=32768, kv_cache_dtype="auto")
    assert found[1].changes == {"gpu_memory_utilization": 0.87, "max_model_len": 16384}


def test_a_value_that_nobody_knows_makes_no_number(vllm: EngineDefinition) -> None:
    found = remedies(vllm, OUT_OF_MEMORY, {"gpu_memory_utilization": 0.9})
    assert [dict(remedy.changes) for remedy in found[:2]] == [{"gpu_memory_utilization": 0.85}, {}]
    assert "lower max_model_len" in word(found[1].code, found[1].params)


@pytest.mark.parametrize(
    ("log", "moment", "first"),
    [
        (LOADING, "load", {}),
        (LOADED, "profiling", {"max_num_batched_tokens": 4096}),
        (CAPTURING, "profiling", {"gpu_memory_utilization": 0.85}),
        (SERVING, "under-load", {"gpu_memory_utilization": 0.85}),
    ],
)
def test_the_moment_at_which_memory_ran_out_decides(
    vllm: EngineDefinition, log: str, moment: str, first: dict[str, Scalar]
) -> None:
    knobs: dict[str, Scalar] = {"gpu_memory_utilization": 0.9, "max_num_batched_tokens": 8192, "max_num_seqs": 64}
    found = diagnose(vllm, log + OUT_OF_MEMORY, 1)
    assert (found.failure_class, found.moment) == ("out-of-memory", moment)
    assert find_remedies(found, knobs)[0].changes == first


def test_weights_that_do_not_fit_are_not_cured_by_the_share_of_the_cache(vllm: EngineDefinition) -> None:
    for remedy in remedies(vllm, LOADING + OUT_OF_MEMORY, ARTICLE | {"tensor_parallel_size": 1}):
        assert "gpu_memory_utilization" not in remedy.changes


def test_opposite_cures_turn_the_knob_opposite_ways(vllm: EngineDefinition) -> None:
    knobs: dict[str, Scalar] = {"gpu_memory_utilization": 0.9}
    lower = remedies(vllm, FREE_MEMORY, {"gpu_memory_utilization": 0.95})
    assert lower[0].changes == {"gpu_memory_utilization": 0.66}  # 31.4 / 47.4 = 0.6624…
    assert all("→ 0.7" not in sentence for sentence in sentences(lower))
    assert remedies(vllm, NO_ROOM, knobs)[0].changes == {"gpu_memory_utilization": 0.95}


def test_a_limit_never_leads_the_wrong_way(vllm: EngineDefinition) -> None:
    (first, *_others) = remedies(vllm, FREE_MEMORY, {"gpu_memory_utilization": 0.3})
    assert first.changes == {}
    assert "at most 0.66" in word(first.code, first.params)


def test_a_context_too_long_is_cut_to_what_fits_or_the_cache_made_larger(vllm: EngineDefinition) -> None:
    found = remedies(vllm, TOO_LONG, ARTICLE | {"max_model_len": 131072})
    assert [dict(remedy.changes) for remedy in found] == [
        {"max_model_len": 86432},
        {"gpu_memory_utilization": 0.95},
        {"kv_cache_dtype": "fp8"},
    ]


def test_a_cache_of_a_set_size_is_not_cured_by_more_memory(vllm: EngineDefinition) -> None:
    found = remedies(vllm, TOO_LONG, ARTICLE | {"max_model_len": 131072, "num_gpu_blocks_override": 64})
    assert [dict(remedy.changes) for remedy in found] == [{"max_model_len": 86432}]


def test_a_remedy_that_is_in_place_already_is_not_given_again(vllm: EngineDefinition) -> None:
    found = remedies(vllm, TOO_LONG, {"max_model_len": 131072, "gpu_memory_utilization": 0.95, "kv_cache_dtype": "fp8"})
    assert [dict(remedy.changes) for remedy in found] == [{"max_model_len": 86432}]


@pytest.mark.parametrize(
    ("log", "knobs", "changes"),
    [
        (
            "ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (8192). This effectively limits …",
            {"max_num_batched_tokens": 2048, "enable_chunked_prefill": False},
            [{"max_num_batched_tokens": 8192}, {"enable_chunked_prefill": True}],
        ),
        (
            "max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (256).",
            {"max_num_batched_tokens": 64, "max_num_seqs": 256},
            [{"max_num_batched_tokens": 256}, {"max_num_seqs": 64}],
        ),
        (
            "Total number of attention heads (9) must be divisible by tensor parallel size (2).",
            {"tensor_parallel_size": 2},
            [{"tensor_parallel_size": 1}],
        ),
        ("ValueError: No common block size for 16", {"block_size": 16}, [{"block_size": 32}]),
        ("type fp8e4nv not supported in this architecture.", {"kv_cache_dtype": "fp8"}, [{"kv_cache_dtype": "auto"}]),
        ("api_server.py: error: unrecognized arguments: --swap-space 4", {"swap_space": 4}, [{"swap_space": None}]),
    ],
)
def test_a_refused_setting_is_put_right(
    vllm: EngineDefinition, log: str, knobs: dict[str, Scalar], changes: list[dict[str, Scalar]]
) -> None:
    assert [dict(remedy.changes) for remedy in remedies(vllm, log, knobs)] == changes


def test_more_gpus_are_advised_only_where_there_are_more(vllm: EngineDefinition) -> None:
    def changes(gpus: int) -> list[dict[str, Scalar | None]]:
        found = diagnose(vllm, LOADING + OUT_OF_MEMORY, 1, {"gpus": gpus})
        return [dict(remedy.changes) for remedy in find_remedies(found, {"tensor_parallel_size": 1}) if remedy.changes]

    assert changes(4) == [{"tensor_parallel_size": 2}]
    assert changes(1) == []


def test_remedies_survive_the_store_and_are_worded_with_their_own_values(vllm: EngineDefinition) -> None:
    found = remedies(vllm, OUT_OF_MEMORY, ARTICLE)
    message = {"code": "trial-out-of-memory", "line": "CUDA out of memory", "remedies": to_store(found)}
    assert stored_remedies(message) == found
    assert "0.9 → 0.85" in word_message(message)
    assert "8192 → 4096" in word_message(message)


def test_remedies_of_an_older_database_are_still_read() -> None:
    message = {"code": "trial-crash", "line": "x", "signal": "SIGKILL", "remedies": ["remedy-killed"]}
    (remedy,) = stored_remedies(message)
    assert "SIGKILL" in word(remedy.code, remedy.params)
    assert "SIGKILL" in word_message(message)


def test_every_remedy_of_every_engine_has_words() -> None:
    for kind in list_engines(ROOT / "configs"):
        definition = load_definition(kind, ROOT / "configs")
        codes = {code for failure in definition.failure for code in failure.remedies}
        assert codes <= set(messages())
    assert set(remedy_rules()) <= set(messages())
