"""The other article's form of the two files: what moves, what has no counterpart."""

from __future__ import annotations

import streamlit as st

from lab.configs.convert import Conversion, convert
from lab.configs.knobs import Dialect
from lab.configs.pair import ConfigPair, diff_pair
from lab.findings import LabError
from pages.components.config_draft import propose
from pages.components.context import show_findings
from pages.components.i18n import N_, _, ngettext
from pages.components.pair_panel import finding_lines

FORMS: dict[Dialect, str] = {
    1: N_("settings.json is the engine's side, config.toml the client's (article 1)"),
    3: N_("config.toml is the engine's side, settings.json the client's (article 3)"),
}


def convert_view(working: ConfigPair) -> None:
    """Say which form the files have, what the other one would be like, and offer it as a draft."""
    st.markdown(_("The two files stand in this form: **{form}**.").format(form=_(FORMS[working.dialect])))
    if working.mixed:
        st.warning(_("One of the files stands in the other form; converting puts both into one."))
    wanted = _wanted(working)
    try:
        conversion = convert(working, wanted)
    except LabError as problem:
        show_findings(problem.findings)
        return
    _outcome(working, conversion)


def _wanted(working: ConfigPair) -> Dialect:
    """The other form; where the files stand in both, either is another one."""
    other: Dialect = 3 if working.dialect == 1 else 1
    if not working.mixed:
        return other
    return st.radio(
        _("Convert into"), list(FORMS), format_func=lambda form: _(FORMS[form]), index=list(FORMS).index(other)
    )


def _outcome(working: ConfigPair, conversion: Conversion) -> None:
    diff = diff_pair(working, conversion.pair)
    if not diff:
        st.caption(_("The files stand in this form already."))
        return
    moved = len(conversion.moved)
    st.markdown(ngettext("{n} setting changes its place.", "{n} settings change their place.", moved).format(n=moved))
    if conversion.lost:
        st.markdown(f"**{_('Without a counterpart in the other form:')}**")
        finding_lines(conversion.lost)
    else:
        st.markdown(f":green[:material/check:] {_('Every setting has a counterpart; nothing is lost.')}")
    if conversion.notes:
        st.markdown(f"**{_('To be known:')}**")
        finding_lines(conversion.notes)
    st.button(
        _("Take the converted files over"),
        type="primary",
        icon=":material/swap_horiz:",
        help=_("They become what you are editing; nothing is written before you save."),
        on_click=propose,
        args=(conversion.pair,),
    )
    with st.expander(_("The converted files")):
        st.caption(conversion.pair.settings_file)
        st.code(conversion.pair.settings_text, language="json")
        st.caption(conversion.pair.config_file)
        st.code(conversion.pair.config_text, language="toml")
