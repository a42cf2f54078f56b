"""The requests of one measurement, each where it was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from lab.charts.points import wants_log_axis
from lab.charts.style import empty_figure, ink, palette_of, set_axis
from lab.records.request import RequestRecord


@dataclass(frozen=True, slots=True)
class RequestTexts:
    """The words on the figure; `hover` is a template."""

    sent: str = "Sent (s after the start)"
    ttft: str = "TTFT (ms)"
    answered: str = "answered"
    incomplete: str = "cut off by the end"
    warmup: str = "warm-up, left out"
    failed: str = "failed"
    hover: str = "request {index}: TTFT {ttft} ms, {tokens} tokens"


ENGLISH = RequestTexts()


def request_ttft(
    records: Sequence[RequestRecord],
    *,
    slo_ms: float | None = None,
    dark: bool = False,
    texts: RequestTexts = ENGLISH,
    height: int = 360,
) -> go.Figure:
    """TTFT of each request over the moment it was sent; failures, which have none, stand as crosses on the axis."""
    figure = empty_figure(dark, height)
    timed = [r for r in records if r.ttft_ms is not None and r.failure is None]
    palette = palette_of(dark)
    kinds = (
        (texts.answered, palette[0], "circle", [r for r in timed if r.ok and not r.warmup]),
        (texts.incomplete, palette[5], "circle-open", [r for r in timed if r.incomplete and not r.warmup]),
        (texts.warmup, "#8A8A8A", "circle-open", [r for r in timed if r.warmup]),
    )
    for name, colour, symbol, members in kinds:
        if members:
            figure.add_trace(_dots(members, name, colour, symbol, texts))
    heights = [r.ttft_ms for r in timed if r.ttft_ms is not None]
    set_axis(figure, "x", texts.sent, [], log=False)
    set_axis(figure, "y", texts.ttft, heights, log=wants_log_axis(heights))
    _add_failures(figure, [r for r in records if r.failure is not None and not r.warmup], texts, palette[1])
    if slo_ms is not None:
        figure.add_hline(y=slo_ms, line={"dash": "dash", "width": 1.5, "color": ink(dark)}, opacity=0.65)
    return figure


def _dots(records: Sequence[RequestRecord], name: str, colour: str, symbol: str, texts: RequestTexts) -> go.Scattergl:
    return go.Scattergl(
        x=[r.t0_ms / 1000 for r in records],
        y=[r.ttft_ms for r in records],
        mode="markers",
        name=name,
        customdata=[[r.index] for r in records],
        hovertext=[_hover(r, texts) for r in records],
        hovertemplate="%{hovertext}<extra></extra>",
        marker={"size": 7, "symbol": symbol, "color": colour, "opacity": 0.8},
    )


def _hover(record: RequestRecord, texts: RequestTexts) -> str:
    tokens = "–" if record.completion_tokens is None else record.completion_tokens
    return texts.hover.format(index=record.index, ttft=f"{record.ttft_ms:,.1f}", tokens=tokens)


def _add_failures(figure: go.Figure, failed: Sequence[RequestRecord], texts: RequestTexts, colour: str) -> None:
    """On an axis of their own without ticks, at the lower edge: no height would be true for them."""
    if not failed:
        return
    figure.add_trace(
        go.Scatter(
            x=[r.t0_ms / 1000 for r in failed],
            y=[0] * len(failed),
            yaxis="y2",
            mode="markers",
            name=texts.failed,
            customdata=[[r.index] for r in failed],
            hovertext=[escape(f"{r.failure}: {(r.message or '')[:120]}") for r in failed],
            hovertemplate="%{hovertext}<extra></extra>",
            marker={"size": 9, "symbol": "x", "color": colour},
        )
    )
    figure.update_layout(yaxis2={"overlaying": "y", "range": [-0.03, 1], "visible": False, "fixedrange": True})
