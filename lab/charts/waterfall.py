"""Where the time until the first token went: one stacked bar per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import plotly.graph_objects as go

from lab.charts.style import BASELINE, empty_figure, palette_of, set_axis
from lab.metrics.waterfall import PARTS, Waterfall

MOST_BARS = 200
ENGLISH: Mapping[str, str] = {
    "client_wait": "wait in the client",
    "connection": "opening the connection",
    "network": "network and front end",
    "queue": "queue of the engine",
    "prefill": "prefill",
    "unknown": "not told by the server",
}


def ttft_waterfall(
    falls: Sequence[Waterfall],
    *,
    dark: bool = False,
    words: Mapping[str, str] = ENGLISH,
    request_title: str = "Request",
    time_title: str = "From due to first token (ms)",
    height: int = 320,
) -> go.Figure:
    """The parts of each request in the order in which they pass; a part that no request has is left out.

    Of more than 200 requests, 200 evenly picked ones are drawn.
    """
    shown = _picked(falls)
    figure = empty_figure(dark, height)
    palette = palette_of(dark)
    for place, name in enumerate(PARTS):
        values = [fall.parts[name] for fall in shown]
        if all(value is None for value in values):
            continue
        colour = BASELINE if name == "unknown" else palette[place % len(palette)]
        figure.add_trace(
            go.Bar(
                x=[str(fall.index) for fall in shown],
                y=values,
                name=words[name],
                customdata=[[fall.index] for fall in shown],
                hovertemplate=f"{words[name]}: %{{y:,.1f}} ms<extra></extra>",
                marker={"color": colour, "line": {"width": 0}},
            )
        )
    set_axis(figure, "y", time_title, [], log=False)
    figure.update_xaxes(title={"text": request_title}, type="category", nticks=12)
    bargap = 0.1 if len(shown) < MOST_BARS // 2 else 0
    figure.update_layout(barmode="stack", bargap=bargap, hovermode="x unified", legend={"traceorder": "normal"})
    return figure


def _picked(falls: Sequence[Waterfall]) -> Sequence[Waterfall]:
    if len(falls) <= MOST_BARS:
        return falls
    edges = [round(i * len(falls) / MOST_BARS) for i in range(MOST_BARS + 1)]
    return [falls[start] for start, _ in pairwise(edges)]
