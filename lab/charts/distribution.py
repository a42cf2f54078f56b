"""How the requests of one measurement are spread over TTFT."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from lab.charts.style import PALETTE, empty_figure, ink, set_axis
from lab.metrics.percentiles import percentile

FEWEST_BINS, MOST_BINS = 8, 40


def ttft_histogram(
    ttft_ms: Sequence[float],
    *,
    dark: bool = False,
    ttft_title: str = "TTFT (ms)",
    requests_title: str = "Requests",
    height: int = 300,
) -> go.Figure:
    """Requests by TTFT in milliseconds, with P50 and P95 drawn in; an empty figure without values."""
    figure = empty_figure(dark, height)
    set_axis(figure, "x", ttft_title, list(ttft_ms), log=False)
    set_axis(figure, "y", requests_title, [], log=False)
    figure.update_layout(bargap=0.05, showlegend=False)
    if not ttft_ms:
        return figure
    bins = min(MOST_BINS, max(FEWEST_BINS, len(ttft_ms) // 2))
    figure.add_trace(go.Histogram(x=list(ttft_ms), nbinsx=bins, name="TTFT", marker={"color": PALETTE[0]}))
    for share, dash in ((50, "dot"), (95, "dash")):
        figure.add_vline(
            x=percentile(ttft_ms, share),
            line={"dash": dash, "width": 1.5, "color": ink(dark)},
            annotation={"text": f"P{share}", "y": 1, "yanchor": "bottom", "showarrow": False},
        )
    return figure
