"""A thousand random sequences of edits on random layouts: only what is edited changes, byte for byte."""

from __future__ import annotations

import copy
import json
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.configs.documents import open_json, open_toml

BOM = "\ufeff"
WORDS = st.sampled_from(["a", "b", "c_1", "max-x", "模", "e f"])
SCALARS = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 4)),
    st.booleans(),
    st.sampled_from(["", "x", "a b", "# no comment", "${ENV}", "[t]", "“q”", "tab\t", 'say "x"']),
)
TOML_SPELLINGS = st.sampled_from(
    [
        ("0.90", 0.9), ("32_768", 32768), ("0x40", 64), ("+7", 7), ("1e3", 1000.0), ("'single'", "single"),
        ('"d\\u0061"', "da"), ("'''\nmulti\n[x] = 1'''", "multi\n[x] = 1"), ("[1, 2, # c\n  3,\n]", [1, 2, 3]),
        ("{ i = 1, j = \"x\" }", {"i": 1, "j": "x"}), ("true", True), ("[]", []), ("{}", {}), ("-0.0", -0.0),
    ]
)  # fmt: skip
GAPS = st.sampled_from([" = ", "=", "  =   ", "\t= "])
NOTES = st.sampled_from(["", " # note", "   # 注 = 1", "\t#"])
FILLERS = st.sampled_from(["", "\n", "# a comment\n", "  # [not.a.table]\n", "\n\n", "# x = 1\n"])
TABLES = st.lists(
    st.sampled_from([("t",), ("u",), ("t", "v"), ("u", "w", "x"), ("s p",)]), unique=True, min_size=0, max_size=4
)


def quoted(key):
    return (
        key
        if key.replace("-", "").replace("_", "").isascii() and " " not in key
        else json.dumps(key, ensure_ascii=False)
    )


@st.composite
def toml_texts(draw):
    """A text with comments, blank lines, indents, dotted keys and tables in any order; always valid TOML."""
    lines = [draw(FILLERS)]
    for number, table in enumerate([(), *draw(TABLES)]):
        if table:
            lines.append(f"{draw(st.sampled_from(['', '  ']))}[{' . '.join(map(quoted, table))}]{draw(NOTES)}\n")
        for key in draw(st.lists(WORDS, unique=True, max_size=4)):
            spelled, _ = draw(TOML_SPELLINGS)
            dotted = draw(st.booleans()) and not table
            name = f"d{number}.{quoted(key)}" if dotted else quoted(key)
            lines.append(f"{draw(st.sampled_from(['', '    ']))}{name}{draw(GAPS)}{spelled}{draw(NOTES)}\n")
            lines.append(draw(FILLERS))
    text = "".join(lines)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return (BOM if draw(st.booleans()) else "") + text


@st.composite
def json_texts(draw):
    """An object in any layout: indents, blanks around colons, number styles, nested objects, line ends."""
    pad = draw(st.sampled_from(["", " ", "\n  ", "\n\t"]))
    colon = draw(st.sampled_from([":", ": ", " : "]))
    spellings = st.sampled_from(["0.90", "1E2", "-0", "12", "true", "null", '"x"', '"\\u0061/"', "[1, 2]", "[]", "{}"])

    def members(depth):
        found = []
        for key in draw(st.lists(WORDS, unique=True, max_size=4)):
            value = f"{{{members(depth + 1)}}}" if depth < 2 and draw(st.booleans()) else draw(spellings)
            found.append(f"{pad}{json.dumps(key, ensure_ascii=draw(st.booleans()))}{colon}{value}")
        return ",".join(found) + (pad.replace("  ", "") if found else "")

    text = f"{{{members(0)}}}" + draw(st.sampled_from(["", "\n", "\n\n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return (BOM if draw(st.booleans()) else "") + text


def read_toml(text):
    return tomllib.loads(text.removeprefix(BOM))


def read_json(text):
    return json.loads(text.removeprefix(BOM))


def leaves(data, path=()):
    for key, value in data.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def with_value(data, path, value):
    data = copy.deepcopy(data)
    table = data
    for key in path[:-1]:
        table = table.setdefault(key, {})
    table[path[-1]] = value
    return data


def without(data, path):
    data = copy.deepcopy(data)
    table = data
    for key in path[:-1]:
        table = table[key]
    del table[path[-1]]
    return data


def pruned(data):
    """Without tables that hold nothing: a line taken away may take an implied table along."""
    kept = {key: pruned(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in kept.items() if value != {}}


def common(old, new):
    most = min(len(old), len(new))
    start = next((at for at in range(most) if old[at] != new[at]), most)
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def edited(document, path, value, read, span):
    """One edit, checked: nothing outside the value's own characters changed."""
    before = document.text
    after = document.set(path, value)
    key_start, value_end = span(document, path)
    tail = len(before) - value_end
    assert after.text[:key_start] == before[:key_start]
    assert after.text[len(after.text) - tail :] == before[value_end:]
    assert read(after.text) == with_value(read(before), path, value)
    assert after.set(path, value).text == after.text
    return after


def inserted(document, path, value, read):
    """One key more, checked: every old byte is still there, in order; blanks inside empty braces may go."""
    before = document.text
    after = document.set(path, value)
    start, end = common(before, after.text)
    assert before[start : len(before) - end].strip(" \t\r\n{}") == ""
    assert read(after.text) == with_value(read(before), path, value)
    return after


def removed(document, path, read):
    """One key less, checked: one run of bytes is gone and no other value changed."""
    before = document.text
    after = document.remove(path)
    start, end = common(before, after.text)
    assert start + end == len(after.text)
    assert pruned(read(after.text)) == pruned(without(read(before), path))
    return after


def run_sequence(document, read, data):
    for _ in range(data.draw(st.integers(1, 6))):
        paths = list(leaves(read(document.text)))
        action = data.draw(st.sampled_from(["edit", "edit", "insert", "remove"]))
        if action == "insert" or not paths:
            path = (
                *data.draw(st.sampled_from([(), ("t",), ("new",), ("u", "w")])),
                data.draw(st.sampled_from(["k1", "k2"])),
            )
            current, blocked = read(document.text), False
            for depth in range(1, len(path)):
                below = current
                for key in path[:depth]:
                    below = below.get(key, {}) if isinstance(below, dict) else None
                blocked = blocked or not isinstance(below, dict)
            if not blocked and path not in paths:
                document = inserted(document, path, data.draw(SCALARS), read)
        elif action == "edit":
            document = edited(
                document, data.draw(st.sampled_from(paths)), data.draw(SCALARS), read, lambda d, p: d.span(p)
            )
        else:
            document = removed(document, data.draw(st.sampled_from(paths)), read)
    return document


SLOW = settings(
    max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def valid(text):
    try:
        read_toml(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


@SLOW
@given(toml_texts().filter(valid), st.data())
def test_toml_edit_sequences(text, data):
    document = open_toml(text, "config.toml")
    assert document.text == text
    run_sequence(document, read_toml, data)


@SLOW
@given(json_texts(), st.data())
def test_json_edit_sequences(text, data):
    document = open_json(text, "settings.json")
    assert document.text == text
    run_sequence(document, read_json, data)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_refuses_numbers_it_has_not(value):
    from lab.findings import LabError

    with pytest.raises(LabError):
        open_json('{"a": 1}', "f").set(("a",), value)
