"""Tables that several pages show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lab.store import ExperimentRow
from pages.components.i18n import _
from pages.components.status import local_time, milliseconds, state_word, tokens_per_s


def experiments_table(rows: Sequence[ExperimentRow], key: str) -> int | None:
    """Experiments, newest first; returns the number of the one that was clicked."""
    frame = pd.DataFrame([_experiment_record(row) for row in rows])
    event: Any = st.dataframe(
        frame,
        key=key,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "id": st.column_config.NumberColumn(_("No."), format="%d", width=50),
            "name": st.column_config.TextColumn(_("Experiment"), width="large"),
            "state": st.column_config.TextColumn(_("State"), width="small"),
            "best": st.column_config.TextColumn(
                _("Highest throughput"), help=_("The measurement with the highest throughput: arm, rate, P95 TTFT.")
            ),
            "arms": st.column_config.NumberColumn(_("Arms"), format="%d", width=50),
            "trials": st.column_config.TextColumn(
                _("Trials"), width="small", help=_("Done of all; failed ones in brackets.")
            ),
            "person": st.column_config.TextColumn(_("Who"), width="small"),
            "when": st.column_config.TextColumn(_("When"), help=_("In the time zone of your browser.")),
            "notes": st.column_config.NumberColumn(_("Notes"), format="%d", width=50),
        },
    )
    chosen = event.selection.rows if event is not None else []
    return rows[chosen[0]].id if chosen else None


def _experiment_record(row: ExperimentRow) -> dict[str, Any]:
    failed = f" ({row.trials_failed})" if row.trials_failed else ""
    return {
        "id": row.id,
        "name": row.name,
        "state": state_word(row.state),
        "best": best_text(row),
        "arms": len(row.arms),
        "trials": f"{row.trials_done}/{row.trials_total}{failed}",
        "person": row.person,
        "when": local_time(row.created_at),
        "notes": row.notes or None,
    }


def best_text(row: ExperimentRow) -> str | None:
    """Arm, throughput and P95 TTFT of the best measurement; None where nothing was measured."""
    if row.best is None:
        return None
    return f"{tokens_per_s(row.best.output_tokens_per_s)} · {milliseconds(row.best.ttft_p95_ms)} · {row.best.arm}"
