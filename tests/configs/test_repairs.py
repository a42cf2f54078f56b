"""Repairs are offered, one by one, as edits of the text; none is made on its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.configs.checks import check_pair
from lab.configs.edits import Edit, EditedText, apply_edits, edit_between
from lab.configs.experiment_file import read_experiment
from lab.configs.experiment_repairs import experiment_offers, with_offers
from lab.configs.pair import diff_pair
from lab.configs.repairs import repaired, repairs
from lab.messages import word


def changed(pair, *changes):
    for old, new in changes:
        assert old in pair.settings_text + pair.config_text
        pair = replace(
            pair,
            settings_text=pair.settings_text.replace(old, new, 1),
            config_text=pair.config_text.replace(old, new, 1) if old not in pair.settings_text else pair.config_text,
        )
    return pair


def errors(pair):
    return [finding.code for finding in check_pair(pair) if finding.severity == "error"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("0.90", '"0.90"'),
        ('"max_num_seqs": 32', '"max_num_seqs": "32"'),
        ('"max_num_seqs": 32', '"max_num_seq": 32'),
        ('"max_num_seqs": 32', '"max_num_seqs": 32.0'),
        ('"kv_cache_dtype": "auto"', '"kv_cache_dtype": "automatic"'),
        ('"chunked_prefill": true', '"chunked_prefill": "true"'),
        ('"chunked_prefill": true', '"chunked_prefill": True'),
        ('"block_size": 16\n', '"block_size": 16,\n'),
        ('"block_size": 16\n', '"block_size": 16 // tokens\n'),
        ('"max_tokens": 512,', '"max_tokens"： 512,'),
        ('"temperature": 0.7,\n', '"temperature": 0.7\n'),
        ('"stream": true', "'stream': true"),
        ("stream = true", "stream = True"),
        ("stream = true", "stream = “true”"),
        ("timeout_seconds = 120", "timeout_seconds 120"),
        ("timeout_seconds = 120", "timeout_seconds ＝ 120"),
        ('model = "gateway-model"', "model = gateway-model"),
        ('model = "gateway-model"', "model = “gateway-model”"),
        ('model = "gateway-model"', 'model: "gateway-model"'),
        ("max_tokens = 512\n", "max_tokens = 512\nmax_tokens = 512\n"),
        ("repeat = 5", "repeat = 5;"),
        ("${TAOTOKEN_API_KEY}", "sk-made-up-0001"),
    ],
)
def test_the_repair_gives_back_the_text_as_it_was(article_1, right, wrong):
    broken = changed(article_1, (right, wrong))
    offers = repairs(broken)
    mine = [offer for offer in offers if offer.finding.severity == "error"]
    new = repaired(broken, mine)
    if wrong == '"kv_cache_dtype": "automatic"' or "“true”" in wrong:
        assert errors(new) == []
    else:
        assert new == article_1
    assert errors(broken) and "made-up" not in repr(offers)
    for offer in mine:
        assert word(offer.code, offer.params) and diff_pair(broken, repaired(broken, [offer]))


def test_ninety_is_meant_as_a_share(article_1):
    broken = changed(article_1, ("0.90", "90"))
    offer = next(offer for offer in repairs(broken) if offer.finding.code == "out-of-range")
    assert repaired(broken, [offer]) == article_1


def test_a_key_in_the_wrong_table_is_moved(article_1):
    broken = changed(article_1, ("track_ttft = true\n", "track_ttft = true\ntemperature = 0.1\n"))
    offer = next(offer for offer in repairs(broken) if offer.finding.code == "unknown-key")
    new = repaired(broken, [offer])
    assert new.config.get(("request", "temperature")) == 0.1
    assert offer.code == "repair-move" and not new.config.has(("metrics", "temperature"))
    assert new.config_text == article_1.config_text.replace(
        "max_tokens = 512\n", "max_tokens = 512\ntemperature = 0.1\n"
    )


def test_a_key_that_is_there_already_is_not_overwritten(article_1):
    broken = changed(article_1, ('"block_size": 16', '"block_size": 16, "max_num_seq": 9'))
    assert [offer.code for offer in repairs(broken) if offer.finding.code == "unknown-key"] == []


def test_two_offers_for_one_key_do_not_break_the_file(article_1):
    broken = changed(article_1, ('"max_num_seqs": 32', '"max_num_seq": 32, "max_num_seqss": 8'))
    new = repaired(broken, repairs(broken))
    assert [code for code in errors(new) if code != "unknown-key"] == []


def test_text_in_strings_and_comments_is_never_touched(article_1):
    text = '# “quoted” ＝ １２\n[request]\nmodel = "“x”：，"\nstream = True # “yes”\n'
    pair = replace(article_1, config_text=text)
    assert repaired(pair, repairs(pair)).config_text == text.replace("True", "true")


def test_a_file_without_its_signs_is_put_together_again(article_1):
    flat = " ".join(article_1.settings_text.replace('"', "").replace("{", " ").replace("}", " ").split())
    pair = replace(article_1, settings_text=flat)
    offers = [offer for offer in repairs(pair) if offer.code == "repair-rebuild"]
    assert repaired(pair, offers).engine_knobs() == article_1.engine_knobs()


def test_all_faults_come_at_once_with_those_behind_them(article_1):
    broken = changed(
        article_1,
        ('"temperature": 0.7,', '"temperature": .7,'),
        ('"max_num_seqs": 32', '"max_num_seqs": "32"'),
        ('"block_size": 16\n', '"block_size": 16,\n'),
    )
    found = [(finding.code, finding.line) for finding in check_pair(broken) if finding.severity == "error"]
    assert found == [("json-expected-value", 6), ("wrong-type", 10), ("json-trailing-comma", 14)]
    assert errors(repaired(broken, repairs(broken))) == []


def test_texts_beyond_repair_are_told_once_and_left(article_1):
    for text in ("[1]", "{{{{", "\x00", '{"a": ' + "[" * 300):
        pair = replace(article_1, settings_text=text)
        assert check_pair(pair)
        repaired(pair, repairs(pair))


EXPERIMENT = """name = "x"
# the load
[workload]
kind = "burst"
requests = 3

