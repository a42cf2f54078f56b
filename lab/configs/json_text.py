"""A JSON text edited in place: only the characters of the changed value differ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from lab.configs.json_scan import Member, Node, scan_json
from lab.configs.positions import Path, Position, line_end_of, position, same_value
from lab.findings import error


def open_json(text: str, file: str) -> JsonDocument:
    """The document; a `LabError` with line and column where the text is not strict JSON or no object."""
    root = scan_json(text, file)
    if not isinstance(root.value, dict):
        raise error("json-not-object", file=file)
    return JsonDocument(text, file, root)


@dataclass(frozen=True, slots=True)
class JsonDocument:
    text: str
    file: str
    root: Node = field(repr=False)

    def get(self, path: Path) -> object:
        """The value there; None where there is none (or a JSON null)."""
        node = self.root.find(path)
        return None if node is None else node.value

    def has(self, path: Path) -> bool:
        return self.root.find(path) is not None

    def locate(self, path: Path) -> Position | None:
        """The place of the key, or of the item in a list."""
        parent = self.root.find(path[:-1]) if path else None
        if parent is None:
            return None
        if isinstance(path[-1], int):
            node = parent.find(path[-1:])
            return None if node is None else position(self.text, node.start)
        member = parent.member(path[-1])
        return None if member is None else position(self.text, member.key_start)

    def literal(self, path: Path) -> str | None:
        """The value as it is spelled; None where there is none."""
        node = self.root.find(path)
        return None if node is None else self.text[node.start : node.end]

    def leaves(self) -> Iterator[tuple[tuple[str, ...], object]]:
        """Every value that is no object, with its path; a list is one value."""
        yield from _leaves(self.root, ())

    def span(self, path: Path) -> tuple[int, int] | None:
        """From the key's first character to the value's last; None where there is none."""
        parent = self.root.find(path[:-1]) if path else None
        if parent is None or isinstance(path[-1], int):
            node = self.root.find(path)
            return None if node is None else (node.start, node.end)
        member = parent.member(path[-1])
        return None if member is None else (member.key_start, member.node.end)

    def set(self, path: Path, value: object, literal: str | None = None) -> JsonDocument:
        """The document with that value, spelled as `literal` where one is given."""
        node = self.root.find(path)
        if node is None:
            added = self._inserted(path, value)
            return added if literal is None or added.literal(path) == literal else added.set(path, None, literal)
        if literal is None and same_value(node.value, value):
            return self
        return self._replaced(node.start, node.end, literal or render(value))

    def remove(self, path: Path) -> JsonDocument:
        parent = self.root.find(path[:-1])
        names = [] if parent is None else [member.key for member in parent.members]
        if parent is None or path[-1] not in names:
            return self
        index = names.index(str(path[-1]))
        members = parent.members
        if index > 0:
            return self._replaced(members[index - 1].node.end, members[index].node.end, "")
        if len(members) > 1:
            return self._replaced(members[0].key_start, members[1].key_start, "")
        return self._replaced(members[0].key_start, members[0].node.end, "")

    def _replaced(self, start: int, end: int, new: str) -> JsonDocument:
        return open_json(self.text[:start] + new + self.text[end:], self.file)

    def _inserted(self, path: Path, value: object) -> JsonDocument:
        """The deepest object that is there gets one more member, at its end."""
        depth = next(n for n in range(len(path) - 1, -1, -1) if self.root.find(path[:n]) is not None)
        parent = self.root.find(path[:depth])
        if parent is None or not isinstance(parent.value, dict):
            raise error("no-table", path=".".join(map(str, path[:depth])), file=self.file)
        for part in reversed(path[depth + 1 :]):
            value = {part: value}
        key = json.dumps(path[depth], ensure_ascii=False)
        if not parent.members:
            return self._filled(parent, key, value)
        last = parent.members[-1]
        between = self._between(parent)
        rendered = self._rendered(value, self._indent_of(last.key_start), between)
        return self._replaced(last.node.end, last.node.end, f",{between}{key}{self._colon(last)}{rendered}")

    def _filled(self, empty: Node, key: str, value: object) -> JsonDocument:
        if "\n" not in self.text:
            return self._replaced(empty.start, empty.end, f"{{{key}: {render(value)}}}")
        end, outer = line_end_of(self.text), self._indent_of(empty.start)
        inner = outer + self._unit()
        rendered = self._rendered(value, inner, end)
        return self._replaced(empty.start, empty.end, f"{{{end}{inner}{key}: {rendered}{end}{outer}}}")

    def _between(self, parent: Node) -> str:
        """What stands between two members: a line end with indentation, or blanks."""
        if len(parent.members) > 1:
            before, last = parent.members[-2:]
            gap = self.text[before.node.end : last.key_start]
            return gap[gap.index(",") + 1 :]
        before_first = self.text[parent.start + 1 : parent.members[0].key_start]
        return before_first if "\n" in before_first else " "

    def _colon(self, member: Member) -> str:
        return self.text[member.key_end : member.node.start]

    def _rendered(self, value: object, indent: str, between: str) -> str:
        if not isinstance(value, dict) or "\n" not in between:
            return render(value)
        unit, end = self._unit(), line_end_of(self.text)
        shown = json.dumps(value, ensure_ascii=False, indent=unit, allow_nan=False)
        return shown.replace("\n", end + indent)

    def _indent_of(self, offset: int) -> str:
        line = self.text[self.text.rfind("\n", 0, offset) + 1 : offset]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _unit(self) -> str:
        if self.root.members:
            first = self._indent_of(self.root.members[0].key_start)
            if first:
                return first
        return "  "


def render(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise error("not-a-number", value=str(value))
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _leaves(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for member in node.members:
        here = (*path, member.key)
        if isinstance(member.node.value, dict):
            yield from _leaves(member.node, here)
        else:
            yield here, member.node.value
