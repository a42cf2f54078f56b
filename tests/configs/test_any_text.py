"""Whatever stands in a file or is pasted: an answer, never an exception, in a bounded time."""

from __future__ import annotations

import json
import time
import tomllib
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.configs.checks import check_pair
from lab.configs.pair import ConfigPair
from lab.configs.paste import merged, read_paste, replaced
from lab.configs.reading import read_leniently
from lab.configs.repairs import repaired, repairs
from tests.configs.conftest import ARTICLE_1_CONFIG, ARTICLE_1_SETTINGS, ARTICLE_3_CONFIG, ARTICLE_3_SETTINGS

PIECES = st.sampled_from(
    [
        *(
            "[server]",
            "[model]",
            "[batching",
            "decode",
            "prefill:",
            "engine.args.seed 3",
            "max_num_seqs",
            "model",
            "name",
        ),
        *("max_tokens 5", "gpu_memory_utilization", "kv_cache_dtype fp8", "prompt_tokens [1, 2]", "repeat 5这个"),
        *("prompt_tokens 128, 512", "api_key", "${A_KEY}", "sk-你的Key", "https://x.example/api", "your-model-name"),
        *("export A_API_KEY=x", "cline.x: y", "messages: [{role: user}]"),
        *("{", "}", "[", "]", ",", ":", "=", '"', "'", "“", "”", "：", "＝", "#", "//", "/*", "*/", "\\"),
        *("0.90", "６４", "true", "True", "NaN", "1e999", "中文，"),
        *("\n", " ", "\t", "\r\n", "\ufeff", "\u00a0", "\x00"),
    ]
)
TEXTS = st.one_of(
    st.lists(PIECES, max_size=40).map("".join), st.lists(PIECES, max_size=40).map(" ".join), st.text(max_size=80)
)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PAIR_1, PAIR_3 = ConfigPair(ARTICLE_1_SETTINGS, ARTICLE_1_CONFIG), ConfigPair(ARTICLE_3_SETTINGS, ARTICLE_3_CONFIG)


@MANY
@given(TEXTS, st.sampled_from([PAIR_1, PAIR_3]))
def test_any_pasted_text_gives_files_that_can_be_read(text, pair):
    result = read_paste(text, pair)
    assert len(result.safe_text) == len(text)
    if result.settings_text is not None:
        json.loads(result.settings_text)
    if result.config_text is not None:
        tomllib.loads(result.config_text)
    for new in (replaced(pair, result), merged(pair, result)):
        assert new.knobs() is not None
        check_pair(new)
    for value in result.values:
        assert 0 <= value.start < value.end <= len(text)
        assert value.guessed == bool(value.reasons)


@MANY
@given(TEXTS, st.booleans())
def test_any_text_of_a_file_is_checked_and_repairs_can_be_taken(text, as_settings):
    pair = replace(PAIR_1, settings_text=text) if as_settings else replace(PAIR_3, config_text=text)
    findings = check_pair(pair)
    offers = repairs(pair, findings)
    assert all(offer.finding in findings for offer in offers)
    new = repaired(pair, offers)
    name = pair.settings_file if as_settings else pair.config_file
    after, before = (each.settings_text if as_settings else each.config_text for each in (new, pair))
    assert len(read_leniently(after, name).faults) <= len(read_leniently(before, name).faults)


@MANY
@given(st.sampled_from([PAIR_1, PAIR_3]), st.data())
def test_a_mangled_file_keeps_its_text_unless_repaired(pair, data):
    text = pair.config_text
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(PIECES) + text[at + data.draw(st.integers(0, 3)) :]
    broken = replace(pair, config_text=text)
    check_pair(broken)
    assert broken.config_text == text
    repaired(broken, repairs(broken))


@pytest.mark.parametrize(
    "text",
    [
        "max_num_seqs " * 7_000,
        "[server] " * 10_000,
        "# " * 45_000,
        "{" * 90_000,
        '"' * 90_000,
        "prompt_tokens " + "1 " * 45_000,
        "[server] base_url " + "a" * 90_000,
        "{ model: m, " + "x: 1, " * 15_000,
        "[workload] # " + "repeat " * 12_000,
        "sk-" * 30_000,
        "https" * 18_000,
        "export A_API_KEY=x " * 5_000,
    ],
    ids=lambda text: text[:20],
)
def test_long_texts_are_read_in_a_moment(text):
    started = time.process_time()
    read_paste(text, PAIR_1)
    assert time.process_time() - started < 10


def test_a_long_broken_file_is_read_in_a_moment():
    started = time.process_time()
    for text in ("a = [1，2]\n" * 2000, "a 1\n" * 5000, "x" * 200_000, "[" * 50_000):
        check_pair(replace(PAIR_3, config_text=text))
    for text in ('{"a": ' * 5000, "{" + '"a": 1,' * 3000 + "}", "[1," * 5000, "'" * 50_000):
        check_pair(replace(PAIR_1, settings_text=text))
    assert time.process_time() - started < 20
