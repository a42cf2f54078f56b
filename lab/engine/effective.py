"""The configuration an engine really runs with, read back from it and compared with what was asked."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

from lab.engine.definition import EngineDefinition
from lab.engine.http_client import EngineClient
from lab.engine.readiness import LaunchCancelled
from lab.findings import LabError
from lab.host.metrics_page import read_labels
from lab.records.summary import Mark
from lab.records.workload import Scalar

Effective = Mapping[str, Scalar | None]

_LOOK_S = 0.1

# what leaves the choice to the engine
_FREE = ("auto", "-1", "")
# different spellings of the same thing
_SAME = {"half": "float16", "float": "float32", "fp8": "fp8_e4m3"}


def read_effective(
    base_url: str,
    definition: EngineDefinition,
    api_key: str | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[str, Scalar | None]:
    """Canonical knob → value in force, None where the engine says that nothing is set; empty where it does not tell.

    Beside the knobs: what the engine made of them (`kv_cache_size_tokens`, `num_gpu_blocks`, `device`). It takes 1 to
    10 s, on a busy host more; `LaunchCancelled` is raised within 0.2 s after `cancelled` says so.
    """
    found: dict[str, Scalar | None] = {}

    def read() -> None:
        with EngineClient(base_url, api_key, definition.client) as client:
            found.update({**_from_labels(client, definition), **_from_json(client, definition)})

    # a thread that is left behind ends with the engine's connection: who cancels stops the engine
    reading = threading.Thread(target=read, name="effective", daemon=True)
    reading.start()
    while reading.is_alive():
        if cancelled():
            raise LaunchCancelled
        reading.join(_LOOK_S)
    return found


def compare_effective(asked: Mapping[str, Scalar], effective: Effective) -> tuple[Mark, ...]:
    """A mark "effective-differs" for each asked knob that the engine runs with another value of.

    Those that it does not report are named in one mark "effective-unconfirmed"; where it reports nothing at all, the
    one mark is "effective-unknown".
    """
    if not effective:
        return (Mark(code="effective-unknown"),)
    differing = [
        Mark(code="effective-differs", params={"knob": knob, "asked": value, "effective": effective[knob]})
        for knob, value in asked.items()
        if knob in effective and not _agree(value, effective[knob])
    ]
    silent = [knob for knob in asked if knob not in effective]
    unconfirmed = [Mark(code="effective-unconfirmed", params={"knobs": ", ".join(silent)})] if silent else []
    return (*differing, *unconfirmed)


def _from_json(client: EngineClient, definition: EngineDefinition) -> dict[str, Scalar | None]:
    if definition.effective.path is None:
        return {}
    try:
        answer = client.get_json(definition.effective.path)
    except LabError:
        return {}
    found = {}
    for knob, path in definition.effective.knobs.items():
        there, value = _at(answer, path.removeprefix("!"))
        if there:
            plain = not value if path.startswith("!") and isinstance(value, bool) else _plain(value)
            found[knob] = _canonical(definition, knob, plain)
    return found


def _from_labels(client: EngineClient, definition: EngineDefinition) -> dict[str, Scalar | None]:
    if definition.effective.labels_metric is None:
        return {}
    try:
        labels = read_labels(client.page(definition.client.metrics_path), definition.effective.labels_metric) or {}
    except (LabError, ValueError):
        return {}
    return {knob: _read(labels[label]) for knob, label in definition.effective.labels.items() if label in labels}


def _canonical(definition: EngineDefinition, knob: str, value: Scalar | None) -> Scalar | None:
    """An engine's own word for a value as ours."""
    words = definition.values.get(knob, {})
    return next((ours for ours, theirs in words.items() if theirs == value and theirs != ""), value)


def _at(table: Any, path: str) -> tuple[bool, Any]:
    for part in path.split("."):
        if not isinstance(table, Mapping) or part not in table:
            return False, None
        table = table[part]
    return True, table


def _plain(value: Any) -> Scalar | None:
    if isinstance(value, str):
        return value.removeprefix("torch.")
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _read(text: str) -> Scalar | None:
    """A label's text as the value it was made from: labels are Python's own words."""
    named: dict[str, Scalar | None] = {"None": None, "True": True, "False": False}
    if text in named:
        return named[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _agree(asked: Scalar, effective: Scalar | None) -> bool:
    if str(asked) in _FREE:
        return True
    if effective is None or isinstance(asked, bool) or isinstance(effective, bool):
        return asked is effective or asked == effective
    try:
        return math.isclose(float(asked), float(effective), rel_tol=1e-9)
    except ValueError:
        pass
    if isinstance(effective, int | float):
        return True  # "8k" for a number of tokens: the engine reads such words, the lab does not guess
    return _SAME.get(str(asked), str(asked)) == _SAME.get(effective, effective)
