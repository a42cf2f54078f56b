"""Reading a text that may be broken: every fault at once, each with the edit that would put it right.

A fault that has no sure edit is stepped over, so that what follows is read too. Nothing is ever repaired on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lab.configs.documents import Document, open_document
from lab.configs.edits import Edit, EditedText
from lab.configs.json_repairs import json_fix
from lab.configs.positions import BOM, position
from lab.configs.toml_repairs import toml_fix
from lab.findings import Finding, LabError

_MOST_FAULTS = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """A finding with the edits of the original text that put it right; none where nothing is sure."""

    finding: Finding
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Reading:
    """`document` is the text with every fault put right or stepped over; None where it still cannot be read."""

    faults: tuple[Fault, ...]
    document: Document | None
    edited: EditedText

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(fault.finding for fault in self.faults)

    def at_origin(self, finding: Finding) -> Finding:
        """A finding on the document, placed in the text as it was."""
        return _at_origin(self.edited, finding)

    def original(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        return tuple(self.edited.original(edit) for edit in edits)


@lru_cache(maxsize=64)
def read_leniently(text: str, file: str) -> Reading:
    """All faults of a text. Never raises."""
    edited = EditedText(text)
    faults: list[Fault] = []
    for _ in range(_MOST_FAULTS):
        try:
            return Reading(tuple(faults), open_document(edited.text, file), edited)
        except LabError as problem:
            finding = problem.findings[0]
        offset = offset_of(edited.text, finding)
        fixer = json_fix if file.endswith(".json") else toml_fix
        fix = fixer(edited.text, finding, offset)
        origin = tuple(edited.original(edit) for edit in fix.edits) if fix is not None and fix.sure else ()
        faults.append(Fault(_at_origin(edited, finding), origin))
        before = edited.text
        if fix is not None:
            edited.apply(fix.edits)
        if edited.text == before:
            break
    return Reading(tuple(faults), None, edited)


def offset_of(text: str, finding: Finding) -> int:
    """The place of a finding in the text it was found in."""
    line = finding.line or 1
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    mark = 1 if start == 0 and text.startswith(BOM) else 0
    return min(len(text), start + mark + (finding.column or 1) - 1)


def _at_origin(edited: EditedText, finding: Finding) -> Finding:
    if finding.line is None:
        return finding
    origin = edited.origin(offset_of(edited.text, finding))
    place = position(edited.first, origin)
    return replace(finding, line=place.line, column=None if finding.column is None else place.column)
