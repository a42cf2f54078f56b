"""The few rules that the theme cannot say: a dense page, figures that line up."""

from __future__ import annotations

import streamlit as st

_CSS = """
<style>
.stMainBlockContainer { max-width: 1500px; padding-left: 2rem; padding-right: 2rem; }
@media (max-width: 640px) { .stMainBlockContainer { padding-left: 1rem; padding-right: 1rem; } }
[data-testid="stMetricValue"], [data-testid="stDataFrame"], .stTable td { font-variant-numeric: tabular-nums; }
[data-testid="stMetricLabel"] p { font-size: 0.8rem; opacity: 0.75; }
</style>
"""


def style() -> None:
    st.html(_CSS)
