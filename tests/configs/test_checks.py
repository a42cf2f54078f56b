from __future__ import annotations

from dataclasses import replace

import pytest

from lab.configs.checks import check_launch, check_pair
from lab.configs.secrets import blanked, is_literal_secret, masked
from lab.findings import LabError
from lab.messages import messages, word_finding


def codes(findings, severity="error"):
    return [finding.code for finding in findings if finding.severity == severity]


def with_settings(pair, *changes):
    text = pair.settings_text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return replace(pair, settings_text=text)


def with_config(pair, *changes):
    text = pair.config_text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return replace(pair, config_text=text)


def test_live_pair_has_no_finding(live):
    assert check_pair(live) == ()


def test_article_1_as_printed_has_only_remarks(article_1):
    found = check_pair(article_1)
    assert [(f.code, f.severity, f.line) for f in found] == [("removed-key", "warning", 8)]
    assert found[0].params["nearest"]


def test_article_3_as_printed_names_address_and_swap_space(article_3):
    found = check_pair(article_3)
    assert codes(found) == ["host-not-loopback"]
    assert "removed-key" in codes(found, "warning")
    assert "vllm-only-field" in codes(found, "advice")


def test_all_findings_come_at_once_each_with_its_place(article_1):
    pair = with_settings(article_1, ("0.90", '"0.90"'), ('"max_num_seqs"', '"max_num_seq"'), ("8192", "0"))
    pair = with_config(pair, ("timeout_seconds = 120", "timeout_seconds = -1"))
    found = [f for f in check_pair(pair) if f.severity == "error"]
    assert [(f.code, f.file, f.line, f.column) for f in found] == [
        ("out-of-range", "config.toml", 4, 1),
        ("unknown-key", "settings.json", 10, 5),
        ("out-of-range", "settings.json", 11, 5),
        ("wrong-type", "settings.json", 12, 5),
    ]
    assert found[1].params["nearest"] == "decode.max_num_seqs"
    assert 'is "0.90"' in word_finding(found[3])


@pytest.mark.parametrize(
    ("knobs", "expected"),
    [
        (
            {"enable_chunked_prefill": False, "max_num_batched_tokens": 2048, "max_model_len": 8192},
            ["chunked-prefill-off-needs-tokens"],
        ),
        ({"max_num_batched_tokens": 64, "max_num_seqs": 256}, ["fewer-tokens-than-sequences"]),
        ({"enable_chunked_prefill": True, "max_num_batched_tokens": 2048, "max_model_len": 8192}, []),
        ({"max_num_seqs": 1}, []),
        ({"gpu_memory_utilization": 0.0}, ["out-of-range"]),
        ({"gpu_memory_utilization": 1.0}, []),
        ({"gpu_memory_utilization": 1.2}, ["out-of-range"]),
        ({"gpu_memory_utilization": 90.0}, ["out-of-range"]),
        ({"gpu_memory_utilization": -0.1}, ["out-of-range"]),
        ({"max_num_seqs": 0}, ["out-of-range"]),
        ({"host": "10.0.0.1"}, ["host-not-loopback"]),
        ({"host": "127.0.0.1"}, []),
        ({"model": "your-model-name"}, ["placeholder-model"]),
    ],
)
def test_rules_between_knobs(live, knobs, expected):
    found = check_pair(live.with_knobs(knobs))
    assert codes(found) == expected
    assert codes(check_launch(live.with_knobs(knobs))) == expected
    assert all(f.line for f in found)


def test_refusals_carry_the_nearest_legal_value(live):
    found = check_pair(live.with_knobs({"enable_chunked_prefill": False}))
    said = word_finding(next(f for f in found if f.severity == "error"))
    assert "max_num_batched_tokens to 8192" in said


def test_one_sequence_is_named_for_what_it_is(live):
    found = check_pair(live.with_knobs({"max_num_seqs": 1}))
    assert "no batching (1 sequence at a time)" in " ".join(map(word_finding, found))


@pytest.mark.parametrize(
    ("chunk", "expected"), [(4096, ["chunk-without-effect"]), (8000, ["chunk-without-effect"]), (4095, []), (0, [])]
)
def test_chunk_size_at_or_above_the_step_is_a_warning(live, chunk, expected):
    assert codes(check_pair(live.with_knobs({"long_prefill_token_threshold": chunk})), "warning") == expected


