"""What a request to an engine carries beside the prompt: knobs as the fields that this engine has for them."""

from __future__ import annotations

import json
from typing import Any

from lab.configs.knobs import knob_table
from lab.configs.pair import ConfigPair
from lab.engine.definition import EngineDefinition
from lab.engine.flags import absence, written
from lab.findings import Finding, Param
from lab.records.workload import Scalar


def request_fields(
    definition: EngineDefinition, pair: ConfigPair, output_tokens: int | None = None
) -> dict[str, Scalar]:
    """The fields of a request's body; objects that the engine wants as JSON text are text already.

    `output_tokens` is given where every answer shall have just that length; an engine with a field of its own for it
    (other than `ignore_eos`) is asked by that. Knobs that the engine lacks are left out: `check_request` names them.
    """
    rules = definition.request
    body: dict[str, Any] = {}
    for field, value in rules.always.items():
        _put(body, field, value)
    for knob, value in request_knobs(definition, pair).items():
        if knob not in definition.absent:
            _put(body, rules.fields.get(knob, knob), _in_request(definition, knob, value))
    if output_tokens is not None:
        for field, value in rules.full_length.items():
            _put(body, field, output_tokens if value == "{output_tokens}" else value)
    return {name: _sent(name, value, rules.json_text) for name, value in body.items()}


def request_knobs(definition: EngineDefinition, pair: ConfigPair) -> dict[str, Scalar]:
    """Sampling knobs, and what is a field of the request for this engine."""
    own = {knob: value for knob, value in pair.knobs().items() if knob in definition.request.fields}
    return {**own, **pair.request_fields()}


def check_request(definition: EngineDefinition, pair: ConfigPair, explicit: frozenset[str]) -> tuple[Finding, ...]:
    """What this engine lacks of the pair's request knobs: a warning, or an error where an arm sets it itself."""
    found = []
    for knob, value in request_knobs(definition, pair).items():
        lacking = definition.absent.get(knob)
        if lacking is not None and knob_table()[knob].phase == "request":
            params: dict[str, Param] = {"knob": knob, "value": value, "engine": definition.label}
            found.append(absence(lacking, params, explicit=knob in explicit))
    return tuple(found)


def _in_request(definition: EngineDefinition, knob: str, value: Scalar) -> Scalar:
    """Numbers stay numbers where the engine writes them otherwise."""
    said = written(definition, knob, value)
    return int(said) if isinstance(said, str) and isinstance(value, int) and not isinstance(value, bool) else said


def _put(body: dict[str, Any], field: str, value: Scalar) -> None:
    name, _, inner = field.partition(".")
    if inner:
        body.setdefault(name, {})[inner] = value
    else:
        body[name] = value


def _sent(name: str, value: Any, as_text: list[str]) -> Any:
    return json.dumps(value) if name in as_text else value
