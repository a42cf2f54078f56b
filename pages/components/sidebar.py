"""The sidebar under the navigation: language, name, and one line about this host."""

from __future__ import annotations

import streamlit as st

from pages.components.context import _PERSON_KEY, host_name, person
from pages.components.i18n import LANGUAGES, _, choose_language, current_language

_LANGUAGE_WIDGET = "language_widget"


def sidebar() -> None:
    with st.sidebar:
        _language()
        _name()
        st.caption(_("Host {host}").format(host=f"`{host_name()}`"))


def _language() -> None:
    st.session_state[_LANGUAGE_WIDGET] = current_language()
    st.selectbox(
        _("Language"),
        options=list(LANGUAGES),
        format_func=LANGUAGES.__getitem__,
        key=_LANGUAGE_WIDGET,
        on_change=lambda: choose_language(st.session_state[_LANGUAGE_WIDGET]),
    )


def _name() -> None:
    st.text_input(
        _("Your name"),
        key=_PERSON_KEY,
        placeholder=person(),
        persist_state="session",
        help=_("Stands beside the experiments and notes that you make, so that your team knows whom to ask."),
    )
