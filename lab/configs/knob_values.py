"""Values of knobs: read from text, checked against type, range and choices, written as the files have them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lab.configs.knobs import Kind, Knob, nearest_name
from lab.findings import Finding, LabError, Param
from lab.records.workload import Scalar

_TRUE = {"true", "on", "yes", "1"}
_FALSE = {"false", "off", "no", "0"}
_KIND_NAMES = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text", "choice": "text"}
_PERCENT_FROM = 10  # 90 is meant as 90 %; 1.7 is just too much


def read_value(knob: Knob, text: str) -> Scalar:
    """The value that a text stands for. Raises "wrong-type", "out-of-range" or "not-a-choice"."""
    value = _parsed(knob, text.strip())
    problem = value_problem(knob, value)
    if problem is not None:
        raise LabError(problem)
    return value


def value_problem(knob: Knob, value: object) -> Finding | None:
    """What is wrong with one value of a knob: its type, its range, its choice; None when all is right."""
    shown = value if isinstance(value, str | int | float | bool) else str(value)
    params: dict[str, Param] = {"knob": knob.name, "value": shown}
    if not _right_type(knob.kind, value):
        return Finding("wrong-type", params={**params, "kind": _KIND_NAMES[knob.kind], "written": written(value)})
    if knob.choices and value not in knob.choices:
        nearest = nearest_name(str(value), knob.choices, 0.4)
        return Finding("not-a-choice", params={**params, "choices": ", ".join(knob.choices), "nearest": nearest})
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _range_problem(knob, value, params)
    return None


def coerced(knob: Knob, value: Scalar) -> Scalar:
    """A value in the knob's own number type, without the noise of binary fractions (0.9000000000000001 is 0.9)."""
    if knob.kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(f"{value:.12g}")
    if knob.kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def written(value: object) -> str:
    """How a value looks in a file, so that "0.90" is not taken for 0.90."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _right_type(kind: Kind, value: object) -> bool:
    if kind in ("str", "choice"):
        return isinstance(value, str)
    if kind == "bool" or isinstance(value, bool):
        return kind == "bool" and isinstance(value, bool)
    return isinstance(value, int) or (kind == "float" and isinstance(value, float) and math.isfinite(value))


def _range_problem(knob: Knob, value: float, params: Mapping[str, Param]) -> Finding | None:
    low, high = knob.minimum, knob.maximum
    if (low is None or value >= low) and (high is None or value <= high):
        return None
    nearest = low if low is not None and value < low else high
    if knob.unit == "ratio" and high == 1.0 and _PERCENT_FROM <= value <= 100:
        nearest = value / 100
    bounds = {"minimum": _number(knob, low), "maximum": _number(knob, high), "nearest": _number(knob, nearest)}
    return Finding("out-of-range", params={**params, **bounds})


def _number(knob: Knob, value: float | None) -> Scalar | None:
    return int(value) if value is not None and knob.kind == "int" else value


def _parsed(knob: Knob, text: str) -> Scalar:
    if knob.kind == "bool" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    try:
        if knob.kind == "int":
            return int(text.replace("_", ""))
        if knob.kind == "float":
            return float(text.replace("_", ""))
    except ValueError:
        return text
    return text
