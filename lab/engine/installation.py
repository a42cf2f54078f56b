"""Whether an engine is there: its package in an interpreter, or its program, and what to do where it is not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lab.engine.definition import EngineDefinition
from lab.environment import Environment
from lab.findings import Finding, LabError, error

_SCRIPT = Path(__file__).parent / "catalogues" / "read_parser.py"
_VERSION_TIMEOUT_S = 30.0
_FLAGS_TIMEOUT_S = 180.0


@dataclass(frozen=True, slots=True)
class EngineVersion:
    """`version` is None for a program, which is not asked; `lacking` is a module that it cannot serve without."""

    distribution: str
    version: str | None
    lacking: str | None = None


def engine_python(kind: str, env: Environment) -> Path:
    """The interpreter for a kind of engine: LAB_ENGINE_PYTHON_<KIND>, else the one for all engines.

    Engines want different releases of the same packages, so that two of them seldom share an environment.
    """
    own = env.variables.get(python_variable(kind))
    return Path(own) if own else env.engine_python


def python_variable(kind: str) -> str:
    return f"LAB_ENGINE_PYTHON_{kind.upper()}"


def find_program(definition: EngineDefinition, python: Path) -> str | None:
    """The engine's own program: beside the interpreter, else on the path; None where it has none or it is not there."""
    name = definition.installed.program
    if name is None:
        return None
    beside = python.absolute().parent / name
    return str(beside) if beside.is_file() else shutil.which(name)


def engine_version(definition: EngineDefinition, python: Path) -> EngineVersion | None:
    """The release of the engine, in a fraction of a second; None where it is not installed.

    Raises `LabError` "engine-python-unusable" where the interpreter cannot be run.
    """
    if definition.installed.program is not None:
        program = find_program(definition, python)
        return EngineVersion(program, None) if program else None
    if python.absolute() == Path(sys.executable).absolute():
        return _in_this_environment(definition)
    answer = _release(definition, python)
    if not answer.get("version"):
        return None
    return EngineVersion(answer["distribution"], answer["version"], answer.get("lacking"))


def _in_this_environment(definition: EngineDefinition) -> EngineVersion | None:
    """The same without starting an interpreter: pages ask for all engines at once."""
    needed = definition.installed
    for name in needed.distributions:
        with suppress(PackageNotFoundError):
            found = version(name)
            return EngineVersion(name, found, None if _is_there(needed.module) else needed.module)
    return None


def _is_there(module: str | None) -> bool:
    try:
        return module is None or find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def check_installed(definition: EngineDefinition, python: Path) -> tuple[Finding, ...]:
    """What forbids a launch because it is not there, with the command that installs it."""
    try:
        found = engine_version(definition, python)
    except LabError as problem:
        return problem.findings
    if found is None:
        return (not_installed(definition, python),)
    if found.lacking is not None:
        params = {"engine": definition.label, "module": found.lacking, "install": definition.installed.hint}
        return (Finding("engine-lacks-module", "error", params),)
    return ()


def not_installed(definition: EngineDefinition, python: Path) -> Finding:
    params = {
        "engine": definition.label,
        "python": str(python),
        "install": definition.installed.hint,
        "variable": python_variable(definition.kind),
    }
    if definition.installed.program is not None:
        return Finding("engine-program-missing", "error", {**params, "program": definition.installed.program})
    return Finding("engine-not-installed", "error", params)


def _release(definition: EngineDefinition, python: Path) -> Mapping[str, Any]:
    """What the interpreter says of the engine, kept until something is installed there: a start of it is slow."""
    asked, state = _question(definition), _state(python)
    return _answer(asked, python, flags=False) if state is None else _kept_answer(asked, python, state)


def _state(python: Path) -> tuple[tuple[str, int], ...] | None:
    """What changes when packages do; None where it is not known where they stand."""
    try:
        packages = sorted(python.absolute().parent.parent.glob("lib/python*/site-packages"))
        seen = tuple((str(path), path.stat().st_mtime_ns) for path in (python, *packages))
    except OSError:
        return None
    return seen if packages else None


@lru_cache(maxsize=32)
def _kept_answer(asked: str, python: Path, _state: tuple[tuple[str, int], ...]) -> Mapping[str, Any]:
    return _answer(asked, python, flags=False)


def ask(definition: EngineDefinition, python: Path, *, flags: bool) -> Mapping[str, Any]:
    """What the engine's interpreter says of the engine: its release and, with `flags`, all flags of its server.

    Raises `LabError` "engine-python-unusable", "engine-catalogue-failed".
    """
    return _answer(_question(definition), python, flags=flags)


def _question(definition: EngineDefinition) -> str:
    source = definition.catalogue
    asked = {
        "distributions": definition.installed.distributions,
        "module": definition.installed.module,
        "catalogue": source.model_dump() if source is not None else None,
    }
    return json.dumps(asked)


def _answer(asked: str, python: Path, *, flags: bool) -> Mapping[str, Any]:
    timeout_s = _FLAGS_TIMEOUT_S if flags else _VERSION_TIMEOUT_S
    arguments = [asked, *([] if flags else ["--version"])]
    try:
        done = subprocess.run(
            [str(python), "-W", "ignore", str(_SCRIPT), *arguments],
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
