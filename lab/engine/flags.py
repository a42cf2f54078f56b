"""A knob as arguments of the engine's command line, or the finding that says why it cannot be one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.configs.knobs import engine_flags, knob_table
from lab.engine.catalogue import Catalogue, Flag
from lab.engine.definition import Absent, EngineDefinition
from lab.findings import Finding, Param
from lab.records.workload import Scalar


@dataclass(frozen=True, slots=True)
class FlagSet:
    """Arguments in the order of the knobs; `values` are the knobs that became arguments."""

    arguments: tuple[str, ...]
    values: Mapping[str, Scalar]
    findings: tuple[Finding, ...]


def to_flags(
    definition: EngineDefinition, knobs: Mapping[str, Scalar], explicit: frozenset[str], catalogue: Catalogue | None
) -> FlagSet:
    """All knobs of an engine as arguments; nothing is dropped without a finding."""
    arguments: list[str] = []
    values: dict[str, Scalar] = {}
    findings: list[Finding] = []
    for name, value in knobs.items():
        key = name.replace("-", "_")
        if key in definition.not_flags or key in definition.request.fields:
            continue
        finding = _without_its_switch(definition, knobs, key, explicit=name in explicit)
        finding = finding or _refusal(definition, catalogue, key, value, explicit=name in explicit)
        if finding is not None:
            findings.append(finding)
        if finding is None or finding.code == "flag-unchecked":
            findings += _meaning(definition, key, value)
            arguments += _arguments(_flag(definition, catalogue, key), _counted(definition, knobs, key, value))
            values[name] = value
    return FlagSet(tuple(arguments), values, (*findings, *clashes(definition, knobs)))


def clashes(definition: EngineDefinition, knobs: Mapping[str, Scalar]) -> tuple[Finding, ...]:
    """What this engine cannot do together."""
    return tuple(
        Finding(clash.code, "error", {"engine": definition.label})
        for clash in definition.clash
        if all(knobs.get(name) == value for name, value in clash.when.items())
        and all(knobs.get(name) for name in clash.beside)
    )


def observing(
    definition: EngineDefinition, knobs: Mapping[str, Scalar], catalogue: Catalogue | None
) -> tuple[str, ...]:
    """Switches for more detailed answers, of those that the engine has and that the knobs leave open."""
    known = {name.replace("-", "_"): value for name, value in knobs.items()}
    chosen = [each for each in definition.observe if each.flag not in known and not known.get(each.unless or "")]
    found = [catalogue.find(each.flag) for each in chosen] if catalogue is not None else []
    return tuple(flag.flag for flag in found if flag is not None)


def absence(absent: Absent, params: dict[str, Param], *, explicit: bool) -> Finding:
    """A value that asks for nothing is told as advice; the rest as a warning, or an error where it would mislead.

    `params` name `knob`, `value` and `engine`.
    """
    value = params["value"]
    if any(value is harmless or value == harmless for harmless in absent.harmless):
        return Finding("knob-needless", "advice", params)
    severe = explicit or absent.always_error
    code = "knob-without-counterpart" if absent.nearest is None and absent.code == "knob-absent" else absent.code
    return Finding(code, "error" if severe else "warning", {**params, "nearest": absent.nearest})


def _without_its_switch(
    definition: EngineDefinition, knobs: Mapping[str, Scalar], key: str, *, explicit: bool
) -> Finding | None:
    switch = definition.only_with.get(key)
    if switch is None or knobs.get(switch) is True:
        return None
    params: dict[str, Param] = {"knob": key, "value": knobs.get(key), "engine": definition.label, "switch": switch}
    return Finding("knob-needs-switch", "error" if explicit else "warning", params)


def written(definition: EngineDefinition, key: str, value: Scalar) -> Scalar:
    """The value as this engine writes it; "" for one that it does by itself."""
    table = definition.values.get(key)
    return value if table is None else table.get(_spelled(value), value)


def _spelled(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _counted(definition: EngineDefinition, knobs: Mapping[str, Scalar], key: str, value: Scalar) -> Scalar:
    """The value that its flag gets: written the engine's way, or the whole where the flag counts the whole."""
    factor = knobs.get(definition.times.get(key, ""))
    if isinstance(factor, int) and isinstance(value, int) and not isinstance(value, bool):
        return value * factor
    return written(definition, key, value)


