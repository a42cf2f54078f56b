"""A TOML text edited in place: only the characters of the changed value differ."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import tomlkit

from lab.configs.positions import (
    BOM,
    Path,
    Position,
    line_end_of,
    lone_surrogate,
    odd_character,
    position,
    same_value,
)
from lab.configs.toml_scan import Entry, Header, Scan, find_duplicates, scan_toml, walk
from lab.findings import Finding, LabError, Param, error

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_LOST_EQUALS = re.compile(r"^\s*[A-Za-z_][\w.-]*[ \t]+[^\s=#\[]")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def open_toml(text: str, file: str) -> TomlDocument:
    """The document; a `LabError` with line and column where the text is not TOML."""
    half = lone_surrogate(text)
    if half is not None:
        place = position(text, half)
        raise LabError(Finding("half-character", file=file, line=place.line, column=place.column))
    try:
        data = tomllib.loads(text.removeprefix(BOM))
        return TomlDocument(text, file, data, scan_toml(text))
    except tomllib.TOMLDecodeError as problem:
        raise LabError(_explained(text, file, str(problem))) from None
    except RecursionError:
        raise LabError(Finding("toml-too-deep", file=file, line=1, column=1)) from None


@dataclass(frozen=True, slots=True)
class TomlDocument:
    text: str
    file: str
    data: Mapping[str, object] = field(repr=False)
    scan: Scan = field(repr=False)

    def get(self, path: Path) -> object:
        """The value there; None where there is none."""
        try:
            return walk(self.data, path)
        except KeyError:
            return None

    def has(self, path: Path) -> bool:
        try:
            walk(self.data, path)
        except KeyError:
            return False
        return True

    def locate(self, path: Path) -> Position | None:
        """The place of the key, of the item in a list, or of the table's header."""
        entry = self.scan.entries.get(path)
        if entry is not None:
            return position(self.text, entry.key_start)
        header = self.scan.headers.get(path) or self.scan.headers.get((*path, 0))
        return None if header is None else position(self.text, header.start)

    def literal(self, path: Path) -> str | None:
        """The value as it is spelled; None where there is none, or where its table is not written as one value."""
        entry = self.scan.entries.get(path)
        return None if entry is None else self.text[entry.value_start : entry.value_end]

    def leaves(self) -> Iterator[tuple[tuple[str, ...], object]]:
        """Every value that is no table, with its path; a list is one value."""
        yield from _leaves(self.data, ())

    def span(self, path: Path) -> tuple[int, int] | None:
        """From the key's first character to the value's last; None where nothing is written as one value."""
        entry = self.scan.entries.get(path)
        return None if entry is None else (entry.key_start, entry.value_end)

    def set(self, path: Path, value: object, literal: str | None = None) -> TomlDocument:
        """The document with that value, spelled as `literal` where one is given."""
        entry = self.scan.entries.get(path)
        if entry is None:
            return self._inserted(path, literal or render(value))
        if same_value(self.get(path), value):
            return self
        return self._replaced(entry.value_start, entry.value_end, literal or render(value))

    def remove(self, path: Path) -> TomlDocument:
        """Takes the key's line away with its comment; inside braces only the key and its comma."""
        entry = self.scan.entries.get(path)
        if entry is None:
            return self
        if not entry.inline:
            start = self.text.rfind("\n", 0, entry.key_start) + 1
            return self._replaced(start, self._line_end(entry.value_end, with_break=True), "")
        before, after = self.text[: entry.key_start].rstrip(" \t"), self.text[entry.value_end :].lstrip(" \t")
        if after.startswith(","):
            return open_toml(self.text[: entry.key_start] + after[1:].lstrip(" \t"), self.file)
        return open_toml(before.removesuffix(",") + self.text[entry.value_end :], self.file)

    def _replaced(self, start: int, end: int, new: str) -> TomlDocument:
        return open_toml(self.text[:start] + new + self.text[end:], self.file)

    def _inserted(self, path: Path, literal: str) -> TomlDocument:
        table, key = path[:-1], f"{render_key(path[-1])} = {literal}"
        braces = self.scan.entries.get(table)
        if braces is not None:
            return self._into_braces(braces, key)
        lines = self.scan.entries_of(table)
        if lines:
            return self._after(lines[-1], key)
        dotted = [entry for entry in self.scan.entries.values() if not entry.inline and entry.path[:-1] == table]
        if table and dotted:
            prefix = ".".join(render_key(part) for part in table[len(dotted[-1].table) :])
            return self._after(dotted[-1], f"{prefix}.{key}")
        header = self.scan.headers.get(table)
        if header is not None:
            return self._line_at(self._line_end(header.end), key)
        return self._at_root(key) if not table else self._new_table(table, key)

    def _into_braces(self, braces: Entry, key: str) -> TomlDocument:
        if self.text[braces.value_start] != "{":
            raise error("no-table", path=".".join(map(str, braces.path)), file=self.file)
        inside = self.text[braces.value_start + 1 : braces.value_end - 1]
        if not inside.strip():
            return self._replaced(braces.value_start, braces.value_end, f"{{ {key} }}")
        end = braces.value_start + 1 + len(inside.rstrip())
        return self._replaced(end, end, f", {key}")

    def _after(self, entry: Entry, key: str) -> TomlDocument:
        line = self.text[self.text.rfind("\n", 0, entry.key_start) + 1 : entry.key_start].lstrip(BOM)
        return self._line_at(self._line_end(entry.value_end), line + key)

    def _line_at(self, offset: int, line: str) -> TomlDocument:
        return self._replaced(offset, offset, line_end_of(self.text) + line)

    def _at_root(self, key: str) -> TomlDocument:
        """Above the first table header and the comment that belongs to it, else at the end."""
        end, first = line_end_of(self.text), self.scan.first_header()
        if first is None:
            broken = not self.text.removeprefix(BOM) or self.text.endswith("\n")
            return self._replaced(len(self.text), len(self.text), f"{key}{end}" if broken else f"{end}{key}")
        start = self._above_comment(first)
        return self._replaced(start, start, f"{key}{end}{end}")

    def _above_comment(self, header: Header) -> int:
        start = at = self.text.rfind("\n", 0, header.start) + 1
        while at > 0:
            before = self.text.rfind("\n", 0, at - 1) + 1
            if not self.text[before:at].lstrip(f" \t{BOM}").startswith("#"):
                return at
            at = before
        return max(start, 1) if self.text.startswith(BOM) else start

    def _new_table(self, table: Path, key: str) -> TomlDocument:
        end, name = line_end_of(self.text), ".".join(render_key(part) for part in table)
        body = self.text.removeprefix(BOM)
        gap = "" if not body else end if body.endswith("\n") else end + end
        last = end if not body or body.endswith("\n") else ""
        return open_toml(f"{self.text}{gap}[{name}]{end}{key}{last}", self.file)

    def _line_end(self, offset: int, *, with_break: bool = False) -> int:
        found = self.text.find("\n", offset)
        if found < 0:
            return len(self.text)
        if with_break:
            return found + 1
        return found - 1 if self.text[found - 1] == "\r" else found


