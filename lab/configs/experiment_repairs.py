"""What is offered for an experiment file: faults put right, keys of the top moved back there, names respelled."""

from __future__ import annotations

from collections.abc import Iterable

from lab.configs.documents import Document, Path
from lab.configs.edits import Edit, apply_edits, edit_between, overlapping
from lab.configs.reading import read_leniently
from lab.findings import Finding, LabError

Offer = tuple[Finding, tuple[Edit, ...]]


def experiment_offers(text: str, file: str, findings: Iterable[Finding]) -> tuple[Offer, ...]:
    """Findings that can be put right, with edits of the text. Never raises."""
    reading = read_leniently(text, file)
    found: list[Offer] = [(fault.finding, fault.edits) for fault in reading.faults if fault.edits]
    if reading.document is None or reading.faults:
        return tuple(found)
    document = reading.document
    places = {(place.line, place.column): path for path in _keys(document) if (place := document.locate(path))}
    for finding in findings:
        path = places.get((finding.line or 0, finding.column or 0)) if finding.file == file else None
        edits = _edits(document, finding, path) if path is not None else ()
        if edits:
            found.append((finding, edits))
    return tuple(found)


def with_offers(text: str, offers: Iterable[Offer]) -> str:
    """The text with the offers taken; of two that touch the same characters the first counts."""
    taken: list[Edit] = []
    for _, edits in offers:
        if not overlapping(edits, taken):
            taken += edits
    return apply_edits(text, taken)


def _keys(document: Document) -> list[Path]:
    """Every key that stands in a line of its own, in arrays of tables too."""
    found: list[Path] = []
    stack: list[tuple[Path, object]] = [((), document.get(()))]
    while stack:
        path, value = stack.pop()
        if path and document.span(path) is not None:
            found.append(path)
        if isinstance(value, dict):
            stack += [((*path, key), below) for key, below in value.items()]
        elif isinstance(value, list):
            stack += [((*path, index), below) for index, below in enumerate(value)]
    return found


def _edits(document: Document, finding: Finding, path: Path) -> tuple[Edit, ...]:
    if finding.code == "root-key-in-table":
        return _to_the_top(document, path)
    nearest = finding.params.get("nearest")
    if finding.code in ("unknown-key", "unknown-knob") and isinstance(nearest, str):
        return _renamed(document, path, nearest.rpartition(".")[2] if finding.code == "unknown-key" else nearest)
    if finding.code in ("out-of-range", "not-a-choice") and isinstance(nearest, str | int | float):
        return edit_between(document.text, document.set(path, nearest).text)
    return ()


def _to_the_top(document: Document, path: Path) -> tuple[Edit, ...]:
    if document.has(path[-1:]):
        return ()
    try:
        added = document.set(path[-1:], document.get(path), document.literal(path)).text
        taken = document.remove(path).text
    except LabError:
        return ()
    edits = (*edit_between(document.text, taken), *edit_between(document.text, added))
    return () if overlapping(edits[:1], edits[1:]) else edits


def _renamed(document: Document, path: Path, name: str) -> tuple[Edit, ...]:
    span = document.span(path)
    if span is None or document.has((*path[:-1], name)) or not name.replace("_", "").replace(".", "").isalnum():
        return ()
    old = str(path[-1])
    if not document.text.startswith(old, span[0]):
        return ()
    return (Edit(span[0], span[0] + len(old), name),)
