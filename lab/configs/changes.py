"""What differs between two config pairs, value by value."""

from __future__ import annotations

from dataclasses import dataclass

from lab.configs.documents import Document
from lab.configs.knobs import File
from lab.configs.pair import ConfigPair


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """One key with another value; `old` or `new` is None where it is not set on that side."""

    file: File
    key: str
    old: object
    new: object


def changed_values(old: ConfigPair, new: ConfigPair) -> tuple[ChangedValue, ...]:
    """Every key whose value differs, settings.json first; comments and layout count for nothing.

    Raises `LabError` where a text cannot be parsed.
    """
    return (*_changed("settings", old.settings, new.settings), *_changed("config", old.config, new.config))


def _changed(file: File, old: Document, new: Document) -> list[ChangedValue]:
    before, after = dict(old.leaves()), dict(new.leaves())
    return [
        ChangedValue(file, ".".join(path), before.get(path), after.get(path))
        for path in dict.fromkeys((*before, *after))
        if _differ(before.get(path), after.get(path))
    ]


def _differ(one: object, other: object) -> bool:
    """In value or type: 1, 1.0 and true are three things."""
    return repr(one) != repr(other)
