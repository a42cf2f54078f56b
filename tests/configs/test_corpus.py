"""Real and broken files as people have them; what is expected of each stands in corpus/expectations.toml."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from lab.configs.checks import check_pair
from lab.configs.dialects import recognised
from lab.configs.pair import ConfigPair
from lab.configs.pair_files import read_text
from lab.configs.repairs import repaired, repairs
from lab.configs.secrets import masked
from lab.findings import LabError

CORPUS = Path(__file__).parent / "corpus"
EXPECTED = tomllib.loads((CORPUS / "expectations.toml").read_text("utf-8"))
READABLE = [name for name, expected in EXPECTED.items() if "knobs" in expected]
EDITED = [name for name, expected in EXPECTED.items() if "edit" in expected]
REPAIRED = [name for name, expected in EXPECTED.items() if "after_repair" in expected]
# partners that say nothing about the form and have no finding of their own
SETTINGS, CONFIG = "{}", '[workload]\nkind = "burst"\nrequests = 2\n'


def pair_of(name):
    text = read_text(CORPUS / name)
    if name.endswith(".json"):
        return ConfigPair(text, CONFIG, name, "config.toml")
    return ConfigPair(SETTINGS, text, "settings.json", name)


def findings_of(name):
    try:
        pair = pair_of(name)
    except LabError as problem:
        return problem.findings
    return tuple(each for each in check_pair(pair) if each.file in (name, None))


def shown(findings):
    return [f"{each.severity} {each.code} {each.line or '-'}" for each in findings]


def test_the_corpus_is_whole():
    files = {path.name for path in CORPUS.iterdir()} - {"expectations.toml", ".gitattributes"}
    assert files == set(EXPECTED) and len(files) >= 60


@pytest.mark.parametrize("name", EXPECTED)
def test_every_finding_with_its_line(name):
    assert sorted(shown(findings_of(name))) == sorted(EXPECTED[name]["findings"])


@pytest.mark.parametrize("name", READABLE)
def test_form_and_knobs(name):
    pair, expected = pair_of(name), EXPECTED[name]
    file = "settings" if name.endswith(".json") else "config"
    text = pair.settings_text if file == "settings" else pair.config_text
    assert recognised(text, name, file) == expected.get("form")
    knobs = pair.knobs()
    for knob, value in expected["knobs"].items():
        assert (type(knobs[knob]), knobs[knob]) == (type(value), value)


@pytest.mark.parametrize("name", READABLE)
def test_opening_and_setting_the_same_values_changes_no_byte(name):
    pair = pair_of(name)
    assert pair.with_knobs(pair.knobs()) == pair


@pytest.mark.parametrize("name", EDITED)
def test_an_edit_changes_its_characters_only(name):
    pair, edit = pair_of(name), EXPECTED[name]["edit"]
    new = pair.with_knobs({edit["knob"]: edit["value"]})
    for old_text, new_text in ((pair.settings_text, new.settings_text), (pair.config_text, new.config_text)):
        assert new_text in (old_text, old_text.replace(edit["old"], edit["new"], 1))
    assert new != pair and new.knobs()[edit["knob"]] == edit["value"]


@pytest.mark.parametrize("name", REPAIRED)
def test_repairs_leave_only_what_nobody_can_guess(name):
    pair = pair_of(name)
    before = (pair.settings_text, pair.config_text)
    offers = repairs(pair)
    new = repaired(pair, offers)
    assert (pair.settings_text, pair.config_text) == before
    left = {each.code for each in check_pair(new) if each.file in (name, None) and each.code != "foreign-key"}
    assert left == set(EXPECTED[name]["after_repair"])
    for offer in offers:
        assert offer.finding in check_pair(pair)


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.startswith("secret")])
def test_a_key_never_shows(name):
    pair = pair_of(name)
    key = next(
        line for line in (pair.settings_text + pair.config_text).splitlines() if "made-up" in line or "x-$" in line
    )
    assert key
    assert "made-up" not in repr(check_pair(pair)) + repr(repairs(pair))
    assert "made-up" not in masked(pair.settings_text + pair.config_text)


def test_expected_values_come_from_the_standard_parsers():
    for name in READABLE:
        text = read_text(CORPUS / name).removeprefix("\ufeff")
        data = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
        assert isinstance(data, dict)
