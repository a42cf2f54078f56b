"""One setting as a widget. What was not touched comes back unchanged, whatever stands in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from lab.configs.secrets import is_literal_secret
from pages.components.i18n import _, word
from pages.components.markdown import plain_markdown
from pages.components.readings import Kind, Reading, list_text, parse


class Unchanged:
    """The answer of a field that nobody touched; `None` means that the setting was emptied."""


UNCHANGED: Final = Unchanged()


@dataclass(frozen=True, slots=True)
class Field:
    """What a field is: texts already in the reader's language. Bounds and step only where there are some.

    `name` is the setting's own, by which a key that somebody types can be told from a value.
    """

    label: str
    kind: Kind
    name: str = ""
    help: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()
    unset: str = ""
    required: bool = False


def value_field(field: Field, reading: Reading, key: str) -> Any:
    """Draw the field; gives the new value, None when it was emptied, `UNCHANGED` otherwise."""
    if not reading.readable:
        return _repair(field, reading, key)
    draw = {"int": _number, "float": _number, "bool": _switch, "choice": _choice, "str": _text}.get(field.kind, _list)
    value = draw(field, reading, key)
    if not reading.exact and _wants_right_type(reading, key):
        return value
    return UNCHANGED if value == reading.shown else value


def _number(field: Field, reading: Reading, key: str) -> int | float | None:
    cast = int if field.kind == "int" else float
    # with a value of its own Streamlit's field could not be emptied; the session gives it the value instead
    if key not in st.session_state:
        st.session_state[key] = reading.shown
    value = st.number_input(
        field.label,
        value=None,
        step=cast(field.step or (1 if field.kind == "int" else 0.01)),
        format="%d" if field.kind == "int" else "%g",
        placeholder=field.unset or _("not set"),
        help=field.help,
        key=key,
        persist_state="session",
    )
    # the browser adds steps in binary: 0.9 + 0.01 must not become 0.9100000000000001
    value = float(f"{value:.10g}") if isinstance(value, float) else value
    _say_out_of_range(field, value)
    return value


def _say_out_of_range(field: Field, value: float | None) -> None:
    """In the reader's language and with the value kept: the widget's own bounds keep it back without a word."""
    if value is None:
        return
    if field.minimum is not None and value < field.minimum:
        st.caption(_(":red[{value} is too low: at least {low}.]").format(value=f"{value:g}", low=f"{field.minimum:g}"))
    if field.maximum is not None and value > field.maximum:
        st.caption(
            _(":red[{value} is too high: at most {high}.]").format(value=f"{value:g}", high=f"{field.maximum:g}")
        )


def _switch(field: Field, reading: Reading, key: str) -> bool | None:
    options = [True, False] if field.required else [None, True, False]
    return st.selectbox(
        field.label,
        options,
        index=options.index(reading.shown),
        format_func=lambda value: _unset(field) if value is None else (_("on") if value else _("off")),
        help=field.help,
        key=key,
        persist_state="session",
    )


def _choice(field: Field, reading: Reading, key: str) -> str | None:
    options: list[str | None] = [*([] if field.required else [None]), *field.choices]
    if reading.shown not in options:
        options.append(reading.shown)
    return st.selectbox(
        field.label,
        options,
        index=options.index(reading.shown),
        format_func=lambda value: _unset(field) if value is None else str(value),
        help=field.help,
        key=key,
        persist_state="session",
    )


def _text(field: Field, reading: Reading, key: str) -> str | None:
    value = _typed(field, reading.shown or "", key, field.unset or _("not set"))
    if value == (reading.shown or ""):
        return reading.shown  # an empty text in the file is not the same as none
    return value or None


def _list(field: Field, reading: Reading, key: str) -> tuple[Any, ...] | None:
    text = _typed(field, list_text(reading.shown or ()), key, field.unset or _("for example 1, 4, 16"))
    if text.strip() == list_text(reading.shown or ()):
        return reading.shown
    values = parse(field.kind, text)
    if values is None and text.strip():
        st.caption(_(":red[“{text}” cannot be read as numbers separated by commas.]").format(text=plain(text)))
        return reading.shown
    return values


def _repair(field: Field, reading: Reading, key: str) -> Any:
    """A value that the field cannot hold, shown as it stands, to be typed anew."""
    text = _typed(field, reading.raw_text, key)
    if text == reading.raw_text:
        st.caption(
            _(":red[{value} is no value for this setting; type a right one.]").format(value=plain(reading.raw_text))
        )
        return UNCHANGED
    value = parse(field.kind, text)
    if value is None and text.strip():
        st.caption(_(":red[“{text}” cannot be read as a value for this setting.]").format(text=plain(text)))
        return UNCHANGED
    return value


def _typed(field: Field, value: str, key: str, placeholder: str | None = None) -> str:
    """A field of text that takes no key: one that is typed is gone before the page is drawn."""
    st.session_state.setdefault(key, value)  # not as the widget's own value: a refused key is taken out of the state
    text = st.text_input(
        field.label,
        placeholder=placeholder,
        help=field.help,
        key=key,
        on_change=_refuse_key,
        args=(field.name, value, key),
        persist_state="session",
    )
    if st.session_state.pop(f"{key}:refused", False):
        st.error(plain_markdown(word("secret-in-file", {"key": field.label})), icon=":material/key_off:")
    return str(text or "")


def _refuse_key(name: str, before: str, key: str) -> None:
    if is_literal_secret(name, st.session_state.get(key)):
        st.session_state[key] = before
        st.session_state[f"{key}:refused"] = True


def _wants_right_type(reading: Reading, key: str) -> bool:
    right = _spelled(reading.shown)
    st.caption(
        _(":orange[The file has {value}, which is of another type; {right} is meant.]").format(
            value=plain(reading.raw_text), right=plain(right)
        )
    )
    return st.checkbox(
        _("Write {right} when saving").format(right=plain(right)),
        key=f"{key}:fix",
        persist_state="session",
    )


def _spelled(value: Any) -> str:
    return Reading(list(value) if isinstance(value, tuple) else value).raw_text


def _unset(field: Field) -> str:
    return field.unset or _("not set")


def plain(text: str) -> str:
    """Text of a file inside Markdown, as code so that nothing in it is markup."""
    return f"`{text.replace('`', ' ')}`"
