"""The two forms of the two files: which keys stand where, and which form a file has, told by its content.

Article 1: settings.json is the engine's side, config.toml the client's. Article 3: the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from lab.configs.documents import open_document
from lab.configs.knobs import Dialect, File, Knob, Place, Removed, Switch, knob_table, lab_keys, removed_keys, switches

DIALECTS: tuple[Dialect, ...] = (1, 3)
Entry = Knob | Removed | Switch
_KNOWN_KEY, _KNOWN_TABLE = 2, 1  # what a leaf says for a form: its whole path, or its table alone


@cache
def form_keys(file: File, dialect: Dialect) -> Mapping[tuple[str, ...], Entry]:
    """Every key that one file has in one form, by its path; what stands in one form only counts in both."""
    found: dict[tuple[str, ...], Entry] = {}
    for knob in (*knob_table().values(), *lab_keys().values()):
        for place in knob.places_in(dialect):
            if place.file == file:
                found[place.path] = knob
    others: tuple[Switch | Removed, ...] = (*switches().values(), *removed_keys().values())
    for entry in others:
        for place in entry.places.get(dialect, ()):
            if place.file == file:
                found[place.path] = entry
    return found


@lru_cache(maxsize=256)
def recognised(text: str, name: str, file: File) -> Dialect | None:
    """The form of one file; None where its keys stand in both or in none. Raises `LabError` on unreadable text."""
    scores: dict[Dialect, int] = dict.fromkeys(DIALECTS, 0)
    for path, _ in open_document(text, name).leaves():
        for dialect in DIALECTS:
            if path in _telling_keys(file, dialect):
                scores[dialect] += _KNOWN_KEY
            elif len(path) > 1 and path[0] in _telling_tables(file, dialect):
                scores[dialect] += _KNOWN_TABLE
    if scores[1] == scores[3]:
        return None
    return 1 if scores[1] > scores[3] else 3


def engine_args_place(dialect: Dialect) -> Place:
    """Where any other flag of the engine stands."""
    return Place("settings" if dialect == 1 else "config", ("engine", "args"))


@cache
def _telling_keys(file: File, dialect: Dialect) -> frozenset[tuple[str, ...]]:
    other: Dialect = 3 if dialect == 1 else 1
    return frozenset(set(form_keys(file, dialect)) - set(form_keys(file, other)))


@cache
def _telling_tables(file: File, dialect: Dialect) -> frozenset[str]:
    other: Dialect = 3 if dialect == 1 else 1
    return _tables(file, dialect) - _tables(file, other)


def _tables(file: File, dialect: Dialect) -> frozenset[str]:
    return frozenset(path[0] for path in form_keys(file, dialect) if len(path) > 1)