@pytest.mark.parametrize(
    "value", ["sk-made-up-0001", "sk-你的Key", "plain", "Bearer sk-made-up-0001", "x${TAOTOKEN_API_KEY}"]
)
def test_key_written_out_is_an_error_and_never_repeated(article_1, value):
    found = check_pair(with_config(article_1, ("${TAOTOKEN_API_KEY}", value)))
    secrets = [f for f in found if f.code == "secret-in-file"]
    assert [(f.severity, f.line) for f in secrets] == [("error", 3)]
    assert value not in str(found) and value not in " ".join(map(word_finding, found))


@pytest.mark.parametrize("value", ["${TAOTOKEN_API_KEY}", "{env:TAOTOKEN_API_KEY}", "Bearer ${OTHER}", ""])
def test_placeholders_are_no_secrets(article_1, value):
    assert codes(check_pair(with_config(article_1, ("${TAOTOKEN_API_KEY}", value)))) == []


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ('api_key = "abc"', True),
        ("api_key = a1b2c3d4e5f6g7h8", True),
        ('"api_key": "abc"', True),
        ('api_key = "${K}"', False),
        ("api_key = ${SOME_VARIABLE_1}", False),
        ("api_key: see the wiki page2", False),
        ('api_key_env = "TAOTOKEN_API_KEY_2"', False),
    ],
)
def test_what_is_masked_where_a_text_is_shown(text, hidden):
    assert (masked(text) != text) == hidden


def test_key_in_the_name_of_its_variable_is_found(article_1):
    found = check_pair(with_settings(article_1, ("TAOTOKEN_API_KEY", "sk-made-up-0001")))
    assert codes(found) == ["secret-in-file"] and "made-up" not in str(found)


def test_key_in_a_comment_is_found(live):
    found = check_pair(replace(live, config_text=live.config_text + "# old: sk-" + "made-up-" * 3 + "\n"))
    assert [(f.code, f.line) for f in found if f.severity == "error"] == [
        ("secret-in-text", live.config_text.count("\n") + 1)
    ]


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ('# api_key = "a1b2c3d4e5f6g7"', True),
        ("# password: a1b2c3d4e5f6g7", True),
        ('# api_key = "${TAOTOKEN_API_KEY_2}"', False),
        ("# api_key = see the wiki, page 12", False),
        ('# api_key_env = "TAOTOKEN_API_KEY_2"', False),
    ],
)
def test_a_key_that_a_comment_sets_is_found(live, comment, found):
    errors = [
        f for f in check_pair(replace(live, config_text=live.config_text + comment + "\n")) if f.severity == "error"
    ]
    assert [f.code for f in errors] == (["secret-in-text"] if found else [])
    assert "a1b2c3" not in repr(errors)


def test_address_that_is_none_is_a_remark(live):
    found = check_pair(with_config(live, ("https://taotoken.net/api", "ftp://taotoken.net")))
    assert ("bad-base-url", "warning", 5) in [(f.code, f.severity, f.line) for f in found]
    assert codes(found) == []


def test_model_names_are_no_secrets(live):
    assert codes(check_pair(live.with_knobs({"model": "hf-internal-testing/tiny-random-gpt2"}))) == []


def test_streaming_off_and_kv_cache_off_are_told(live):
    found = check_pair(with_config(live, ("stream = true", "stream = false")))
    assert "stream-off" in codes(found, "warning")
    assert "use-cache-off" in codes(check_pair(live.with_knobs({"use_cache": False})), "warning")


def test_flags_under_engine_args(live):
    fine = live.with_knobs({"attention_backend": "FLASH_ATTN", "async_scheduling": True})
    assert check_pair(fine) == ()
    text = fine.settings_text.replace('"attention_backend"', '"atention_backend"')
    assert codes(check_pair(replace(fine, settings_text=text))) == ["unknown-knob"]
    text = fine.settings_text.replace('"attention_backend"', '"swap_space"')
    assert codes(check_pair(replace(fine, settings_text=text))) == ["removed-flag"]
    text = fine.settings_text.replace('"attention_backend"', '"flag_of_next_year"')
    assert codes(check_pair(replace(fine, settings_text=text)), "warning") == ["flag-not-in-catalogue"]
    text = fine.settings_text.replace('"async_scheduling": true', '"async_scheduling": "true"')
    assert codes(check_pair(replace(fine, settings_text=text))) == ["wrong-type"]


def test_foreign_keys_stay_with_a_remark(live):
    found = check_pair(with_settings(live, ('  "prefill"', '  "cline.apiProvider": "openai",\n  "prefill"')))
    assert codes(found) == [] and codes(found, "warning") == ["foreign-key"]


