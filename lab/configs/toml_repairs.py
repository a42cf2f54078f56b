"""What would make a broken line of TOML readable: tried on the line alone, so that nothing else can change."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from lab.configs.edits import Edit, Fix, apply_edits
from lab.configs.positions import BOM, LOOKALIKES
from lab.configs.toml_scan import find_duplicates
from lab.findings import Finding

_PAIR = re.compile(
    r"^(?P<lead>[ \t]*)(?P<key>[A-Za-z_][\w.-]*)(?P<gap>[ \t]*)(?P<sign>=>|:=|==|[:=]?)(?P<after>[ \t]*)"
)
_VALUE = re.compile(
    r"""(?P<value>"(?:\\.|[^"\\])*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^#;]*?)(?P<tail>[ \t]*[,;]?)[ \t]*(?P<note>#.*)?$"""
)
_NEXT_PAIR = re.compile(r"""(?P<gap>[ \t]+)(?=[A-Za-z_][\w.-]*[ \t]*=(?!=))|(?<=\])(?P<gap2>[ \t]+)(?=[A-Za-z_])""")
_GLUED_HEADER = re.compile(r"(?<=[^\[\]\s])[ \t]*(?=\[[A-Za-z_][\w.]*\][ \t]*(?:[A-Za-z_]|$))")
_OPEN_HEADER = re.compile(r"^[ \t]*\[{1,2}[A-Za-z_][\w.-]*[ \t]*$")
_QUOTES = {"“": "”", "”": "”", "„": "”", "‘": "’", "＂": "＂", "＇": "＇"}
_WORDS = {"true": "true", "false": "false", "yes": "true", "no": "false", "on": "true", "off": "false"}
_TOKEN = re.compile(r"[\w./:@+-]+")
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'")


def toml_fix(text: str, finding: Finding, offset: int) -> Fix | None:
    """The edits for the fault at `offset`; those that only step over its line where nothing is sure."""
    start = text.rfind("\n", 0, offset) + 1
    end = _line_end(text, offset)
    line = text[start:end]
    if finding.code == "bom-inside":
        return Fix(tuple(Edit(start + at, start + at + 1, "") for at, c in enumerate(line) if c == BOM))
    if finding.code == "duplicate-key":
        return _duplicate(text, start, end)
    edits = curly_edits(line) if finding.code == "lookalike-character" else next(_candidates(line), None)
    if edits:
        return Fix(tuple(Edit(start + edit.start, start + edit.end, edit.new) for edit in edits))
    return Fix((Edit(start, end, ""),), sure=False) if line.strip() else None


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    return end - 1 if end and text[end - 1 : end] == "\r" else end


def curly_edits(line: str, *, comments: bool = True) -> list[Edit]:
    """Every such mark outside strings and comments; between curly quotes only the quotes themselves."""
    edits: list[Edit] = []
    at = 0
    while at < len(line):
        string = _STRING.match(line, at)
        if string is not None:
            at = string.end()
            continue
        mark = line[at]
        if comments and mark == "#":
            break
        if mark in _QUOTES:
            closing = _closing(line, at)
            quote = LOOKALIKES[mark]
            edits.append(Edit(at, at + 1, quote))
            if closing > at:
                edits.append(Edit(closing, closing + 1, quote))
                at = closing
        elif mark in LOOKALIKES:
            edits.append(Edit(at, at + 1, "=" if comments and LOOKALIKES[mark] == ":" else LOOKALIKES[mark]))
        at += 1
    return edits


def _closing(line: str, at: int) -> int:
    """The quote that closes a curly one: a curly one of its kind, else a straight one; -1 where there is none."""
    wanted = {_QUOTES[line[at]], LOOKALIKES[line[at]]}
    return next((i for i in range(at + 1, len(line)) if line[i] in wanted), -1)


def _candidates(line: str) -> Iterator[list[Edit]]:
    """Edits of a line after which it can be read, the smallest first."""
    for edits in (*_value_edits(line), *_structure_edits(line)):
        if edits and _reads(apply_edits(line, edits)):
            yield edits


def _value_edits(line: str) -> Iterator[list[Edit]]:
    pair = _PAIR.match(line)
    value = _VALUE.match(line, pair.end()) if pair else None
    if pair is None or value is None or not value.group("value"):
        return
    signs = _sign_edits(pair)
    tail = [Edit(value.start("tail"), value.end("tail"), "")] if value.group("tail").strip() else []
    yield [*signs, *tail]
    shown = value.group("value").rstrip()
    start, end = value.start("value"), value.start("value") + len(shown)
    for spelled in _spellings(shown):
        yield [*signs, Edit(start, end, spelled), *tail]


def _sign_edits(pair: re.Match[str]) -> list[Edit]:
    """The equals sign, where another sign or none stands."""
    if pair.group("sign") == "=":
        return []
    if pair.group("sign"):
        lead = "" if pair.group("gap") else " "
        return [Edit(pair.start("sign"), pair.end("sign"), f"{lead}=")]
    return [Edit(pair.end("gap"), pair.end("gap"), "= ")] if pair.group("gap") else []


def _spellings(value: str) -> Iterator[str]:
    if value.lower() in _WORDS:
        yield _WORDS[value.lower()]
    if re.fullmatch(r"[+-]?\.\d+", value):
        yield value.replace(".", "0.", 1)
    if re.fullmatch(r"[+-]?\d+\.", value):
        yield value + "0"
    if value[0] in "\"'" and value[-1] != value[0]:
        yield value.rstrip("\"'") + value[0]
    if value[-1] in "\"'" and value[0] not in "\"'":
        yield value[-1] + value
    if _TOKEN.fullmatch(value):
        yield f'"{value}"'


def _structure_edits(line: str) -> Iterator[list[Edit]]:
    """Line breaks between settings that stand in one line, and the bracket of a header."""
    if _OPEN_HEADER.match(line):
        yield [Edit(len(line.rstrip()), len(line.rstrip()), "]" * line.count("["))]
    breaks = [Edit(match.start(), match.end(), "\n") for match in _outside_strings(_NEXT_PAIR, line)]
    headers = [Edit(match.start(), match.end(), "\n") for match in _outside_strings(_GLUED_HEADER, line)]
    yield breaks
    yield [*breaks, *(edit for edit in headers if edit not in breaks)]


def _outside_strings(pattern: re.Pattern[str], line: str) -> list[re.Match[str]]:
    strings = [match.span() for match in _STRING.finditer(line)]
    return [m for m in pattern.finditer(line) if not any(start <= m.start() < end for start, end in strings)]


def _reads(text: str) -> bool:
    try:
        return bool(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return False


def _duplicate(text: str, start: int, end: int) -> Fix | None:
    """The second of two equal lines goes; of two different ones nobody knows which is meant."""
    twice = find_duplicates(text)
    if not twice or text[start:end].lstrip().startswith("["):
        return None
    first = text.rfind("\n", 0, twice[0][1]) + 1
    earlier, later = (_setting(text[at : _line_end(text, at)]) for at in (first, start))
    after = text.find("\n", end) + 1 or len(text)
    return Fix((Edit(start, after, ""),), sure=earlier is not None and earlier == later)


def _setting(line: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(line.removeprefix(BOM)) or None
    except tomllib.TOMLDecodeError:
        return None
