"""All that is known of a model before anything starts: its shape, its weights, what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.engine.model_config import ModelShape, read_shape
from lab.engine.parameters import count_parameters
from lab.engine.weight_files import Weights, read_weights
from lab.findings import Finding, Param

# number types whose tensors hold one weight an element; packed ones (GPTQ, AWQ, MXFP4) do not
_PLAIN = {"float64", "float32", "float16", "bfloat16", "F8_E4M3", "F8_E5M2"}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model. `folder` is None for one that is not on this disk; `disk_bytes` counts all files of the folder.

    `parameters` is None where neither headers nor config tell; `counted` says that it comes from the config.
    `problems` are errors where the engine could not load the model, else warnings; empty where nothing lacks.
    """

    name: str
    folder: Path | None
    shape: ModelShape
    weights: Weights
    disk_bytes: int | None = None
    parameters: int | None = None
    counted: bool = False
    problems: tuple[Finding, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all that the engine needs is in the folder."""
        return self.folder is not None and not any(each.severity == "error" for each in self.problems)


def read_model_facts(name: str, folder: Path) -> ModelFacts:
    """The facts of a model folder or file; never raises."""
    config, problem = _config(name, folder)
    weights = read_weights(folder) if folder.exists() else Weights()
    problems = (problem,) if problem is not None else _weight_problems(name, folder, weights)
    return facts_of(name, config, weights, folder, _disk_bytes(folder), problems)


def facts_of(
    name: str,
    config: Mapping[str, Any],
    weights: Weights | None = None,
    folder: Path | None = None,
    disk_bytes: int | None = None,
    problems: tuple[Finding, ...] = (),
) -> ModelFacts:
    """The facts of a config.json, with what is known of the weights."""
    shape, weights = read_shape(config), weights or Weights()
    parameters = weights.parameters if set(weights.by_type) <= _PLAIN else None
    counted = count_parameters(shape) if parameters is None else None
    return ModelFacts(
        name, folder, shape, weights, disk_bytes, parameters or counted, counted is not None, problems
    )  # fmt: skip


def _config(name: str, folder: Path) -> tuple[Mapping[str, Any], Finding | None]:
    if folder.is_file():
        return {}, None  # a single file (GGUF) carries its shape inside
    file = folder / "config.json"
    try:
        table = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        code = "model-folder-incomplete" if folder.is_dir() else "model-folder-missing"
        return {}, Finding(code, "error", {"model": name, "folder": str(folder)})
    except (OSError, ValueError) as broken:
        return {}, _broken(name, file, str(broken))
    if not isinstance(table, dict):
        return {}, _broken(name, file, "not an object")
    return table, None


def _broken(name: str, file: Path, reason: str) -> Finding:
    return Finding("model-config-broken", "error", {"model": name, "file": str(file), "reason": reason})


def _weight_problems(name: str, folder: Path, weights: Weights) -> tuple[Finding, ...]:
    params: dict[str, Param] = {"model": name, "folder": str(folder)}
    if weights.broken:
        files = ", ".join(weights.broken)
        return (Finding("model-weights-broken", "error", {**params, "files": files}),)
    if weights.missing:
        lacking = {**params, "missing": len(weights.missing), "first": weights.missing[0]}
        return (Finding("model-weights-missing", "error", lacking),)
    if weights.format is None:
        return (Finding("model-without-weights", "error", params),)
    return ()


def _disk_bytes(folder: Path) -> int | None:
    """All files below, links of a cache followed."""
    try:
        if folder.is_file():
            return folder.stat().st_size
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    except OSError:
        return None
