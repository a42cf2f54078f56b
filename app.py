"""The entry of the pages: navigation, language, who is here. Start: `make run`, or `streamlit run app.py`."""

from __future__ import annotations

from pages.components.context import errors_as_messages
from pages.components.frame import navigation, page_config
from pages.components.i18n import keep_language
from pages.components.sidebar import sidebar
from pages.components.style import style

page_config()
keep_language()
style()
page = navigation()
sidebar()
with errors_as_messages():
    page.run()
