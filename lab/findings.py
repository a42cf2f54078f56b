"""What the lab has to say about an input: codes with parameters, worded by `lab.messages` and the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Severity = Literal["error", "warning", "advice"]
Param = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark on an input.

    An `error` prevents a launch or a run, a `warning` does not, `advice` is a hint.
    `code` is a key of `lab/messages/*.toml`; `line` and `column` count from 1 and are None where unknown.
    """

    code: str
    severity: Severity = "error"
    params: Mapping[str, Param] = field(default_factory=dict)
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def in_file(self, file: str) -> Finding:
        return replace(self, file=file)


class LabError(Exception):
    """Something the user can put right: carries one or more findings. The command line exits with 2 on it."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings
        super().__init__("; ".join(f.code for f in findings))


def error(code: str, **params: Param) -> LabError:
    """A `LabError` with one finding."""
    return LabError(Finding(code, "error", params))


def has_errors(findings: tuple[Finding, ...] | list[Finding]) -> bool:
    return any(f.severity == "error" for f in findings)
