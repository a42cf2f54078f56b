"""TTFT, and the use of the KV cache, against the length of prompt or context."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

import plotly.graph_objects as go

from lab.charts.points import CachePoint, LadderPoint, wants_log_axis
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


def cache_use(
    points: Sequence[CachePoint],
    *,
    dark: bool = False,
    context_title: str = "Context (tokens: prompt and answer)",
    use_title: str = "KV cache in use, peak",
    point_text: str = "repeat {repeat}, at most {in_flight} at once",
    height: int = 360,
) -> go.Figure:
    """One line per arm and repeat, from the origin on: the cache grows with the tokens that are held."""
    figure = empty_figure(dark, height)
    palette = colours((p.arm for p in points), (p.arm for p in points if p.target == "gateway"), dark=dark)
    for (arm, repeat), group in groupby(points, key=lambda p: (p.arm, p.repeat)):
        steps = sorted(group, key=lambda p: p.context_tokens)
        figure.add_trace(
            go.Scatter(
                x=[p.context_tokens for p in steps],
                y=[p.kv_peak_ratio for p in steps],
                mode="lines+markers",
                name=arm,
                legendgroup=arm,
                showlegend=repeat == min(p.repeat for p in points if p.arm == arm),
                customdata=[[p.measurement_id] for p in steps],
                hovertext=[escape(point_text.format(repeat=p.repeat, in_flight=p.in_flight)) for p in steps],
                hovertemplate=f"<b>{escape(arm)}</b> · %{{hovertext}}<br>%{{x:,.0f}} → %{{y:.1%}}<extra></extra>",
                line={"color": palette[arm], "width": 1.5},
                marker={"size": 10, "symbol": SYMBOLS[steps[0].target], "color": palette[arm]},
            )
        )
    set_axis(figure, "x", context_title, [], log=False)
    set_axis(figure, "y", use_title, [], log=False)
    figure.update_yaxes(tickformat=".1%")
    return figure
