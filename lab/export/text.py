"""How values and names look in exported texts."""

from __future__ import annotations

from lab.records.workload import Scalar


def plain(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def one_line(text: str) -> str:
    """A name inside a comment must not end it."""
    return " ".join(text.split())
