from __future__ import annotations

import pytest

from lab.configs.knob_values import read_value
from lab.configs.knobs import engine_flags, find_knob, knob_table
from lab.findings import LabError

FORM_KNOBS = (
    "model", "long_prefill_token_threshold", "max_num_batched_tokens", "enable_chunked_prefill", "max_num_seqs",
    "max_model_len", "gpu_memory_utilization", "kv_cache_dtype", "block_size", "workload.kind",
    "workload.prompt_tokens",
    "workload.repeat", "workload.concurrency", "workload.output_tokens",
)  # fmt: skip


def code_of(call, *arguments):
    with pytest.raises(LabError) as caught:
        call(*arguments)
    return caught.value.findings[0]


def test_table_has_every_main_knob_with_meaning():
    table = knob_table()
    for name in FORM_KNOBS:
        assert table[name].label and table[name].help and table[name].path
    for knob in table.values():
        assert (knob.minimum is None) or knob.maximum is None or knob.minimum < knob.maximum
        assert knob.kind != "choice" or knob.choices


def test_engine_knobs_are_flags_of_the_pinned_engine():
    ours = {"devices", "use_cache"}
    engine = [k.name for k in knob_table().values() if k.phase in ("engine", "prefill", "decode", "kv_cache")]
    assert [name for name in engine if name not in engine_flags()] == sorted(ours)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("chunk_size", "long_prefill_token_threshold"),
        ("prefill.chunk_size", "long_prefill_token_threshold"),
        ("prefill.max_prefill_tokens", "max_num_batched_tokens"),
        ("max_prefill_tokens", "max_num_batched_tokens"),
        ("chunked_prefill", "enable_chunked_prefill"),
        ("decode.max_num_seqs", "max_num_seqs"),
        ("--max-num-seqs", "max_num_seqs"),
        ("kv_cache.cache_dtype", "kv_cache_dtype"),
        ("kv_cache.num_gpu_blocks", "num_gpu_blocks_override"),
        ("batching.max_num_batched_tokens", "max_num_batched_tokens"),
        ("kv_cache.enable", "use_cache"),
        ("engine.args.attention_backend", "attention_backend"),
        ("async-scheduling", "async_scheduling"),
    ],
)
def test_articles_keys_and_flags_lead_to_the_knob(given, name):
    assert find_knob(given).name == name


def test_max_prefill_tokens_means_what_its_article_means():
    assert find_knob("prefill.max_prefill_tokens", 1).name == "max_num_batched_tokens"
    assert find_knob("prefill.max_prefill_tokens", 3).name == "long_prefill_token_threshold"


def test_typo_is_refused_with_the_nearest_name():
    found = code_of(find_knob, "max_num_seq")
    assert (found.code, found.params["nearest"]) == ("unknown-knob", "max_num_seqs")


@pytest.mark.parametrize("name", ["swap_space", "prefill.batch_size", "num_scheduler_steps", "swap_space_gb"])
def test_removed_keys_name_the_nearest_thing(name):
    found = code_of(find_knob, name)
    assert found.code == "removed-knob" and found.params["nearest"]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("gpu_memory_utilization", "0.9", 0.9),
        ("gpu_memory_utilization", "1", 1.0),
        ("max_num_seqs", "32_768", 32768),
        ("enable_chunked_prefill", "off", False),
        ("kv_cache_dtype", "fp8", "fp8"),
    ],
)
def test_text_becomes_a_value_of_the_right_type(name, text, value):
    read = read_value(find_knob(name), text)
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "code", "nearest"),
    [
        ("gpu_memory_utilization", "0", "out-of-range", 0.01),
        ("gpu_memory_utilization", "1.2", "out-of-range", 1.0),
        ("gpu_memory_utilization", "90", "out-of-range", 0.9),
        ("gpu_memory_utilization", "-0.1", "out-of-range", 0.01),
        ("gpu_memory_utilization", "nan", "wrong-type", None),
        ("max_num_seqs", "0", "out-of-range", 1),
        ("max_num_seqs", "1e3", "wrong-type", None),
        ("max_num_seqs", "many", "wrong-type", None),
        ("kv_cache_dtype", "fp9", "not-a-choice", "fp8"),
        ("stream", "maybe", "wrong-type", None),
    ],
)
def test_wrong_values_are_refused(name, text, code, nearest):
    found = code_of(read_value, find_knob(name), text)
    assert found.code == code
    assert found.params.get("nearest") == nearest
