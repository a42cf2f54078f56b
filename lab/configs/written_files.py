"""The two files written from nothing: keys in the order of their form, numbers in the spelling they came with."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lab.configs.knobs import File
from lab.configs.toml_text import render, render_key

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LAYOUT: Mapping[File, tuple[str, ...]] = {
    "settings": ("prefill", "decode", "observability", "default_params", "timeout", "retry", "engine"),
    "config": (
        "server", "request", "model", "kv_cache", "batching", "prefill", "decode", "engine", "metrics", "workload",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value with the spelling it came with (None: the format's own) and a comment to stand above it."""

    value: object
    literal: str | None = None
    comment: str | None = None


Leaves = Mapping[tuple[str, ...], Leaf]
Tree = dict[str, "Leaf | Tree"]


def write_file(file: File, leaves: Leaves) -> str:
    """The text of a settings.json or config.toml that holds these values."""
    tree = _tree(file, leaves)
    return _json(tree, "") + "\n" if file == "settings" else "\n".join(_toml(tree, ())) + "\n" if tree else ""


def _tree(file: File, leaves: Leaves) -> Tree:
    order = _LAYOUT[file]
    known = {name: index for index, name in enumerate(order)}
    names = sorted(leaves, key=lambda path: -1 if len(path) == 1 else known.get(path[0], len(order)))
    tree: Tree = {}
    for path in names:
        table = tree
        for part in path[:-1]:
            below = table.setdefault(part, {})
            if isinstance(below, Leaf):
                break
            table = below
        else:
            table[path[-1]] = leaves[path]
    return tree


def _json(tree: Tree, indent: str) -> str:
    inner = indent + "  "
    lines = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: "
        + (_json_value(entry) if isinstance(entry, Leaf) else _json(entry, inner))
        for key, entry in tree.items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"


def _json_value(leaf: Leaf) -> str:
    if _is_number(leaf.value) and leaf.literal and _JSON_NUMBER.fullmatch(leaf.literal):
        return leaf.literal
    return json.dumps(leaf.value, ensure_ascii=False, allow_nan=False)


def _toml(tree: Tree, path: tuple[str, ...]) -> Iterator[str]:
    values = [(key, entry) for key, entry in tree.items() if isinstance(entry, Leaf)]
    tables = [(key, entry) for key, entry in tree.items() if not isinstance(entry, Leaf)]
    if path and values:
        yield f"[{'.'.join(map(render_key, path))}]"
    for key, leaf in values:
        yield from (f"# {line}" for line in (leaf.comment or "").splitlines())
        yield f"{render_key(key)} = {_toml_value(leaf)}"
    for index, (key, entry) in enumerate(tables):
        if values or index:
            yield ""
        yield from _toml(entry, (*path, key))


def _toml_value(leaf: Leaf) -> str:
    if _is_number(leaf.value) and leaf.literal and _toml_reads(leaf.literal) == leaf.value:
        return leaf.literal
    return render(leaf.value)


def _toml_reads(literal: str) -> object:
    try:
        return tomllib.loads(f"x = {literal}")["x"]
    except tomllib.TOMLDecodeError:
        return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
