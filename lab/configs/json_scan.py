"""A JSON parser that keeps the place of every key and value (RFC 8259, strict)."""

from __future__ import annotations

import json
import json.decoder
import re
from dataclasses import dataclass

from lab.configs.positions import BOM, Path, lone_surrogate, odd_character, position
from lab.findings import Finding, LabError, Param

_SPACE = " \t\r\n"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: tuple[tuple[str, object], ...] = (("true", True), ("false", False), ("null", None))
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Node:
    """`value` is the Python value; objects have members, arrays have items; offsets are of the whole text."""

    start: int
    end: int
    value: object
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()

    def member(self, key: str) -> Member | None:
        return next((member for member in self.members if member.key == key), None)

    def find(self, path: Path) -> Node | None:
        node: Node | None = self
        for part in path:
            if node is None:
                return None
            if isinstance(part, int):
                node = node.items[part] if 0 <= part < len(node.items) else None
            else:
                member = node.member(part)
                node = None if member is None else member.node
        return node


@dataclass(frozen=True, slots=True)
class Member:
    key: str
    key_start: int
    key_end: int
    node: Node


def scan_json(text: str, file: str | None = None) -> Node:
    """The document as a tree. A leading byte-order mark is skipped; duplicate keys and anything lax are errors."""
    return _Scanner(text, file).document()


def _read_string(text: str, start: int) -> tuple[str, int]:
    value, end = json.decoder.scanstring(text, start, True)  # type: ignore[attr-defined]  # not in typeshed
    return str(value), int(end)


class _Scanner:
    def __init__(self, text: str, file: str | None) -> None:
        self.text = text
        self.file = file
        self.at = 1 if text.startswith(BOM) else 0

    def document(self) -> Node:
        self._skip()
        if self.at == len(self.text):
            raise self._error("json-empty")
        node = self._value(0)
        self._skip()
        if self.at < len(self.text):
            raise self._error("json-extra-text")
        return node

    def _value(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self._error("json-too-deep")
        match self.text[self.at : self.at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                start = self.at
                value = self._string()
                return Node(start, self.at, value)
        return self._plain()

    def _string(self) -> str:
        start = self.at
        try:
            value, self.at = _read_string(self.text, self.at + 1)
        except json.JSONDecodeError as problem:
            at = min(problem.pos, len(self.text))
            control = "\n" != self.text[at : at + 1] < " " and problem.msg.startswith("Invalid control")
            raise self._error("json-control-character" if control else "json-bad-string", at=at) from None
        if lone_surrogate(value) is not None:
            raise self._error("half-character", at=start)
        return value

    def _plain(self) -> Node:
        start = self.at
        for word, value in _WORDS:
            if self.text.startswith(word, start):
                self.at = start + len(word)
                return Node(start, self.at, value)
        match = _NUMBER.match(self.text, start)
        if match is None:
            raise self._error("json-expected-value")
        self.at = match.end()
        shown = match.group()
        if len(shown) > 400:
            raise self._error("json-bad-number", at=start)
        return Node(start, self.at, float(shown) if match.group(1) or match.group(2) else int(shown))

    def _object(self, depth: int) -> Node:
        start = self.at
        members: list[Member] = []
        seen: dict[str, int] = {}
        while self._more("}", first=not members):
            key_start = self.at
            if self.text[key_start : key_start + 1] != '"':
                raise self._error("json-expected-key")
            key = self._string()
            if key in seen:
                first = position(self.text, seen[key]).line
                raise self._error("duplicate-key", at=key_start, key=key, first_line=first)
            seen[key] = key_start
            key_end = self.at
            self._skip()
            if self.text[self.at : self.at + 1] != ":":
                raise self._error("json-expected-colon")
            self.at += 1
            self._skip()
            members.append(Member(key, key_start, key_end, self._value(depth + 1)))
        return Node(start, self.at, {member.key: member.node.value for member in members}, tuple(members))

    def _array(self, depth: int) -> Node:
        start = self.at
        items: list[Node] = []
        while self._more("]", first=not items):
            items.append(self._value(depth + 1))
        return Node(start, self.at, [item.value for item in items], (), tuple(items))

    def _more(self, closing: str, *, first: bool) -> bool:
        """Steps over the opening bracket or a comma; False once the closing bracket was taken."""
        if not first:
            self._skip()
            if self._take(closing):
                return False
            if not self._take(","):
                raise self._error("json-expected-comma")
            comma = self.at - 1
            self._skip()
            if self.text[self.at : self.at + 1] == closing:
                raise self._error("json-trailing-comma", at=comma)
            return True
        self.at += 1
        self._skip()
        return not self._take(closing)

    def _take(self, character: str) -> bool:
        if self.text[self.at : self.at + 1] != character:
            return False
        self.at += 1
        return True

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1

    def _error(self, code: str, at: int | None = None, **params: Param) -> LabError:
        place = position(self.text, self.at if at is None else at)
        if code.startswith("json-"):
            odd = odd_character(self.text, place.line, self.file)
            if odd is not None:
                return LabError(odd)
            if self.text.startswith(("//", "/*", "#"), self.at):
                code = "json-comment"
            elif code in ("json-expected-comma", "json-expected-key") and self.at == len(self.text):
                code = "json-unclosed"
        return LabError(Finding(code, "error", params, self.file, place.line, place.column))
