"""Pasted text: whatever a blog took out of it, the two files come back with the same keys, values and types."""

from __future__ import annotations

import itertools
import json
import re
import tomllib

import pytest

from lab.configs.checks import check_pair
from lab.configs.pair import ConfigPair
from lab.configs.paste import LONGEST, merged, read_paste, replaced, why_not_set
from lab.environment import ROOT
from lab.findings import LabError
from lab.messages import messages

ENGINE_1 = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "api_base": "https://gateway.example.com/api/v1",
    "api_key_env": "MY_GATEWAY_KEY",
    "max_tokens": 300,
    "temperature": 0.35,
    "stream": True,
    "prefill": {"batch_size": 4, "max_prefill_tokens": 16384, "chunked_prefill": False, "chunk_size": 1024},
    "decode": {
        "max_num_seqs": 48,
        "max_model_len": 16384,
        "gpu_memory_utilization": 0.87,
        "kv_cache_dtype": "fp8_e4m3",
        "block_size": 32,
    },
    "observability": {"log_ttft": True, "log_itl": False, "log_kv_cache_usage": True},
}
CLIENT_1 = """[server]
base_url = "https://gateway.example.com/api/v1"
api_key = "${MY_GATEWAY_KEY}"
timeout_seconds = 90

[request]
model = "qwen2.5-7b-instruct"
stream = true
max_tokens = 300

[metrics]
# 首 token
track_ttft = true
track_itl = false
# 窗口
sample_window = 15

[workload]
# 长度分布
prompt_tokens = [64, 256, 1024]
# 次数
repeat = 7
"""
ENGINE_3 = """[server]
host = "127.0.0.1"
port = 8100
api_base = "https://gateway.example.com/api/v1"
api_key_env = "MY_GATEWAY_KEY"

[model]
name = "meta-llama/Llama-3.1-8B-Instruct"
dtype = "float16"
max_model_len = 4096
gpu_memory_utilization = 0.80

[kv_cache]
enable = true
block_size = 32
num_gpu_blocks = 1024
swap_space_gb = 4
cache_dtype = "fp8"

[batching]
enable_continuous_batching = true
max_num_seqs = 24
max_num_batched_tokens = 2048

[prefill]
chunked_prefill = true
max_prefill_tokens = 512

[decode]
temperature = 0.2
top_p = 0.95
top_k = 40
repetition_penalty = 1.1
max_tokens = 200
"""
CLIENT_3 = {
    "base_url": "https://gateway.example.com/api/v1",
    "api_key_env": "MY_GATEWAY_KEY",
    "model": "qwen2.5-7b-instruct",
    "default_params": {"temperature": 0.2, "top_p": 0.95, "top_k": 40, "max_tokens": 200, "stream": True},
    "timeout": {"connect": 5, "read": 60},
    "retry": {"max_attempts": 2, "backoff_seconds": 1},
}
TEXTS = {
    "engine-1": (json.dumps(ENGINE_1, indent=2), "settings", ENGINE_1),
    "client-1": (CLIENT_1, "config", tomllib.loads(CLIENT_1)),
    "engine-3": (ENGINE_3, "config", tomllib.loads(ENGINE_3)),
    "client-3": (json.dumps(CLIENT_3, indent=2), "settings", CLIENT_3),
}
LOSSES = {
    "quotes": lambda text: text.replace('"', ""),
    "equals": lambda text: text.replace(" = ", " "),
    "colons": lambda text: re.sub(r":(?!//)", "", text),
    "brackets": lambda text: re.sub(r"(?<!\$)[\[{](?!MY)|\](?!\w)|(?<!KEY)\}", "", text),
    "commas": lambda text: text.replace(",", " ").replace("  ", " "),
    "lines": lambda text: re.sub(r"\s*\n\s*", " ", text),
}
ALL_LOSSES = [
    names for size in range(len(LOSSES) + 1) for names in itertools.combinations(LOSSES, size)
]  # fmt: skip
BEFORE = "4.1 推理服务参数下面这套骨架分两部分你可以直接复制后按注释改 kv_cache_dtype设为auto时框架会自动选。"
AFTER = "几个关键参数解释。chunked_prefill打开后长 prompt 会被切成chunk_size大小的块，max_num_seqs 越大越好。"


def parsed(result, file):
    text = result.settings_text if file == "settings" else result.config_text
    assert text is not None
    return json.loads(text) if file == "settings" else tomllib.loads(text)


