"""What the files of an arm say about its engine: knobs as flags, the model, what the measuring host did otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.configs.knobs import knob_table
from lab.configs.pair import ConfigPair
from lab.engine.definition import EngineDefinition
from lab.engine.flags import FlagSet, to_flags
from lab.engine.overlays import Overlay, apply_overlays
from lab.engine.port import LOOPBACK
from lab.engine.request_fields import request_fields
from lab.records.plan import Arm, Experiment
from lab.records.workload import Scalar

DEFAULT_PORT = 8000


@dataclass(frozen=True, slots=True)
class EngineSide:
    """`flags` maps the engine's flag (without dashes in front) to its value, in the order of the knob table.

    `overlays` are the values that a host without a GPU needs otherwise; `resolved` are knobs that the engine took with
    another value than asked, without an overlay being the reason. `command` is the engine's own command with the
    arm's values, `left_out` what of them it has no option for, `request_fields` what each request carries beside the
    prompt where that is another thing than the two files say.
    """

    experiment: str
    arm: str
    label: str
    model: str
    served_name: str | None
    host: str
    port: int
    devices: str | None
    devices_variable: str | None
    api_key_variable: str | None
    flags: Mapping[str, Scalar]
    overlays: tuple[Overlay, ...]
    measured_on_cpu: bool
    resolved: Mapping[str, tuple[Scalar, Scalar]]
    config_file: str | None
    install: str
    command: tuple[str, ...]
    left_out: tuple[str, ...]
    request_fields: Mapping[str, Scalar]

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        arm: Arm,
        pair: ConfigPair,
        definition: EngineDefinition,
        effective: Mapping[str, Any] | None,
    ) -> EngineSide:
        knobs, seen = pair.engine_knobs(), effective or {}
        _, overlays, _ = apply_overlays(definition.overlay, knobs, frozenset(arm.set), "cpu")
        changed = {overlay.knob for overlay in overlays}
        named = str(knobs.get("model", ""))
        model = str(seen.get("model") or named)
        written = to_flags(definition, knobs, frozenset(), None)
        host = pair.knobs().get("host", LOOPBACK)
        return cls(
            experiment=experiment.name,
            arm=arm.name,
            label=definition.label,
            model=model,
            served_name=_served_name(named, model),
            host=str(host),
            port=_port(knobs.get("port")),
            devices=None if knobs.get("devices") in (None, "") else str(knobs["devices"]),
            devices_variable=definition.devices_variable,
            api_key_variable=definition.api_key_variable,
            flags=_flags(definition, knobs),
            overlays=overlays,
            measured_on_cpu=seen.get("device") == "cpu",
            resolved=_resolved(knobs, seen, changed),
            config_file=definition.config_file,
            install=definition.installed.hint,
            command=(*_command(definition, model, named, _port(knobs.get("port"))), *written.arguments),
            left_out=_left_out(written),
            request_fields=request_fields(definition, pair) if definition.request.fields else {},
        )


def _left_out(written: FlagSet) -> tuple[str, ...]:
    """Knobs that ask for something and became no argument; one that nobody could check became one."""
    kept = {name.replace("-", "_") for name in written.values}
    told = (each.params.get("knob") for each in written.findings if each.severity != "advice")
    return tuple(dict.fromkeys(str(knob) for knob in told if knob is not None and knob not in kept))


def _command(definition: EngineDefinition, model: str, named: str, port: int) -> tuple[str, ...]:
    """The engine's command as it is started by hand: with the interpreter or program that is on the path there."""
    places = {
        "python": "python",
        "program": definition.installed.program or "",
        "model": model,
        "served_name": _served_name(named, model) or named,
        "port": str(port),
    }
    return tuple(part.format_map(places) for part in definition.command)


def flag_name(definition: EngineDefinition, knob: str) -> str:
    """The flag as it stands in a file: without dashes in front, with dashes inside."""
    known = definition.flags.get(knob)
    flag = known if isinstance(known, str) else known[0] if known else f"--{knob.replace('_', '-')}"
    return flag.removeprefix("--")


def _flags(definition: EngineDefinition, knobs: Mapping[str, Scalar]) -> dict[str, Scalar]:
    order = {name: index for index, name in enumerate(knob_table())}
    names = sorted(
        (name for name in knobs if _is_flag(definition, name)), key=lambda name: (order.get(name, len(order)), name)
    )
    return {flag_name(definition, name): knobs[name] for name in names}


def _is_flag(definition: EngineDefinition, name: str) -> bool:
    left_out = {*definition.not_flags, *definition.request.fields, *definition.absent, *definition.owned}
    return name not in left_out


def _served_name(named: str, model: str) -> str | None:
    """The name that clients use, where the engine is started from a folder."""
    if model == named and not Path(model).is_absolute():
        return None
    return Path(named).name if "/" in named and Path(named).is_absolute() else named


def _port(value: Scalar | None) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else DEFAULT_PORT


def _resolved(
    knobs: Mapping[str, Scalar], seen: Mapping[str, Any], changed: set[str]
) -> dict[str, tuple[Scalar, Scalar]]:
    """A dtype spelled otherwise or "auto" made concrete is no difference worth telling."""
    found: dict[str, tuple[Scalar, Scalar]] = {}
    for name, asked in knobs.items():
        took = seen.get(name)
        if name in changed or name in ("model", "dtype") or asked == "auto":
            continue
        if isinstance(took, str | int | float | bool) and took != asked and str(took) != str(asked):
            found[name] = (asked, took)
    return found
