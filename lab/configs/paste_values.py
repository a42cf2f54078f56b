"""One value in a text whose quotes, signs and blanks may be lost: read by the type that its key wants."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from lab.configs.dialects import Entry
from lab.configs.gateway import DEFAULT_KEY_VARIABLE
from lab.configs.knobs import Kind, Knob, Switch
from lab.configs.secrets import is_literal_secret, is_secret_key

_BETWEEN = re.compile(r"""["'`]?[ \t\r\n]*(=>|:=|[=:])?[ \t\r\n]*""")
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*(?:\.\d[\d_]*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\d.]*\d)")
_TRUTH = re.compile(r"(?i)true|false")
_QUOTED = re.compile(r"\"((?:\\.|[^\"\\\n])*)\"|'([^'\n]*)'|`([^`\n]*)`")
_WORD = re.compile(r"(?:\$\{\w+\}|\{env:\w+\}|[^\s,;{}\[\]()<>\"'`#\x00\u3000-\u303f\u4e00-\u9fff\uff00-\uffef])+")
_PLACEHOLDER = re.compile(r"\$\{\w+\}|\{env:\w+\}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9](?![A-Z0-9_.-])")
_KEY_WORD = re.compile(r"""[^\s,;{}\[\]()<>"'`#\x00]*""")
_LIST_GAP = re.compile(r"[ \t\r\n]*,?[ \t\r\n]*")
_ADDRESS = re.compile(r"(https?)(?::/{0,2}|/{0,2})(?=[\w.])")
_SURE_WORD = re.compile(r"[-/.:\d$]")
# capitals and figures without an underscore may be a key itself
_NAME = re.compile(r"\$?([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z]+)")
_LONGEST_NUMBER = 40


@dataclass(frozen=True, slots=True)
class ReadValue:
    """`literal` is a number's own spelling; `reasons` say what was guessed; `secret`: a key was left out.

    `word` is where a bare word begins, which may have swallowed what follows; None for everything else.
    """

    value: object
    end: int
    literal: str | None = None
    reasons: tuple[str, ...] = ()
    secret: bool = False
    word: int | None = None


def kind_of(entry: Entry) -> Kind:
    """The type a key wants; what is gone from the engine took whole numbers."""
    if isinstance(entry, Knob):
        return entry.kind
    return "bool" if isinstance(entry, Switch) else "int"


def read_after(text: str, at: int, entry: Entry, name: str, *, inside: bool) -> ReadValue | None:
    """The value behind a key that ends at `at`; None where nothing of its type stands there.

    `inside` a block, a word may stand glued to its key; elsewhere that would be prose.
    """
    gap = _BETWEEN.match(text, at)
    start = gap.end() if gap else at
    reasons = () if start > at else ("paste-glued",)
    if reasons and kind_of(entry) in ("str", "choice") and not _may_be_glued(text, start, inside):
        return None
    if is_secret_key(name) or name.endswith("_env"):
        return _secret(text, start, name, reasons)
    if isinstance(entry, Knob) and entry.many:
        return _many(text, start, entry, reasons)
    return _one(text, start, entry, reasons)


def _may_be_glued(text: str, start: int, inside: bool) -> bool:
    word = _WORD.match(text, start)
    if word is None or text[start] in "_-.":
        return False
    if word.group().startswith(("http", "$")) or word.group().isupper():
        return True
    return inside and len(word.group()) > 2 and _SURE_WORD.search(word.group()) is not None


def _one(text: str, start: int, entry: Entry, reasons: tuple[str, ...]) -> ReadValue | None:
    kind = kind_of(entry)
    quoted = _QUOTED.match(text, start)
    if quoted is None:
        return _plain(text, start, entry, kind, reasons)
    inner = next(group for group in quoted.groups() if group is not None)
    if kind in ("str", "choice"):
        return ReadValue(_address(inner)[0], quoted.end(), reasons=reasons)
    found = _plain(inner, 0, entry, kind, (*reasons, "paste-was-text"))
    if found is None or found.end != len(inner):
        return None
    return ReadValue(found.value, quoted.end(), found.literal, found.reasons)


