"""What to do about a failure, in values: each remedy with the knobs it changes, from the launch's own values.

Which remedies a failure has stands in the engine's definition, what each of them changes in `remedies.toml`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lab.engine.diagnosis import Diagnosis
from lab.findings import Finding, Param
from lab.messages import messages
from lab.records.workload import Scalar

_RULES = Path(__file__).with_name("remedies.toml")
_IN_NUMBERS = "-in-numbers"
Changes = Mapping[str, Scalar | None]


@dataclass(frozen=True, slots=True)
class Remedy:
    """`changes` are knobs with their new values (None: to be taken out), empty for advice that no knob can carry out.

    `params` word it; `was` and `to` are among them where a knob changes.
    """

    code: str
    params: Mapping[str, Param] = field(default_factory=dict)
    changes: Changes = field(default_factory=dict)


class Rule(BaseModel):
    """One table of `remedies.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    knob: str
    change: Literal["add", "subtract", "halve", "double", "round-up", "set", "limit", "divisor", "unset"]
    by: float | int = 0
    least: float | int | None = None
    most: float | int | None = None
    value: Scalar | None = None
    source: str | None = Field(default=None, alias="from")
    within: str | None = None
    turn: Literal["up", "down"] | None = None
    unless: tuple[Scalar, ...] = ()
    idle_with: str | None = Field(default=None, alias="idle-with")
    then: bool = False


def find_remedies(
    diagnosis: Diagnosis, knobs: Mapping[str, Scalar], known: Mapping[str, Scalar | None] | None = None
) -> tuple[Remedy, ...]:
    """The remedies of a diagnosis in its order, with values where the launch's own are known.

    `knobs` are those the launch set, `known` what it took for the others (defaults, the model's context). A remedy
    that would change nothing, or could not be followed on this host, is left out.
    """
    current: dict[str, Scalar | None] = {**(known or {}), **knobs}
    found: list[Remedy] = []
    for advice in diagnosis.remedies:
        remedy = _remedy(advice, current, found)
        if remedy is not None:
            found.append(remedy)
    return tuple(found)


def stored_remedies(message: Mapping[str, Any] | None) -> tuple[Remedy, ...]:
    """The remedies of a stored message; those of older databases are codes without values."""
    found = []
    for each in (message or {}).get("remedies") or ():
        if isinstance(each, str):
            found.append(Remedy(each, {name: value for name, value in (message or {}).items() if _is_param(value)}))
        elif isinstance(each, Mapping) and isinstance(each.get("code"), str):
            found.append(Remedy(each["code"], dict(each.get("params") or {}), dict(each.get("changes") or {})))
    return tuple(found)


def to_store(remedies: Iterable[Remedy]) -> list[dict[str, Any]]:
    """Remedies as a message keeps them."""
    return [
        {"code": each.code, "params": dict(each.params), "changes": dict(each.changes)} for each in remedies
    ]  # fmt: skip


@cache
def remedy_rules() -> Mapping[str, Rule]:
    return {code: Rule.model_validate(table) for code, table in tomllib.loads(_RULES.read_text("utf-8")).items()}


def _remedy(advice: Finding, current: Mapping[str, Scalar | None], before: Sequence[Remedy]) -> Remedy | None:
    rule = remedy_rules().get(advice.code)
    if rule is None:
        return Remedy(advice.code, advice.params)
    if rule.idle_with is not None and current.get(rule.idle_with) is not None:
        return None
    knob = _knob(rule.knob, advice.params)
    was = current.get(knob)
    if was in rule.unless and type(was) in {type(each) for each in rule.unless}:
        return None
    try:
        to = _new_value(rule, was, advice.params)
    except _UnknownError:
        return Remedy(advice.code, advice.params)
    if (to is None and rule.change != "unset") or to == was:
        return None
    earlier: dict[str, Scalar | None] = dict(before[-1].changes) if rule.then and before else {}
    params = {**advice.params, "knob": knob, "was": was, "to": to}
    return Remedy(_code(advice.code, was), params, {**earlier, knob: to})


class _UnknownError(Exception):
    """No value can be given: the one to start from is not known, or is on the right side already."""


def _code(code: str, was: Scalar | None) -> str:
    """The words with both values, where there is an old one."""
    numbered = f"{code}{_IN_NUMBERS}"
    return numbered if was is not None and numbered in messages() else code


def _new_value(rule: Rule, was: Scalar | None, params: Mapping[str, Param]) -> Scalar | None:
    """The value to set; None where there is none that helps."""
    if rule.change in ("set", "unset"):
        return rule.value
    if rule.change == "limit":
        return _limit(rule, was, params)
    number = _number(was)
    if rule.change == "divisor":
        return _divisor(number, _number(params.get(rule.source or "")))
    wanted = _moved(rule, number)
    if (rule.least is not None and wanted < rule.least) or (rule.most is not None and wanted > rule.most):
        return None
    ceiling = params.get(rule.within) if rule.within else None
    if rule.within and (not isinstance(ceiling, int | float) or wanted > ceiling):
        return None
    return wanted


def _moved(rule: Rule, number: float) -> int | float:
    if rule.change == "halve":
        return max(1, int(number) // 2)
    if rule.change == "double":
        return int(number) * 2
    if rule.change == "round-up":
        step = int(rule.by)
        return math.ceil(number / step) * step
    return round(number + (rule.by if rule.change == "add" else -rule.by), 4)


def _limit(rule: Rule, was: Scalar | None, params: Mapping[str, Param]) -> Scalar | None:
    """What the log named; a share of nothing is no value."""
    value = params.get(rule.source or "")
    if value is None:
        raise _UnknownError
    number = _number(value)
    if number <= 0:
        return None
    if was is not None and _number(was) != number and (number > _number(was)) != (rule.turn == "up"):
        raise _UnknownError  # what the log speaks of is not what this launch set
    return int(number) if float(number).is_integer() and not isinstance(was, float) else number


def _divisor(was: float, heads: float) -> int | None:
    whole = int(heads)
    return next((each for each in range(int(was) - 1, 0, -1) if whole % each == 0), None)


def _number(value: Param) -> float:
    if isinstance(value, bool) or value is None:
        raise _UnknownError
    try:
        return float(value)
    except ValueError:
        raise _UnknownError from None


def _knob(name: str, params: Mapping[str, Param]) -> str:
    if not name.startswith("{"):
        return name
    flag = str(params.get(name.strip("{}")) or "").split()
    return flag[0].split("=")[0].lstrip("-").replace("-", "_") if flag else ""


def _is_param(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
