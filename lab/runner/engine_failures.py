"""A failed start or a death of an engine as the failure of a trial: class, decisive line, remedies, end of the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.engine.definition import EngineDefinition
from lab.engine.diagnosis import clean_line, diagnose, read_log
from lab.engine.process import EngineProcess
from lab.engine.readiness import EngineFailed, known_facts
from lab.findings import Finding, Param
from lab.runner.outcome import TrialFailed

TAIL_LINES = 60
_TAIL_CHARACTERS = 12_000


def start_failure(problem: EngineFailed, log_path: Path, launch_id: int | None) -> TrialFailed:
    """An engine that did not become ready."""
    return _failure(problem.failure_class, problem.lines, problem.remedies, log_path, launch_id)


def death_of(
    definition: EngineDefinition, process: EngineProcess, log_path: Path, launch_id: int | None
) -> TrialFailed:
    """An engine that was ready and is gone: "engine-died", whatever its log says about the reason."""
    diagnosis = diagnose(definition, read_log(log_path), process.poll(), known_facts())
    return _failure("engine-died", diagnosis.lines, diagnosis.remedies, log_path, launch_id)


def log_tail(path: Path) -> str:
    """The last lines of a log, without colours, prefixes and keys."""
    lines = [clean_line(line.rsplit("\r", 1)[-1]) for line in read_log(path).splitlines()]
    return "\n".join([line for line in lines if line][-TAIL_LINES:])[-_TAIL_CHARACTERS:]


def _failure(
    failure: str, lines: Sequence[str], remedies: Sequence[Finding], log_path: Path, launch_id: int | None
) -> TrialFailed:
    message: dict[str, Param | list[str]] = {}
    for remedy in remedies:
        message |= remedy.params
    message |= {
        "code": f"trial-{failure}",
        "line": " ".join(lines) if lines else None,
        "log": str(log_path),
        "remedies": [remedy.code for remedy in remedies],
    }
    return TrialFailed(failure, message, log_tail(log_path), launch_id)
