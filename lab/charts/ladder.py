"""TTFT, and the use of the KV cache, against the length of prompt or context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

import numpy as np
import plotly.graph_objects as go

from lab.charts.points import CachePoint, LadderPoint, wants_log_axis
from lab.charts.style import SYMBOLS, colours, empty_figure, set_axis
from lab.metrics.growth import LadderFit


@dataclass(frozen=True, slots=True)
class LadderTexts:
    """The words on the figure; those with braces are templates."""

    prompt: str = "Prompt tokens"
    ttft: str = "Mean TTFT (ms)"
    repeat: str = "repeat {repeat}"
    linear: str = "{arm}: straight line"
    quadratic: str = "{arm}: parabola"


ENGLISH = LadderTexts()
_FIT_POINTS = 60


def ladder(
    points: Sequence[LadderPoint],
    *,
    fits: Sequence[LadderFit] = (),
    dark: bool = False,
    texts: LadderTexts = ENGLISH,
    height: int = 420,
) -> go.Figure:
    """One marker per measured step with its id in `customdata`, and the two fits of each arm that has them.

    Where an arm has no fit, the steps of each repeat are joined instead.
    """
    fitted = {fit.arm_name for fit in fits}
    figure = empty_figure(dark, height)
    palette = colours((p.arm for p in points), (p.arm for p in points if p.target == "gateway"), dark=dark)
    for (arm, repeat), group in groupby(points, key=lambda p: (p.arm, p.repeat)):
        steps = sorted(group, key=lambda p: p.prompt_tokens)
        words = texts.repeat.format(repeat=repeat)
        figure.add_trace(
            go.Scatter(
                x=[p.prompt_tokens for p in steps],
                y=[p.ttft_mean_ms for p in steps],
                mode="markers" if arm in fitted else "lines+markers",
                name=arm,
                legendgroup=arm,
                showlegend=repeat == min(p.repeat for p in points if p.arm == arm),
                customdata=[[p.measurement_id] for p in steps],
                hovertemplate=f"<b>{escape(arm)}</b> · {words}<br>%{{x:,.0f}} → %{{y:,.1f}} ms<extra></extra>",
                line={"color": palette[arm], "width": 1.5},
                marker={"size": 10, "symbol": SYMBOLS[steps[0].target], "color": palette[arm]},
            )
        )
    lengths, times = [p.prompt_tokens for p in points], [p.ttft_mean_ms for p in points]
    # Both or none: a power law is a straight line only then.
    log = wants_log_axis(lengths) and wants_log_axis(times)
    for fit in fits:
        if fit.arm_name in palette:
            _add_fits(figure, fit, palette[fit.arm_name], texts, log=log)
    set_axis(figure, "x", texts.prompt, lengths, log=log)
    set_axis(figure, "y", texts.ttft, times, log=log)
    return figure


def _add_fits(figure: go.Figure, fit: LadderFit, colour: str, texts: LadderTexts, *, log: bool) -> None:
    space = np.geomspace if log else np.linspace
    lengths = space(fit.tokens[0], fit.tokens[-1], _FIT_POINTS)
    for curve, name, dash in ((fit.linear, texts.linear, "dot"), (fit.quadratic, texts.quadratic, "solid")):
        heights = [curve.at(float(tokens)) for tokens in lengths]
        figure.add_trace(
            go.Scatter(
                x=lengths.tolist(),
                y=[height if height > 0 or not log else None for height in heights],
                mode="lines",
                name=name.format(arm=fit.arm_name),
                hoverinfo="skip",
                line={"color": colour, "width": 1.5, "dash": dash},
                opacity=0.8,
            )
        )


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
