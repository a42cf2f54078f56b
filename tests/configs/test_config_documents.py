"""Editing keeps every other byte; reading finds places and says what is wrong."""

from __future__ import annotations

import json
import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from lab.configs.documents import open_json, open_toml
from lab.findings import LabError

HOUSE = """# house rules
[engine]
# keep below 0.92 on this box
gpu_memory_utilization = 0.90   # tuned in January
max_num_seqs           =   64
# swap_space = 4

[gateway]  # remote
base_url = "https://gw.example/v1"
"""


def problem(opening, text):
    with pytest.raises(LabError) as caught:
        opening(text, "file")
    return caught.value.findings[0]


def test_toml_edit_changes_exactly_the_characters_of_the_value():
    edited = open_toml(HOUSE, "config.toml").set(("engine", "max_num_seqs"), 128)
    assert edited.text == HOUSE.replace("  64", "  128")


@pytest.mark.parametrize("value", [64, 64.0])
def test_toml_writing_the_same_value_changes_nothing_but_a_wrong_type(value):
    edited = open_toml(HOUSE, "config.toml").set(("engine", "max_num_seqs"), value)
    assert edited.text == HOUSE
    assert open_toml("a = 64.0\n", "f").set(("a",), 64).text == "a = 64\n"
    assert open_toml("a = 1\n", "f").set(("a",), 1.0).text == "a = 1\n"
    assert open_toml("a = 32_768\n", "f").set(("a",), 32768).text == "a = 32_768\n"
    assert open_toml("a = true\n", "f").set(("a",), 1).text == "a = 1\n"


def test_toml_root_key_goes_above_the_first_table():
    text = "x = 1\n\n[features]\na = false\n"
    edited = open_toml(text, "f").set(("model_provider",), "x")
    assert edited.text == 'x = 1\nmodel_provider = "x"\n\n[features]\na = false\n'
    bare = open_toml("# note of the file\n\n# about features\n[features]\na = false\n", "f").set(("b",), 2)
    assert bare.text == "# note of the file\n\nb = 2\n\n# about features\n[features]\na = false\n"
    assert tomllib.loads(bare.text) == {"b": 2, "features": {"a": False}}


def test_toml_new_key_stands_with_its_table_and_new_table_at_the_end():
    edited = open_toml(HOUSE, "f").set(("engine", "block_size"), 16).set(("workload", "kind"), "burst")
    assert "max_num_seqs           =   64\nblock_size = 16\n# swap_space = 4\n" in edited.text
    assert edited.text.endswith('base_url = "https://gw.example/v1"\n\n[workload]\nkind = "burst"\n')


@pytest.mark.parametrize(
    ("text", "path", "value", "expected"),
    [
        ("a = { b = 1 }\n", ("a", "c"), 2, "a = { b = 1, c = 2 }\n"),
        ("a = {}\n", ("a", "c"), 2, "a = { c = 2 }\n"),
        ("a.b = 1\n[t]\nx = 1\n", ("a", "c"), 2, "a.b = 1\na.c = 2\n[t]\nx = 1\n"),
        ("[a]\n[b]\nx = 1", ("a", "c"), True, "[a]\nc = true\n[b]\nx = 1"),
        ("[a]\r\nx = 1\r\n", ("a", "c"), "z", '[a]\r\nx = 1\r\nc = "z"\r\n'),
        ("[a]\n  x = 1\n", ("a", "c"), [1, 2], "[a]\n  x = 1\n  c = [1, 2]\n"),
        ("\ufeffa = 1\n", ("b",), 2, "\ufeffa = 1\nb = 2\n"),
        ("[[arm]]\nn = 1\n[[arm]]\nn = 2\n", ("arm", 1, "n"), 3, "[[arm]]\nn = 1\n[[arm]]\nn = 3\n"),
        ("s = '''\n[x]\na = 1''' # c\na = 2\n", ("a",), 3, "s = '''\n[x]\na = 1''' # c\na = 3\n"),
        ("", ("a",), 3, "a = 3\n"),
        ("x = 1", ("t", "a"), 3, "x = 1\n\n[t]\na = 3"),
    ],
)
def test_toml_insertions(text, path, value, expected):
    edited = open_toml(text, "f").set(path, value)
    assert edited.text == expected
    assert edited.get(path) == value


def test_toml_removal_takes_the_line_or_the_key_in_braces():
    assert open_toml("a = 1 # c\nb = 2\n", "f").remove(("a",)).text == "b = 2\n"
    assert open_toml("t = { a = 1, b = 2 }\n", "f").remove(("t", "a")).text == "t = { b = 2 }\n"
    assert open_toml("t = { a = 1, b = 2 }\n", "f").remove(("t", "b")).text == "t = { a = 1 }\n"


