"""Why an engine failed, from its log: the failure class, the lines that say so, and what to do with numbers in it."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.engine.definition import EngineDefinition, FailurePattern
from lab.findings import Finding, Param

_READ_BYTES = 2_000_000
_SHOWN_LINES = 5
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PREFIX = re.compile(
    r"^\([\w\- ]*pid=\d+\)\s*(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+[\d\-]+ [\d:]+ \[[^\]]*\]\s*)?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b\s*)?"
)
_RAISED = re.compile(r"\b\w*(?:Error|Exception|Interrupt)\b\s*:")
_SECRET = re.compile(r"\b(?:sk|hf)[-_][\w\-]{6,}|(?i:(?<=bearer ))\S+")
# says only that something else failed
_NOT_THE_CAUSE = re.compile(r"See root cause above|died unexpectedly|see the stack trace above", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`lines` are the decisive lines of the log, without prefixes and keys; `remedies` are advice with parameters."""

    failure_class: str
    lines: tuple[str, ...]
    remedies: tuple[Finding, ...]


def diagnose(
    definition: EngineDefinition, log_text: str, exit_code: int | None, known: Mapping[str, Param] | None = None
) -> Diagnosis:
    """The first failure pattern of the definition that is found anywhere in the log; else a crash with its last words.

    `known` adds parameters for the remedies that a log does not have (`capability`, `holders`).
    """
    lines = _clean_lines(log_text)
    for failure in definition.failure:
        found = _find(re.compile(failure.pattern), lines)
        if found is not None:
            place, match = found
            params = _params(failure, match, known or {})
            remedies = tuple(Finding(code, "advice", params) for code in failure.remedies)
            return Diagnosis(failure.failure, tuple(lines[place : place + 1 + failure.following]), remedies)
    return Diagnosis("crash", _last_words(lines), (_of_exit(exit_code),))


def read_log(path: Path) -> str:
    """The log, or its last 2 MB; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _READ_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def clean_line(line: str) -> str:
    """A line of a log without colours, process prefix and anything that looks like a key."""
    return _SECRET.sub("***", _PREFIX.sub("", _ANSI.sub("", line))).rstrip()


def _clean_lines(text: str) -> list[str]:
    # a progress bar writes many lines over each other
    return [clean_line(line.rsplit("\r", 1)[-1]) for line in text.replace("\r\n", "\n").split("\n")]


def _find(pattern: re.Pattern[str], lines: list[str]) -> tuple[int, re.Match[str]] | None:
    for place, line in enumerate(lines):
        match = pattern.search(line)
        if match is not None:
            return place, match
    return None


def _params(failure: FailurePattern, match: re.Match[str], known: Mapping[str, Param]) -> dict[str, Param]:
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    params: dict[str, Param] = {**known, **groups}
    if failure.share is not None and all(name in groups for name in failure.share):
        part, whole = (float(groups[name]) for name in failure.share)
        params["share"] = math.floor(100 * part / whole) / 100 if whole else None
    return params


def _last_words(lines: list[str]) -> tuple[str, ...]:
    said = [line for line in lines if line.strip()]
    raised = [line for line in said if _RAISED.search(line) and not _NOT_THE_CAUSE.search(line)]
    return tuple(raised[-1:] or said[-_SHOWN_LINES:])


def _of_exit(exit_code: int | None) -> Finding:
    if exit_code is not None and exit_code < 0:
        number = -exit_code
        name = signal.Signals(number).name if number in signal.valid_signals() else str(number)
        return Finding("remedy-killed", "advice", {"signal": name})
    return Finding("remedy-see-log", "advice", {"exit_code": exit_code})
