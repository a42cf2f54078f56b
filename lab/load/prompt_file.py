"""The user's own prompts: JSON lines with `prompt` or `messages`, or a ShareGPT JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.findings import error

NAMED_LINES = 5
_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system"}


@dataclass(frozen=True, slots=True)
class PromptFile:
    """Whole conversations; `bad` counts the entries that could not be used, named in `notes`."""

    conversations: list[list[dict[str, Any]]]
    bad: int
    notes: tuple[str, ...]


def read_prompt_file(path: Path) -> PromptFile:
    """Raises LabError when the file cannot be read or holds no usable prompt."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as reason:
        raise error("prompt-file-unreadable", file=str(path), reason=reason.strerror or str(reason)) from None
    except UnicodeDecodeError as reason:
        raise error("prompt-file-unreadable", file=str(path), reason=f"no UTF-8 at byte {reason.start}") from None
    found: list[list[dict[str, Any]]] = []
    bad: list[str] = []
    for place, value in _entries(text):
        conversation = _conversation(value)
        if conversation is None:
            bad.append(place)
        else:
            found.append(conversation)
    if not found:
        raise error("prompt-file-empty", file=str(path), bad=len(bad), first=bad[0] if bad else "–")
    return PromptFile(found, len(bad), (_bad_note(bad),) if bad else ())


def _bad_note(bad: list[str]) -> str:
    named = ", ".join(bad[:NAMED_LINES]) + (", …" if len(bad) > NAMED_LINES else "")
    return f"prompt-file-bad-lines: {len(bad)} ({named})"


def _entries(text: str) -> Iterator[tuple[str, Any]]:
    if text.lstrip().startswith("["):
        try:
            whole = json.loads(text)
        except ValueError:
            whole = None
        if isinstance(whole, list):
            yield from _numbered("entry", whole)
            return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", json.loads(line)
        except ValueError:
            yield f"line {number}", None


def _numbered(kind: str, values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for number, value in enumerate(values, start=1):
        yield f"{kind} {number}", value


def _conversation(value: Any) -> list[dict[str, Any]] | None:
    if isinstance(value, str) and value.strip():
        return [{"role": "user", "content": value}]
    if not isinstance(value, dict):
        return None
    prompt = value.get("prompt")
    if isinstance(prompt, str) and prompt.strip():
        return [{"role": "user", "content": prompt}]
    for name, role, content in (("messages", "role", "content"), ("conversations", "from", "value")):
        turns = value.get(name)
        if isinstance(turns, list):
            return _turns(turns, role, content)
    return None


def _turns(turns: list[Any], role: str, content: str) -> list[dict[str, Any]] | None:
    """Up to the last turn that a user spoke: what follows it is what the model is asked for."""
    said: list[dict[str, Any]] = []
    for turn in turns:
        if not isinstance(turn, dict):
            return None
        who, what = _ROLES.get(str(turn.get(role))), turn.get(content)
        if who is None or not isinstance(what, str | list):
            return None
        said.append({"role": who, "content": what})
    while said and said[-1]["role"] != "user":
        said.pop()
    return said or None