@pytest.mark.parametrize("value", ["3", '"x"', "[]", '[{"max_num_seqs": 32}]'])
def test_a_known_table_that_is_none_is_an_error(live, value):
    pair = replace(live, settings_text='{"model": "m", "decode": ' + value + "}")
    assert [(each.code, each.line) for each in check_pair(pair) if each.severity == "error"] == [("not-a-table", 1)]


def test_tables_of_config_toml_in_double_brackets_or_as_values_are_errors(live):
    pair = replace(live, config_text='request = "x"\nworkload = []\n[[server]]\nbase_url = "https://a.example/v1"\n')
    assert codes(check_pair(pair)) == ["not-a-table"] * 3


def test_a_table_where_a_value_belongs_is_an_error(live):
    pair = replace(live, settings_text='{"model": "m", "decode": {"max_num_seqs": {"x": 1}}}')
    assert codes(check_pair(pair)) == ["not-a-value"]


ADDRESS_KEYS = [
    "https://user:" + "hunter22@gw.example/v1",
    "https://gw.example/v1?api_key=" + "abcdef1234567890",
    "https://gw.example/v1?a=1&token=" + "hunter22",
]


@pytest.mark.parametrize("address", ADDRESS_KEYS)
def test_a_key_in_an_address_is_refused_and_never_shown(live, address):
    with pytest.raises(LabError) as caught:
        live.with_knobs({"base_url": address})
    assert [each.code for each in caught.value.findings] == ["secret-in-file"]
    for text in (f'base_url = "{address}"', f"# was {address} once"):
        pair = replace(live, config_text=f"[server]\n{text}\n")
        assert {"secret-in-file", "secret-in-text"} & set(codes(check_pair(pair)))
        assert not any(secret in masked(text) + blanked(text) for secret in ("hunter22", "abcdef1234567890"))


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:8000/v1", "https://gw.example:8443", "https://${WHO}:${PASS}@gw.example/v1?key=${K}"],
)
def test_ports_and_placeholders_in_an_address_are_no_keys(live, address):
    assert not is_literal_secret("base_url", address) and masked(f'x = "{address}"') == f'x = "{address}"'


def test_a_key_inside_a_list_of_tables_is_found(live):
    pair = replace(live, config_text='[[server]]\napi_key = "hunter22"\n')
    assert "secret-in-file" in codes(check_pair(pair))


def test_a_knob_in_the_wrong_file_is_told_with_its_place(live):
    for head in ("", "[metrics]\n"):
        found = [
            each
            for each in check_pair(replace(live, config_text=head + "max_num_seqs = 64\n"))
            if each.code == "key-elsewhere"
        ]
        assert [each.params["place"] for each in found] == ["settings.json decode.max_num_seqs"]


def test_unparsable_files_are_findings_of_both(live):
    found = check_pair(replace(live, settings_text="{", config_text="a = “x”"))
    assert [(f.file, f.line) for f in found if f.severity == "error"] == [
        (live.config_file, 1),
        (live.settings_file, 1),
    ]


def test_file_of_one_comment_is_told(live):
    glued = "# engine[engine]gpu_memory_utilization = 0.9max_num_seqs = 64"
    assert "no-settings" in codes(check_pair(replace(live, config_text=glued)), "warning")


@pytest.mark.parametrize(
    ("prompt", "output", "expected"),
    [(1024, 1024, []), (4096, 4064, []), (4096, 4065, ["request-may-be-too-long"]), (4096, 4097, ["request-too-long"])],
)
def test_length_of_the_workload_against_the_context(live, prompt, output, expected):
    pair = live.with_workload({"kind": "ladder", "prompt_tokens": [prompt], "output_tokens": output})
    assert codes(check_pair(pair), "warning") == expected


def test_every_code_has_words():
    import re

    from lab.environment import ROOT

    used = set()
    for path in [*(ROOT / "lab/configs").glob("*.py"), *(ROOT / "lab/export").glob("*.py")]:
        used |= set(re.findall(r'(?:Finding|error|_say)\(\s*(?:\([^)]*\), )?"([a-z0-9-]+)"', path.read_text()))
    assert used and used <= set(messages())


@pytest.mark.parametrize(
    ("rate", "codes"), [("1", []), ("10", []), ("0.5", ["out-of-range"]), ("20", ["out-of-range"])]
)
def test_telemetry_is_read_one_to_ten_times_a_second(live, rate, codes):
    text = live.config_text.replace("sample_hz = 1\n", f"sample_hz = {rate}\n")
    assert [f.code for f in check_pair(replace(live, config_text=text)) if f.severity == "error"] == codes
