"""The entry of the pages: navigation, language, who is here. Start: `make run`, or `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

from pages.components.context import errors_as_messages
from pages.components.frame import navigation
from pages.components.i18n import _, keep_language
from pages.components.sidebar import sidebar
from pages.components.style import style

st.set_page_config(page_title=_("Inference tuning lab"), page_icon=":material/speed:", layout="wide")
keep_language()
style()
page = navigation()
sidebar()
with errors_as_messages():
    page.run()
