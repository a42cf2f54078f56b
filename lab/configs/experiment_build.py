"""From the tables of an experiment to a checked `Experiment`: keys, values, arms, rules, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from lab.configs.arms import ArmReader, Found
from lab.configs.checks import check_lengths, check_rules, key_findings, parse_errors
from lab.configs.documents import Path
from lab.configs.knob_values import value_problem, written
from lab.configs.knobs import lab_keys, nearest_name
from lab.configs.pair import ConfigPair, validated_workload
from lab.configs.rules import VLLM
from lab.configs.too_long import TOO_LONG, too_long_findings
from lab.configs.workload_rules import workload_problems
from lab.environment import read_environment
from lab.findings import Finding, LabError, has_errors
from lab.messages import word
from lab.records.plan import Arm, Experiment, Limits, Slo
from lab.records.workload import Scalar, Workload

_PLAIN: Mapping[str, type] = {"name": str, "question": str, "repeats": int, "order": str, "seed": int}
_TABLES = ("workload", "slo", "limits", "metrics", "sweep", "arm")
_METRICS = ("sample_hz",)
_KEYS = (*_PLAIN, *_TABLES)
_Model = TypeVar("_Model", bound=BaseModel)

Arms = Sequence[tuple[Path, Arm]]


def build_experiment(
    data: Mapping[str, object], pair: ConfigPair, stem: str, folder: FilePath | None = None
) -> tuple[Experiment | None, Sequence[Found]]:
    """The experiment and what was found, with the path each finding is about; `stem` names one without a name.

    A file of prompts is looked for in `folder`, beside the pair and in the working directory.
    """
    broken = parse_errors(pair)
    if broken:
        return None, [((), finding) for finding in broken]
    found = _key_problems(data)
    found += [((), each) for each in key_findings(pair) if each.severity == "error"]
    pair = _with_metrics(data, pair, found)
    workload = _workload(data, pair, found)
    if workload is not None:
        workload = _with_prompts(workload, (folder, FilePath(pair.settings_file).parent, FilePath.cwd()), found)
    arms = _arms(data, pair, found)
    slo, limits = _part(Slo, data, "slo", found), _part(Limits, data, "limits", found)
    found += _arm_names(arms)
    if slo is None or limits is None or workload is None:
        return None, found
    found += _trial_count(data, arms, limits)
    if _broken(found):
        return None, found
    if not arms:
        return None, [*found, ((), Finding("experiment-nothing"))]
    for where, arm in arms:
        found += [(where, finding) for finding in _arm_rules(arm, pair, workload)]
    found += too_long_findings(arms, pair, workload)
    plain = {"name": stem, **{key: data[key] for key in _PLAIN if key in data}}
    texts = {"settings_text": pair.settings_text, "config_text": pair.config_text}
    parts = {"workload": workload, "slo": slo, "limits": limits, "arms": tuple(arm for _, arm in arms)}
    return _experiment({**plain, **parts, **texts}, found), found


def _experiment(fields: Mapping[str, Any], found: list[Found]) -> Experiment | None:
    try:
        return Experiment(**fields)
    except ValidationError as problem:
        found += [(tuple(each["loc"]), _invalid(each)) for each in problem.errors()]
    return None


def _key_problems(data: Mapping[str, object]) -> list[Found]:
    found: list[Found] = []
    for key, value in data.items():
        if key not in _KEYS:
            said = Finding("unknown-key", params={"key": key, "nearest": nearest_name(key, _KEYS, 0.5)})
            found.append(((key,), said))
        elif key in _PLAIN and (not isinstance(value, _PLAIN[key]) or isinstance(value, bool)):
            kind = "text" if _PLAIN[key] is str else "a whole number"
            params = {"knob": key, "kind": kind, "written": written(value)}
            found.append(((key,), Finding("wrong-type", params=params)))
        elif key in _TABLES and not isinstance(value, list if key == "arm" else Mapping):
            found.append(((key,), Finding("not-a-table", params={"key": key})))
    return found


def _workload(data: Mapping[str, object], pair: ConfigPair, found: list[Found]) -> Workload | None:
    """The file's own [workload], whole, else the pair's."""
    table = data.get("workload")
    if not isinstance(table, Mapping):
        try:
            return pair.workload()
        except LabError as problem:
            found += [((), finding) for finding in problem.findings]
            return None
    problems = [
        (("workload", *where), _misplaced(str(where[0]) if where else "", "workload", finding))
        for where, finding in workload_problems(table)
    ]
    found += problems
    if _broken(problems):
        return None
    try:
        return validated_workload(table)
    except LabError as problem:
        found += [(("workload",), finding) for finding in problem.findings]
    return None


def _with_metrics(data: Mapping[str, object], pair: ConfigPair, found: list[Found]) -> ConfigPair:
    """The pair as it is stored with the experiment: what [metrics] asks for stands in it."""
    table = data.get("metrics")
    for name, value in table.items() if isinstance(table, Mapping) else ():
        where: Path = ("metrics", name)
        if name not in _METRICS:
            params = {"key": f"metrics.{name}", "nearest": nearest_name(name, _METRICS, 0.5)}
            found.append((where, _misplaced(name, "metrics", Finding("unknown-key", params=params))))
        elif (problem := value_problem(lab_keys()[name], value)) is not None:
            found.append((where, problem))
        else:
            pair = pair.with_knobs({name: cast(Scalar, value)})
    return pair


def _with_prompts(workload: Workload, folders: Sequence[FilePath | None], found: list[Found]) -> Workload:
    """A file of prompts by its full path: the runner works in another folder."""
    if workload.prompts in ("mixed", "exact"):
        return workload
    for folder in folders:
        path = folder / workload.prompts if folder is not None else None
        if path is not None and path.is_file():
            return workload.model_copy(update={"prompts": str(path.resolve())})
    found.append((("workload", "prompts"), Finding("prompts-file-missing", params={"file": workload.prompts})))
    return workload


def _arms(data: Mapping[str, object], pair: ConfigPair, found: list[Found]) -> list[tuple[Path, Arm]]:
    reader = ArmReader(pair.dialect, _engines())
    arms: list[tuple[Path, Arm]] = []
    tables = data.get("arm")
    for index, table in enumerate(tables if isinstance(tables, list) else []):
        where: Path = ("arm", index)
        if not isinstance(table, Mapping):
            found.append((where, Finding("not-a-table", params={"key": "arm"})))
            continue
        arm = reader.arm(table, where)
        if arm is not None:
            arms.append((where, arm))
    sweep = data.get("sweep")
    if isinstance(sweep, Mapping):
        arms += [(("sweep",), arm) for arm in reader.cells(sweep, ("sweep",))]
    found += [
        (where, _misplaced(str(where[-1]), "[arm]", each) if len(where) == 3 else each) for where, each in reader.found
    ]
    return arms


def _part(model: type[_Model], data: Mapping[str, object], key: str, found: list[Found]) -> _Model | None:
    table = data.get(key, {})
    if not isinstance(table, Mapping):
        return None
    names = list(model.model_fields)
    for name in table:
        if name not in names:
            params = {"key": f"{key}.{name}", "nearest": nearest_name(name, names, 0.5)}
            found.append(((key, name), _misplaced(name, key, Finding("unknown-key", params=params))))
    try:
        return model.model_validate({name: value for name, value in table.items() if name in names}, strict=False)
    except ValidationError as problem:
        found += [((key, *each["loc"]), _invalid(each, key)) for each in problem.errors()]
    return None


def _misplaced(name: str, table: str, finding: Finding) -> Finding:
    """In TOML a key of the top that stands below a header has slipped into that table."""
    if finding.code == "unknown-key" and name in _PLAIN:
        return Finding("root-key-in-table", params={"key": name, "table": table})
    return finding


def _arm_names(arms: Arms) -> list[Found]:
    seen: set[str] = set()
    found: list[Found] = []
    for where, arm in arms:
        if arm.name in seen:
            found.append(((*where, "name"), Finding("arm-name-twice", params={"name": arm.name})))
        seen.add(arm.name)
    return found


def _trial_count(data: Mapping[str, object], arms: Arms, limits: Limits) -> list[Found]:
    repeats = data.get("repeats", 1)
    if not isinstance(repeats, int) or len(arms) * repeats <= limits.max_trials:
        return []
    params = {
        "arms": len(arms),
        "repeats": repeats,
        "trials": len(arms) * repeats,
        "max_trials": limits.max_trials,
    }
    where: Path = ("limits", "max_trials") if "limits" in data else ("sweep",) if "sweep" in data else ("repeats",)
    return [(where, Finding("too-many-trials", params=params))]


def _arm_rules(arm: Arm, pair: ConfigPair, workload: Workload) -> list[Finding]:
    """Errors of the pair as the arm makes it; warnings only where they are about a knob that the arm sets."""
    if arm.target != "engine":
        return []
    changed = pair.with_knobs(arm.set)
    lengths = [each for each in check_lengths(changed, workload) if each.code != TOO_LONG]
    problems = [*check_rules(changed, arm.engine or VLLM), *lengths]
    if arm.set.get("use_cache") is False and arm.engine == VLLM:
        problems = [each for each in problems if each.code != "use-cache-off"] + [Finding("use-cache-off")]
    telling = [each for each in problems if each.severity == "error" or _is_about(each, arm)]
    return [_of_arm(arm, finding) for finding in telling if finding.severity != "advice"]


def _is_about(finding: Finding, arm: Arm) -> bool:
    chunk = "chunk" in finding.params and "long_prefill_token_threshold" in arm.set
    return chunk or any(name in arm.set for name in finding.params)


def _of_arm(arm: Arm, finding: Finding) -> Finding:
    params = {"arm": arm.name, "rule": finding.code, "reason": word(finding.code, finding.params)}
    return Finding("arm-rule", finding.severity, params)


def _engines() -> list[str]:
    """The kinds of engine that have a definition in the folder that launches read; empty where there is none."""
    return [path.stem for path in sorted((read_environment().config_dir / "engines").glob("*.toml"))]


def _invalid(problem: Any, key: str = "") -> Finding:
    dotted = ".".join(map(str, (*((key,) if key else ()), *problem["loc"])))
    return Finding("experiment-invalid", params={"key": dotted, "reason": str(problem["msg"])})


def _broken(found: Sequence[Found]) -> bool:
    return has_errors([finding for _, finding in found])
