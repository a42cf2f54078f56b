"""What every page needs first: the database, the environment, who is here, and errors turned into messages."""

from __future__ import annotations

import getpass
import logging
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import streamlit as st
from sqlalchemy.exc import SQLAlchemyError

from lab.environment import Environment, read_environment
from lab.findings import Finding, LabError
from pages.components.frame import ensure_framed
from pages.components.i18n import _, word_finding

if TYPE_CHECKING:
    from lab.store import Store

log = logging.getLogger("lab.pages")
PERSON_KEY = "person"
PERSON_COOKIE = "lab_person"
# set once the field was changed: what the browser kept when the session began is then out of date
PERSON_TYPED = "person-typed"


@st.cache_resource(show_spinner=False)
def _open(url: str) -> Store:
    from lab.store import open_store

    return open_store(url)


def environment() -> Environment:
    """The environment as it is now; `.env` is read anew, so a changed one needs no restart."""
    return read_environment()


def get_store() -> Store:
    """The database of this process, opened once for each address."""
    return _open(environment().database_url)


def host_name() -> str:
    return platform.node()


def person() -> str:
    """Who sits at this browser: the name in the sidebar, else the one kept in the browser, else the system's user."""
    typed = str(st.session_state.get(PERSON_KEY) or "").strip()
    kept = "" if st.session_state.get(PERSON_TYPED) else _kept_name()
    return typed or kept or _system_user()


def _kept_name() -> str:
    kept = st.context.cookies.get(PERSON_COOKIE)
    return unquote(kept).strip()[:60] if isinstance(kept, str) else ""


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "user"


def header(title: str, caption: str | None = None) -> None:
    """The head of a page: the first thing that each page calls."""
    ensure_framed()
    st.title(title, anchor=False)
    if caption:
        st.caption(caption)


@contextmanager
def errors_as_messages() -> Iterator[None]:
    """Show what goes wrong inside as a message on the page, never as a traceback."""
    try:
        yield
    except LabError as problem:
        show_findings(problem.findings)
    except SQLAlchemyError as problem:
        log.exception("database")
        reason = str(problem).splitlines()[0]
        st.error(_("The database cannot be used just now: {reason}").format(reason=reason), icon=":material/database:")
    except Exception as problem:  # the edge of the page: a visitor gets a sentence, the log gets the traceback
        log.exception("page")
        st.error(
            _("This part of the page failed: {kind}: {reason}. The log of the page's server has the details.").format(
                kind=type(problem).__name__, reason=problem
            ),
            icon=":material/error:",
        )


def show_findings(findings: tuple[Finding, ...] | list[Finding]) -> None:
    """Each finding as a box of its severity: errors first, then warnings, then advice."""
    boxes = {"error": st.error, "warning": st.warning, "advice": st.info}
    for severity, box in boxes.items():
        for finding in findings:
            if finding.severity == severity:
                box(word_finding(finding))


def live(seconds: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A part of a page that redraws itself, errors as messages. Keep selectable tables and charts out of it."""

    def decorate(draw: Callable[..., Any]) -> Callable[..., Any]:
        @st.fragment(run_every=seconds)
        @wraps(draw)
        def part(*args: Any, **kwargs: Any) -> None:
            with errors_as_messages():
                draw(*args, **kwargs)

        return part

    return decorate


def redraw_on_change(key: str, value: object) -> None:
    """For a live part: draw the whole page anew when this value is another than it last was on this page."""
    before = st.session_state.get(key, value)
    st.session_state[key] = value
    if before != value:
        st.rerun()


def is_dark() -> bool:
    """Whether the browser shows the dark theme now, for charts that bring their own colours."""
    return st.context.theme.type == "dark"