def test_toml_duplicate_key_names_both_lines():
    found = problem(open_toml, "[features]\na = false\nb = true\n\n# other section\na = false\n")
    assert (found.code, found.params["first_line"], found.line, found.column) == ("duplicate-key", 2, 6, 1)


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "shown"),
    [
        ("a = 1\nkv_cache_dtype = “fp8”\n", "lookalike-character", 2, 18, "U+201C"),
        ("gpu_memory_utilization ＝ 0.90\n", "lookalike-character", 1, 24, "U+FF1D"),
        ("a = [1，2]\n", "lookalike-character", 1, 7, "U+FF0C"),
        ("max_num_seqs = ６４\n", "lookalike-character", 1, 16, "U+FF16"),
        ("max_num_seqs\u00a0= 64\n", "lookalike-character", 1, 13, "U+00A0"),
        ("# note\n\ufeff[table]\na = 1\n", "bom-inside", 2, 1, None),
        ("gpu_memory_utilization 0.90\nkv_cache_dtype fp8\n", "toml-lost-equals", 1, None, None),
        ("a = 1\nb = .9\n", "toml-invalid", 2, None, None),
        ("a = True\n", "toml-invalid", 1, None, None),
    ],
)
def test_toml_errors_name_line_and_character(text, code, line, column, shown):
    found = problem(open_toml, text)
    assert (found.code, found.line) == (code, line)
    assert column is None or found.column == column
    assert shown is None or found.params["code"] == shown


PRETTY = """{
  "model": "m",
  "decode": {
    "gpu_memory_utilization": 0.90,
    "max_num_seqs" : 32,
    "empty": {}
  }
}
"""


def test_json_edit_changes_exactly_the_characters_of_the_value():
    edited = open_json(PRETTY, "f").set(("decode", "max_num_seqs"), 64)
    assert edited.text == PRETTY.replace("32", "64")
    assert open_json(PRETTY, "f").set(("decode", "gpu_memory_utilization"), 0.9).text == PRETTY


@pytest.mark.parametrize(
    ("text", "path", "value", "expected"),
    [
        ('{"a": 1}', ("b",), 2, '{"a": 1, "b": 2}'),
        ('{"a":1,"b":2}', ("c",), "x", '{"a":1,"b":2,"c":"x"}'),
        ("{}", ("a",), True, '{"a": true}'),
        ('{\n\t"a": 1\n}\n', ("b",), 2, '{\n\t"a": 1,\n\t"b": 2\n}\n'),
        ('{\r\n  "a": 1\r\n}', ("b", "c"), 2, '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}'),
        ('{\n  "a": {}\n}', ("a", "b"), 2, '{\n  "a": {\n    "b": 2\n  }\n}'),
        ('\ufeff{"a": 1}', ("a",), 2, '\ufeff{"a": 2}'),
        ('{"名": "好"}', ("名",), "坏", '{"名": "坏"}'),
    ],
)
def test_json_insertions(text, path, value, expected):
    edited = open_json(text, "f").set(path, value)
    assert edited.text == expected
    assert edited.get(path) == value


def test_json_removal():
    assert open_json('{"a": 1, "b": 2, "c": 3}', "f").remove(("b",)).text == '{"a": 1, "c": 3}'
    assert open_json('{"a": 1, "b": 2}', "f").remove(("a",)).text == '{"b": 2}'
    assert open_json('{"a": 1}', "f").remove(("a",)).text == "{}"


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ('{\n  "a": 1,\n  "a": 2\n}', "duplicate-key", 3, 3),
        ('{"a"：1}', "lookalike-character", 1, 5),
        ('{\n  "a": 1,\n}', "json-trailing-comma", 2, 9),
        ('{\n  // c\n  "a": 1}', "json-comment", 2, 3),
        ('{"a": .9}', "json-expected-value", 1, 7),
        ('{"a": 01}', "json-expected-comma", 1, 8),
        ('{"a": 1 "b": 2}', "json-expected-comma", 1, 9),
        ("{a: 1}", "json-expected-key", 1, 2),
        ('{"a": "x', "json-bad-string", 1, None),
        ('{"a": "au\x00to"}', "json-control-character", 1, 10),
        ('{"a": "\\ud800"}', "half-character", 1, 7),
        ('{"a": 1} x', "json-extra-text", 1, 10),
        ("", "json-empty", 1, 1),
        ('{"a": ' + "[" * 500, "json-too-deep", 1, None),
        ('{"a": NaN}', "json-expected-value", 1, 7),
        ("[1]", "json-not-object", None, None),
    ],
)
def test_json_errors_name_line_and_column(text, code, line, column):
    found = problem(open_json, text)
    assert (found.code, found.line) == (code, line)
    assert column is None or found.column == column


