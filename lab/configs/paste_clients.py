"""Blocks of an article that belong to other clients (Claude Code, Cline, Codex, a shell, code): found and named."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

_VALUE = r"""["'`]?\s*[:=]{0,2}\s*["'`]?(?=[A-Za-z0-9$/.{(])"""
_TOKEN = re.compile(r"""(?:sk-[^\s,}"'`]*|[^\s,}\])"'`\u3000-\u9fff]*)["'`]?""")
_NEXT_MARK_WITHIN = 160
_OPENING = re.compile(r"""(?:\{\s*(?:["'`]?[A-Za-z_.]+["'`]?\s*:?\s*)?)+["'`]?$""")
_CALL_REACH = 600
_PAIRS = {"(": ")", "{": "}", "[": "]"}
_NAME = re.compile(
    r"[A-Z][A-Z0-9]*_(?:API_KEY|BASE_URL|MODEL|[A-Z_]+)|cline\.[A-Za-z]+|(?<![\w/-])(?:base_url|api_key|model)\b|(?<!\S)--[a-z][a-z-]+"
)


@dataclass(frozen=True, slots=True)
class OtherBlock:
    """A block for another client; `keys` are names only, `start` and `end` offsets into the pasted text."""

    client: str
    label: str
    start: int
    end: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Client:
    name: str
    label: str
    marks: re.Pattern[str]
    least: int
    call: bool


def other_blocks(text: str) -> tuple[OtherBlock, ...]:
    """All of them in the order of the text; where two clients claim the same place, the first in the table has it."""
    found: list[OtherBlock] = []
    for client in _clients():
        for start, end in _runs(client, text):
            if not any(block.start < end and start < block.end for block in found):
                keys = tuple(dict.fromkeys(match.group() for match in _NAME.finditer(text, start, end)))
                found.append(OtherBlock(client.name, client.label, start, end, keys))
    return tuple(sorted(found, key=lambda block: block.start))


@cache
def _clients() -> tuple[_Client, ...]:
    tables = tomllib.loads(Path(__file__).with_name("paste_clients.toml").read_text("utf-8"))
    return tuple(_client(name, table) for name, table in tables.items())


def _client(name: str, table: Mapping[str, object]) -> _Client:
    marks = "|".join(cast("list[str]", table["marks"]))
    return _Client(
        name=name,
        label=str(table["label"]),
        marks=re.compile(f"(?:{marks})" if table.get("call") else f"(?:{marks}){_VALUE}"),
        least=cast(int, table["least"]),
        call=bool(table.get("call")),
    )


def _runs(client: _Client, text: str) -> Iterator[tuple[int, int]]:
    """Runs of marks, each from the bracket that opens it to the end of its last value."""
    run: list[tuple[int, int]] = []
    for match in client.marks.finditer(text):
        end = _end_of_call(text, match) if client.call else _end_of_value(text, match.end())
        if run and (client.call or match.start() - run[-1][1] > _NEXT_MARK_WITHIN):
            yield from _whole(client, text, run)
            run = []
        run.append((match.start(), end))
    yield from _whole(client, text, run)


def _whole(client: _Client, text: str, run: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    if len(run) < client.least or not run:
        return
    start, end = run[0][0], run[-1][1]
    opening = _OPENING.search(text, max(0, start - 80), start)
    if opening is not None:
        start = opening.start()
    yield start, max(end, _closed(text, start, end))


def _end_of_value(text: str, at: int) -> int:
    match = _TOKEN.match(text, at)
    return match.end() if match else at


def _end_of_call(text: str, match: re.Match[str]) -> int:
    """The bracket that closes the call, or the body after `-d`; without brackets as far as the line goes."""
    opening = next((at for at in range(match.start(), min(len(text), match.end() + 300)) if text[at] in "({"), None)
    if opening is not None:
        return _closed(text, opening, match.end())
    stop = re.compile(r"\n|[\u3000-\u9fff]|\[[a-z_]+\]").search(text, match.end())
    return min(match.end() + _CALL_REACH, stop.start() if stop else len(text))


def _closed(text: str, start: int, least: int) -> int:
    """Where the brackets opened from `start` on are closed again; `least` where they never are."""
    stack: list[str] = []
    for at in range(start, min(len(text), max(least, start) + 4000)):
        character = text[at]
        if character in _PAIRS:
            stack.append(_PAIRS[character])
        elif stack and character == stack[-1]:
            stack.pop()
            if not stack and at + 1 >= least:
                return at + 1
        elif not stack and at >= least:
            return least
    return least
