"""Numbers as people read them; None is an en dash, never 0."""

from __future__ import annotations

from datetime import datetime

NOTHING = "–"


def count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def milliseconds(value: float | None) -> str:
    """Three significant digits below a second, seconds above: `83.2 ms`, `2.41 s`."""
    if value is None:
        return NOTHING
    if value >= 1000:
        return f"{value / 1000:,.2f} s"
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms"


def seconds(value: float | None) -> str:
    """`12.4 s` below a minute, `3 min 05 s` above."""
    if value is None:
        return NOTHING
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def rate(value: float | None) -> str:
    """Tokens or requests per second: one decimal below 100."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def ratio(value: float | None) -> str:
    """How many times: `10.3 ×`; two decimals below 2, where the difference is fine."""
    if value is None:
        return NOTHING
    return f"{value:.2f} ×" if value < 2 else f"{value:.1f} ×"


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{value * 100:.1f} %"


def moment(value: datetime | None) -> str:
    """Local date and minute; a label only."""
    return NOTHING if value is None else f"{value.astimezone():%Y-%m-%d %H:%M}"