SCALARS = st.one_of(
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.booleans(),
    st.text(max_size=12).filter(lambda text: not any(0xD800 <= ord(c) <= 0xDFFF for c in text)),
)
KEYS = st.text("abcdefgh_-z.ü \"'", min_size=1, max_size=6)
TABLES = st.dictionaries(KEYS, st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), min_size=1, max_size=5)
DOCUMENTS = st.dictionaries(KEYS, st.one_of(SCALARS, TABLES), min_size=1, max_size=5)
INDENTS = st.sampled_from([None, 2, 4, "\t"])
ENDS = st.sampled_from(["\n", "\r\n"])
MARKS = st.sampled_from(["", "\ufeff"])


def leaf_paths(data):
    for key, value in data.items():
        if isinstance(value, dict):
            yield from ((key, *rest) for rest in leaf_paths(value))
        else:
            yield (key,)


def with_value(data, path, value):
    key, *rest = path
    return {**data, key: with_value(data.get(key, {}), rest, value) if rest else value}


def common(old, new):
    """Lengths of the equal beginning and of the equal end that does not overlap it."""
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


@given(DOCUMENTS, SCALARS, INDENTS, ENDS, MARKS, st.data())
def test_json_random_edits_touch_only_the_value(data, value, indent, end, mark, draw):
    text = mark + json.dumps(data, indent=indent, ensure_ascii=False).replace("\n", end)
    paths = list(leaf_paths(data))
    if not paths:
        return
    path = draw.draw(st.sampled_from(paths))
    document = open_json(text, "f")
    node = document.root.find(path)
    edited = document.set(path, value)
    tail = len(text) - node.end
    assert edited.text[: node.start] == text[: node.start]
    assert edited.text[len(edited.text) - tail :] == text[node.end :]
    assert json.loads(edited.text.removeprefix("\ufeff")) == with_value(data, path, value)
    assert edited.set(path, value).text == edited.text


@given(DOCUMENTS, KEYS, SCALARS, INDENTS, ENDS)
def test_json_random_insertions_only_add(data, key, value, indent, end):
    text = json.dumps(data, indent=indent, ensure_ascii=False).replace("\n", end)
    if key in data:
        return
    edited = open_json(text, "f").set((key,), value)
    start, ending = common(text, edited.text)
    assert start + ending == len(text)
    assert json.loads(edited.text) == {**data, key: value}
    assert list(json.loads(edited.text)) == [*data, key]


@given(DOCUMENTS, SCALARS, ENDS, MARKS, st.data())
def test_toml_random_edits_touch_only_the_value(data, value, end, mark, draw):
    text = mark + tomlkit.dumps(data).replace("\r\n", "\n").replace("\n", end)
    try:
        data = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return
    paths = list(leaf_paths(data))
    if not paths:
        return
    document = open_toml(text, "f")
    path = draw.draw(st.sampled_from(paths))
    place = document.scan.entries[path]
    edited = document.set(path, value)
    tail = len(text) - place.value_end
    assert edited.text[: place.value_start] == text[: place.value_start]
    assert edited.text[len(edited.text) - tail :] == text[place.value_end :]
    assert tomllib.loads(edited.text.removeprefix("\ufeff")) == with_value(data, path, value)


@given(DOCUMENTS, KEYS, KEYS, SCALARS, ENDS)
def test_toml_random_insertions_only_add_lines(data, table, key, value, end):
    text = tomlkit.dumps(data).replace("\r\n", "\n").replace("\n", end)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    if table in data and (not isinstance(data[table], dict) or key in data[table]):
        return
    edited = open_toml(text, "f").set((table, key), value)
    start, ending = common(text, edited.text)
    assert start + ending == len(text)
    assert tomllib.loads(edited.text) == with_value(data, (table, key), value)


@given(DOCUMENTS)
def test_toml_places_of_keys_are_where_the_keys_stand(data):
    text = tomlkit.dumps(data)
    document = open_toml(text, "f")
    for path, _ in document.leaves():
        place = document.locate(path)
        assert place is not None
        rest = text.split("\n", place.line - 1)[-1][place.column - 1 :]
        quoted = tomlkit.dumps({path[-1]: 1}).partition(" =")[0]
        assert rest.startswith((path[-1], quoted))


def test_toml_nested_too_deeply_is_told_and_not_a_crash():
    assert problem(open_toml, "a = " + "[" * 5000 + "]" * 5000).code == "toml-too-deep"


def test_half_a_character_never_gets_into_a_file():
    for document in (open_toml('a = "x"\n', "config.toml"), open_json('{"a": "x"}', "settings.json")):
        with pytest.raises(LabError) as caught:
            document.set(("a",), "\udc80")
        assert caught.value.findings[0].code == "half-character"
