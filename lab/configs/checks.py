"""All that is to be said about a config pair, at once, each with its place in the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lab.configs.documents import Document, Path, open_document
from lab.configs.gateway import resolve_base_url
from lab.configs.knob_values import value_problem, written
from lab.configs.knobs import (
    Dialect,
    File,
    Knob,
    Place,
    Removed,
    canonical_name,
    engine_flags,
    flag_knob,
    knob_table,
    lab_keys,
    near_miss,
    nearest_name,
    removed_keys,
    switches,
)
from lab.configs.pair import ConfigPair
from lab.configs.placeholders import placeholder_findings, variables_in
from lab.configs.positions import same_value
from lab.configs.reading import read_leniently
from lab.configs.rules import VLLM, VLLM_ONLY_FIELDS, knob_rules, length_rules
from lab.configs.secrets import is_literal_secret, lines_with_keys
from lab.configs.workload_rules import longest_request, workload_findings
from lab.environment import read_environment
from lab.findings import Finding, LabError, Param, Severity, has_errors
from lab.records.workload import Scalar, Workload

PLACEHOLDER_MODEL = "your-model-name"
_OWN_WORDS = 2  # `port` and `dtype` are everybody's words, `max_num_seqs` is not
_NEAR_ENOUGH_FOR_A_TYPO = 0.8
VLLM_VERSION = "0.32"


def check_pair(pair: ConfigPair) -> tuple[Finding, ...]:
    """Every finding on the pair: parse errors, keys, values, rules between knobs, the workload. Never raises."""
    broken = parse_errors(pair)
    if broken:
        return tuple(sorted((*broken, *_behind_faults(pair)), key=_reading_order))
    found = structure_findings(pair) + check_rules(pair)
    if not has_errors(found):
        # only a hint here: an experiment may bring a workload of its own
        found += [replace(each, severity="warning") for each in check_lengths(pair)]
    return tuple(sorted(found, key=_reading_order))


def check_launch(pair: ConfigPair, engine: str = VLLM) -> tuple[Finding, ...]:
    """As `check_pair` without [workload]: what matters for starting an engine of a kind."""
    broken = parse_errors(pair)
    return broken or tuple(sorted(key_findings(pair) + check_rules(pair, engine), key=_reading_order))


def structure_findings(pair: ConfigPair) -> list[Finding]:
    """Findings on keys and single values, [workload] included; the texts must parse."""
    workload = pair.config.get(("workload",))
    found = key_findings(pair)
    return found + workload_findings(workload, pair.config) if isinstance(workload, dict) else found


def key_findings(pair: ConfigPair) -> list[Finding]:
    """Findings on keys and single values outside [workload]; the texts must parse."""
    found = [*_key_findings(pair, pair.settings), *_key_findings(pair, pair.config)]
    seen = {(each.file, each.line) for each in found if each.code == "secret-in-file"}
    if pair.mixed:
        forms: dict[str, Param] = {"settings": pair.file_dialect("settings"), "config": pair.file_dialect("config")}
        found.append(Finding("mixed-forms", "warning", forms, pair.config_file, line=1))
    for document in (pair.settings, pair.config):
        for line in lines_with_keys(document.text):
            if (document.file, line) not in seen:
                found.append(Finding("secret-in-text", params={}, file=document.file, line=line))
    return found


def parse_errors(pair: ConfigPair) -> tuple[Finding, ...]:
    """Why the texts cannot be read; empty where they can."""
    return (*_parse_error(pair.settings_text, pair.settings_file), *_parse_error(pair.config_text, pair.config_file))


def check_rules(pair: ConfigPair, engine: str = VLLM) -> list[Finding]:
    """Findings on the knobs together; knobs with a wrong value are left out, they have their own finding."""
    knobs = sound_knobs(pair.knobs())
    found = [placed_at_knob(pair, name, finding) for name, finding in knob_rules(knobs, engine)]
    for name in VLLM_ONLY_FIELDS:
        if name in knobs and engine == VLLM:
            found.append(placed_at_knob(pair, name, Finding("vllm-only-field", "advice", {"knob": name})))
    found += _address_findings(pair)
    for name in ("model", "request_model"):
        if knobs.get(name) == PLACEHOLDER_MODEL:
            severity: Severity = "error" if name == "model" else "warning"
            params = {"knob": name, "value": PLACEHOLDER_MODEL}
            found.append(placed_at_knob(pair, name, Finding("placeholder-model", severity, params)))
    return found


def _address_findings(pair: ConfigPair) -> list[Finding]:
    """An address without placeholders must be one; what a placeholder holds shows at run time."""
    address = pair.lab_values().get("gateway.base_url")
    if not isinstance(address, str) or not address.strip():
        return []
    if waiting := variables_in(address):
        return _unset_address(pair, waiting)
    try:
        resolve_base_url(address)
    except LabError as problem:
        found = [replace(each, severity="warning") for each in problem.findings]
        return [placed_at_knob(pair, "gateway.base_url", each) for each in found]
    return []


def _unset_address(pair: ConfigPair, names: tuple[str, ...]) -> list[Finding]:
    """An address that waits for a variable which is not set; a warning, since only the gateway needs it."""
    variables = read_environment().variables
    unset = [name for name in names if not variables.get(name)]
    if not unset or variables.get("TAOTOKEN_BASE_URL"):
        return []
    return [placed_at_knob(pair, "gateway.base_url", Finding("variable-unset", "warning", {"name": unset[0]}))]


def check_lengths(pair: ConfigPair, workload: Workload | None = None) -> list[Finding]:
    """Whether the longest request fits; `workload` None means the pair's own."""
    table = workload.model_dump() if workload is not None else pair.config.get(("workload",))
    if not isinstance(table, dict):
        return []
    rules = length_rules(sound_knobs(pair.knobs()), *longest_request(table))
    return [placed_at_knob(pair, name, finding) for name, finding in rules]


