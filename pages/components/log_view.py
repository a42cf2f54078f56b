"""The live end of a log file, with a filter by level and a search."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.components.context import environment, live
from pages.components.i18n import _
from pages.components.log import LEVELS, filtered, log_lines, read_tail

LINES = 400


def log_view(path: str, key: str) -> None:
    """The last lines of a log below the run directory; the filters stay while the lines move."""
    level, search = st.columns([1, 3])
    least = level.selectbox(_("Level"), LEVELS, index=LEVELS.index("INFO"), key=f"{key}-level", format_func=_at_least)
    text = search.text_input(_("Search in the log"), key=f"{key}-search", type="search", placeholder=_("any text"))
    log_tail(path, least, text or "")


def _at_least(level: str) -> str:
    return level if level == LEVELS[-1] else _("{level} and above").format(level=level)


@live(1.0)
def log_tail(path: str, least: str, search: str) -> None:
    """The lines themselves, newest at the end and in view."""
    tail = read_tail(Path(path), environment().run_dir)
    if tail is None:
        st.caption(_("There is no log at {path}.").format(path=path))
        return
    lines = filtered(list(log_lines(tail)), least, search, LINES)
    if not lines:
        st.caption(_("No line of the log matches."))
        return
    with st.container(height=360, border=True, autoscroll=True):
        st.code("\n".join(line.text for line in lines), language=None, wrap_lines=True)
    st.caption(f"`{path}`")
