"""Column types that keep what the database holds plain: UTC moments, Python numbers, JSON without NaN."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import DateTime, Dialect, Float, Integer
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC; SQLite, which knows no zones, holds it without one."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment without a time zone cannot be stored")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class PlainInteger(TypeDecorator[int]):
    """An integer; numpy's own are turned into Python's, which sqlite3 would store as bytes."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> int | None:  # noqa: ARG002
        return plain_int(value)


class PlainFloat(TypeDecorator[float]):
    """A finite number or NULL: NaN and infinities are "cannot be had"."""

    impl = Float(53)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> float | None:  # noqa: ARG002
        return plain_float(value)


def plain_int(value: Any) -> int | None:
    """A Python int, also from numpy's integers; None for None and NaN; TypeError for a fraction."""
    if value is None or type(value) is int:
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return operator.index(value)


def plain_float(value: Any) -> float | None:
    """A finite Python float, also from numpy's numbers; None for None, NaN and infinities."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def to_json(value: Any) -> str:
    """JSON text; numpy values become plain, NaN and infinities null."""
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(value, default=_plain, option=options).decode()


def from_json(text: str | bytes) -> Any:
    return orjson.loads(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")
