"""The wording of codes. One TOML file per package of `lab`; pages translate the templates through gettext.

Each table is a code: `text` says what and why, `remedy` (optional) what to do; both are `str.format` templates.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lab.findings import Finding, Param


@dataclass(frozen=True, slots=True)
class Message:
    text: str
    remedy: str | None = None


def _same(template: str) -> str:
    return template


@cache
def messages() -> Mapping[str, Message]:
    """All messages by code. A code that stands in two files is an error."""
    found: dict[str, Message] = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        for code, table in tomllib.loads(path.read_text("utf-8")).items():
            if code in found:
                raise ValueError(f"message {code!r} stands twice, the second time in {path.name}")
            found[code] = Message(table["text"], table.get("remedy"))
    return found


def word(code: str, params: Mapping[str, Param], translate: Callable[[str], str] = _same) -> str:
    """The sentence for a code, with its remedy; an unknown code words itself."""
    message = messages().get(code)
    if message is None:
        return f"{code} {dict(params)}" if params else code
    parts = [message.text] if message.remedy is None else [message.text, message.remedy]
    return " ".join(translate(part).format_map(_Shown(params)) for part in parts)


def word_finding(finding: Finding, translate: Callable[[str], str] = _same) -> str:
    """One line: place, sentence, remedy."""
    place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
    sentence = word(finding.code, finding.params, translate)
    return f"{place}: {sentence}" if place else sentence


def word_message(message: Mapping[str, Any], translate: Callable[[str], str] = _same) -> str:
    """The sentence of a stored message: its `code`, then its `remedies`.

    A remedy has parameters of its own; in older databases it is a code for the parameters of the message.
    """
    parts = [{"code": message.get("code"), "params": message}, *(message.get("remedies") or ())]
    tables = [part if isinstance(part, Mapping) else {"code": part, "params": message} for part in parts]
    return " ".join(
        word(table["code"], table.get("params") or {}, translate)
        for table in tables
        if isinstance(table.get("code"), str)
    )


class _Shown(dict[str, Param]):
    """A parameter that is missing or None shows as an en dash instead of failing."""

    def __init__(self, params: Mapping[str, Param]) -> None:
        super().__init__({name: "–" if value is None else value for name, value in params.items()})

    def __missing__(self, key: str) -> str:
        return "–"
