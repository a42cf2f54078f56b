"""What is wrong with the draft."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lab.configs.pair import ConfigPair
from lab.findings import Finding
from pages.components.i18n import _
from pages.components.pair_panel import finding_lines


def findings_panel(pair: ConfigPair, findings: Sequence[Finding]) -> None:  # noqa: ARG001
    """Every finding with its file and line, errors first."""
    st.subheader(_("Checks"), anchor=False)
    if not findings:
        st.markdown(f":green[:material/check:] {_('Nothing is wrong with these two files.')}")
        return
    finding_lines(findings)
