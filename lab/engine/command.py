"""The command that launches an engine with a set of knobs: arguments, environment, overlays of the host, findings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from lab.engine.catalogue import Catalogue
from lab.engine.definition import EngineDefinition
from lab.engine.flags import observing, to_flags
from lab.engine.installation import find_program
from lab.engine.model import ModelRef
from lab.engine.overlays import Overlay, apply_overlays
from lab.findings import Finding, Param
from lab.host.facts import HostKind
from lab.records.workload import Scalar

__all__ = ["EngineCommand", "Overlay", "build_command"]


@dataclass(frozen=True, slots=True)
class EngineCommand:
    """What is started. `environment` is all of it; `api_key_env` names the variable that holds the engine's own key.

    `served_name` is the name that requests carry.
    `flags` are the knobs that became arguments, with the values the engine is given.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    overlays: tuple[Overlay, ...]
    findings: tuple[Finding, ...]
    port: int
    served_name: str
    api_key_env: str | None
    flags: Mapping[str, Scalar]

    @property
    def shown(self) -> str:
        """The command as a line to read. It holds no secret: keys travel in the environment only."""
        return shlex.join(self.argv)


def build_command(
    definition: EngineDefinition,
    knobs: Mapping[str, Scalar],
    explicit: frozenset[str],
    *,
    host_kind: HostKind,
    model: ModelRef,
    port: int,
    python: Path,
    devices: str | None,
    variables: Mapping[str, str],
    catalogue: Catalogue | None = None,
) -> EngineCommand:
    """The command for these knobs; `explicit` are the names that an arm sets itself.

    Nothing raises: what the engine lacks or refuses stands in `findings`, and an error among them forbids the launch.
    `devices` None means the knob of that name, or the engine's own choice. Without a catalogue, a flag that the
    definition does not know is passed on with the warning "flag-unchecked".
    """
    used, overlays, warnings = apply_overlays(definition.overlay, knobs, explicit, host_kind)
    flags = to_flags(definition, used, explicit, catalogue)
    argument, no_file = _model_argument(definition, model)
    places = {
        "python": str(python.absolute()),  # not resolved: the link is what makes it a virtual environment's
        "program": find_program(definition, python) or definition.installed.program or "",
        "model": argument,
        "served_name": model.served_name,
        "port": str(port),
    }
    chosen = devices if devices is not None else _text(knobs.get("devices"))
    notes = (Finding(code, "advice", {"engine": definition.label}) for code in spoken_notes(definition, used))
    problems = (model.problem,) if model.problem else no_file
    return EngineCommand(
        argv=(
            *(part.format_map(places) for part in definition.command),
            *flags.arguments,
            *observing(definition, used, catalogue),
        ),
        environment=engine_environment(definition, variables, model, chosen),
        overlays=overlays,
        findings=(*warnings, *flags.findings, *notes, *problems),
        port=port,
        served_name=definition.request_model.format_map(places),
        api_key_env=_api_key_env(definition, variables),
        flags=flags.values,
    )


def _model_argument(definition: EngineDefinition, model: ModelRef) -> tuple[str, tuple[Finding, ...]]:
    """The folder or name, or the one file in the folder that this engine wants."""
    if definition.model_file is None or model.problem is not None:
        return model.argument, ()
    if model.path is not None and model.path.is_file():
        return model.argument, ()
    found = sorted(model.path.glob(definition.model_file)) if model.path is not None else []
    if len(found) == 1:
        return str(found[0]), ()
    params: dict[str, Param] = {
        "engine": definition.label,
        "model": model.argument,
        "pattern": definition.model_file,
        "files": ", ".join(file.name for file in found[:5]) or None,
    }
    code = "model-file-ambiguous" if found else "model-file-missing"
    return model.argument, (Finding(code, "error", params),)


def spoken_notes(definition: EngineDefinition, knobs: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Codes of what must be said of this engine with these knobs."""
    return tuple(note.code for note in definition.note if knobs.get(note.unless or "") is not True)


def engine_environment(
    definition: EngineDefinition, variables: Mapping[str, str], model: ModelRef, devices: str | None
) -> dict[str, str]:
    """The variables an engine gets: ours without secrets and without what would bend its configuration.

    An engine on loopback needs no key, so the lab makes none; where the user has set the engine's own key variable
    it is passed on, and requests then carry it. The gateway's keys are never passed on.
    """
    rules = definition.environment
    passed = {name: value for name, value in variables.items() if _may_know(name, rules.secret, rules.keep)}
    for name in rules.remove:
        passed.pop(name, None)
    passed.update(rules.set)
    if model.path is not None:
        passed.update(rules.set_for_local_model)
    if devices and definition.devices_variable:
        passed[definition.devices_variable] = devices
    return passed


def _may_know(name: str, secret: list[str], keep: list[str]) -> bool:
    return any(fnmatchcase(name, kept) for kept in keep) or not any(fnmatchcase(name, hidden) for hidden in secret)


def _api_key_env(definition: EngineDefinition, variables: Mapping[str, str]) -> str | None:
    name = definition.api_key_variable
    return name if name and variables.get(name) else None


def _text(value: Scalar | None) -> str | None:
    return None if value is None else str(value)
