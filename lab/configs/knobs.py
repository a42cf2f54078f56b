"""The table of knobs: names, units, ranges, places in the two files. The table itself is data (knobs.toml)."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path as FilePath
from typing import Literal, cast

from lab.findings import LabError, error
from lab.records.workload import Scalar

Phase = Literal["prefill", "decode", "kv_cache", "request", "workload", "engine", "lab"]
Kind = Literal["int", "float", "bool", "str", "choice"]
File = Literal["settings", "config"]
Dialect = Literal[1, 3]  # the article whose form the two files have

_HERE = FilePath(__file__).parent
_TOO_SHORT = {"name", "enable"}  # keys that say nothing without their table


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: one of the two files and the keys down to it."""

    file: File
    path: tuple[str, ...]

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting. `file` and `path` are its place in article 1's form; None means any flag under engine.args.

    `advice` is article 3's recommended value, never a default; `default` is vLLM's own where it is one value.
    `many`: the file may hold a list. `minimum` and `maximum` are inclusive.
    """

    name: str
    label: str
    help: str
    phase: Phase
    kind: Kind
    unit: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()
    effect: str | None = None
    default: Scalar | None = None
    advice: Scalar | None = None
    aliases: tuple[str, ...] = ()
    places: Mapping[Dialect, tuple[Place, ...]] | None = None
    many: bool = False

    @property
    def path(self) -> tuple[str, ...] | None:
        places = self.places_in(1)
        return places[0].path if places else None

    @property
    def file(self) -> File:
        places = self.places_in(1)
        return places[0].file if places else "settings"

    def places_in(self, dialect: Dialect) -> tuple[Place, ...]:
        """In order of precedence; a knob without a place of its own in article 3's form has article 1's."""
        if self.places is None:
            return ()
        return self.places.get(dialect) or self.places.get(1, ())


@dataclass(frozen=True, slots=True)
class Switch:
    """A key of an article that is no flag: false sets the knobs in `when_false`."""

    name: str
    when_false: Mapping[str, Scalar]
    places: Mapping[Dialect, tuple[Place, ...]]


@dataclass(frozen=True, slots=True)
class Removed:
    """A key that no engine of today has. `passed`: it would reach the engine as a flag and be refused."""

    name: str
    nearest: str
    passed: bool
    aliases: tuple[str, ...]
    places: Mapping[Dialect, tuple[Place, ...]]


@cache
def knob_table() -> Mapping[str, Knob]:
    """All knobs by canonical name, in the order of the table."""
    tables = tomllib.loads((_HERE / "knobs.toml").read_text("utf-8"))
    return {name: _knob(name, table, cast(Phase, table["phase"])) for name, table in tables.items()}


@cache
def lab_keys() -> Mapping[str, Knob]:
    """Keys of the two files that are the lab's own (addresses, time limits, what is shown)."""
    return {name: _knob(name, table, "lab") for name, table in _lab_tables()["keys"].items()}


@cache
def switches() -> Mapping[str, Switch]:
    tables = _lab_tables()["switches"].items()
    return {
        name: Switch(name, cast("Mapping[str, Scalar]", table["when_false"]), _places(table)) for name, table in tables
    }


@cache
def removed_keys() -> Mapping[str, Removed]:
    return {name: _removed(name, table) for name, table in _lab_tables()["removed"].items()}


@cache
def engine_flags() -> Mapping[str, Kind]:
    """The flags of the pinned vLLM, to tell a typo from a flag; the installed engine has the last word."""
    return cast(Mapping[str, Kind], tomllib.loads((_HERE / "vllm_flags.toml").read_text("utf-8"))["flags"])


def find_knob(name_or_alias: str, dialect: Dialect = 1) -> Knob:
    """The knob of a canonical name, an article's key or an engine flag. Raises "unknown-knob" or "removed-knob"."""
    name = canonical_name(name_or_alias, dialect)
    known = knob_table().get(name) or lab_keys().get(name)
    if known is not None:
        return known
    removed = find_removed(name)
    if removed is not None:
        raise error("removed-knob", name=name_or_alias, nearest=removed.nearest)
    if name in engine_flags():
        return flag_knob(name)
    nearest = nearest_name(name, known_names(dialect))
    raise error("unknown-knob", name=name_or_alias, nearest=nearest)


def settable_knob(name_or_alias: str, dialect: Dialect = 1) -> Knob:
    """As `find_knob`, but a flag that the pinned vLLM does not list and that is no near miss of a known name passes."""
    try:
        return find_knob(name_or_alias, dialect)
    except LabError as problem:
        name = canonical_name(name_or_alias, dialect)
        if problem.findings[0].code != "unknown-knob" or near_miss(name) is not None or not name.isidentifier():
            raise
    return flag_knob(name)