[[arm]]
name = "a"
set = { max_num_seq = 3 }

[[arm]]
name = "b"
repeats = 2

[limits]
seed = 3
max_trial = 4
"""


def test_keys_of_the_top_go_back_there_in_an_experiment_file(live):
    _, findings = read_experiment(EXPERIMENT, "x.toml", live)
    assert [(finding.code, finding.line) for finding in findings] == [
        ("unknown-knob", 9),
        ("root-key-in-table", 13),
        ("root-key-in-table", 16),
        ("unknown-key", 17),
    ]
    text = with_offers(EXPERIMENT, experiment_offers(EXPERIMENT, "x.toml", findings))
    experiment, left = read_experiment(text, "x.toml", live)
    assert left == () and experiment is not None
    assert (experiment.repeats, experiment.seed, experiment.limits.max_trials) == (2, 3, 4)
    assert experiment.arms[0].set == {"max_num_seqs": 3}
    assert "# the load\n[workload]" in text


def test_edits_know_where_everything_stood():
    text = EditedText("abcdef")
    text.apply([Edit(1, 2, "XYZ"), Edit(4, 4, "-")])
    assert text.text == "aXYZcd-ef"
    assert [text.origin(at) for at in (0, 4, 5, 7, 8)] == [0, 2, 3, 4, 5]
    text.apply([Edit(0, 1, "")])
    assert text.text == "XYZcd-ef" and text.origin(3) == 2
    assert text.original(Edit(3, 4, "C")) == Edit(2, 3, "C")
    assert apply_edits("abcdef", [Edit(1, 3, "x"), Edit(2, 4, "y"), Edit(0, 0, "^")]) == "^axdef"
    assert edit_between("abc", "abXc") == (Edit(2, 2, "X"),) and edit_between("a", "a") == ()