def _meaning(definition: EngineDefinition, key: str, value: Scalar) -> list[Finding]:
    code = definition.meaning.get(key)
    flag = definition.flags.get(key)
    shown = flag if isinstance(flag, str) else flag[0] if flag else key
    return (
        [Finding(code, "advice", {"knob": key, "value": value, "flag": shown, "engine": definition.label})]
        if code
        else []
    )


def _refusal(
    definition: EngineDefinition, catalogue: Catalogue | None, key: str, value: Scalar, *, explicit: bool
) -> Finding | None:
    params: dict[str, Param] = {"knob": key, "value": value, "engine": definition.label}
    if key in definition.owned:
        return Finding("flag-owned-by-the-lab", "error", params)
    absent = _absent(definition, catalogue, key)
    if absent is not None:
        return absence(absent, params, explicit=explicit)
    table = definition.values.get(key)
    if table is not None and _spelled(value) not in table and str(value) not in table.values():
        return Finding("value-without-counterpart", "error", {**params, "choices": ", ".join(table)})
    if catalogue is None:
        return None if key in definition.flags else Finding("flag-unchecked", "warning", params)
    flag = _listed(definition, catalogue, key)
    if flag is None:
        return Finding("unknown-flag", "error", {**params, "nearest": catalogue.nearest(key), **_release(catalogue)})
    used = written(definition, key, value)
    if used != "" and flag.choices is not None and str(used) not in flag.choices:
        return Finding("flag-choice", "error", {**params, "choices": ", ".join(flag.choices), **_release(catalogue)})
    if flag.type == "bool" and not isinstance(used, bool):
        return Finding("flag-wants-bool", "error", params)
    return None


def _absent(definition: EngineDefinition, catalogue: Catalogue | None, key: str) -> Absent | None:
    """What the definition says is lacking; for an engine with names of its own also every knob it has no name for."""
    if catalogue is not None and catalogue.find(key) is not None:
        return None
    told = definition.absent.get(key)
    foreign = not definition.canonical and key not in definition.flags
    return told or (Absent() if foreign and (key in knob_table() or key in engine_flags()) else None)


def _listed(definition: EngineDefinition, catalogue: Catalogue, key: str) -> Flag | None:
    """The catalogue's entry of a knob, found by the definition's spelling or by the name itself."""
    spelled = spellings(definition.flags.get(key, ()))
    return next((flag for flag in catalogue.flags if flag.flag in spelled), None) or catalogue.find(key)


def spellings(known: str | Sequence[str]) -> list[str]:
    """The flags that a knob becomes, without the values that some of them carry."""
    texts = [known] if isinstance(known, str) else known
    return [part.partition("=")[0] for text in texts for part in text.split()]


def _release(catalogue: Catalogue) -> dict[str, Param]:
    return {"release": f"{catalogue.distribution} {catalogue.version}"}


def _flag(definition: EngineDefinition, catalogue: Catalogue | None, key: str) -> Flag:
    """The definition's spelling first, then the engine's own, then the rule that both follow."""
    known = definition.flags.get(key)
    if isinstance(known, str):
        return Flag(name=key, flag=known, type="str")
    if known is not None:
        return Flag(name=key, flag=known[0], off=known[1], type="bool")
    found = catalogue.find(key) if catalogue is not None else None
    dashed = key.replace("_", "-")
    return found or Flag(name=key, flag=f"--{dashed}", off=f"--no-{dashed}", type="str")


def _arguments(flag: Flag, value: Scalar) -> list[str]:
    if isinstance(value, bool):
        said = flag.flag if value else flag.off
        return [said] if said else []
    text = str(value)
    # a value that starts like a flag must be tied to its own
    return [
        part for name in flag.flag.split() if text for part in ([f"{name}={text}"] if text[0] == "-" else [name, text])
    ]
