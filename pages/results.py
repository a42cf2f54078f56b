"""Results: what an experiment says, in words, as article 2's table, as a chart, and down to each request."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lab.metrics import reference_arm
from lab.metrics.ladder import ladder_steps
from lab.store import ExperimentView, MeasurementRow, Store, get_experiment
from pages.components.baselines import choose_baselines
from pages.components.context import errors_as_messages, get_store, header, live
from pages.components.experiment_choice import choose_experiment
from pages.components.experiment_preview import queued_message
from pages.components.frame import link_to
from pages.components.i18n import _, ngettext, word
from pages.components.ladder_table import fit_table, ladder_table
from pages.components.markdown import plain_markdown
from pages.components.measurement_detail import measurement_detail, measurement_label
from pages.components.notes import notes_panel
from pages.components.own_words import view_in_words
from pages.components.progress import stop_button
from pages.components.result_chart import (
    CHOSEN,
    Baselines,
    cache_chart,
    choose_from_table,
    ladder_chart,
    throughput_chart,
)
from pages.components.result_rows import measurement_record
from pages.components.result_table import arm_table, measurement_table, ratio_table
from pages.components.result_trials import cancelled_line, failed_trials, live_progress, skipped_lines
from pages.components.stall_chart import is_interference, stall_charts
from pages.components.status import local_time, state_badge
from pages.components.workload_form import workload_sentence

OPEN = ("queued", "running", "paused")


def page() -> None:
    header(_("Results"))
    store = get_store()
    view = choose_experiment(store, "results", lambda _row: True)
    if view is None:
        st.info(_("Nothing was measured yet. Start the first experiment, and its result stands here."))
        link_to("experiments", _("Choose an experiment"))
        return
    stored, view = view, view_in_words(view)
    _head(view)
    queued_message()
    if view.row.state in OPEN:
        _progress(view.row.id, view.row.state, len(view.measurements))
    _verdict(view)
    if view.measurements:
        _measured(store, view)
        _downloads(stored)
    with errors_as_messages():
        failed_trials(view)
    skipped_lines(view.trials)
    cancelled_line(view.trials)
    st.subheader(_("Notes"), anchor=False)
    notes_panel(store, view.row.id)


def _head(view: ExperimentView) -> None:
    row = view.row
    st.markdown(f"### {plain_markdown(row.name)} {state_badge(row.state)}")
    if row.question:
        st.markdown(plain_markdown(row.question))
    parts = [
        _("{person} on {host}").format(person=row.person, host=row.host),
        local_time(row.created_at),
        workload_sentence(view.experiment.workload),
    ]
    st.caption(plain_markdown(" · ".join(parts)))


@live(2)
def _progress(experiment_id: int, state: str, measured: int) -> None:
    """Progress that redraws itself; a new measurement redraws the page."""
    view = get_experiment(get_store(), experiment_id)
    if (view.row.state, len(view.measurements)) != (state, measured):
        st.rerun()
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        with st.container():
            live_progress(view)
        stop_button(view.row, key=f"results:stop:{experiment_id}")


def _verdict(view: ExperimentView) -> None:
    """One sentence on top, the others below it; where nothing can be said, why."""
    said = [verdict for verdict in view.verdicts if verdict.said]
    silent = [verdict for verdict in view.verdicts if not verdict.said]
    said.sort(key=lambda verdict: _WEIGHT.get(verdict.code, len(_WEIGHT)))
    sentences = [plain_markdown(word(verdict.code, dict(verdict.params))) for verdict in said]
    reasons = [plain_markdown(word(verdict.code, dict(verdict.params))) for verdict in silent]
    if sentences and view.row.state in OPEN:
        st.info(_("So far: {sentence}").format(sentence=sentences[0]), icon=":material/hourglass_top:")
    elif sentences:
        st.success(f"**{sentences[0]}**", icon=":material/gavel:")
    elif view.row.state == "failed":
        st.error(_no_verdict(view), icon=":material/error:")
    elif view.row.state in OPEN:
        st.info(_("The verdict comes when every arm is measured."), icon=":material/hourglass_top:")
    else:
        st.info(reasons[0] if reasons else _no_verdict(view), icon=":material/help:")
        reasons = reasons[1:]
    if view.row.state not in OPEN:
        alike = not said and len(silent) > 2 and len({verdict.code for verdict in silent}) == 1
        _more_sentences([*sentences[1:], *dict.fromkeys(reasons)], at_once=0 if alike else _SENTENCES)


def _more_sentences(lines: Sequence[str], at_once: int) -> None:
    """What else can be said; many arms and stages make many sentences, most of them are folded away."""
    shown = lines if at_once and len(lines) <= at_once + 1 else lines[:at_once]
    if shown:
        st.markdown("\n".join(f"- {line}" for line in shown))
    if rest := lines[len(shown) :]:
        with st.expander(ngettext("{n} more sentence", "{n} more sentences", len(rest)).format(n=len(rest))):
            st.markdown("\n".join(f"- {line}" for line in rest))


_SENTENCES = 6
_WEIGHT = {
    code: place
    for place, code in enumerate(
        (
            "verdict-ladder-more",
            "verdict-ladder-linear",
            "verdict-ladder-less",
            "verdict-ladder-flat",
            "verdict-cache",
            "verdict-ladder-tpot",
            "verdict-winner",
            "verdict-knee",
            "verdict-no-knee",
            "verdict-stall",
            "verdict-intruder-ttft",
            "verdict-throughput",
            "verdict-ttft",
            "verdict-tpot",
            "verdict-nobody-meets-slo",
            "verdict-same",
        )
    )
}


def _no_verdict(view: ExperimentView) -> str:
    if not view.measurements:
        return _("Nothing was measured.")
    if len(view.arms) < 2:
        return _("There is one arm, so there is nothing to compare it with.")
    return _("Fewer than two arms were measured, so nothing can be compared.")


def _measured(store: Store, view: ExperimentView) -> None:
    st.subheader(_("Arms"), anchor=False)
    rows = view.measurements
    arm_table(view.pooled)
    st.caption(
        _("All repeats together: P95 is of the pooled requests, wall time is the sum. Warm-up is left out everywhere.")
    )
    chart, ratios = st.columns([3, 2], gap="large")
    with chart:
        baselines = _charts(store, view)
    with ratios:
        if len(view.arms) > 1:
            _ratios(view)
        _marks(rows)
    ladder_table(ladder_steps(rows))
    fit_table(view.ladders)
    _measurements(store, view, [*rows, *(row for _origin, row in baselines)])


def _ratios(view: ExperimentView) -> None:
    st.subheader(_("Ratio between the arms"), anchor=False)
    if not ratio_table(view.verdicts, reference_arm(view.measurements)):
        st.caption(
            _("The ratios come when every arm is measured.")
            if view.row.state in OPEN
            else _("No ratio can be given: see the reasons above.")
        )


def _charts(store: Store, view: ExperimentView) -> Baselines:
    """The charts that the kind of load calls for; returns the baselines that were chosen beside it."""
    if is_interference(view):  # TTFT of both kinds of requests together would say nothing of either
        stall_charts(store, view)
        return ()
    ladder_chart(view)
    cache_chart(view)
    st.subheader(_("Throughput against P95 TTFT"), anchor=False)
    baselines = choose_baselines(store, view)
    throughput_chart(view, baselines)
    return baselines


def _marks(rows: Sequence[MeasurementRow]) -> None:
    """Every reservation once, with the measurements that carry it."""
    carried: dict[str, list[int]] = {}
    for row in rows:
        for mark in row.marks:
            carried.setdefault(word(mark.code, dict(mark.params)), []).append(row.id)
    st.subheader(_("Reservations"), anchor=False)
    if not carried:
        st.markdown(f":green[:material/check:] {_('None: nothing speaks against these measurements.')}")
    for text, ids in carried.items():
        numbers = ", ".join(f"#{number}" for number in sorted(set(ids)))
        st.markdown(f":orange[:material/flag:] {plain_markdown(text)} :gray[{plain_markdown(numbers)}]")


def _measurements(store: Store, view: ExperimentView, rows: Sequence[MeasurementRow]) -> None:
    st.subheader(_("Measurements"), anchor=False)
    key = f"results:rows:{view.row.id}"
    measurement_table(rows, key, lambda: choose_from_table(key, rows))
    known = {row.id: row for row in rows}
    if st.session_state.get(CHOSEN) not in known:
        st.session_state[CHOSEN] = None
    chosen = st.selectbox(
        _("Measurement"),
        list(known),
        index=None,
        format_func=lambda number: measurement_label(known[number]),
        placeholder=_("Choose one, or click a point or a row, to see its requests"),
        key=CHOSEN,
    )
    if chosen is not None:
        with st.container(border=True):
            measurement_detail(store, known[chosen], view.experiment.slo)


def _downloads(view: ExperimentView) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            _("Measurements as CSV"),
            pd.DataFrame([measurement_record(row) for row in view.measurements]).to_csv(index=False),
            file_name=f"experiment-{view.row.id}.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
        )
        link_to("export", _("Export an arm"), experiment=view.row.id)


page()
