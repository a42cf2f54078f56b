"""Every option of the installed engine: searched, looked at, and put into the draft of the config pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lab.configs.pair import ConfigPair
from lab.engine.catalogue import Catalogue, cached_catalogue
from lab.engine.definition import EngineDefinition, load_definition
from lab.engine.flag_list import Option, option_list, search_options
from lab.engine.installation import engine_python
from lab.findings import LabError
from lab.records.workload import Scalar
from pages.components import config_draft as draft
from pages.components.context import environment, show_findings
from pages.components.engine_choice import engine_select
from pages.components.i18n import _
from pages.components.knob_field import field_kind, knob_field, knob_label, spelled
from pages.components.readings import read
from pages.components.status import MISSING
from pages.components.value_field import UNCHANGED

KEY = "flags"
_PROBLEM = f"{KEY}:problem"
_HEADER_PX, _ROW_PX, _ROWS_SHOWN = 38, 35, 8


def flags_view(working: ConfigPair) -> ConfigPair:
    """Draw the search; a value that is set becomes the draft, so that the pair itself comes back unchanged."""
    show_findings(st.session_state.pop(_PROBLEM, ()))
    kind = engine_select(f"{KEY}:engine")
    try:
        definition = load_definition(kind, environment().config_dir)
        values = working.knobs()
    except LabError as problem:
        show_findings(problem.findings)
        return working
    catalogue = engine_catalogue(definition)
    if catalogue is None:
        st.info(_not_read(definition), icon=":material/info:")
        return working
    options = option_list(definition, catalogue)
    text = st.text_input(
        _("Search"),
        placeholder=_("a name, an alias, or a word of the explanation"),
        key=f"{KEY}:text",
        persist_state="session",
    )
    found = search_options(options, str(text or ""))
    release = f"{catalogue.distribution} {catalogue.version}"
    told = _("{found} of {all} options of {release}, read from its own parser")
    st.caption(told.format(found=len(found), all=len(options), release=release))
    chosen = _table(found, values)
    if chosen is not None:
        _one(working, definition, chosen, values)
    return working


def engine_catalogue(definition: EngineDefinition) -> Catalogue | None:
    """The options as they were read last; None where that engine was never asked here."""
    env = environment()
    return cached_catalogue(definition, engine_python(definition.kind, env), env.run_dir)


def engine_options(kinds: Sequence[str]) -> list[str]:
    """Names of all options of these engines that were read and can be set."""
    found: dict[str, None] = {}
    for kind in kinds:
        try:
            definition = load_definition(kind, environment().config_dir)
        except LabError:
            continue
        catalogue = engine_catalogue(definition)
        if catalogue is not None:
            found |= {each.name: None for each in option_list(definition, catalogue) if each.settable}
    return list(found)


def _not_read(definition: EngineDefinition) -> str:
    if definition.catalogue is None:
        return _("The lab cannot ask {engine} for its options; those of its definition are in the form.").format(
            engine=definition.label
        )
    told = _("The options of {engine} were not read on this host yet. Its first launch reads them, or {command}.")
    return told.format(engine=definition.label, command="`python -m lab.engine.catalogue`")


def _table(found: Sequence[Option], values: Mapping[str, Scalar]) -> Option | None:
    rows = [
        {
            "name": each.name,
            "type": _type(each),
            "default": _default(each),
            "here": spelled(values[each.name]) if each.name in values else MISSING,
            "about": _(each.knob.help) if each.explained else each.flag.help,
        }
        for each in found
    ]
    event = st.dataframe(
        pd.DataFrame(rows, columns=["name", "type", "default", "here", "about"]),
        key=f"{KEY}:table",
        hide_index=True,
        height=_HEADER_PX + _ROW_PX * min(max(len(rows), 1), _ROWS_SHOWN),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "name": st.column_config.TextColumn(_("Option"), width="medium"),
            "type": st.column_config.TextColumn(_("Type"), width="small"),
            "default": st.column_config.TextColumn(_("Default"), width="small"),
            "here": st.column_config.TextColumn(_("Set here"), width="small"),
            "about": st.column_config.TextColumn(_("Meaning"), width="large"),
        },
    )
    rows_chosen = event.selection.rows
    if not rows_chosen:
        st.caption(_("Choose a row to read all of it and to set it."))
        return None
    return found[rows_chosen[0]] if rows_chosen[0] < len(found) else None


def _type(option: Option) -> str:
    return _("choice") if option.flag.choices else option.knob.kind


def _default(option: Option) -> str:
    value = option.flag.default if option.flag.default is not None else option.knob.default
    return MISSING if value is None else spelled(value)


def _one(pair: ConfigPair, definition: EngineDefinition, option: Option, values: Mapping[str, Scalar]) -> None:
    """All that is known of one option, and the field that sets it."""
    with st.container(border=True):
        st.markdown(f"**{knob_label(option.knob) if option.explained else option.name}** · `{option.flag.flag}`")
        if option.explained and option.flag.help:
            st.caption(_("{engine} says: {help}").format(engine=definition.label, help=option.flag.help))
        if not option.explained:
            st.caption(option.flag.help or _("The engine gives no explanation."))
        if option.flag.choices:
            st.caption(_("Choices: {choices}").format(choices=", ".join(f"`{each}`" for each in option.flag.choices)))
        if not option.settable:
            st.caption(_("The lab sets this one itself."))
            return
        reading = read(field_kind(option.knob), values.get(option.name))
        value = knob_field(option.knob, reading, f"{KEY}:{draft.draft_key(pair)}:{option.name}", option.flag.flag)
        st.button(
            _("Put into the draft"),
            key=f"{KEY}:set",
            icon=":material/edit:",
            disabled=value is UNCHANGED,
            help=_("Nothing is saved yet: the change stands beside, with its diff."),
            on_click=_put,
            args=(pair, option.name, value),
        )


def _put(pair: ConfigPair, name: str, value: Any) -> None:
    try:
        draft.propose(pair.with_knobs({name: value}))
    except LabError as problem:
        st.session_state[_PROBLEM] = problem.findings
