"""All options of an installed engine as one list to search: its own parser's, with our explanation of the main ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.configs.knobs import Kind, Knob, flag_knob, knob_table
from lab.engine.catalogue import Catalogue, Flag
from lab.engine.definition import EngineDefinition
from lab.engine.flags import spellings

_KINDS: dict[str, Kind] = {"bool": "bool", "int": "int", "float": "float"}


@dataclass(frozen=True, slots=True)
class Option:
    """`name` is what stands in files and arms, `knob` its table; `explained` where the lab has words of its own.

    `settable` is false for what the lab sets itself.
    """

    name: str
    flag: Flag
    knob: Knob
    explained: bool
    settable: bool


def option_list(definition: EngineDefinition, catalogue: Catalogue) -> tuple[Option, ...]:
    """Explained options first, in the order of the knobs, then the others by name."""
    # an engine's own name for a knob may stand among its flags too: the knob's is the one we explain
    names = sorted(definition.flags, key=lambda name: name in knob_table())
    ours = {flag: name for name in names for flag in spellings(definition.flags[name])}
    found = [_option(definition, flag, ours.get(flag.flag, flag.name)) for flag in catalogue.flags]
    order = {name: place for place, name in enumerate(knob_table())}
    return tuple(sorted(found, key=lambda each: (order.get(each.name, len(order)), each.name)))


def search_options(options: Iterable[Option], text: str) -> tuple[Option, ...]:
    """Those with all the words of a text somewhere in their names and explanations; a name's own beginning first."""
    words = text.lower().replace("-", "_").split()
    matching = [each for each in options if all(word in _haystack(each) for word in words)]
    if not words:
        return tuple(matching)
    return tuple(sorted(matching, key=lambda each: (not each.name.startswith(words[0]), words[0] not in each.name)))


def _option(definition: EngineDefinition, flag: Flag, name: str) -> Option:
    known = knob_table().get(name)
    settable = not {name, flag.name} & {*definition.owned, *definition.not_flags}
    return Option(name, flag, known or _knob(name, flag), known is not None, settable)


def _knob(name: str, flag: Flag) -> Knob:
    """A field for an option without a table of ours: its kind and choices are the parser's."""
    plain = flag_knob(name)
    kind: Kind = "choice" if flag.choices else _KINDS.get(flag.type, "str")
    default = flag.default if kind != "bool" or isinstance(flag.default, bool) else None
    return Knob(
        name, plain.label, flag.help, "engine", kind, choices=flag.choices or (), default=default, places=plain.places
    )


def _haystack(option: Option) -> str:
    knob = option.knob
    parts = (
        option.name,
        option.flag.name,
        option.flag.flag,
        option.flag.help,
        knob.label,
        knob.help,
        knob.effect or "",
    )
    return " ".join((*parts, *knob.aliases)).lower().replace("-", "_")
