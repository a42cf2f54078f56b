"""`${NAME}` in knobs: filled in from the environment for a launch, never in a file or in the history."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lab.configs.gateway import expand
from lab.configs.knob_values import read_value, value_problem
from lab.configs.knobs import Knob, engine_flags, flag_knob, knob_table
from lab.configs.pair import ConfigPair
from lab.configs.secrets import is_secret_key
from lab.findings import Finding, LabError, error
from lab.records.workload import Scalar

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def variables_in(value: object) -> tuple[str, ...]:
    """Names of the variables that a value waits for; `$5` is no variable."""
    if not isinstance(value, str):
        return ()
    return tuple(match.group(1) or match.group(2) for match in _VARIABLE.finditer(value))


def expand_knobs(knobs: Mapping[str, Scalar], variables: Mapping[str, str]) -> dict[str, Scalar]:
    """The knobs as a launch needs them, each in the type its knob has.

    Raises `LabError` "variable-unset" or "secret-placeholder", or what is wrong with a value that a variable gave.
    """
    return {name: _expanded(name, value, variables) for name, value in knobs.items()}


def with_variables(pair: ConfigPair, variables: Mapping[str, str]) -> ConfigPair:
    """The pair as a launch reads it. It is never written anywhere. Raises as `expand_knobs` does."""
    waiting = {name: value for name, value in pair.knobs().items() if variables_in(value)}
    return pair.with_knobs(expand_knobs(waiting, variables)) if waiting else pair


def placeholder_findings(knob: Knob, value: str, variables: Mapping[str, str]) -> Iterator[Finding]:
    """What stands against launching with a placeholder. The variable's value is never repeated."""
    for name in variables_in(value):
        if is_secret_key(name.lower()):
            yield Finding("secret-placeholder", "error", {"knob": knob.name, "name": name})
            return
        if not variables.get(name, "").strip():
            yield Finding("variable-unset", "error", {"name": name, "knob": knob.name})
            return
    try:
        _typed(knob, expand(value, variables))
    except LabError as problem:
        found = problem.findings[0]
        yield Finding(found.code, "error", {**found.params, "value": value, "written": f'"{value}"'})


def _expanded(name: str, value: Scalar, variables: Mapping[str, str]) -> Scalar:
    waiting = variables_in(value)
    if not waiting or not isinstance(value, str):
        return value
    secret = next((each for each in waiting if is_secret_key(each.lower())), None)
    if secret is not None:
        raise error("secret-placeholder", knob=name, name=secret)
    return _typed(knob_table().get(name) or flag_knob(name), expand(value, variables))


def _typed(knob: Knob, text: str) -> Scalar:
    if knob.kind in ("str", "choice") or not (knob.name in knob_table() or knob.name in engine_flags()):
        problem = value_problem(knob, text)
        if problem is not None:
            raise LabError(problem)
        return text
    return read_value(knob, text)
