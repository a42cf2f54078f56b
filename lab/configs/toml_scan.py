"""The places of tables, keys and values in a TOML text.

tomlkit keeps layout but knows no offsets, and findings need lines while an edit must change one value's characters
only. This reads texts that `tomllib` accepted; on others it is used for duplicates only and stops where it is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.configs.positions import BOM, Path

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "e": "\x1b"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|(.))", re.S)


@dataclass(frozen=True, slots=True)
class Entry:
    """`key = value`; `inline` inside braces. An array's items are entries without a key (key_start is the value's)."""

    path: Path
    table: Path
    key_start: int
    value_start: int
    value_end: int
    inline: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    path: Path
    start: int
    end: int


@dataclass(slots=True)
class Scan:
    entries: dict[Path, Entry] = field(default_factory=dict)
    headers: dict[Path, Header] = field(default_factory=dict)
    duplicates: list[tuple[Path, int, int]] = field(default_factory=list)

    def first_header(self) -> Header | None:
        return min(self.headers.values(), key=lambda header: header.start, default=None)

    def entries_of(self, table: Path) -> list[Entry]:
        """The lines of one table, in the order of the file."""
        return [entry for entry in self.entries.values() if entry.table == table and not entry.inline]


class NotTomlError(Exception):
    """The text is no TOML at this place."""


def scan_toml(text: str) -> Scan:
    """All places. Raises `NotTomlError` on text that is not TOML."""
    scanner = _Scanner(text)
    scanner.run()
    return scanner.scan


def find_duplicates(text: str) -> list[tuple[Path, int, int]]:
    """Path, offset of the first and of the second place, as far as the text can be read."""
    scanner = _Scanner(text)
    try:
        scanner.run()
    except (NotTomlError, IndexError):
        return scanner.scan.duplicates
    return scanner.scan.duplicates


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith(BOM) else 0
        self.scan = Scan()
        self.table: Path = ()
        self.counts: dict[Path, int] = {}

    def run(self) -> None:
        self._skip(lines=True)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                self._header()
            else:
                self._entry(self.table, inline=False)
            self._skip(lines=False)
            if self.at < len(self.text) and self.text[self.at] not in "\r\n":
                raise NotTomlError
            self._skip(lines=True)

    def _header(self) -> None:
        start = self.at
        array = self.text.startswith("[[", start)
        self.at += 2 if array else 1
        parts = self._key()
        if not self.text.startswith("]]" if array else "]", self.at):
            raise NotTomlError
        self.at += 2 if array else 1
        self.table = self._resolved(parts, array)
        self._remember_header(Header(self.table, start, self.at))

    def _resolved(self, parts: tuple[str, ...], array: bool) -> Path:
        path: Path = ()
        for index, part in enumerate(parts):
            path = (*path, part)
            last = index == len(parts) - 1
            if last and array:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def _remember_header(self, header: Header) -> None:
        known = self.scan.headers.get(header.path)
        if known is not None:
            self.scan.duplicates.append((header.path, known.start, header.start))
        else:
            self.scan.headers[header.path] = header

    def _entry(self, table: Path, *, inline: bool) -> None:
        key_start = self.at
        path = (*table, *self._key())
        if self.text[self.at : self.at + 1] != "=":
            raise NotTomlError
        self.at += 1
        self._skip(lines=False)
        start = self.at
        self._value(path)
        entry = Entry(path, self.table, key_start, start, self.at, inline)
        known = self.scan.entries.get(path)
        if known is not None:
            self.scan.duplicates.append((path, known.key_start, key_start))
        else:
            self.scan.entries[path] = entry

    def _key(self) -> tuple[str, ...]:
        parts = []
        while True:
            self._skip(lines=False)
            parts.append(self._key_part())
            self._skip(lines=False)
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def _key_part(self) -> str:
        character = self.text[self.at : self.at + 1]
        start = self.at
        if character in ('"', "'") and character:
            self._string()
            inside = self.text[start + 1 : self.at - 1]
            return inside if character == "'" else _ESCAPE.sub(_unescaped, inside)
        match = _BARE.match(self.text, start)
        if match is None:
            raise NotTomlError
        self.at = match.end()
        return match.group()

    def _value(self, path: Path) -> None:
        character = self.text[self.at : self.at + 1]
        if character in ('"', "'") and character:
            self._string()
        elif character == "[":
            self._array(path)
        elif character == "{":
            self._inline_table(path)
        else:
            self._plain()

    def _plain(self) -> None:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ",]}#\r\n":
            self.at += 1
        self.at = start + len(self.text[start : self.at].rstrip(" \t"))
        if self.at == start:
            raise NotTomlError

    def _string(self) -> None:
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(mark)
        while not self.text.startswith(mark, self.at):
            if self.at >= len(self.text) or (len(mark) == 1 and self.text[self.at] == "\n"):
                raise NotTomlError
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(mark)
        # a multi-line string may end in up to two quotes of its own before the three that close it
        while len(mark) == 3 and self.text.startswith(quote, self.at):
            self.at += 1

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip(lines=True)
            if self.text[self.at : self.at + 1] == "]":
                self.at += 1
                return
            start = self.at
            here = (*path, index)
            self._value(here)
            self.scan.entries.setdefault(here, Entry(here, self.table, start, start, self.at, True))
            index += 1
            self._skip(lines=True)
            if self.text[self.at : self.at + 1] == ",":
                self.at += 1
            elif self.text[self.at : self.at + 1] != "]":
                raise NotTomlError

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while True:
            self._skip(lines=True)
            if self.text[self.at : self.at + 1] == "}":
                self.at += 1
                return
            self._entry(path, inline=True)
            self._skip(lines=True)
            if self.text[self.at : self.at + 1] == ",":
                self.at += 1
            elif self.text[self.at : self.at + 1] != "}":
                raise NotTomlError

    def _skip(self, *, lines: bool) -> None:
        """Over blanks and a comment; with `lines` over line ends too."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif character in " \t" or (lines and character in "\r\n"):
                self.at += 1
            else:
                return


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2) or match.group(3)
    return chr(int(code, 16)) if code else _ESCAPES.get(match.group(4), match.group(4))


def walk(data: Mapping[str, object], path: Path) -> object:
    """The value at a path of parsed TOML; a `KeyError` where there is none."""
    value: object = data
    for part in path:
        in_list = isinstance(part, int) and isinstance(value, list) and part < len(value)
        if not in_list and not (isinstance(part, str) and isinstance(value, dict) and part in value):
            raise KeyError(path)
        value = value[part]  # type: ignore[index]
    return value
