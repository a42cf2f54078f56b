"""Findings on the command line: one line each, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from lab.findings import Finding
from lab.messages import word, word_finding


def finding_line(finding: Finding) -> str:
    """`error configs/settings.json:14:5: … [rule]`"""
    return f"{finding.severity}: {' '.join(word_finding(finding).split())} [{finding.code}]"


def finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity,
        "rule": finding.code,
        "file": finding.file or finding.params.get("file"),
        "line": finding.line,
        "column": finding.column,
        "message": word(finding.code, finding.params),
        "params": dict(finding.params),
    }


def echo_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    for finding in findings:
        click.echo(finding_line(finding), err=err)
