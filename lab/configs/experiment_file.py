"""Experiment files and experiments built on the page: read strictly, every finding with its line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from lab.configs.arms import Found
from lab.configs.documents import Document, open_toml
from lab.configs.experiment_build import build_experiment
from lab.configs.pair import ConfigPair
from lab.findings import Finding, LabError, has_errors
from lab.records.plan import Arm, Experiment, Limits, Slo
from lab.records.workload import Scalar, Workload


@dataclass(frozen=True, slots=True)
class Preset:
    """An experiment file of the configs folder; `question` is empty where the file cannot be read."""

    name: str
    question: str
    path: FilePath


def read_experiment(text: str, file: str, pair: ConfigPair) -> tuple[Experiment | None, tuple[Finding, ...]]:
    """The experiment and all findings, each with file, line and column; None where one of them is an error."""
    try:
        document = open_toml(text, file)
    except LabError as problem:
        return None, problem.findings
    experiment, found = build_experiment(document.data, pair, FilePath(file).stem, FilePath(file).parent)
    findings = tuple(sorted((_placed(document, each) for each in found), key=_reading_order))
    return (None if has_errors(findings) else experiment), findings


def check_file(path: FilePath, pair: ConfigPair) -> tuple[Finding, ...]:
    """All findings on one experiment file."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        return (Finding("experiment-unreadable", params={"file": str(path), "reason": str(problem)}),)
    return read_experiment(text, str(path), pair)[1]


def list_presets(config_dir: FilePath) -> tuple[Preset, ...]:
    """The experiment files of `experiments/`, by file name; never raises for a broken one."""
    return tuple(_preset(path) for path in sorted((config_dir / "experiments").glob("*.toml")))


def experiment_from_parts(
    name: str,
    question: str = "",
    repeats: int = 1,
    order: str = "balanced",
    seed: int = 0,
    workload: Workload | Mapping[str, object] | None = None,
    slo: Slo | Mapping[str, object] | None = None,
    arms: Sequence[Arm | Mapping[str, object]] = (),
    sweep: Mapping[str, Sequence[Scalar]] | None = None,
    *,
    pair: ConfigPair,
    limits: Limits | Mapping[str, object] | None = None,
) -> Experiment:
    """An experiment built on the page, by the same rules as a file. Raises a `LabError` with all errors."""
    data: dict[str, object] = {"name": name, "question": question, "repeats": repeats, "order": order, "seed": seed}
    data["arm"] = [_table(arm) for arm in arms]
    for key, part in (("workload", workload), ("slo", slo), ("limits", limits)):
        if part is not None:
            data[key] = _table(part)
    if sweep:
        data["sweep"] = {knob: list(values) for knob, values in sweep.items()}
    experiment, found = build_experiment(data, pair, name)
    errors = [finding for _, finding in found if finding.severity == "error"]
    if experiment is None or errors:
        raise LabError(*errors)
    return experiment


def _table(part: Arm | Workload | Slo | Limits | Mapping[str, object]) -> dict[str, object]:
    """As it would stand in a file: what is not set is left out."""
    if isinstance(part, Mapping):
        return dict(part)
    table = part.model_dump(exclude_none=True)
    if isinstance(part, Arm) and part.target != "engine":
        table.pop("engine", None)
    return {key: value for key, value in table.items() if value != ()}


def _placed(document: Document, found: Found) -> Finding:
    """The finding at its key, else at the nearest table above; findings on the pair keep their own place."""
    where, finding = found
    if finding.file is not None:
        return finding
    for end in range(len(where), 0, -1):
        place = document.locate(where[:end])
        if place is not None:
            return replace(finding, file=document.file, line=place.line, column=place.column)
    return replace(finding, file=document.file, line=1, column=1)


def _reading_order(finding: Finding) -> tuple[str, int, int]:
    return (finding.file or "", finding.line or 0, finding.column or 0)


def _preset(path: FilePath) -> Preset:
    try:
        data = open_toml(path.read_bytes().decode("utf-8"), str(path)).data
    except (LabError, OSError, UnicodeDecodeError):
        return Preset(path.stem, "", path)
    return Preset(str(data.get("name") or path.stem), str(data.get("question") or ""), path)
