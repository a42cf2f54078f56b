"""How all figures look: few colours that colour-blind people tell apart, no background of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

# Okabe and Ito's palette, without its yellow (too pale on white) and its black (invisible on dark).
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
# The same hues, lighter, for a dark page.
DARK_PALETTE = ("#56B4E9", "#F0843C", "#2DBD96", "#E29BC4", "#4C8FDB", "#F2C14E")
BASELINE = "#8A8A8A"
SYMBOLS: Mapping[str, str] = {"engine": "circle", "attach": "square", "gateway": "diamond"}
LINE_KINDS = ("solid", "dash", "dot", "dashdot")


def ink(dark: bool) -> str:
    return "#E6E9EF" if dark else "#262B36"


def faint(dark: bool) -> str:
    return "rgba(230,233,239,0.16)" if dark else "rgba(38,43,54,0.12)"


def palette_of(dark: bool) -> tuple[str, ...]:
    return DARK_PALETTE if dark else PALETTE


def colours(names: Iterable[str], baselines: Iterable[str] = (), *, dark: bool = False) -> Mapping[str, str]:
    """A colour per arm in the order given; baselines share one grey."""
    grey = set(baselines)
    own = [name for name in dict.fromkeys(names) if name not in grey]
    found = {name: palette_of(dark)[i % len(PALETTE)] for i, name in enumerate(own)}
    return {**found, **dict.fromkeys(grey, BASELINE)}


def empty_figure(dark: bool, height: int) -> go.Figure:
    """A figure with the common look and nothing in it."""
    figure = go.Figure()
    dress(figure, dark, height)
    return figure


def dress(figure: go.Figure, dark: bool, height: int) -> None:
    """The common look: transparent, thin grid, legend above, readable in both themes."""
    figure.update_layout(
        height=height,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": ink(dark), "size": 13},
        margin={"l": 12, "r": 16, "t": 36, "b": 12},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "xanchor": "left", "x": 0},
        hoverlabel={"align": "left", "bgcolor": "#20242C" if dark else "#FFFFFF", "font": {"color": ink(dark)}},
        colorway=list(palette_of(dark)),
    )
    line = {"gridcolor": faint(dark), "linecolor": faint(dark), "zeroline": False, "automargin": True}
    figure.update_xaxes(**line)
    figure.update_yaxes(**line)


def set_axis(figure: go.Figure, axis: str, title: str, values: Sequence[float], *, log: bool) -> None:
    """Titles an axis; a linear one begins at zero, a logarithmic one is labelled in full at 1, 2 and 5."""
    options: dict[str, object] = {"title": {"text": title, "font": {"size": 13}}, "type": "linear"}
    options |= {"rangemode": "tozero", "tickformat": ","}
    if log:
        low, high = min(values) / 1.4, max(values) * 1.4
        ticks = log_ticks(low, high)
        options |= {"type": "log", "range": [math.log10(low), math.log10(high)]}
        options |= {"tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}
        del options["rangemode"]
    (figure.update_xaxes if axis == "x" else figure.update_yaxes)(**options)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade between two positive values; whole decades only where these would be many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 5 else (1,)
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]
