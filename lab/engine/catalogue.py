"""The flags of the installed engine, asked from its own parser and kept by release."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from lab.engine.definition import EngineDefinition, load_definition
from lab.environment import read_environment
from lab.findings import LabError, error
from lab.messages import word_finding
from lab.records.workload import Scalar

_SCRIPTS = Path(__file__).parent / "catalogues"
_VERSION_TIMEOUT_S = 30.0
_FLAGS_TIMEOUT_S = 180.0


class Flag(BaseModel):
    """One flag; `off` is the one that says no, `choices` None where any value of the type goes."""

    model_config = ConfigDict(frozen=True)

    name: str
    flag: str
    off: str | None = None
    type: str
    choices: tuple[str, ...] | None = None
    default: Scalar | None = None
    help: str = ""


class Catalogue(BaseModel):
    """All flags of one installed engine; `device` is what it was built for ("cpu", "cuda"), None where unknown."""

    model_config = ConfigDict(frozen=True)

    distribution: str
    version: str
    device: str | None = None
    flags: tuple[Flag, ...]

    def find(self, name: str) -> Flag | None:
        return next((flag for flag in self.flags if flag.name == name), None)

    def nearest(self, name: str) -> str | None:
        """The flag whose name is most like this one; None where none is."""
        found = difflib.get_close_matches(name, [flag.name for flag in self.flags], n=1, cutoff=0.6)
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class EngineVersion:
    distribution: str
    version: str


def engine_version(definition: EngineDefinition, python: Path) -> EngineVersion | None:
    """The release of the engine in this interpreter, in a fraction of a second; None where it is not installed.

    Raises `LabError` "engine-python-unusable" where the interpreter cannot be run.
    """
    answer = _ask(definition, python, ["--version"], _VERSION_TIMEOUT_S)
    return EngineVersion(answer["distribution"], answer["version"]) if answer.get("version") else None


def read_catalogue(definition: EngineDefinition, python: Path, run_dir: Path) -> Catalogue | None:
    """The flags of the engine in this interpreter: from the run directory where its release is known, else asked.

    Asking takes 10 to 20 s. None for an engine that has no way to ask. Raises `LabError` "engine-not-installed",
    "engine-python-unusable", "engine-catalogue-failed".
    """
    if definition.catalogue is None:
        return None
    version = engine_version(definition, python)
    if version is None:
        raise error("engine-not-installed", engine=definition.label, python=str(python))
    known = cached_catalogue(definition, python, run_dir)
    if known is not None and known.version == version.version and known.distribution == version.distribution:
        return known
    try:
        catalogue = Catalogue.model_validate(_ask(definition, python, [], _FLAGS_TIMEOUT_S))
    except ValidationError as problem:
        raise error("engine-catalogue-failed", python=str(python), reason=str(problem.errors()[0]["msg"])) from problem
    _keep(catalogue, _cache_file(definition, python, run_dir))
    return catalogue


def cached_catalogue(definition: EngineDefinition, python: Path, run_dir: Path) -> Catalogue | None:
    """What was asked last from this interpreter, at once and without looking at its release; None where nothing was."""
    try:
        return Catalogue.model_validate_json(_cache_file(definition, python, run_dir).read_text("utf-8"))
    except (OSError, ValidationError):
        return None


def _cache_file(definition: EngineDefinition, python: Path, run_dir: Path) -> Path:
    place = hashlib.sha256(str(python.absolute()).encode("utf-8")).hexdigest()[:12]
    return run_dir / "catalogues" / f"{definition.kind}-{place}.json"


def _keep(catalogue: Catalogue, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_text(catalogue.model_dump_json(), "utf-8")
    unfinished.replace(path)


def _ask(definition: EngineDefinition, python: Path, arguments: list[str], timeout_s: float) -> Mapping[str, Any]:
    script = _SCRIPTS / (definition.catalogue or "")
    try:
        done = subprocess.run(
            [str(python), "-W", "ignore", str(script), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except OSError as problem:
        raise error("engine-python-unusable", python=str(python), reason=problem.strerror) from problem
    except subprocess.TimeoutExpired as problem:
        raise error("engine-catalogue-failed", python=str(python), reason=f"no answer in {timeout_s:g} s") from problem
    return _last_json(done, python)


def _last_json(done: subprocess.CompletedProcess[bytes], python: Path) -> Mapping[str, Any]:
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    try:
        answer: Mapping[str, Any] = json.loads([line for line in lines if line.strip()][-1])
        return answer
    except (IndexError, ValueError):
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise error("engine-catalogue-failed", python=str(python), reason=said or f"exit {done.returncode}") from None


def main() -> int:
    """`python -m lab.engine.catalogue`: ask the installed vLLM ahead of its first start; pages show its flags."""
    env = read_environment()
    try:
        read_catalogue(load_definition("vllm", env.config_dir), env.engine_python, env.run_dir)
    except LabError as problem:
        print(*map(word_finding, problem.findings), sep="\n", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