def near_miss(name: str) -> str | None:
    """The knob or flag that a mistyped name most probably means."""
    return nearest_name(name, [*knob_table(), *engine_flags()], 0.8)


def canonical_name(name_or_alias: str, dialect: Dialect = 1) -> str:
    """The canonical name; a name that nothing knows comes back with underscores for dashes."""
    given = name_or_alias.strip()
    name = given.removeprefix("--").replace("-", "_")
    return _alias_table(dialect).get(name, name.removeprefix("engine.args."))


def find_removed(name: str) -> Removed | None:
    for removed in removed_keys().values():
        if name == removed.name or name in removed.aliases:
            return removed
    return None


def flag_knob(name: str) -> Knob:
    """Any engine flag as a knob under its own name; unknown ones take text, number or truth value."""
    places = (Place("settings", ("engine", "args", name)),)
    in_config = (Place("config", ("engine", "args", name)),)
    kind = engine_flags().get(name, "str")
    return Knob(name, name.replace("_", " "), "", "engine", kind, places={1: places, 3: in_config})


def known_names(dialect: Dialect = 1) -> list[str]:
    return [*_alias_table(dialect), *engine_flags()]


def nearest_name(name: str, names: Iterable[str], cutoff: float = 0.75) -> str | None:
    """The known name most like `name`; None where nothing is like it."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return close[0] if close else None


@cache
def _lab_tables() -> Mapping[str, Mapping[str, dict[str, object]]]:
    return tomllib.loads((_HERE / "lab_keys.toml").read_text("utf-8"))


def _knob(name: str, table: Mapping[str, object], phase: Phase) -> Knob:
    get = table.get
    return Knob(
        name=name,
        label=str(table["label"]),
        help=str(get("help", "")),
        phase=phase,
        kind=cast(Kind, table["kind"]),
        unit=cast("str | None", get("unit")),
        minimum=cast("float | None", get("min")),
        maximum=cast("float | None", get("max")),
        step=cast("float | None", get("step")),
        choices=tuple(cast("list[str]", get("choices", []))),
        effect=cast("str | None", get("effect")),
        default=cast("Scalar | None", get("default")),
        advice=cast("Scalar | None", get("advice")),
        aliases=_aliases(name, table),
        places=_places(table),
        many=bool(get("many", False)),
    )


def _removed(name: str, table: Mapping[str, object]) -> Removed:
    aliases = tuple(cast("list[str]", table.get("aliases", [])))
    return Removed(name, str(table["nearest"]), bool(table.get("passed", False)), aliases, _places(table))


def _aliases(name: str, table: Mapping[str, object]) -> tuple[str, ...]:
    """Those of the table and the articles' keys, with and without their table's name."""
    places = _places(table)
    found = list(cast("list[str]", table.get("aliases", [])))
    found += [place.dotted for form in places.values() for place in form]
    return tuple(alias for alias in dict.fromkeys(found) if alias != name)


def _places(table: Mapping[str, object]) -> Mapping[Dialect, tuple[Place, ...]]:
    found: dict[Dialect, tuple[Place, ...]] = {}
    dialects: tuple[tuple[Dialect, str], ...] = ((1, "article_1"), (3, "article_3"))
    for dialect, key in dialects:
        if key in table:
            found[dialect] = tuple(_place(text) for text in cast("list[str]", table[key]))
    return found


def _place(text: str) -> Place:
    file, _, dotted = text.partition(":")
    return Place(cast(File, file), tuple(dotted.split(".")))


@cache
def _alias_table(dialect: Dialect) -> Mapping[str, str]:
    """Alias to canonical name. The other article's keys count too, where this article has none of that name."""
    knobs = {**knob_table(), **lab_keys()}
    found: dict[str, str] = {name: name for name in knobs}
    other: Dialect = 3 if dialect == 1 else 1
    for knob in knobs.values():
        for alias in _own_aliases(knob):
            found.setdefault(alias, knob.name)
    for form in (dialect, other):
        for knob in knobs.values():
            for place in (knob.places or {}).get(form, ()):
                found.setdefault(place.dotted, knob.name)
                if knob.phase != "lab" and place.path[-1] not in _TOO_SHORT:
                    found.setdefault(place.path[-1], knob.name)
    return found


def _own_aliases(knob: Knob) -> list[str]:
    """Table aliases without those that are places: a key like prefill.max_prefill_tokens means two things."""
    taken = {place.dotted for places in (knob.places or {}).values() for place in places}
    return [alias for alias in knob.aliases if alias not in taken]
