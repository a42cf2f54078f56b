"""A failed start or a death of an engine as the failure of a trial: class, decisive line, remedies, end of the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab.engine.diagnosis import Diagnosis, clean_line, diagnose, read_log
from lab.engine.readiness import EngineFailed, known_facts
from lab.engine.remedies import find_remedies, to_store
from lab.findings import Param
from lab.records.workload import Scalar
from lab.runner.outcome import Message, TrialFailed

if TYPE_CHECKING:
    from lab.runner.engine_keeper import RunningEngine

TAIL_LINES = 60
_TAIL_CHARACTERS = 12_000


def start_failure(problem: EngineFailed, engine: RunningEngine) -> TrialFailed:
    """An engine that did not become ready."""
    return _failure(Diagnosis(problem.failure_class, problem.lines, problem.remedies, problem.moment), engine)


def death_of(engine: RunningEngine) -> TrialFailed:
    """An engine that was ready and is gone: "engine-died", with what its log says about the reason."""
    log = read_log(engine.log_path)
    found = diagnose(engine.request.definition, log, engine.process.poll(), known_facts())
    return _failure(found, engine, "engine-died")


def log_tail(path: Path) -> str:
    """The last lines of a log, without colours, prefixes and keys."""
    lines = [clean_line(line.rsplit("\r", 1)[-1]) for line in read_log(path).splitlines()]
    return "\n".join([line for line in lines if line][-TAIL_LINES:])[-_TAIL_CHARACTERS:]


def _failure(found: Diagnosis, engine: RunningEngine, failure: str | None = None) -> TrialFailed:
    log, launch_id = engine.log_path, engine.launch_id
    return TrialFailed(failure or found.failure_class, _message(found, engine, failure), log_tail(log), launch_id)


def _message(found: Diagnosis, engine: RunningEngine, failure: str | None) -> Message:
    """What is stored: the remedies with the values they change, computed from what this launch was given."""
    params: dict[str, Param] = {}
    for advice in found.remedies:
        params |= advice.params
    remedies = find_remedies(found, engine.command.flags, _taken_for_unset(engine))
    return {
        **params,
        "code": _code(found, failure),
        "cause": found.failure_class,
        "line": " ".join(found.lines) if found.lines else None,
        "log": str(engine.log_path),
        "remedies": to_store(remedies),
    }


def _code(found: Diagnosis, failure: str | None) -> str:
    if failure is not None:
        # the last lines of the log are no reason where the process was killed
        return "trial-engine-killed" if found.failure_class == "killed" else f"trial-{failure}"
    return f"trial-{found.failure_class}" + ("" if found.moment is None else f"-{found.moment}")


def _taken_for_unset(engine: RunningEngine) -> dict[str, Scalar | None]:
    """What the engine takes where the launch set nothing: its defaults, and the model's own context."""
    catalogue = engine.request.catalogue
    known: dict[str, Scalar | None] = {flag.name: flag.default for flag in catalogue.flags} if catalogue else {}
    known["max_model_len"] = known.get("max_model_len") or engine.request.model.max_position_embeddings
    return known
