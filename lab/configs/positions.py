"""Where in a text something stands, and which look-alike character broke it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from lab.findings import Finding

BOM = "\ufeff"
Path = tuple[str | int, ...]

# Marks that blog editors and Chinese input methods put where the file format wants ASCII.
LOOKALIKES = {
    "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "＂": '"', "＇": "'", "＝": "=", "：": ":", "，": ",", "、": ",",
    "；": ";", "［": "[", "］": "]", "【": "[", "】": "]", "｛": "{", "｝": "}", "＃": "#", "．": ".", "－": "-",
    "–": "-", "—": "-", "\u00a0": " ", "\u3000": " ", "\u200b": "", "\u200c": "", "\u200d": "", "\u2060": "",
    **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
}  # fmt: skip

_SURROGATE = re.compile("[\ud800-\udfff]")
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|#[^\n]*")


@dataclass(frozen=True, slots=True)
class Position:
    """Counted from 1; a byte-order mark takes no column."""

    line: int
    column: int


def position(text: str, offset: int) -> Position:
    line_start = text.rfind("\n", 0, offset) + 1
    column = offset - line_start + 1
    if line_start == 0 and text.startswith(BOM):
        column = max(1, column - 1)
    return Position(text.count("\n", 0, offset) + 1, column)


def lone_surrogate(text: str) -> int | None:
    """Where half of a character stands, which no file can hold; None where there is none."""
    found = _SURROGATE.search(text)
    return None if found is None else found.start()


def line_end_of(text: str) -> str:
    """The line end that the text uses (its first one); "\\n" where it has none."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def odd_character(text: str, line: int, file: str | None) -> Finding | None:
    """The first character of that line, outside strings and comments, that looks like ASCII and is not."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None
    shown = lines[line - 1].removeprefix(BOM) if line == 1 else lines[line - 1]
    if BOM in shown:
        return Finding("bom-inside", params={"line": line}, file=file, line=line, column=shown.index(BOM) + 1)
    outside = _QUOTED.sub(lambda match: " " * len(match.group()), shown)
    for column, character in enumerate(outside, start=1):
        if character in LOOKALIKES:
            params = {
                "character": character,
                "code": f"U+{ord(character):04X}",
                "name": unicodedata.name(character, "unnamed").lower(),
                "ascii": LOOKALIKES[character],
            }
            return Finding("lookalike-character", params=params, file=file, line=line, column=column)
    return None


def same_value(old: object, new: object) -> bool:
    """Whether writing `new` over `old` would change nothing: `1` holds 1.0, `64.0` does not hold the integer 64."""
    if isinstance(old, bool) or isinstance(new, bool):
        return isinstance(old, bool) and isinstance(new, bool) and old == new
    if isinstance(old, int) and isinstance(new, int | float):
        return old == new
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(same_value(*pair) for pair in zip(old, new, strict=True))
    return type(old) is type(new) and old == new
