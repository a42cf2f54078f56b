"""What would make a fault in a JSON text readable, by the fault's code and place."""

from __future__ import annotations

import json
import re

from lab.configs.edits import Edit, Fix
from lab.configs.positions import BOM
from lab.configs.toml_repairs import curly_edits
from lab.findings import Finding

_COMMENT = re.compile(r"[ \t]*(?://[^\n]*?(?=\r?$|\r?\n)|#[^\n]*?(?=\r?$|\r?\n)|/\*.*?\*/)", re.S)
_BARE = re.compile(r"[^\s,:{}\[\]\"']+")
_SINGLE = re.compile(r"'((?:\\.|[^'\\\n])*)'")
_NUMBER = re.compile(r"\+?-?\d*\.?\d+(?:[eE][+-]?\d+)?\.?(?=[\s,}\]])")
_WORDS = {"true": "true", "false": "false", "none": "null", "null": "null"}
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf(?:inity)?)\b", re.I)
_CLOSERS = {"{": "}", "[": "]"}
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def json_fix(text: str, finding: Finding, offset: int) -> Fix | None:
    """The edits for the fault at `offset`; None where it cannot even be stepped over."""
    match finding.code:
        case "lookalike-character":
            return _lookalike(text, offset)
        case "bom-inside":
            return Fix((Edit(offset, offset + 1, ""),)) if text[offset : offset + 1] == BOM else None
        case "json-comment":
            return _comment(text, offset)
        case "json-trailing-comma":
            return Fix((Edit(offset, offset + 1, ""),))
        case "json-empty":
            return Fix((Edit(len(text), len(text), "{}\n"),))
        case "json-unclosed":
            return _closed(text)
        case "json-expected-comma":
            return _comma(text, offset)
        case "json-expected-key":
            return _key(text, offset)
        case "json-expected-colon":
            return _colon(text, offset)
        case "json-expected-value":
            return _value(text, offset)
        case "json-control-character":
            return Fix((Edit(offset, offset + 1, json.dumps(text[offset])[1:-1]),))
        case "json-bad-string":
            return _string(text, offset)
        case "json-extra-text":
            rest = text[offset:]
            return Fix((Edit(offset, len(text), "\n"),), sure=not rest.strip(" \t\r\n}]"))
        case "duplicate-key":
            return _duplicate(text, offset)
    return None


def _lookalike(text: str, offset: int) -> Fix | None:
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[start : len(text) if end < 0 else end]
    edits = curly_edits(line, comments=False)
    return Fix(tuple(Edit(start + each.start, start + each.end, each.new) for each in edits)) if edits else None


def _comment(text: str, offset: int) -> Fix | None:
    start = len(text[:offset].rstrip(" \t"))
    match = _COMMENT.match(text, start)
    if match is None:
        return None
    alone = text[:start].endswith("\n") and text[match.end() : match.end() + 2].startswith(("\n", "\r\n"))
    end = text.index("\n", match.end()) + 1 if alone else match.end()
    return Fix((Edit(start, end, ""),))


def _comma(text: str, offset: int) -> Fix | None:
    if offset >= len(text.rstrip()):
        return _closed(text)
    before = len(text[:offset].rstrip())
    here, last = text[offset], text[before - 1]
    if last.isdigit() and here.isdigit() and before == offset:
        return _leading_zeros(text, offset)
    if here == ";":
        return Fix((Edit(offset, offset + 1, ","),))
    starts = here in "\"'{[-" or here.isalnum()
    if starts and (before < offset or here in '"{['):
        return Fix((Edit(before, before, ","),))
    if before == offset:  # the value goes on: a number with a unit, a word glued to it
        end = _BARE.match(text, offset)
        return Fix((Edit(offset, end.end(), ""),), sure=False) if end else None
    return Fix((Edit(offset, offset + 1, ""),), sure=False)


def _leading_zeros(text: str, offset: int) -> Fix:
    start = offset
    while start and text[start - 1] == "0":
        start -= 1
    return Fix((Edit(start, offset, ""),))


def _closed(text: str) -> Fix | None:
    """The brackets that are still open at the end."""
    stack: list[str] = []
    for character in _STRING.sub('""', text):
        if character in _CLOSERS:
            stack.append(_CLOSERS[character])
        elif stack and character == stack[-1]:
            stack.pop()
    end = len(text.rstrip())
    return Fix((Edit(end, end, "".join(reversed(stack))),)) if stack else None


