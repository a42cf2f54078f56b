"""What a widget can show of a value that stands in a file: any readable value opens, wrong types are told apart."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["int", "float", "bool", "str", "choice", "ints", "floats"]
# number widgets hold what JavaScript can: integers beyond it would come back changed
_WIDEST = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Reading:
    """`raw` as it stands in the file (None: not set), `shown` in the field's own type (None: not set or unreadable).

    `exact` is False where the type in the file is another one; such a value is never rewritten by itself.
    """

    raw: Any = None
    shown: Any = None
    exact: bool = True

    @property
    def readable(self) -> bool:
        return self.raw is None or self.shown is not None

    @property
    def raw_text(self) -> str:
        """The value as JSON, which both files spell alike."""
        return json.dumps(self.raw, ensure_ascii=False, default=str)


def read(kind: Kind, raw: Any) -> Reading:
    """Read a value for a field of a kind; never raises."""
    if raw is None:
        return Reading()
    shown = _READERS[kind](raw)
    return Reading(raw, shown, exact=shown is not None and _is_exact(kind, raw))


def parse(kind: Kind, text: str) -> Any:
    """What somebody typed for a field; None where it is empty or cannot be read."""
    typed = text.strip()
    if not typed:
        return None
    if kind in ("ints", "floats"):
        return _list_of(_int if kind == "ints" else _float)([part for part in _split(typed) if part])
    return _READERS[kind](typed)


def list_text(values: Sequence[Any]) -> str:
    """A list as it is typed: `128, 512`."""
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.strip("[]").replace("，", ",").replace(";", ",").split(",")]


def _is_exact(kind: Kind, raw: Any) -> bool:
    if kind in ("ints", "floats"):
        item: Kind = "int" if kind == "ints" else "float"
        return isinstance(raw, list | tuple) and all(_is_exact(item, each) for each in raw)
    if isinstance(raw, bool):
        return kind == "bool"
    types = {"int": int, "float": (int, float), "bool": bool, "str": str, "choice": str}
    return isinstance(raw, types[kind])


def _int(raw: Any) -> int | None:
    number = _number(raw)
    if number is None or not float(number).is_integer() or abs(number) > _WIDEST:
        return None
    return int(number)


def _float(raw: Any) -> float | None:
    number = _number(raw)
    return None if number is None else float(number)


def _number(raw: Any) -> int | float | None:
    """A finite number, also out of text; switches are none."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, str):
        try:
            raw = int(raw)
        except ValueError:
            try:
                raw = float(raw)
            except ValueError:
                return None
    if not isinstance(raw, int | float):
        return None
    try:
        return raw if math.isfinite(raw) else None
    except OverflowError:
        return None


def _bool(raw: Any) -> bool | None:
    if isinstance(raw, str):
        return {"true": True, "false": False}.get(raw.strip().lower())
    return bool(raw) if isinstance(raw, bool | int) and raw in (0, 1) else None


def _str(raw: Any) -> str | None:
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str)


def _list_of(item: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_list(raw: Any) -> tuple[Any, ...] | None:
        values = [item(each) for each in (raw if isinstance(raw, list | tuple) else [raw])]
        return None if any(value is None for value in values) else tuple(values)

    return read_list


_READERS: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
    "choice": _str,
    "ints": _list_of(_int),
    "floats": _list_of(_float),
}
