"""`${NAME}` in a knob is filled in for a launch, stays in the file, and is missed before anything starts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.configs.checks import check_launch, check_pair
from lab.configs.placeholders import expand_knobs, variables_in, with_variables
from lab.findings import LabError


@pytest.fixture
def waiting(article_1):
    text = article_1.settings_text.replace('"some-model"', '"${LAB_T_ROOT}/m"').replace(
        '"max_num_seqs": 32', '"max_num_seqs": "${LAB_T_SEQS}"'
    )
    return replace(article_1, settings_text=text)


SET = {"LAB_T_ROOT": "/models", "LAB_T_SEQS": "48"}


def test_variables_are_found_and_prices_are_not():
    assert variables_in("a ${X} {env:Y} $Z $5 $$") == ("X", "Y")
    assert variables_in(3) == variables_in("plain") == ()


def test_unset_variables_are_named_before_a_launch(waiting):
    found = [(f.code, f.params["name"], f.line) for f in check_launch(waiting) if f.severity == "error"]
    assert found == [("variable-unset", "LAB_T_ROOT", 2), ("variable-unset", "LAB_T_SEQS", 10)]


def test_set_variables_are_filled_in_for_a_launch_with_the_knob_s_type(waiting, monkeypatch):
    for name, value in SET.items():
        monkeypatch.setenv(name, value)
    assert [f for f in check_pair(waiting) if f.severity == "error"] == []
    knobs = with_variables(waiting, SET).engine_knobs()
    assert knobs["model"] == "/models/m" and knobs["max_num_seqs"] == 48 and type(knobs["max_num_seqs"]) is int


def test_the_files_never_hold_what_was_filled_in(waiting):
    with_variables(waiting, SET)
    edited = waiting.with_knobs({"block_size": 32})
    assert edited.settings_text == waiting.settings_text.replace('"block_size": 16', '"block_size": 32')
    assert "${LAB_T_SEQS}" in edited.settings_text


def test_a_variable_of_the_wrong_type_is_told_without_its_value(waiting, monkeypatch):
    monkeypatch.setenv("LAB_T_ROOT", "/models")
    monkeypatch.setenv("LAB_T_SEQS", "many-and-private")
    found = [f for f in check_pair(waiting) if f.severity == "error"]
    assert [f.code for f in found] == ["wrong-type"] and "private" not in repr(found)


def test_a_key_is_not_put_into_the_command_line():
    with pytest.raises(LabError) as caught:
        expand_knobs({"tokenizer": "${MY_API_KEY}"}, {"MY_API_KEY": "made-up"})
    assert caught.value.findings[0].code == "secret-placeholder"


def test_without_placeholders_the_pair_is_the_same_object(article_1):
    assert with_variables(article_1, {}) is article_1


def test_an_address_that_waits_for_a_variable_is_a_remark(article_1, monkeypatch):
    text = article_1.config_text.replace("https://taotoken.net/api", "https://${LAB_T_HOST}/api")
    pair = replace(article_1, config_text=text)
    found = [(f.code, f.severity, f.line) for f in check_pair(pair)]
    assert ("variable-unset", "warning", 2) in found
    monkeypatch.setenv("LAB_T_HOST", "gateway.example")
    assert "variable-unset" not in [f.code for f in check_pair(pair)]
