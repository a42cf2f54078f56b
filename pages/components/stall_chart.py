"""Steady answers while long prompts are read: a row of gaps for each arm."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lab.charts import StallPanel, StallTexts, stalls
from lab.metrics.interference import interference_course
from lab.records.request import RequestRecord
from lab.store import ExperimentView, MeasurementRow, Store, list_requests
from pages.components.context import is_dark
from pages.components.i18n import _, ngettext

MOST_ROWS = 6


def is_interference(view: ExperimentView) -> bool:
    return any(row.summary.interference is not None for row in view.measurements)


def stall_charts(store: Store, view: ExperimentView) -> None:
    """The first measurement of each arm below each other; nothing where the workload throws no long prompts in."""
    firsts: dict[int, MeasurementRow] = {}
    for row in view.measurements:
        if row.summary.interference is not None:
            firsts.setdefault(row.arm_id, row)
    shown = list(firsts.values())[:MOST_ROWS]
    if not shown:
        return
    st.subheader(_("Steady answers while long prompts are read"), anchor=False)
    _draw([_panel(row, list_requests(store, row.id)) for row in shown], f"results:stalls:{view.row.id}")
    if len(view.measurements) > len(shown):
        n = len(view.measurements) - len(shown)
        st.caption(
            ngettext(
                "The first repeat of each arm; {n} more measurement stands below.",
                "The first repeat of each arm; {n} more measurements stand below.",
                n,
            ).format(n=n)
        )


def stall_chart(row: MeasurementRow, requests: Sequence[RequestRecord]) -> None:
    """The same of one measurement."""
    if row.summary.interference is not None:
        st.markdown(f"**{_('Steady answers while long prompts are read')}**")
        _draw([_panel(row, requests)], f"results:stall:{row.id}")


def _panel(row: MeasurementRow, requests: Sequence[RequestRecord]) -> StallPanel:
    measured = [request for request in requests if not request.warmup]
    return StallPanel(row.id, row.arm_name, interference_course(measured))


def _draw(panels: Sequence[StallPanel], key: str) -> None:
    texts = StallTexts(
        time=_("Time (s)"),
        quiet=_("no long prompt waits"),
        disturbed=_("a long prompt waits"),
        wait=_("from a long prompt's arrival to its first token"),
    )
    figure = stalls(panels, dark=is_dark(), texts=texts)
    st.plotly_chart(figure, key=key, theme=None, config={"displayModeBar": False})
    st.caption(
        _("Each dot is the gap between two tokens of a steady answer; the highest dot is the longest standstill.")
    )