def same(found, expected):
    """Equal in values and in types, all the way down."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and found.keys() == expected.keys() and all(
            same(found[key], expected[key]) for key in expected
        )  # fmt: skip
    return type(found) is type(expected) and found == expected


@pytest.mark.parametrize("losses", ALL_LOSSES, ids="+".join)
@pytest.mark.parametrize("name", TEXTS)
def test_a_file_comes_back_whatever_was_lost(name, losses):
    text, file, expected = TEXTS[name]
    for loss in losses:
        text = LOSSES[loss](text)
    result = read_paste(f"{BEFORE}{text}{AFTER}")
    assert same(parsed(result, file), expected)
    assert result.dialect == int(name[-1])
    assert (result.config_text if file == "settings" else result.settings_text) is None
    for value in result.values:
        assert value.path[-1] in f"{BEFORE}{text}{AFTER}"[value.start : value.end]


@pytest.mark.parametrize("losses", [each for each in ALL_LOSSES if "lines" not in each], ids="+".join)
@pytest.mark.parametrize("name", TEXTS)
def test_lines_may_be_glued_without_a_blank(name, losses):
    text, file, expected = TEXTS[name]
    for loss in losses:
        text = LOSSES[loss](text)
    text = re.sub(r"[ \t]*\n\s*", "", text)
    assert same(parsed(read_paste(f"{BEFORE}{text}{AFTER}"), file), expected)


@pytest.mark.parametrize("dialect", [1, 3])
def test_both_files_of_an_article_in_one_text(dialect):
    engine, client = (TEXTS[f"{side}-{dialect}"] for side in ("engine", "client"))
    text = f"{BEFORE}{engine[0]}{AFTER}下面是客户端 {client[0]}{AFTER}"
    for loss in ("quotes", "equals", "lines"):
        text = LOSSES[loss](text)
    result = read_paste(text)
    assert same(parsed(result, engine[1]), engine[2])
    assert same(parsed(result, client[1]), client[2])
    assert result.unplaced == ()


def test_a_well_formed_file_is_all_understood():
    for text, file, expected in TEXTS.values():
        result = read_paste(text)
        assert same(parsed(result, file), expected) and result.guessed == ()


def test_numbers_keep_their_spelling():
    result = read_paste('{ "decode": { "gpu_memory_utilization": 0.90, "max_num_seqs": 32, "max_model_len": 8192 } }')
    assert '"gpu_memory_utilization": 0.90' in (result.settings_text or "")
    toml = read_paste("[batching] max_num_seqs 64 max_num_batched_tokens 32_768 [kv_cache] block_size 16")
    assert "max_num_batched_tokens = 32_768" in (toml.config_text or "")


@pytest.mark.parametrize(
    ("text", "path", "value", "reason"),
    [
        ("[decode] temperature 0.7 top_p .9 max_tokens 5", ("decode", "top_p"), 0.9, "paste-value-respelled"),
        ("[prefill] chunked_prefill True", ("prefill", "chunked_prefill"), True, "paste-value-respelled"),
        ('[batching] max_num_seqs = "64"', ("batching", "max_num_seqs"), 64, "paste-was-text"),
        ("[server] base_url https//x.example/api api_key ${K}", ("server", "base_url"), "https://x.example/api",
         "paste-address-rebuilt"),
        ("[server] api_key $MY_KEY timeout_seconds 9", ("server", "api_key"), "${MY_KEY}", "paste-placeholder-rebuilt"),
        ("[batching] max_num_seqs64", ("batching", "max_num_seqs"), 64, "paste-glued"),
        ("workload prompt_tokens 128 512 repeat 5", ("workload", "prompt_tokens"), [128, 512], "paste-list-rebuilt"),
    ],
)  # fmt: skip
def test_what_was_guessed_says_why(text, path, value, reason):
    found = next(each for each in read_paste(text).values if each.path == path)
    assert same(found.value, value) and reason in found.reasons and found.guessed


def test_every_reason_has_words():
    from pathlib import Path

    used = set()
    for path in (ROOT / "lab" / "configs").glob("paste*.py"):
        used |= set(re.findall(r'"(paste-[a-z-]+)"', Path(path).read_text("utf-8")))
    assert used and used <= set(messages())


def test_a_snippet_without_its_table_is_placed_in_the_form_of_the_files(article_1, article_3):
    text = "gpu_memory_utilization 0.85\nkv_cache_dtype fp8"
    first = read_paste(text, article_1)
    assert json.loads(first.settings_text or "") == {
        "decode": {"gpu_memory_utilization": 0.85, "kv_cache_dtype": "fp8"}
    }
    third = read_paste("gpu_memory_utilization 0.85\ncache_dtype fp8", article_3)
    assert tomllib.loads(third.config_text or "") == {
        "model": {"gpu_memory_utilization": 0.85},
        "kv_cache": {"cache_dtype": "fp8"},
    }


def test_sentences_that_name_keys_are_not_settings():
    result = read_paste(AFTER + "把max_num_seqs从 32 降到 16，gpu_memory_utilization 拉到 0.95 结果 OOM。")
    assert [(value.path[-1], value.value) for value in result.values] == []


def test_values_go_into_the_files_as_they_are_or_the_files_are_replaced(article_1):
    result = read_paste("[batching] max_num_seqs 8 max_num_batched_tokens 2048 [decode] temperature 0.1 top_k 7")
    new = merged(article_1, result)
    assert new.settings_text == article_1.settings_text.replace('"max_num_seqs": 32', '"max_num_seqs": 8').replace(
        '"max_prefill_tokens": 4096', '"max_prefill_tokens": 2048'
    ).replace('"temperature": 0.7', '"temperature": 0.1')
    assert new.config_text == article_1.config_text.replace("max_tokens = 512\n", "max_tokens = 512\ntop_k = 7\n")
    whole = replaced(article_1, result)
    assert whole.settings_text == article_1.settings_text
    assert tomllib.loads(whole.config_text) == {
        "batching": {"max_num_seqs": 8, "max_num_batched_tokens": 2048},
        "decode": {"temperature": 0.1, "top_k": 7},
    }


def test_the_example_name_of_a_model_does_not_replace_one_s_own(article_1):
    result = read_paste("{ model: your-model-name, decode: { max_num_seqs: 48, max_model_len: 4096 } }", article_1)
    new = merged(article_1, result)
    assert (new.knobs()["model"], new.knobs()["max_num_seqs"]) == ("some-model", 48)
    assert [why_not_set(article_1, value) for value in result.values] == ["paste-example-name", None, None]
    nameless = article_1.with_knobs({"model": None})
    assert merged(nameless, result).knobs()["model"] == "your-model-name"


@pytest.mark.parametrize("number", ["1e999", "9" * 5000])
def test_a_number_beyond_all_numbers_is_left_over(article_1, number):
    result = read_paste(f"[batching] max_num_seqs {number} max_num_batched_tokens 2048 [decode] temperature 0.3")
    assert "max_num_seqs" not in merged(article_1, result).with_knobs({"max_num_seqs": None}).knobs()
    assert all(value.path[-1] != "max_num_seqs" for value in result.values)


def test_a_workload_is_taken_over(article_1):
    result = read_paste("[workload] kind closed concurrency [1, 4] requests 8 output_tokens 16")
    assert merged(article_1, result).workload().concurrency == (1, 4)


KEY = "sk-" + "made-up-" * 3 + "1"


@pytest.mark.parametrize(
    "text",
    [
        f'[server]\nbase_url = "https://x.example/api"\napi_key = "{KEY}"\ntimeout_seconds = 9\n',
        f"[server] base_url https://x.example/api api_key {KEY} timeout_seconds 9",
        f"{{ model: m-1, api_base: https://x.example/api, api_key_env: {KEY}, max_tokens: 5, stream: true }}",
        f"# old {KEY}\n[server]\nbase_url = 'https://x.example'\napi_key = '${{K}}'\n[request] max_tokens = 4",
        f"export MY_API_KEY={KEY} [batching] max_num_seqs 4 max_num_batched_tokens 64",
        f"[batching] max_num_seqs 4 my_secret = {KEY} max_num_batched_tokens 64",
        f"curl https://x.example/v1/models -H 'Authorization: Bearer {KEY}' [batching] max_num_seqs 4",
    ],
)
def test_a_key_is_never_kept(text):
    result = read_paste(text)
    assert "made-up" not in repr(result)
    assert len(result.safe_text) == len(text)
    assert result.values


def test_a_refused_key_is_told_with_the_way_to_do_it_right():
    result = read_paste(f"第一行\n[server] base_url https://x.example/api api_key {KEY} timeout_seconds 9")
    assert tomllib.loads(result.config_text or "")["server"]["api_key"] == "${TAOTOKEN_API_KEY}"
    assert [(note.code, note.line) for note in result.notes] == [("paste-key-refused", 2)]


@pytest.mark.parametrize(
    ("text", "client", "keys"),
    [
        (
            '{ "env": { "ANTHROPIC_BASE_URL": "https://x.example/api", "ANTHROPIC_API_KEY": "sk-你的Key" } }',
            "claude_code",
            ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        ),
        (
            "{ cline.apiProvider: openai, cline.openAiBaseUrl: https://x.example/api, cline.openAiModelId: m-1 }",
            "cline",
            ("cline.apiProvider", "cline.openAiBaseUrl", "cline.openAiModelId"),
        ),
        (
            "{ openai: { base_url: https://x.example/api, api_key: sk-你的Key, model: m-1 } }",
            "codex",
            ("base_url", "api_key", "model"),
        ),
        (
            "export A_API_KEYsk-你的Key export A_BASE_URLhttps://x.example/api",
            "environment",
            ("A_API_KEY", "A_BASE_URL"),
        ),
        ("client OpenAI( base_urlhttps://x.example/api, api_keyos.environ[A_API_KEY], )", "python", ("A_API_KEY",)),
        (
            "vllm serve some/model --max-num-seqs 64 --gpu-memory-utilization 0.9",
            "vllm",
            ("--max-num-seqs", "--gpu-memory-utilization"),
        ),
        (
            "curl https://x.example/v1 -d { model: m-1, messages: [{role: user, content: hi}], max_tokens: 16 }",
            "curl",
            ("model",),
        ),
    ],
)
def test_blocks_for_other_clients_are_named_and_not_taken(text, client, keys):
    result = read_paste(f"前文。{text} 后文")
    assert [(other.client, other.keys) for other in result.others] == [(client, keys)]
    assert result.values == ()
    assert result.safe_text[result.others[0].end :].endswith("后文")


def test_a_request_body_in_code_is_no_configuration():
    text = (
        "stream client.chat( model: your-model, messages: [{role: user}], stream: true, max_tokens: 256, top_p: 0.9 )"
    )
    assert read_paste(text).values == ()


def test_blocks_of_two_forms_are_told(article_1):
    engine_1, engine_3 = TEXTS["engine-1"][0], "[batching] max_num_seqs 64 max_num_batched_tokens 128"
    result = read_paste(f"{engine_1} 另一种 {engine_3}")
    assert result.dialect == 1
    assert [(note.code, note.params["article"]) for note in result.notes] == [("paste-other-form", 3)]


def test_unknown_keys_in_a_block_are_left_over():
    result = read_paste("{ decode: { max_num_seqs: 8, speculative: ngram, block_size: 16, max_model_len: 512 } }")
    assert [(left.text, left.reason) for left in result.unplaced] == [("speculative: ngram", "paste-unknown-key")]
    assert json.loads(result.settings_text or "") == {
        "decode": {"max_num_seqs": 8, "block_size": 16, "max_model_len": 512}
    }


@pytest.mark.parametrize("text", ["", " \n", "{}", "[", "}{", "no settings here", "# [server]", "model", "x" * 5000])
def test_texts_without_settings_give_nothing(text):
    result = read_paste(text)
    assert (result.values, result.settings_text, result.config_text) == ((), None, None)


def test_a_text_that_is_too_long_is_refused():
    with pytest.raises(LabError) as caught:
        read_paste("x" * (LONGEST + 1))
    assert caught.value.findings[0].code == "paste-too-long"


ARTICLES = ROOT.parent / "shared" / "articles"


def article(number):
    found = sorted(ARTICLES.glob(f"{number}-*.txt")) if ARTICLES.is_dir() else []
    if not found:
        pytest.skip("the articles are not here")
    return read_paste(found[0].read_text("utf-8"))


def test_article_1_comes_out_right(article_1):
    result = article(1)
    assert json.loads(result.settings_text or "") == {**json.loads(article_1.settings_text), "model": "your-model-name"}
    expected = tomllib.loads(article_1.config_text)
    expected["request"]["model"] = "your-model-name"
    assert tomllib.loads(result.config_text or "") == expected
    assert {other.client for other in result.others} == {"environment", "python", "curl"}
    assert result.unplaced == ()


def test_article_2_has_blocks_for_other_clients_only():
    result = article(2)
    assert result.values == ()
    assert {"cline", "claude_code", "codex", "environment"} < {other.client for other in result.others}


def test_article_3_comes_out_right(article_3):
    result = article(3)
    expected = tomllib.loads(article_3.config_text)
    expected["model"]["name"] = "your-model-name"
    assert tomllib.loads(result.config_text or "") == expected
    settings = {**json.loads(article_3.settings_text), "model": "your-model-name"}
    assert json.loads(result.settings_text or "") == settings
    assert result.unplaced == () and result.guessed == ()


def test_the_rebuilt_pair_has_no_error_but_the_article_s_own(article_1):
    result = read_paste(f"{TEXTS['engine-1'][0]} {CLIENT_1}")
    pair = replaced(article_1, result)
    assert isinstance(pair, ConfigPair)
    assert {finding.code for finding in check_pair(pair) if finding.severity == "error"} == set()


@pytest.mark.parametrize("key", ["AKIA" + "IOSFODNN7EXAMPLE", "0123456789ABCDEF" * 2])
def test_a_key_of_capitals_and_figures_is_no_name_of_a_variable(key):
    result = read_paste(f'[server]\nbase_url = "https://x.example/api"\napi_key = "{key}"\ntimeout_seconds = 9\n')
    assert [value.value for value in result.values if value.path == ("server", "api_key")] == ["${TAOTOKEN_API_KEY}"]
    assert [note.code for note in result.notes] == ["paste-key-refused"]
    assert key not in repr(result)
