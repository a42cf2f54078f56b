"""Which experiment a page is about: named in the address, chosen in a list, or the newest."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from lab.findings import LabError
from lab.store import ExperimentRow, ExperimentView, Store, get_experiment, list_experiments
from pages.components.i18n import _
from pages.components.own_words import own_words
from pages.components.status import local_time

PARAMETER = "experiment"
_SHOWN = 200
# more than any database has numbers for is no number of an experiment
_DIGITS = 15


def named_experiment() -> int | None:
    """The number in the address (`?experiment=3`, also `?id=3`); None where there is none."""
    text = st.query_params.get(PARAMETER) or st.query_params.get("id") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def choose_experiment(store: Store, key: str, wanted: Callable[[ExperimentRow], bool]) -> ExperimentView | None:
    """Draw the list and give the chosen experiment whole; None (after a line that says so) where there is none."""
    rows = {row.id: row for row in list_experiments(store, limit=_SHOWN) if wanted(row)}
    named = named_experiment()
    if named is not None and named not in rows and (row := _row(store, named)) is not None:
        rows[named] = row
    if not rows:
        return None
    if named is not None and named not in rows:
        st.warning(_("There is no experiment {id}; the newest one is shown.").format(id=named))
    chosen = named if named in rows else next(iter(rows))
    widget = f"{key}:experiment"
    if st.session_state.get(widget) != chosen:
        st.session_state[widget] = chosen
    st.selectbox(
        _("Experiment"),
        list(rows),
        format_func=lambda number: _label(rows[number]),
        key=widget,
        on_change=_remember,
        args=(widget,),
    )
    return get_experiment(store, chosen)


def _remember(widget: str) -> None:
    st.query_params[PARAMETER] = str(st.session_state[widget])


def _row(store: Store, number: int) -> ExperimentRow | None:
    try:
        return get_experiment(store, number).row
    except LabError:
        return None


def _label(row: ExperimentRow) -> str:
    # without the state: the browser keeps the label it drew first, and the state would soon be untrue
    return f"#{row.id} · {own_words(row.name)} · {local_time(row.created_at)}"