def _key(text: str, offset: int) -> Fix | None:
    if offset >= len(text.rstrip()):
        return _closed(text)
    if text[offset] == ",":
        return Fix((Edit(offset, offset + 1, ""),))
    single = _SINGLE.match(text, offset)
    if single is not None:
        return Fix((Edit(offset, single.end(), json.dumps(single.group(1), ensure_ascii=False)),))
    bare = _BARE.match(text, offset)
    if bare is None:
        return None
    name = bare.group().rstrip("=")
    return Fix((Edit(offset, offset + len(name), json.dumps(name, ensure_ascii=False)),)) if name else None


def _colon(text: str, offset: int) -> Fix | None:
    if offset >= len(text.rstrip()):
        return None
    sign = re.compile(r"=>|:=|==|=").match(text, offset)
    if sign is not None:
        before = len(text[:offset].rstrip(" \t"))
        return Fix((Edit(before, sign.end(), ":"),))
    if text[offset] in ",}":
        return None
    before = len(text[:offset].rstrip())
    return Fix((Edit(before, before, ":"),))


def _value(text: str, offset: int) -> Fix | None:
    if offset >= len(text.rstrip()):
        return _closed(text) if text.rstrip().endswith((",", "[", "{")) else None
    if not text[:offset].strip(" \t\r\n\ufeff"):
        return None  # no document at all
    odd = _NO_NUMBER.match(text, offset)
    if odd is not None:
        return Fix((Edit(offset, odd.end(), "null"),), sure=False)
    number = _NUMBER.match(text, offset)
    if number is not None:
        return _number(offset, number.group())
    single = _SINGLE.match(text, offset)
    if single is not None:
        return Fix((Edit(offset, single.end(), json.dumps(single.group(1), ensure_ascii=False)),))
    end = re.compile(r"[,}\]\r\n]").search(text, offset)
    word = text[offset : end.start() if end else len(text)].rstrip()
    if not word:
        return Fix((Edit(offset, offset, "null"),), sure=False)
    spelled = _WORDS.get(word.lower()) or json.dumps(word.strip('"'), ensure_ascii=False)
    return Fix((Edit(offset, offset + len(word), spelled),))


def _number(offset: int, shown: str) -> Fix:
    """`.9`, `+1` and `5.` are numbers elsewhere."""
    spelled = re.sub(r"^(-?)\.", r"\g<1>0.", shown.lstrip("+")).rstrip(".")
    return Fix((Edit(offset, offset + len(shown), spelled),))


def _string(text: str, offset: int) -> Fix | None:
    """A backslash that must be escaped, or the quote that is missing at the end of the line."""
    start = text.rfind("\n", 0, offset) + 1
    wrong = re.compile(r'\\(?![\\"/bfnrtu])').search(text, start, len(text))
    line_end = text.find("\n", offset)
    line_end = len(text) if line_end < 0 else line_end
    if wrong is not None and wrong.start() < line_end and wrong.start() <= offset:
        return Fix((Edit(wrong.start(), wrong.start() + 1, "\\\\"),))
    opening = text.rfind('"', start, offset + 1)
    if opening < 0:
        return None
    end = len(text[:line_end].rstrip(" \t\r,"))
    return Fix((Edit(end, end, '"'),)) if end > opening else None


def _duplicate(text: str, offset: int) -> Fix | None:
    """The second of two equal members goes; of two different ones nobody knows which is meant."""
    decoder = json.JSONDecoder()
    try:
        key, key_end = decoder.raw_decode(text, offset)
        colon = re.compile(r"\s*:\s*").match(text, key_end)
        value, end = decoder.raw_decode(text, colon.end() if colon else key_end)
    except ValueError:
        return None
    earlier = list(re.finditer(re.escape(json.dumps(key)) + r"\s*:\s*", text[:offset]))
    same = False
    if earlier:
        try:
            same = decoder.raw_decode(text, earlier[-1].end())[0] == value
        except ValueError:
            same = False
    comma = len(text[:offset].rstrip())
    start = comma - 1 if text[comma - 1] == "," else offset
    return Fix((Edit(start, end, ""),), sure=same)
