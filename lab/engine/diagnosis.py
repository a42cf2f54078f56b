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
# vLLM may list every architecture or option it knows
_SHOWN_CHARACTERS = 600
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PREFIX = re.compile(
    r"^\([\w\- ]*pid=\d+\)\s*(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+[\d\-]+ [\d:]+ \[[^\]]*\]\s*)?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b\s*)?"
)
_RAISED = re.compile(r"^\s*[\w.]*(?:Error|Exception|Interrupt)\b\s*:")
# a line of source in a traceback: it says the message before its values are in it
_SOURCE = re.compile(r"^\s{4,}\S")
_SECRET = re.compile(r"\b(?:sk|hf)[-_][\w\-]{6,}|(?i:(?<=bearer ))\S+")
# nothing a program does to itself: somebody, or the kernel when memory is short
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# says only that something else failed
_NOT_THE_CAUSE = re.compile(r"See root cause above|died unexpectedly|see (?:the )?stack trace", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`lines` are the decisive lines of the log, without prefixes and keys; `remedies` are advice with parameters.

    `moment` says when memory ran out: at "load", at "profiling" or "under-load"; None where that does not matter.
    """

    failure_class: str
    lines: tuple[str, ...]
    remedies: tuple[Finding, ...]
    moment: str | None = None


def diagnose(
    definition: EngineDefinition, log_text: str, exit_code: int | None, known: Mapping[str, Param] | None = None
) -> Diagnosis:
    """The first failure pattern of the definition that is found anywhere in the log; else a crash with its last words.

    `known` adds parameters for the remedies that a log does not have (`capability`, `holders`).
    """
    lines = _clean_lines(log_text)
    steps = _steps(definition, lines)
    raised = _raised(lines, definition.echo)
    for failure in definition.failure:
        if failure.unexplained and raised:
            continue
        found = _find(re.compile(failure.pattern), lines, steps, failure.during)
        if found is not None:
            place, match = found
            params = _params(failure, match, known or {})
            remedies = tuple(Finding(code, "advice", params) for code in failure.remedies)
            said = tuple(_shortened(line) for line in lines[place : place + 1 + failure.following])
            return Diagnosis(failure.failure, said, remedies, failure.moment)
    return _unexplained(lines, raised, exit_code)


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


def _steps(definition: EngineDefinition, lines: list[str]) -> list[str]:
    """The step of the start that each line stands in; steps only go forward, as some lines come again later."""
    phases = [(phase.name, re.compile(phase.pattern)) for phase in definition.ready.phase]
    reached, steps = -1, []
    for line in lines:
        later = range(len(phases) - 1, reached, -1)
        reached = next((place for place in later if phases[place][1].search(line)), reached)
        steps.append(phases[reached][0] if reached >= 0 else "")
    return steps


def _find(
    pattern: re.Pattern[str], lines: list[str], steps: list[str], during: list[str]
) -> tuple[int, re.Match[str]] | None:
    """The first line that matches; a line of source only where no other does."""
    source = None
    for place, line in enumerate(lines):
        match = pattern.search(line)
        if match is None or (during and steps[place] not in during):
            continue
        if _SOURCE.match(line) is None:
            return place, match
        source = source or (place, match)
    return source


def _params(failure: FailurePattern, match: re.Match[str], known: Mapping[str, Param]) -> dict[str, Param]:
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    params: dict[str, Param] = {**known, **groups}
    if failure.share is not None and all(name in groups for name in failure.share):
        part, whole = (float(groups[name]) for name in failure.share)
        params["share"] = math.floor(100 * part / whole) / 100 if whole else None
    return params


def _raised(lines: list[str], echo: str | None) -> list[str]:
    """The errors of the log that are causes of their own."""
    errors = [line for line in lines if _RAISED.search(line) and not _NOT_THE_CAUSE.search(line)]
    return errors if echo is None else [line for line in errors if not re.search(echo, line)]


def _last_words(lines: list[str], raised: list[str]) -> tuple[str, ...]:
    said = [line for line in lines if line.strip()]
    return tuple(_shortened(line) for line in raised[-1:] or said[-_SHOWN_LINES:])


def _shortened(line: str) -> str:
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]} …"


def _unexplained(lines: list[str], raised: list[str], exit_code: int | None) -> Diagnosis:
    """The log names no cause: killed from outside, or a crash with its last words."""
    if exit_code is None or exit_code >= 0:
        return Diagnosis(
            "crash", _last_words(lines, raised), (Finding("remedy-see-log", "advice", {"exit_code": exit_code}),)
        )
    number = -exit_code
    name = signal.Signals(number).name if number in signal.valid_signals() else str(number)
    failure = "killed" if number in _FROM_OUTSIDE else "crash"
    code = "remedy-killed" if failure == "killed" else "remedy-crashed"
    return Diagnosis(failure, _last_words(lines, raised), (Finding(code, "advice", {"signal": name}),))