def _plain(text: str, start: int, entry: Entry, kind: Kind, reasons: tuple[str, ...]) -> ReadValue | None:
    if kind in ("int", "float"):
        return _number(text, start, kind, reasons)
    if kind == "bool":
        match = _TRUTH.match(text, start)
        if match is None:
            return None
        odd = () if match.group() in ("true", "false") else ("paste-value-respelled",)
        return ReadValue(match.group().lower() == "true", match.end(), reasons=(*reasons, *odd))
    if isinstance(entry, Knob) and entry.choices:
        fitting = [choice for choice in entry.choices if text.startswith(choice, start)]
        if fitting:
            choice = max(fitting, key=len)
            return ReadValue(choice, start + len(choice), reasons=reasons)
    word = _WORD.match(text, start)
    if word is None:
        return None
    value, rebuilt = _address(word.group().rstrip("."))
    reasons = (*reasons, "paste-address-rebuilt") if rebuilt else reasons
    return ReadValue(value, word.end(), reasons=reasons, word=start)


def _number(text: str, start: int, kind: Kind, reasons: tuple[str, ...]) -> ReadValue | None:
    match = _NUMBER.match(text, start)
    if match is None:
        return None
    literal = match.group()
    plain = literal.replace("_", "").lstrip("+")
    if len(plain) > _LONGEST_NUMBER or not math.isfinite(float(plain)):
        return None
    if not re.search(r"[.eE]", plain):
        return ReadValue(int(plain), match.end(), literal, reasons)
    value = float(plain)
    if kind == "int" and value.is_integer():
        return ReadValue(int(value), match.end(), None, (*reasons, "paste-value-respelled"))
    if plain.lstrip("-").startswith("."):
        return ReadValue(value, match.end(), None, (*reasons, "paste-value-respelled"))
    return ReadValue(value, match.end(), literal, reasons)


def _many(text: str, start: int, entry: Knob, reasons: tuple[str, ...]) -> ReadValue | None:
    """A list, with or without its brackets; one value alone stays one value."""
    bracket = text.startswith("[", start)
    at = start + bracket
    items: list[object] = []
    while True:
        gap = _LIST_GAP.match(text, at)
        here = gap.end() if gap and (items or bracket) else at
        found = _plain(text, here, entry, entry.kind, ())
        if found is None or (items and here == at):
            break
        items.append(found.value)
        at = found.end
    if bracket:
        closing = _LIST_GAP.match(text, at)
        at = closing.end() if closing else at
        if not text.startswith("]", at):
            return None
        return ReadValue(items, at + 1, reasons=reasons)
    if not items:
        return None
    if len(items) == 1:
        return ReadValue(items[0], at, reasons=reasons)
    return ReadValue(items, at, reasons=(*reasons, "paste-list-rebuilt"))


def _secret(text: str, start: int, name: str, reasons: tuple[str, ...]) -> ReadValue | None:
    """A placeholder or the name of a variable; a key written out becomes one, and is never kept."""
    quoted = _QUOTED.match(text, start)
    by_name = name.endswith("_env")
    word = (
        (_VARIABLE if by_name else _PLACEHOLDER).match(text, start)
        or _WORD.match(text, start)
        or _KEY_WORD.match(text, start)
    )
    inner = next(group for group in quoted.groups() if group is not None) if quoted else word.group() if word else ""
    if not inner:
        return None
    end = quoted.end() if quoted else word.end() if word else start
    variable = _NAME.fullmatch(inner)
    if not is_literal_secret(name, inner):
        return ReadValue(inner, end, reasons=reasons, word=None if quoted else start)
    if variable is not None:
        shown = variable.group(1) if by_name else f"${{{variable.group(1)}}}"
        return ReadValue(shown, end, reasons=(*reasons, "paste-placeholder-rebuilt"))
    if not quoted and word is not None:
        end = max(end, tail.end() if (tail := _KEY_WORD.match(text, start)) else end)
    shown = DEFAULT_KEY_VARIABLE if by_name else f"${{{DEFAULT_KEY_VARIABLE}}}"
    return ReadValue(shown, end, reasons=(*reasons, "paste-key-left-out"), secret=True)


def _address(word: str) -> tuple[str, bool]:
    """An address whose colon or slashes are lost gets them back."""
    match = _ADDRESS.match(word)
    if match is None:
        return word, False
    whole = f"{match.group(1)}://{word[match.end() :]}"
    return whole, whole != word
