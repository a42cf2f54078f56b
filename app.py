"""The entry of the pages: navigation, language, who is here. Start: `make run`, or `streamlit run app.py`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.components.context import errors_as_messages
from pages.components.i18n import N_, _, keep_language
from pages.components.sidebar import sidebar
from pages.components.style import style

HERE = Path(__file__).resolve().parent
PAGES = (
    ("home", N_("Home"), ":material/home:"),
    ("configs", N_("Configs"), ":material/tune:"),
    ("engine", N_("Engine"), ":material/memory:"),
    ("experiments", N_("Experiments"), ":material/science:"),
    ("results", N_("Results"), ":material/monitoring:"),
    ("history", N_("History"), ":material/history:"),
    ("export", N_("Export"), ":material/ios_share:"),
)


def main() -> None:
    st.set_page_config(page_title=_("Inference tuning lab"), page_icon=":material/speed:", layout="wide")
    keep_language()
    style()
    entries = [
        st.Page(f"pages/{name}.py", title=_(title), icon=icon, url_path=name, default=name == "home")
        for name, title, icon in PAGES
        if (HERE / "pages" / f"{name}.py").is_file()
    ]
    page = st.navigation(entries)
    sidebar()
    with errors_as_messages():
        page.run()


main()
