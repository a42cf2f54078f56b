"""Throughput against P95 TTFT: the picture of a tuning decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

import plotly.graph_objects as go

from lab.charts.points import Point, wants_log_axis
from lab.charts.style import SYMBOLS, colours, empty_figure, faint, ink, palette_of, set_axis
from lab.records.plan import Slo


@dataclass(frozen=True, slots=True)
class ThroughputTexts:
    """The words on the figure, so that pages can translate them; those with braces are templates."""

    throughput: str = "Throughput (output tokens/s)"
    ttft: str = "P95 TTFT (ms)"
    baseline: str = "{arm} (baseline)"
    slo: str = "Limit: P95 TTFT {limit} ms"
    repeat: str = "repeat {repeat}"
    samples: str = "n = {n}"
    marks: str = "Reservations: {n}"
    origin: str = "from: {origin}"
    ceiling: str = "near the client's ceiling"
    knee: str = "throughput stops growing here"


ENGLISH = ThroughputTexts()
NO_KNEES: Mapping[str, float] = {}


def _code(code: str) -> str:
    return code


def throughput_ttft(
    points: Sequence[Point],
    *,
    slo: Slo | None = None,
    knees: Mapping[str, float] = NO_KNEES,
    dark: bool = False,
    texts: ThroughputTexts = ENGLISH,
    word_stage: Callable[[str], str] = _code,
    height: int = 460,
) -> go.Figure:
    """One marker per measurement, its id in `customdata`; a diamond is a baseline, a hollow marker is in doubt.

    Points of one arm and repeat are joined where the workload had several stages. An axis is logarithmic where its
    values span more than a factor of 20. `word_stage` turns the kind of a stage into words. A ring is drawn round what
    lies near the client's ceiling, a star on each measurement at an arm's knee (`knees`: concurrency by arm).
    """
    figure = empty_figure(dark, height)
    palette = colours((p.arm for p in points), (p.arm for p in points if p.is_baseline), dark=dark)
    for (arm, origin), group in groupby(sorted(points, key=_arm_order(points)), key=lambda p: (p.arm, p.origin)):
        members = list(group)
        name = texts.baseline.format(arm=arm) if members[0].is_baseline else arm
        hover = [_hover(point, texts, word_stage) for point in members]
        _add_path(figure, members, palette[arm])
        figure.add_trace(_markers(members, name if origin is None else f"{name} · {origin}", palette[arm], hover, dark))
    _add_rings(figure, [p for p in points if p.near_ceiling], texts.ceiling, palette_of(dark)[-1])
    _add_stars(figure, [p for p in points if _at_knee(p, knees)], texts.knee)
    limit = None if slo is None else slo.ttft_p95_ms
    rates, heights = [p.tokens_per_s for p in points], [p.ttft_p95_ms for p in points]
    if limit is not None:
        heights.append(limit)
    log = wants_log_axis(heights)
    set_axis(figure, "x", texts.throughput, rates, log=wants_log_axis(rates))
    set_axis(figure, "y", texts.ttft, heights, log=log)
    if limit is not None:
        _add_limit(figure, limit, texts.slo, dark, log=log, right=_label_right(points, limit))
    return figure


# The legend shows an arm's first marker, so doubtful ones come last.
def _arm_order(points: Sequence[Point]) -> Callable[[Point], tuple[int, bool, int]]:
    order = {key: i for i, key in enumerate(dict.fromkeys((p.arm, p.origin) for p in points))}
    return lambda p: (order[p.arm, p.origin], p.doubtful, p.repeat)


def _markers(points: Sequence[Point], name: str, colour: str, hover: Sequence[str], dark: bool) -> go.Scatter:
    symbols = [SYMBOLS[p.target] + ("-open" if p.doubtful else "") for p in points]
    outline = "rgba(0,0,0,0.35)" if dark else "rgba(255,255,255,0.9)"
    lines = {
        "width": [2.5 if p.doubtful else 1 for p in points],
        "color": [colour if p.doubtful else outline for p in points],
    }
    return go.Scatter(
        x=[p.tokens_per_s for p in points],
        y=[p.ttft_p95_ms for p in points],
        mode="markers+text" if points[0].is_baseline else "markers",
        text=[name if i == 0 and p.is_baseline and p.origin is None else "" for i, p in enumerate(points)],
        textposition="middle left",
        cliponaxis=False,
        name=name,
        legendgroup=name,
        customdata=[[p.measurement_id] for p in points],
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        marker={"size": 14, "symbol": symbols, "color": colour, "line": lines},
    )


def _add_path(figure: go.Figure, points: Sequence[Point], colour: str) -> None:
    for repeat in dict.fromkeys(p.repeat for p in points):
        members = [p for p in points if p.repeat == repeat and p.stage.value is not None]
        steps = sorted(members, key=lambda p: p.stage.value or 0)
        if len(steps) > 1:
            figure.add_trace(
                go.Scatter(
                    x=[p.tokens_per_s for p in steps],
                    y=[p.ttft_p95_ms for p in steps],
                    mode="lines",
                    line={"color": colour, "width": 1.5},
                    opacity=0.45,
                    hoverinfo="skip",
                    showlegend=False,
                )
            )


def _at_knee(point: Point, knees: Mapping[str, float]) -> bool:
    own = point.origin is None and point.stage.kind == "concurrency"
    return own and point.stage.value is not None and point.stage.value == knees.get(point.arm)


def _add_rings(figure: go.Figure, points: Sequence[Point], name: str, colour: str) -> None:
    if points:
        _overlay(figure, points, name, {"size": 24, "symbol": "circle-open", "color": colour, "line": {"width": 2}})


def _add_stars(figure: go.Figure, points: Sequence[Point], name: str) -> None:
    if points:
        inside = {"width": 0.5, "color": "rgba(0,0,0,0.6)"}
        _overlay(figure, points, name, {"size": 9, "symbol": "star", "color": "#FFFFFF", "line": inside})


def _overlay(figure: go.Figure, points: Sequence[Point], name: str, marker: Mapping[str, object]) -> None:
    """On top of the points, without a hover of its own; a click on it still names the measurement."""
    figure.add_trace(
        go.Scatter(
            x=[p.tokens_per_s for p in points],
            y=[p.ttft_p95_ms for p in points],
            mode="markers",
            name=name,
            customdata=[[p.measurement_id] for p in points],
            hoverinfo="skip",
            cliponaxis=False,
            marker=dict(marker),
        )
    )


def _label_right(points: Sequence[Point], limit_ms: float) -> bool:
    """Whether the limit's label stands at the right: where the point nearest to the line is at the left."""
    if not points:
        return False
    rates = [p.tokens_per_s for p in points]
    nearest = min(points, key=lambda p: abs(math.log(p.ttft_p95_ms / limit_ms)) if p.ttft_p95_ms > 0 else math.inf)
    return nearest.tokens_per_s < max(rates) / 2


