"""The sidebar under the navigation: language, name, and one line about this host."""

from __future__ import annotations

from urllib.parse import quote

import streamlit as st

from pages.components.context import PERSON_COOKIE, PERSON_KEY, PERSON_TYPED, host_name, live, person
from pages.components.i18n import LANGUAGES, _, choose_language, current_language
from pages.components.runner import runner_line, runner_seen

_LANGUAGE_WIDGET = "language_widget"
_WRITE_COOKIE = "person-changed"
_A_YEAR_S = 365 * 24 * 3600


def sidebar() -> None:
    with st.sidebar:
        _language()
        _name()
        _host()


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
        key=PERSON_KEY,
        placeholder=person(),
        max_chars=60,
        persist_state="session",
        on_change=lambda: st.session_state.update({_WRITE_COOKIE: True, PERSON_TYPED: True}),
        help=_("Stands beside the experiments and notes that you make, so that your team knows whom to ask."),
    )
    if st.session_state.pop(_WRITE_COOKIE, False):
        _remember(st.session_state.get(PERSON_KEY) or "")


def _remember(name: str) -> None:
    """Keep the name in this browser, so that a reload does not turn its user into somebody else.

    A percent-encoded name holds no character that could end the script's string.
    """
    cookie = f"{PERSON_COOKIE}={quote(name, safe='')}; path=/; max-age={_A_YEAR_S if name else 0}; samesite=strict"
    st.html(f'<script>document.cookie = "{cookie}"</script>', unsafe_allow_javascript=True)


@live(2.0)
def _host() -> None:
    st.caption(f"{_('Host {host}').format(host=f'`{host_name()}`')}  \n{runner_line(runner_seen())}")
