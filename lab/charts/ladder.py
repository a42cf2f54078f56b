"""TTFT against the length of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

import plotly.graph_objects as go

from lab.charts.points import LadderPoint, wants_log_axis
from lab.charts.style import SYMBOLS, colours, empty_figure, set_axis


def ladder(
    points: Sequence[LadderPoint],
    *,
    dark: bool = False,
    prompt_title: str = "Prompt tokens",
    ttft_title: str = "Median TTFT (ms)",
    repeat_text: str = "repeat {repeat}",
    height: int = 420,
) -> go.Figure:
    """One line per arm and repeat, one marker per measured step with its id in `customdata`."""
    figure = empty_figure(dark, height)
    palette = colours((p.arm for p in points), (p.arm for p in points if p.target == "gateway"), dark=dark)
    for (arm, repeat), group in groupby(points, key=lambda p: (p.arm, p.repeat)):
        steps = sorted(group, key=lambda p: p.prompt_tokens)
        words = repeat_text.format(repeat=repeat)
        figure.add_trace(
            go.Scatter(
                x=[p.prompt_tokens for p in steps],
                y=[p.ttft_p50_ms for p in steps],
                mode="lines+markers",
                name=arm,
                legendgroup=arm,
                showlegend=repeat == min(p.repeat for p in points if p.arm == arm),
                customdata=[[p.measurement_id] for p in steps],
                hovertemplate=f"<b>{escape(arm)}</b> · {words}<br>%{{x:,.0f}} → %{{y:,.1f}} ms<extra></extra>",
                line={"color": palette[arm], "width": 1.5},
                marker={"size": 10, "symbol": SYMBOLS[steps[0].target], "color": palette[arm]},
            )
        )
    lengths, times = [p.prompt_tokens for p in points], [p.ttft_p50_ms for p in points]
    # Both or none: a power law is a straight line only then.
    log = wants_log_axis(lengths) and wants_log_axis(times)
    set_axis(figure, "x", prompt_title, lengths, log=log)
    set_axis(figure, "y", ttft_title, times, log=log)
    return figure