def _add_limit(figure: go.Figure, limit_ms: float, text: str, dark: bool, *, log: bool, right: bool) -> None:
    figure.add_hline(y=limit_ms, line={"dash": "dash", "width": 1.5, "color": ink(dark)}, opacity=0.65)
    figure.add_annotation(
        text=text.format(limit=f"{limit_ms:g}"),
        xref="paper",
        x=1 if right else 0,
        xanchor="right" if right else "left",
        y=math.log10(limit_ms) if log else limit_ms,  # annotations, unlike lines, take the exponent
        yanchor="bottom",
        showarrow=False,
        font={"size": 12, "color": ink(dark)},
        bgcolor=faint(dark),
        borderpad=3,
    )


def _hover(point: Point, texts: ThroughputTexts, word_stage: Callable[[str], str]) -> str:
    fields: Mapping[str, object] = {"repeat": point.repeat, "n": point.n, "origin": point.origin}
    head = [texts.repeat.format(**fields)]
    if point.stage.kind is not None:
        head.append(f"{word_stage(point.stage.kind)} {point.stage.value:g}")
    lines = [f"<b>{escape(point.arm)}</b>", " · ".join(head)]
    lines += [f"{texts.throughput}: {point.tokens_per_s:,.1f}"]
    lines += [f"{texts.ttft}: {point.ttft_p95_ms:,.0f} ({texts.samples.format(**fields)})"]
    if point.marks:
        lines.append(texts.marks.format(n=len(point.marks)))  # whole sentences would hide the chart
    if point.origin is not None:
        lines.append(texts.origin.format(**fields))
    return "<br>".join(lines)
