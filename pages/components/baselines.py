"""Gateway baselines of other experiments beside this one's points."""

from __future__ import annotations

import streamlit as st

from lab.store import Baseline, ExperimentView, MeasurementRow, Store, list_baselines
from pages.components.i18n import _
from pages.components.status import local_time


def choose_baselines(store: Store, view: ExperimentView) -> list[tuple[str, MeasurementRow]]:
    """The gateway's measurements that somebody wants to see beside: (origin, measurement)."""
    found = {each.experiment_id: each for each in list_baselines(store, view.experiment.workload, besides=view.row.id)}
    if not found:
        if not any(arm.arm.target == "gateway" for arm in view.arms):
            st.caption(
                _("No gateway baseline with this workload is stored yet; an experiment with a gateway arm makes one.")
            )
        return []
    chosen = st.multiselect(
        _("Gateway baselines of other experiments with the same workload"),
        list(found),
        format_func=lambda number: _label(found[number]),
        placeholder=_("Choose baselines to show beside"),
        key=f"results:baselines:{view.row.id}",
    )
    return [(f"#{number}", row) for number in chosen for row in found[number].rows]


def _label(baseline: Baseline) -> str:
    return f"#{baseline.experiment_id} · {baseline.name} · {local_time(baseline.created_at)}"
