"""How steady answers went on while long prompts were read: every gap where it ended, one row for each measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from lab.charts.points import wants_log_axis
from lab.charts.style import BASELINE, dress, log_ticks, palette_of
from lab.metrics.interference import Course

MOST_POINTS = 1500


@dataclass(frozen=True, slots=True)
class StallPanel:
    """One measurement's row; `title` names it."""

    measurement_id: int
    title: str
    course: Course


@dataclass(frozen=True, slots=True)
class StallTexts:
    """The words on the figure."""

    time: str = "Time (s)"
    quiet: str = "no long prompt waits"
    disturbed: str = "a long prompt waits"
    wait: str = "from a long prompt's arrival to its first token"


ENGLISH = StallTexts()


def stalls(
    panels: Sequence[StallPanel], *, dark: bool = False, texts: StallTexts = ENGLISH, row_height: int = 190
) -> go.Figure:
    """Gaps over time with the same axes in every row; the waits of long prompts are bands.

    Of more than 1,500 gaps the longest of each of 1,500 stretches is drawn, so that no standstill is lost.
    """
    figure = make_subplots(
        rows=max(1, len(panels)),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=min(0.12, 0.3 / max(1, len(panels))),
        subplot_titles=[escape(panel.title) for panel in panels] if len(panels) > 1 else None,
    )
    dress(figure, dark, row_height * max(1, len(panels)) + 90)
    for number, panel in enumerate(panels, start=1):
        _add_gaps(figure, number, panel, texts, palette_of(dark))
        _add_waits(figure, number, panel.course, dark)
    if panels:
        _add_band_to_legend(figure, texts.wait)
        _set_axes(figure, panels)
    figure.update_xaxes(title_text=texts.time, row=max(1, len(panels)), col=1)
    figure.update_xaxes(title_font={"size": 13})
    figure.update_yaxes(title_text="ms", title_font={"size": 13})
    figure.update_annotations(font={"size": 13})
    figure.update_layout(margin={"t": 64}, legend={"y": 1.0 + 34 / figure.layout.height, "itemclick": False})
    return figure


def thinned(course: Course, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Which gaps to draw: all, or the longest of each of `most` stretches of equal length."""
    if course.at_ms.size <= most:
        return np.arange(course.at_ms.size)
    edges = np.linspace(course.at_ms[0], course.at_ms[-1], most, endpoint=False)
    stretch = np.searchsorted(edges, course.at_ms, side="right")
    longest_first = np.lexsort((-course.gap_ms, stretch))
    _, first = np.unique(stretch[longest_first], return_index=True)
    return np.sort(longest_first[first])


def _add_gaps(figure: go.Figure, row: int, panel: StallPanel, texts: StallTexts, palette: Sequence[str]) -> None:
    course, shown = panel.course, thinned(panel.course)
    disturbed = course.disturbed[shown]
    kinds = ((texts.quiet, palette[0], shown[~disturbed]), (texts.disturbed, palette[1], shown[disturbed]))
    for name, colour, members in kinds:
        figure.add_trace(
            go.Scatter(
                x=(course.at_ms[members] / 1000).tolist(),
                y=course.gap_ms[members].tolist(),
                mode="markers",
                name=name,
                legendgroup=name,
                showlegend=row == 1,
                customdata=[[panel.measurement_id]] * members.size,
                hovertemplate="%{x:.2f} s: %{y:,.0f} ms<extra></extra>",
                marker={"size": 5, "color": colour, "opacity": 0.75},
            ),
            row=row,
            col=1,
        )


def _band(dark: bool) -> str:
    return "rgba(230,233,239,0.10)" if dark else "rgba(38,43,54,0.08)"


def _add_waits(figure: go.Figure, row: int, course: Course, dark: bool) -> None:
    for start, end in course.waits_ms:
        figure.add_vrect(
            x0=start / 1000, x1=end / 1000, fillcolor=_band(dark), line_width=0, layer="below", row=row, col=1
        )


def _add_band_to_legend(figure: go.Figure, name: str) -> None:
    marker = {"symbol": "square", "size": 12, "color": BASELINE, "opacity": 0.4}
    figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=name, marker=marker), row=1, col=1)


def _set_axes(figure: go.Figure, panels: Sequence[StallPanel]) -> None:
    """The same range everywhere, so that rows can be compared by eye."""
    gaps = np.concatenate([panel.course.gap_ms for panel in panels])
    ends = [panel.course.at_ms[-1] for panel in panels if panel.course.at_ms.size]
    ends += [end for panel in panels for _, end in panel.course.waits_ms]
    figure.update_xaxes(range=[0, max(ends, default=1000.0) * 1.02 / 1000])
    positive = gaps[gaps > 1.0]  # chunks that arrive together have next to no gap
    if positive.size and wants_log_axis([float(positive.min()), float(positive.max())]):
        low, high = float(positive.min()) / 1.4, float(positive.max()) * 1.4
        ticks = log_ticks(low, high)
        figure.update_yaxes(type="log", range=[np.log10(low), np.log10(high)], tickvals=ticks)
        figure.update_yaxes(ticktext=[f"{tick:,g}" for tick in ticks])
    else:
        figure.update_yaxes(range=[0, float(gaps.max()) * 1.08 if gaps.size else 1.0])
