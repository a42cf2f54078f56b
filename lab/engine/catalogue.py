"""The flags of the installed engine, asked from its own parser and kept by release."""

from __future__ import annotations

import difflib
import hashlib
import os
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from lab.engine.definition import EngineDefinition, list_engines, load_definition
from lab.engine.installation import ask, engine_python, engine_version, not_installed
from lab.environment import read_environment
from lab.findings import Finding, LabError, error
from lab.messages import word_finding
from lab.records.workload import Scalar

# raised where what is kept of a flag changes
_EDITION = 2


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


def read_catalogue(definition: EngineDefinition, python: Path, run_dir: Path) -> Catalogue | None:
    """The flags of the engine in this interpreter: from the run directory where its release is known, else asked.

    Asking takes 10 to 20 s. None for an engine that has no way to ask. Raises `LabError` "engine-not-installed",
    "engine-python-unusable", "engine-catalogue-failed".
    """
    if definition.catalogue is None:
        return None
    version = engine_version(definition, python)
    if version is None:
        raise LabError(not_installed(definition, python))
    known = cached_catalogue(definition, python, run_dir)
    if known is not None and known.version == version.version and known.distribution == version.distribution:
        return known
    try:
        catalogue = Catalogue.model_validate(ask(definition, python, flags=True))
    except ValidationError as problem:
        raise error("engine-catalogue-failed", python=str(python), reason=str(problem.errors()[0]["msg"])) from problem
    with suppress(OSError):  # a run directory that takes no file costs the time to ask again, not the launch
        keep_catalogue(catalogue, definition, python, run_dir)
    return catalogue


def cached_catalogue(definition: EngineDefinition, python: Path, run_dir: Path) -> Catalogue | None:
    """What was asked last from this interpreter, at once and without looking at its release; None where nothing was."""
    path = _cache_file(definition, python, run_dir)
    try:
        return _read_kept(path, path.stat().st_mtime_ns)
    except (OSError, ValidationError):
        return None


@lru_cache(maxsize=8)
def _read_kept(path: Path, _changed_ns: int) -> Catalogue:
    return Catalogue.model_validate_json(path.read_text("utf-8"))


def _cache_file(definition: EngineDefinition, python: Path, run_dir: Path) -> Path:
    place = hashlib.sha256(str(python.absolute()).encode("utf-8")).hexdigest()[:12]
    return run_dir / "catalogues" / f"{definition.kind}-{place}-{_EDITION}.json"


def keep_catalogue(catalogue: Catalogue, definition: EngineDefinition, python: Path, run_dir: Path) -> None:
    """Make it what `cached_catalogue` gives for this interpreter; readers see the old one or the new one whole."""
    path = _cache_file(definition, python, run_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_text(catalogue.model_dump_json(), "utf-8")
    unfinished.replace(path)


def main() -> int:
    """`python -m lab.engine.catalogue`: ask the installed engines ahead of their first start, for the pages."""
    env = read_environment()
    said = [_read(kind) for kind in list_engines(env.config_dir)]
    problems = [each for each in said if each is not None]
    print(*map(word_finding, problems), sep="\n", file=sys.stderr)  # noqa: T201
    return 1 if len(problems) == len(said) else 0


def _read(kind: str) -> Finding | None:
    env = read_environment()
    try:
        definition = load_definition(kind, env.config_dir)
        read_catalogue(definition, engine_python(kind, env), env.run_dir)
    except LabError as problem:
        return problem.findings[0]
    return None


if __name__ == "__main__":
    sys.exit(main())
