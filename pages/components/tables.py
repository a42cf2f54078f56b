"""Tables that several pages show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lab.store import ExperimentRow
from pages.components.i18n import _
from pages.components.own_words import own_words
from pages.components.status import MISSING, local_time, milliseconds, state_word, tokens_per_s


def experiments_table(rows: Sequence[ExperimentRow], key: str, height: int | None = None) -> int | None:
    """Experiments, newest first; returns the number of the one that was clicked."""
    frame = pd.DataFrame([_experiment_record(row) for row in rows])
    event: Any = st.dataframe(
        frame,
        key=key,
        hide_index=True,
        height=height or "auto",
        on_select="rerun",
        selection_mode="single-row",
        placeholder=MISSING,
        column_config={
            "id": st.column_config.NumberColumn(_("No."), format="%d", width=50),
            "name": st.column_config.TextColumn(_("Experiment"), width=240),
            "state": st.column_config.TextColumn(_("State"), width=90),
            "rate": st.column_config.NumberColumn(
                _("Best tok/s"),
                format="%.1f",
                width=90,
                help=_("Highest throughput of a measurement of the experiment."),
            ),
            "ttft": st.column_config.NumberColumn(
                _("its P95 TTFT (ms)"),
                format="%.0f",
                width=120,
                help=_("P95 TTFT of the measurement with the best rate."),
            ),
            "arm": st.column_config.TextColumn(_("its arm"), width=170),
            "trials": st.column_config.TextColumn(
                _("Trials"), width=80, help=_("Done of all; failed ones in brackets.")
            ),
            "person": st.column_config.TextColumn(_("Who"), width=90),
            "when": st.column_config.TextColumn(_("When"), width=130, help=_("In the time zone of your browser.")),
            "notes": st.column_config.NumberColumn(_("Notes"), format="%d", width=60),
        },
    )
    chosen = event.selection.rows if event is not None else []
    return rows[chosen[0]].id if chosen and chosen[0] < len(rows) else None


def _experiment_record(row: ExperimentRow) -> dict[str, Any]:
    failed = f" ({row.trials_failed})" if row.trials_failed else ""
    return {
        "id": row.id,
        "name": own_words(row.name),
        "state": state_word(row.state),
        "rate": row.best.output_tokens_per_s if row.best else None,
        "ttft": row.best.ttft_p95_ms if row.best else None,
        "arm": own_words(row.best.arm) if row.best else None,
        "trials": f"{row.trials_done}/{row.trials_total}{failed}",
        "person": row.person,
        "when": local_time(row.created_at),
        "notes": row.notes or None,
    }


def best_text(row: ExperimentRow) -> str | None:
    """Arm, throughput and P95 TTFT of the best measurement; None where nothing was measured."""
    if row.best is None:
        return None
    rate, ttft = tokens_per_s(row.best.output_tokens_per_s), milliseconds(row.best.ttft_p95_ms)
    return f"{own_words(row.best.arm)}: {rate}, P95 TTFT {ttft}"
