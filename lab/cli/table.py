"""Plain tables for the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MISSING = "–"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns aligned, numbers to the right; None shows as an en dash."""
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(width(each) for each in column) for column in zip(headings, *cells, strict=True)]
    numeric = [_is_numeric(column) for column in zip(*rows, strict=True)] if rows else [False] * len(headings)
    lines = [_line(headings, widths, numeric), "  ".join("─" * each for each in widths)]
    lines.extend(_line(row, widths, numeric) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def shown(value: object) -> str:
    """One cell: floats with the digits that mean something, None as a dash."""
    if value is None:
        return MISSING
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def width(text: str) -> int:
    """Terminal columns: wide East Asian characters take two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(unicodedata.combining(each) != 0 for each in text)


def _is_numeric(column: Sequence[object]) -> bool:
    return any(isinstance(each, int | float) for each in column) and all(
        each is None or isinstance(each, int | float) for each in column
    )


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = []
    for cell, space, right in zip(cells, widths, numeric, strict=True):
        gap = " " * (space - width(cell))
        padded.append(gap + cell if right else cell + gap)
    return "  ".join(padded)