def sound_knobs(knobs: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The knobs whose value has the right type and range."""
    table = knob_table()
    return {
        name: value for name, value in knobs.items() if name not in table or value_problem(table[name], value) is None
    }


def placed_at_knob(pair: ConfigPair, name: str, finding: Finding) -> Finding:
    raw = pair.raw_value(name)
    return finding if raw is None else replace(finding, file=raw.file, line=raw.line, column=raw.column)


def _parse_error(text: str, file: str) -> tuple[Finding, ...]:
    try:
        open_document(text, file)
    except LabError:
        return read_leniently(text, file).findings
    return ()


def _behind_faults(pair: ConfigPair) -> list[Finding]:
    """Findings on keys and values of texts that cannot be parsed, as they read without their faults."""
    readings = {
        text_file: read_leniently(text, text_file)
        for text, text_file in ((pair.settings_text, pair.settings_file), (pair.config_text, pair.config_file))
    }
    if any(reading.document is None for reading in readings.values()):
        return []
    settings, config = (reading.edited.text for reading in readings.values())
    readable = replace(pair, settings_text=settings, config_text=config)
    found = [each for each in structure_findings(readable) if each.code != "no-settings"]
    return [readings[each.file].at_origin(each) if each.file in readings else each for each in found]


def _key_findings(pair: ConfigPair, document: Document) -> Iterator[Finding]:
    file: File = "settings" if document is pair.settings else "config"
    known = _known_places(pair.file_dialect(file), file)
    leaves = list(document.leaves())
    if not leaves and document.text.strip(" \t\r\n\ufeff{}"):
        yield Finding("no-settings", "warning", file=document.file, line=1)
    for path, value in leaves:
        for finding in _leaf_findings(pair, document, known, path, value):
            yield _placed(document, path, finding)


def _leaf_findings(
    pair: ConfigPair, document: Document, known: Mapping[Path, Knob | Removed], path: tuple[str, ...], value: object
) -> Iterator[Finding]:
    dotted = ".".join(path)
    if is_literal_secret(path[-1], value):
        yield Finding("secret-in-file", params={"key": dotted})
        return
    if path[0] == "workload" and document is pair.config and len(path) > 1:
        return
    entry = known.get(path)
    if isinstance(entry, Removed):
        yield Finding("removed-key", "warning", {"key": dotted, "nearest": entry.nearest})
    elif entry is not None:
        yield from _value_findings(pair, entry, document, path, value)
    elif path[:2] == ("engine", "args") and len(path) > 2:
        yield from _flag_findings(pair, document, path, value)
    elif (place := _place(pair, document, path)) in switch_places(pair.file_dialect(place.file)):
        if not isinstance(value, bool):
            params = {"knob": dotted, "value": str(value), "kind": "true or false", "written": written(value)}
            yield Finding("wrong-type", params=params)
    else:
        yield _wrong_shape(document, known, path) or _unknown(dotted, known, _elsewhere(pair, document, path))


def _wrong_shape(document: Document, known: Mapping[Path, Knob | Removed], path: tuple[str, ...]) -> Finding | None:
    """A table where a value is known, or a value where a table is: its settings would be left out without a word."""
    above = next((path[:n] for n in range(1, len(path)) if isinstance(known.get(path[:n]), Knob)), None)
    if above is not None:
        return Finding("not-a-value", params={"key": ".".join(above)})
    tables = {each[:n] for each in known for n in range(1, len(each))} | {("engine",), ("engine", "args")}
    tables |= set() if document.file.endswith(".json") else {("workload",)}
    return Finding("not-a-table", params={"key": ".".join(path)}) if path in tables else None


def _place(pair: ConfigPair, document: Document, path: tuple[str, ...]) -> Place:
    return Place("settings" if document is pair.settings else "config", path)


def _value_findings(
    pair: ConfigPair, knob: Knob, document: Document, path: tuple[str, ...], value: object
) -> Iterator[Finding]:
    if value is None:
        return
    if variables_in(value) and knob.phase != "lab":
        yield from placeholder_findings(knob, str(value), read_environment().variables)
    elif (problem := value_problem(knob, value)) is not None:
        yield problem
    raw = pair.raw_value(knob.name)
    if raw is not None and (raw.file, raw.path) != (document.file, path) and not same_value(raw.value, value):
        yield Finding("set-twice", "warning", {"knob": knob.name, "used": f"{raw.file} {'.'.join(raw.path)}"})


def _flag_findings(pair: ConfigPair, document: Document, path: tuple[str, ...], value: object) -> Iterator[Finding]:
    name = path[2].replace("-", "_")
    knob = knob_table().get(canonical_name(name, pair.dialect))
    removed = removed_keys().get(name)
    if removed is not None:
        yield Finding("removed-flag", params={"key": name, "nearest": removed.nearest})
    elif knob is not None and knob.name == name:
        yield from _value_findings(pair, knob, document, path, value)
    elif name in engine_flags() and variables_in(value):
        yield from placeholder_findings(flag_knob(name), str(value), read_environment().variables)
    elif name in engine_flags():
        problem = None if value is None or len(path) > 3 else value_problem(flag_knob(name), value)
        if problem is not None and not (isinstance(value, list) or flag_knob(name).kind == "str"):
            yield problem
    else:
        yield unknown_flag(name)


def unknown_flag(name: str) -> Finding:
    """An error where a known name is near enough to be meant, else a warning: engines grow new flags."""
    nearest = near_miss(name)
    if nearest is not None:
        return Finding("unknown-knob", params={"name": name, "nearest": nearest})
    return Finding("flag-not-in-catalogue", "warning", {"key": name, "version": VLLM_VERSION})


def _elsewhere(pair: ConfigPair, document: Document, path: tuple[str, ...]) -> str | None:
    """Where an engine's knob belongs that stands in the other file; names that many programs have are left alone."""
    knob = knob_table().get(path[-1])
    if knob is None or len(path[-1].split("_")) < _OWN_WORDS:
        return None
    file: File = "config" if document is pair.settings else "settings"
    places = [place for place in knob.places_in(pair.file_dialect(file)) if place.file == file]
    return f"{file}.{'json' if file == 'settings' else 'toml'} {places[0].dotted}" if places else None


def _unknown(dotted: str, known: Mapping[Path, Knob | Removed], elsewhere: str | None) -> Finding:
    """A typo of a known key is an error; a key that resembles none is somebody else's and stays."""
    names = [".".join(map(str, path)) for path in known]
    nearest = nearest_name(dotted, names, _NEAR_ENOUGH_FOR_A_TYPO)
    if nearest is None:
        leaf = dotted.rpartition(".")[2]
        near = nearest_name(leaf, [name.rpartition(".")[2] for name in names], _NEAR_ENOUGH_FOR_A_TYPO)
        nearest = next((name for name in names if near is not None and name.rpartition(".")[2] == near), None)
    if nearest is not None:
        return Finding("unknown-key", params={"key": dotted, "nearest": nearest})
    if elsewhere is not None:
        return Finding("key-elsewhere", "warning", {"key": dotted, "place": elsewhere})
    return Finding("foreign-key", "warning", {"key": dotted})


def _known_places(dialect: Dialect, file: str) -> dict[Path, Knob | Removed]:
    found: dict[Path, Knob | Removed] = {}
    for knob in (*knob_table().values(), *lab_keys().values()):
        for place in knob.places_in(dialect):
            if place.file == file:
                found[place.path] = knob
    for removed in removed_keys().values():
        for place in removed.places.get(dialect, ()):
            if place.file == file:
                found[place.path] = removed
    return found


def switch_places(dialect: Dialect) -> tuple[Place, ...]:
    return tuple(place for switch in switches().values() for place in switch.places.get(dialect, ()))


def _placed(document: Document, path: Path, finding: Finding) -> Finding:
    place = document.locate(path)
    if place is None:
        return finding.in_file(document.file)
    return replace(finding, file=document.file, line=place.line, column=place.column)


def _reading_order(finding: Finding) -> tuple[str, int, int]:
    return (finding.file or "", finding.line or 0, finding.column or 0)
