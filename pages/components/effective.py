"""What an engine was asked for and what it took, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from lab.configs.knobs import knob_table
from lab.store import LaunchRow
from pages.components.i18n import _, word
from pages.components.status import MISSING


def effective_table(launch: LaunchRow) -> None:
    """Knob, asked, in force, differs; a line that says so where the engine told nothing."""
    effective = launch.effective or {}
    knobs: Mapping[str, Any] = effective.get("knobs") or {}
    asked: Mapping[str, Any] = effective.get("asked") or {}
    if not knobs and not asked:
        st.caption(_("The engine has not said yet which configuration it runs with."))
        return
    differing = {str(mark.get("params", {}).get("knob")) for mark in effective.get("marks") or ()}
    names = sorted({*knobs, *asked}, key=lambda name: (name not in differing, name not in asked, name))
    frame = pd.DataFrame(
        {
            _("Knob"): names,
            _("Meaning"): [_label(name) for name in names],
            _("Asked"): [_shown(asked.get(name)) for name in names],
            _("In force"): [_shown(knobs.get(name)) for name in names],
            _("Differs"): [_("differs") if name in differing else "" for name in names],
        }
    )
    st.dataframe(frame, hide_index=True)
    for mark in effective.get("marks") or ():
        st.warning(word(mark["code"], mark.get("params") or {}))


def _label(name: str) -> str:
    knob = knob_table().get(name)
    return _(knob.label) if knob else ""


def _shown(value: object) -> str:
    return MISSING if value is None else str(value)
