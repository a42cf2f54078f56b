"""Arms of an experiment: those listed, the cells of a sweep, their names and what may be set in them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import cast, get_args

from lab.configs.checks import unknown_flag
from lab.configs.documents import Path
from lab.configs.knob_values import coerced, value_problem, written
from lab.configs.knobs import (
    Dialect,
    Knob,
    engine_flags,
    find_removed,
    knob_table,
    known_names,
    nearest_name,
    settable_knob,
    switches,
)
from lab.configs.placeholders import variables_in
from lab.configs.secrets import is_literal_secret, is_secret_key
from lab.findings import Finding, LabError, Param
from lab.records.plan import DEFAULT_ENGINE, Arm
from lab.records.states import Target
from lab.records.workload import Scalar

Found = tuple[Path, Finding]
ARM_KEYS = ("name", "target", "engine", "base_url", "api_key_env", "set")
NO_BATCHING = "no batching (1 sequence at a time)"
AS_CONFIGURED = "as configured"
_ENGINE = "engine"
_REMOTE_KNOBS = ("model",)


class ArmReader:
    """Reads arms against a pair and gathers findings, each with its path in the experiment's table."""

    def __init__(self, dialect: Dialect, engines: Sequence[str]) -> None:
        self.dialect = dialect
        self.engines = engines
        self.found: list[Found] = []
        self.reading = ""

    def arm(self, table: Mapping[str, object], where: Path) -> Arm | None:
        """One [[arm]]; None where it has errors."""
        before = len(self.found)
        self.reading = str(table.get("name", where[-1]))
        for key in table:
            if key not in ARM_KEYS:
                params = {"key": f"arm.{key}", "nearest": nearest_name(key, ARM_KEYS, 0.5)}
                self._say((*where, key), "unknown-key", **params)
        target = self._target(table, where)
        engine = self._engine(table, target, where)
        base_url = self._base_url(table, target, where)
        variable = self._key_variable(table, target, where)
        values = self._set(table.get("set", {}), target, (*where, "set"))
        name = table.get("name")
        if name is not None and (not isinstance(name, str) or not name.strip()):
            self._say((*where, "name"), "wrong-type", knob="name", kind="text", written=written(name))
        if any(finding.severity == "error" for _, finding in self.found[before:]):
            return None
        shown = name.strip() if isinstance(name, str) else generated_name(target, values)
        return Arm(
            name=shown, target=target, engine=engine, base_url=base_url, api_key_env=variable, set=values
        )  # fmt: skip

    def cells(self, sweep: Mapping[str, object], where: Path) -> list[Arm]:
        """One arm per cell of the grid, in the order of the file: the last knob changes fastest.

        `engine` among the knobs names kinds of engine: the whole grid is then run on each.
        """
        self.reading = "sweep"
        engines = self._engines(sweep, where)
        axes: list[list[tuple[str, Scalar]]] = []
        for name, values in sweep.items():
            if name == _ENGINE:
                continue
            if not isinstance(values, list | tuple) or not values:
                self._say((*where, name), "sweep-not-list", key=name)
                continue
            cells = enumerate(values)
            axis = [each for i, value in cells for each in self._setting(name, value, "engine", (*where, name, i))]
            for index, item in enumerate(axis):
                if item in axis[:index]:
                    self._say((*where, name, index), "sweep-twice", key=name, value=str(item[1]))
            axes.append(axis)
        grid = [dict(cell) for cell in itertools.product(*axes) if cell or len(engines) > 1] if sweep else []
        several = len(engines) > 1
        return [Arm(name=_on(engine, cell, several), engine=engine, set=cell) for engine in engines for cell in grid]

    def _engines(self, sweep: Mapping[str, object], where: Path) -> list[str]:
        """The kinds that a sweep names, one or several; vLLM where it names none."""
        given = sweep.get(_ENGINE, DEFAULT_ENGINE)
        kinds = given if isinstance(given, list | tuple) else [given]
        found = [self._engine({_ENGINE: kind}, "engine", where) for kind in kinds]
        return list(dict.fromkeys(kind for kind in found if kind is not None))

    def _target(self, table: Mapping[str, object], where: Path) -> Target:
        target = table.get("target", "engine")
        if target not in get_args(Target):
            choices = ", ".join(get_args(Target))
            nearest = nearest_name(str(target), get_args(Target), 0.4)
            params = {"knob": "target", "value": str(target), "choices": choices, "nearest": nearest}
            self._say((*where, "target"), "not-a-choice", **params)
            return "engine"
        return cast(Target, target)

    def _engine(self, table: Mapping[str, object], target: Target, where: Path) -> str | None:
        engine = table.get(_ENGINE, DEFAULT_ENGINE if target == "engine" else None)
        if target != "engine":
            if engine is not None:
                self._say((*where, _ENGINE), "arm-key-unused", key="engine", target=target, arm=self.reading)
            return None
        if self.engines and engine not in self.engines:
            nearest = nearest_name(str(engine), self.engines, 0.3)
            self._say((*where, _ENGINE), "arm-unknown-engine", engine=str(engine), nearest=nearest)
        return str(engine)

    def _base_url(self, table: Mapping[str, object], target: Target, where: Path) -> str | None:
        base_url = table.get("base_url")
        if target == "attach" and (not isinstance(base_url, str) or not base_url.strip()):
            self._say(where, "arm-needs-base-url", arm=self.reading)
            return None
        if target != "attach" and base_url is not None:
            self._say((*where, "base_url"), "arm-key-unused", key="base_url", target=target, arm=self.reading)
            return None
        return base_url.strip() if isinstance(base_url, str) else None

    def _key_variable(self, table: Mapping[str, object], target: Target, where: Path) -> str | None:
        """The name of a variable; a key written out is refused and not repeated."""
        name = table.get("api_key_env")
        if name is None:
            return None
        if target != "attach":
            self._say((*where, "api_key_env"), "arm-key-unused", key="api_key_env", target=target, arm=self.reading)
        elif not isinstance(name, str) or not name.strip():
            self._say((*where, "api_key_env"), "wrong-type", knob="api_key_env", kind="text", written=written(name))
        elif is_literal_secret("api_key_env", name):
            self._say((*where, "api_key_env"), "secret-in-file", key="api_key_env")
        else:
            return name.strip()
        return None

    def _set(self, table: object, target: Target, where: Path) -> dict[str, Scalar]:
        if not isinstance(table, Mapping):
            self._say(where, "not-a-table", key="set")
            return {}
        values: dict[str, Scalar] = {}
        for name, value in table.items():
            for knob, plain in self._setting(name, value, target, (*where, name)):
                if knob in values:
                    self._say((*where, name), "set-twice-in-arm", knob=knob)
                values[knob] = plain
        return values

    def _setting(self, name: str, value: object, target: Target, where: Path) -> Iterator[tuple[str, Scalar]]:
        switch = switches().get(name.rpartition(".")[2])
        if switch is not None and find_removed(name) is None:
            if isinstance(value, bool):
                yield from (() if value else switch.when_false.items())
            else:
                self._say(where, "wrong-type", knob=name, kind="true or false", written=written(value))
            return
        knob = self._knob(name, value, where)
        if knob is None:
            return
        if knob.phase == "workload":
            self._say(where, "arm-workload-knob", knob=knob.name, arm=self.reading)
        elif target != "engine" and knob.phase != "request" and knob.name not in _REMOTE_KNOBS:
            self._say(where, "arm-knob-unused", knob=knob.name, target=target, arm=self.reading)
        elif (problem := value_problem(knob, value)) is not None and not _free(knob, value):
            waits = bool(variables_in(value))
            given: dict[str, Param] = {"knob": knob.name, "written": str(value)}
            self.found.append((where, Finding("arm-placeholder", params=given) if waits else problem))
        else:
            yield knob.name, coerced(knob, cast(Scalar, value))

    def _knob(self, name: str, value: object, where: Path) -> Knob | None:
        if is_secret_key(name) or is_literal_secret(name, value):
            self._say(where, "secret-in-file", key=name)
            return None
        try:
            knob = settable_knob(name, self.dialect)
        except LabError as problem:
            finding = problem.findings[0]
            near = finding.params.get("nearest") or nearest_name(name, known_names(self.dialect), 0.6)
            self.found.append((where, Finding(finding.code, "error", {**finding.params, "nearest": near})))
            return None
        if knob.phase == "engine" and knob.name not in engine_flags() and knob.name not in knob_table():
            self.found.append((where, unknown_flag(knob.name)))
        if knob.phase == "lab":
            self._say(where, "unknown-knob", name=name, nearest=None)
            return None
        return knob

    def _say(self, where: Path, code: str, **params: str | int | None) -> None:
        self.found.append((where, Finding(code, params=params)))


def _on(engine: str, cell: Mapping[str, Scalar], several: bool) -> str:
    name = cell_name(cell) if cell else AS_CONFIGURED
    return f"{engine}: {name}" if several else name


def generated_name(target: Target, values: Mapping[str, Scalar]) -> str:
    if values:
        return cell_name(values)
    return AS_CONFIGURED if target == "engine" else target


def cell_name(values: Mapping[str, Scalar]) -> str:
    """`max_num_seqs=8, kv_cache_dtype=fp8`; max_num_seqs = 1 alone by what it means."""
    if dict(values) == {"max_num_seqs": 1}:
        return NO_BATCHING
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _free(knob: Knob, value: object) -> bool:
    """Flags whose type the lab does not know for sure take any single value."""
    unsure = knob.phase == "engine" and not knob.help and (knob.kind == "str" or knob.name not in engine_flags())
    return unsure and isinstance(value, str | int | float | bool)
