"""Telemetry over time: one row of the figure per group of series that share a unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from lab.charts.style import LINE_KINDS, dress, palette_of
from lab.records.sample import Sample


@dataclass(frozen=True, slots=True)
class SeriesGroup:
    """Series drawn on one axis: name of the series to its words. `percent` shows ratios as per cent."""

    title: str
    series: Mapping[str, str]
    percent: bool = False


def known_groups(samples: Sequence[Sample], groups: Sequence[SeriesGroup]) -> tuple[SeriesGroup, ...]:
    """The groups with the series that were sampled; what has no value at all is absent, not zero."""
    there = {s.series for s in samples if s.value is not None}
    kept = [
        SeriesGroup(g.title, {name: words for name, words in g.series.items() if name in there}, g.percent)
        for g in groups
    ]
    return tuple(group for group in kept if group.series)


def time_series(
    samples: Sequence[Sample],
    groups: Sequence[SeriesGroup],
    *,
    dark: bool = False,
    time_title: str = "Time (s)",
    row_height: int = 180,
) -> go.Figure:
    """Lines over seconds since the first sample; a missing value is a gap in its line."""
    shown = known_groups(samples, groups)
    figure = make_subplots(rows=max(1, len(shown)), cols=1, shared_xaxes=True, vertical_spacing=0.06)
    start_ms = min((s.at_ms for s in samples), default=0.0)
    colour, palette = 0, palette_of(dark)
    for row, group in enumerate(shown, start=1):
        for kind, (name, words) in enumerate(group.series.items()):
            line = {"color": palette[colour % len(palette)], "dash": LINE_KINDS[kind % len(LINE_KINDS)], "width": 2}
            figure.add_trace(_line(samples, name, words, start_ms, group.percent, line), row=row, col=1)
            colour += 1
        figure.update_yaxes(title_text=group.title, rangemode="tozero", row=row, col=1)
        if group.percent:
            figure.update_yaxes(tickformat=".0%", row=row, col=1)
    dress(figure, dark, row_height * max(1, len(shown)) + 60)
    figure.update_xaxes(title_text=time_title, row=max(1, len(shown)), col=1)
    figure.update_layout(hovermode="x unified")
    return figure


def _line(
    samples: Sequence[Sample], series: str, words: str, start_ms: float, percent: bool, line: Mapping[str, object]
) -> go.Scatter:
    own = sorted((s for s in samples if s.series == series), key=lambda s: s.at_ms)
    return go.Scatter(
        x=[(s.at_ms - start_ms) / 1000 for s in own],
        y=[s.value for s in own],
        name=words,
        mode="lines",
        connectgaps=False,
        line=dict(line),
        hovertemplate="%{y:.1%}" if percent else "%{y:,.4~g}",
    )
