"""One knob of the table as a field with its meaning beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from lab.configs.knobs import Knob
from pages.components.i18n import _
from pages.components.readings import Kind, Reading
from pages.components.value_field import Field, plain, value_field

_UNITS = {"ratio": ""}


def knob_field(knob: Knob, reading: Reading, key: str, becomes: str | None = None) -> Any:
    """Draw it; gives the new value, None when emptied, `UNCHANGED` otherwise. `becomes`: the engine's flag or field."""
    value = value_field(as_field(knob), reading, key)
    st.caption(_caption(knob, reading, becomes))
    return value


def as_field(knob: Knob) -> Field:
    """The knob for a widget, in the reader's language."""
    return Field(
        label=knob_label(knob),
        kind=field_kind(knob),
        name=knob.name.rpartition(".")[2],
        help=knob_help(knob),
        minimum=knob.minimum,
        maximum=knob.maximum,
        step=knob.step,
        choices=knob.choices,
        unset=_unset(knob),
    )


def field_kind(knob: Knob) -> Kind:
    if knob.many:
        return "ints" if knob.kind == "int" else "floats"
    return knob.kind


def knob_label(knob: Knob) -> str:
    """Label and unit; the unit is left out where the label says it."""
    unit = _UNITS.get(knob.unit or "", knob.unit)
    if not unit or unit.lower() in knob.label.lower().split():
        return _(knob.label)
    return f"{_(knob.label)} ({_(unit)})"


def knob_help(knob: Knob) -> str:
    """Meaning, effect, range and what article 3 recommends, one paragraph each."""
    figures = ", ".join(text for text in (_range(knob), _advice(knob)) if text)
    return "\n\n".join(part for part in (_(knob.help), _(knob.effect or ""), figures) if part)


def spelled(value: Any) -> str:
    """A value as people read it: on, off, the number, the text."""
    if value is True or value is False:
        return _("on") if value else _("off")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _range(knob: Knob) -> str:
    low, high = (None if bound is None else f"{bound:,.10g}" for bound in (knob.minimum, knob.maximum))
    if low is not None and high is not None:
        return _("{low} to {high}").format(low=low, high=high)
    return _("at least {low}").format(low=low) if low is not None else ""


def _unset(knob: Knob) -> str:
    if knob.default is None:
        return _("not set")
    return _("not set: {value}").format(value=spelled(knob.default))


def _advice(knob: Knob) -> str:
    return "" if knob.advice is None else _("article 3 recommends {value}").format(value=spelled(knob.advice))


def _caption(knob: Knob, reading: Reading, becomes: str | None) -> str:
    """What the engine calls it, its default, its range; its effect on a line of its own."""
    parts = [plain(becomes)] if becomes else []
    if knob.default is not None:
        differs = reading.shown is not None and reading.shown != knob.default
        default = _("default {value}").format(value=spelled(knob.default))
        parts.append(f":blue-badge[{_('differs from the {default}').format(default=default)}]" if differs else default)
    parts += [text for text in (_range(knob), _advice(knob)) if text]
    effect = _(knob.effect or knob.help)
    return "  \n".join(line for line in (" · ".join(parts), effect) if line)


def flag_text(flags: Mapping[str, Any], name: str) -> str | None:
    """What the engine calls a knob; a switch with two flags is shown by the first that there is."""
    flag = flags.get(name)
    return flag if flag is None or isinstance(flag, str) else str(flag[0] or flag[1])
