"""Throughput against P95 TTFT, one point per measurement; a click opens the measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from lab.charts import (
    LadderTexts,
    ThroughputTexts,
    cache_points,
    cache_use,
    knees,
    ladder,
    ladder_points,
    throughput_ttft,
    throughput_ttft_points,
)
from lab.store import ExperimentView, MeasurementRow
from pages.components.context import is_dark
from pages.components.i18n import _
from pages.components.result_table import stage_name

CHOSEN = "results:measurement"
Baselines = Sequence[tuple[str, MeasurementRow]]


def throughput_chart(view: ExperimentView, baselines: Baselines) -> None:
    """The chart of an experiment with baselines beside it."""
    points = throughput_ttft_points(view, baselines)
    if not points:
        st.caption(_("No measurement has both a throughput and a P95 TTFT, so there is no chart."))
        return
    key = f"results:chart:{view.row.id}"
    st.plotly_chart(
        throughput_ttft(
            points,
            slo=view.experiment.slo,
            knees=knees(view.verdicts),
            dark=is_dark(),
            texts=_texts(),
            word_stage=stage_name,
        ),
        key=key,
        theme=None,
        on_select=lambda: choose_from_chart(key),
        selection_mode="points",
        config={"displayModeBar": False},
    )
    st.caption(_("One point is one measurement; further right and lower is better. Click a point to see its requests."))


def ladder_chart(view: ExperimentView) -> None:
    """TTFT against prompt length, where the workload climbs one."""
    points = ladder_points(view)
    if not points:
        return
    st.subheader(_("TTFT against prompt length"), anchor=False)
    texts = LadderTexts(
        prompt=_("Prompt tokens"),
        ttft=_("Mean TTFT (ms)"),
        repeat=_("repeat {repeat}"),
        linear=_("{arm}: straight line"),
        quadratic=_("{arm}: parabola"),
    )
    figure = ladder(points, fits=view.ladders, dark=is_dark(), texts=texts)
    key = f"results:ladder:{view.row.id}"
    st.plotly_chart(
        figure,
        key=key,
        theme=None,
        on_select=lambda: choose_from_chart(key),
        selection_mode="points",
        config={"displayModeBar": False},
    )


def cache_chart(view: ExperimentView) -> None:
    """KV cache use against context length, where the workload climbs one and the cache was seen in use."""
    points = cache_points(view)
    if not points:
        return
    st.subheader(_("KV cache against context length"), anchor=False)
    if not any(point.kv_peak_ratio for point in points):
        st.caption(
            _(
                "The cache was never seen in use: short answers fill it for moments between two readings. Sample 10 "
                "times a second, ask for more output tokens, or hold more requests at once."
            )
        )
        return
    key = f"results:cache:{view.row.id}"
    st.plotly_chart(
        cache_use(
            points,
            dark=is_dark(),
            context_title=_("Context (tokens: prompt and answer)"),
            use_title=_("KV cache in use, peak"),
            point_text=_("repeat {repeat}, at most {in_flight} at once"),
        ),
        key=key,
        theme=None,
        on_select=lambda: choose_from_chart(key),
        selection_mode="points",
        config={"displayModeBar": False},
    )


def _texts() -> ThroughputTexts:
    return ThroughputTexts(
        throughput=_("Throughput (output tokens/s)"),
        ttft=_("P95 TTFT (ms)"),
        baseline=_("{arm} (baseline)"),
        slo=_("Limit: P95 TTFT {limit} ms"),
        repeat=_("repeat {repeat}"),
        samples=_("n = {n}"),
        marks=_("Reservations: {n} (click to read them)"),
        origin=_("from: {origin}"),
        ceiling=_("near the client's ceiling"),
        knee=_("throughput stops growing here"),
    )


def choose_from_chart(key: str) -> None:
    """The clicked point names its measurement."""
    chosen = chosen_point(st.session_state[key])
    if chosen is not None:
        st.session_state[CHOSEN] = chosen


def chosen_point(event: Any) -> int | None:
    """The measurement of a selection of the chart; None where nothing is selected."""
    points = event["selection"]["points"] if event else []
    if not points:
        return None
    data = points[0].get("customdata")
    first = data[0] if isinstance(data, list | tuple) and data else data
    return int(first) if isinstance(first, int | float | str) and str(first).isdigit() else None


def choose_from_table(key: str, rows: Sequence[MeasurementRow]) -> None:
    """The clicked row names its measurement."""
    selected = st.session_state[key]["selection"]["rows"]
    if selected and selected[0] < len(rows):
        st.session_state[CHOSEN] = rows[selected[0]].id
