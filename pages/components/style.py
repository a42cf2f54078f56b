"""The few rules that the theme cannot say: a dense page, figures that line up, the product's name over the pages."""

from __future__ import annotations

import json

import streamlit as st

from pages.components.i18n import _

_CSS = """
<style>
.stMainBlockContainer { max-width: 1500px; padding-left: 2rem; padding-right: 2rem; }
@media (max-width: 640px) { .stMainBlockContainer { padding-left: 1rem; padding-right: 1rem; } }
[data-testid="stMetricValue"], [data-testid="stDataFrame"], .stMarkdown td { font-variant-numeric: tabular-nums; }
[data-testid="stMetricLabel"] p { font-size: 0.8rem; opacity: 0.75; }
[data-testid="stSidebarHeader"]::before { content: NAME; font-weight: 650; font-size: 1.05rem; white-space: nowrap; }
.stMarkdown table { width: 100%; }
.stMarkdown th, .stMarkdown td { padding: 0.3rem 0.6rem; font-size: 0.9rem; border-left: none; border-right: none; }
.stMarkdown thead:has(th:empty) { display: none; }
.stMarkdown thead:has(th:empty) + tbody td:first-child { opacity: 0.75; white-space: nowrap; }
</style>
"""


def style() -> None:
    st.html(_CSS.replace("NAME", json.dumps(_("Inference tuning lab"), ensure_ascii=False)))
