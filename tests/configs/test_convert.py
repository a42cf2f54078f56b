"""A pair in one article's form becomes the other's, and comes back with the same meaning."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import pytest

from lab.configs.checks import check_pair
from lab.configs.convert import convert
from lab.configs.pair import ConfigPair
from lab.findings import LabError
from lab.messages import word_finding


def lost(conversion):
    return [(finding.code, finding.params["key"]) for finding in conversion.lost]


def test_article_1_becomes_article_3(article_1):
    conversion = convert(article_1, 3)
    assert conversion.pair.dialect == 3 and not conversion.pair.mixed
    assert tomllib.loads(conversion.pair.config_text) == {
        "server": {"api_base": "https://taotoken.net/api"},
        "model": {"name": "some-model", "max_model_len": 8192, "gpu_memory_utilization": 0.9},
        "kv_cache": {"cache_dtype": "auto", "block_size": 16},
        "batching": {"max_num_batched_tokens": 4096, "max_num_seqs": 32},
        "prefill": {"chunked_prefill": True, "max_prefill_tokens": 512},
        "decode": {"max_tokens": 512, "temperature": 0.7, "stream": True},
        "metrics": {"track_ttft": True, "track_itl": True, "sample_window": 30},
        "workload": {"prompt_tokens": [128, 512, 2048, 4096], "repeat": 5},
    }
    assert json.loads(conversion.pair.settings_text) == {
        "api_key_env": "TAOTOKEN_API_KEY",
        "base_url": "https://taotoken.net/api",
        "model": "gateway-model",
        "default_params": {"stream": True, "max_tokens": 512},
        "timeout": {"read": 120},
        "observability": {"log_ttft": True, "log_itl": True, "log_kv_cache_usage": True},
    }
    assert lost(conversion) == [("no-counterpart-removed", "prefill.batch_size")]
    assert "key-variable-named" in [note.code for note in conversion.notes]


def test_article_3_becomes_article_1(article_3):
    conversion = convert(article_3, 1)
    assert conversion.pair.dialect == 1 and not conversion.pair.mixed
    settings = json.loads(conversion.pair.settings_text)
    assert settings["decode"] == {
        "max_model_len": 8192,
        "gpu_memory_utilization": 0.9,
        "block_size": 16,
        "kv_cache_dtype": "auto",
        "max_num_seqs": 64,
    }
    assert settings["prefill"] == {"max_prefill_tokens": 4096, "chunked_prefill": True, "chunk_size": 2048}
    assert settings["engine"]["args"] == {
        "host": "0.0.0.0", "port": 8000, "dtype": "bfloat16", "num_gpu_blocks_override": 2048,  # noqa: S104
    }  # fmt: skip
    assert tomllib.loads(conversion.pair.config_text)["request"]["model"] == "gateway-model"
    assert lost(conversion) == [
        ("no-counterpart", "timeout.connect"),
        ("no-counterpart", "retry.max_attempts"),
        ("no-counterpart", "retry.backoff_seconds"),
        ("no-counterpart-removed", "kv_cache.swap_space_gb"),
    ]
    assert (conversion.lost[0].file, conversion.lost[0].line) == ("settings.json", 6)


@pytest.mark.parametrize("which", ["article_1", "article_3", "live"])
def test_there_and_back_means_the_same(which, request):
    pair = request.getfixturevalue(which)
    there = convert(pair, 3 if pair.dialect == 1 else 1)
    back = convert(there.pair, pair.dialect)
    for one in (there.pair, back.pair):
        assert one.knobs() == pair.knobs()
        assert one.gateway({}) == pair.gateway({})
        assert one.workload() == pair.workload()
    assert back.lost == ()
    assert {finding.code for finding in check_pair(there.pair) if finding.severity == "error"} <= {
        finding.code for finding in check_pair(pair)
    }


def test_numbers_keep_their_spelling_and_line_ends_stay(article_1):
    crlf = replace(article_1, config_text="\ufeff" + article_1.config_text.replace("\n", "\r\n"))
    text = convert(crlf, 3).pair.config_text
    assert "gpu_memory_utilization = 0.90\r\n" in text
    assert text.startswith("\ufeff") and text.count("\n") == text.count("\r\n")


def test_a_pair_that_has_the_form_comes_back_as_it_is(article_1):
    conversion = convert(article_1, 1)
    assert conversion.pair is article_1 and conversion.lost == conversion.notes == ()


def test_batching_off_becomes_one_sequence(article_3):
    off = replace(article_3, config_text=article_3.config_text.replace("batching = true", "batching = false").replace(
        "max_num_seqs = 64\n", ""))  # fmt: skip
    conversion = convert(off, 1)
    assert conversion.pair.knobs()["max_num_seqs"] == 1
    assert "switch-became" in [note.code for note in conversion.notes]


def test_any_flag_and_foreign_keys_go_along(article_1):
    more = article_1.with_knobs({"attention_backend": "FLASH_ATTN", "seed": 7})
    more = replace(
        more,
        settings_text=more.settings_text.replace('"stream"', '"editor.font": [1, null], "stream"'),
        config_text=more.config_text + "\n[extra]\nday = 2026-01-02\n",
    )
    new = convert(more, 3).pair
    assert new.engine_knobs()["attention_backend"] == "FLASH_ATTN" and new.engine_knobs()["seed"] == 7
    assert json.loads(new.settings_text)["editor.font"] == [1, None]
    assert tomllib.loads(new.config_text)["extra"] == tomllib.loads("day = 2026-01-02")


def test_what_json_cannot_hold_is_lost_and_named(article_3):
    more = replace(article_3, config_text=article_3.config_text + "[engine.args]\nday = 2026-01-02\nrate = nan\n")
    assert lost(convert(more, 1))[-2:] == [
        ("no-counterpart", "engine.args.day"),
        ("no-counterpart", "engine.args.rate"),
    ]


def test_two_engine_sides_are_told_and_become_one(article_1, article_3):
    mixed = ConfigPair(article_1.settings_text, article_3.config_text)
    assert mixed.mixed and "mixed-forms" in [finding.code for finding in check_pair(mixed)]
    conversion = convert(mixed, 3)
    assert not conversion.pair.mixed
    assert conversion.pair.knobs()["max_num_seqs"] == 64
    assert ("no-second-place", "decode.max_num_seqs") in lost(conversion)


def test_a_key_written_out_is_not_carried_along(article_1):
    literal = replace(article_1, config_text=article_1.config_text.replace("${TAOTOKEN_API_KEY}", "sk-made-up-0001"))
    with pytest.raises(LabError) as caught:
        convert(literal, 3)
    assert caught.value.findings[0].code == "secret-in-file" and "made-up" not in str(caught.value.findings)


def test_tables_of_both_forms_stay_as_they_are_and_other_comments_are_counted(live):
    conversion = convert(live, 3)
    moved, mark, kept = live.config_text.partition("[metrics]")
    assert conversion.pair.config_text.endswith("\n" + mark + kept)
    notes = {note.code: note for note in conversion.notes}
    assert notes["comments-left-behind"].params["count"] == moved.count("#")


def test_a_comment_that_stays_hides_none_that_is_left_behind():
    kept = '[workload] # load # of the day\nkind = "burst" # not "closed" # yet\nrequests = 3\n'
    conversion = convert(ConfigPair("{}", f"[request] # mine\nmax_tokens = 4\n\n{kept}"), 3)
    assert conversion.pair.config_text.endswith(kept)
    assert [note.params["count"] for note in conversion.notes if note.code == "comments-left-behind"] == [1]


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff# load\r\n[workload]\r\nkind = "burst" # c\r\nrequests = 3\r\n\r\n[request]\r\nmax_tokens = 4',
        'workload.kind = "burst"\nworkload.requests = 3\nrequest.max_tokens = 4\n',
        'workload = { kind = "burst", requests = 3 }\nrequest = { max_tokens = 4 }\n',
        '[request]\nmax_tokens = 4\n[workload]\nkind = "burst"\nrequests = 3',
    ],
)
def test_a_workload_in_any_layout_comes_along(article_1, text):
    pair = replace(article_1, config_text=text)
    new = convert(pair, 3).pair
    assert new.workload() == pair.workload() and new.knobs() == pair.knobs()
    assert new.dialect == 3 and new.config_text.startswith("\ufeff") == text.startswith("\ufeff")


def test_everything_said_has_words(article_1, article_3):
    for conversion in (convert(article_1, 3), convert(article_3, 1)):
        for finding in (*conversion.lost, *conversion.notes):
            assert "{" not in word_finding(finding).replace("${", "").replace("'", "")