def render(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render(item) for item in value) + "]"
    return tomlkit.item(value).as_string()


def render_key(part: str | int) -> str:
    name = str(part)
    return name if _BARE.fullmatch(name) else render(name)


def _leaves(data: Mapping[str, object], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _explained(text: str, file: str, problem: str) -> Finding:
    """Duplicates with both places, look-alike characters by name, a lost "=", else the parser's own words."""
    twice = find_duplicates(text)
    if twice:
        path, first, second = twice[0]
        params: dict[str, Param] = {"key": ".".join(map(str, path)), "first_line": position(text, first).line}
        place = position(text, second)
        return Finding("duplicate-key", params=params, file=file, line=place.line, column=place.column)
    match = _PLACE.search(problem)
    line, column = (int(match.group(1)), int(match.group(2))) if match else (text.count("\n") + 1, 1)
    odd = odd_character(text, line, file)
    if odd is not None:
        # TOML knows no colon: between key and value an equals sign is meant
        return replace(odd, params={**odd.params, "ascii": "="}) if odd.params.get("ascii") == ":" else odd
    lines = text.removeprefix(BOM).split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    code = "toml-lost-equals" if _LOST_EQUALS.match(shown) else "toml-invalid"
    reason = _PLACE.sub("", problem).replace(" (at end of document)", "").strip()
    return Finding(code, params={"reason": reason}, file=file, line=line, column=column)
