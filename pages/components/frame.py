"""The list of pages, registered with Streamlit; what is drawn around each of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from pages.components.i18n import N_, _

if TYPE_CHECKING:
    from streamlit.navigation.page import StreamlitPage

PAGES_DIR = Path(__file__).resolve().parents[1]
PAGES = (
    ("home", N_("Home"), ":material/home:"),
    ("configs", N_("Configs"), ":material/tune:"),
    ("engine", N_("Engine"), ":material/memory:"),
    ("experiments", N_("Experiments"), ":material/science:"),
    ("results", N_("Results"), ":material/monitoring:"),
    ("history", N_("History"), ":material/history:"),
    ("export", N_("Export"), ":material/ios_share:"),
)
_FIRST = "home"

ICON = Path(__file__).with_name("icon.svg")


def page_config() -> None:
    """Title, icon and width. The icon is a file of ours: a named one would be fetched from the internet."""
    st.set_page_config(page_title=_("Inference tuning lab"), page_icon=str(ICON), layout="wide")


def page_file(name: str) -> Path:
    return PAGES_DIR / f"{name}.py"


def navigation() -> StreamlitPage:
    """Register the pages that are there; returns the one to run."""
    shown = [
        st.Page(page_file(name), title=_(title), icon=icon, url_path=_address(name), default=name == _FIRST)
        for name, title, icon in PAGES
        if page_file(name).is_file()
    ]
    return st.navigation([*shown, st.Page(_first_page, title=page_title(_FIRST), url_path=_FIRST, visibility="hidden")])


def _address(name: str) -> str:
    """The first page stands at the root, which leaves its name free for people who type it."""
    return "" if name == _FIRST else name


def _first_page() -> None:
    go_to(_FIRST, **{key: value for key, value in st.query_params.items() if isinstance(value, str)})


def ensure_framed() -> None:
    """Run app.py where Streamlit ran a page alone.

    A fresh server discovers pages/ by itself until the first `st.navigation`, so its first visitor would get a page
    without navigation and sidebar when the address names one.
    """
    if PagesManager.uses_pages_directory:
        page_config()
        navigation()
        st.rerun()


def page_title(name: str) -> str:
    return next(_(title) for page, title, _icon in PAGES if page == name)


def link_to(name: str, label: str | None = None, **query: str | int) -> None:
    """A link to another page, with query parameters; nothing where the page is not there."""
    if page_file(name).is_file():
        icon = next(icon for page, _title, icon in PAGES if page == name)
        parameters = {key: str(value) for key, value in query.items()}
        st.page_link(page_file(name), label=label or page_title(name), icon=icon, query_params=parameters or None)


def go_to(name: str, **query: str | int) -> None:
    """Leave for another page."""
    st.switch_page(page_file(name), query_params={key: str(value) for key, value in query.items()} or None)
