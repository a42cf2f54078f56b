"""Two changes of one config pair brought together: key by key, so that layout and comments of the newer files stay."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from lab.configs.documents import Document, open_document
from lab.configs.knobs import File
from lab.configs.pair import ConfigPair
from lab.configs.secrets import masked
from lab.findings import LabError

Path = tuple[str, ...]
Side = Literal["theirs", "mine"]
RowKind = Literal["same", "theirs", "mine", "both", "conflict"]
FILES: tuple[File, ...] = ("settings", "config")


class Absent(Enum):
    """The value of a key that is not there."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Change:
    """One key that differs from the common start; `ABSENT` where it was not there or is gone."""

    file: File
    path: Path
    old: object
    new: object


@dataclass(frozen=True, slots=True)
class Conflict:
    """A key that both changed, differently. Path () is a whole file that one of them left unreadable."""

    file: File
    path: Path
    base: object
    theirs: object
    mine: object


@dataclass(frozen=True, slots=True)
class Merge:
    """`pair` is theirs with mine on it; what conflicts stands as chosen, else as theirs."""

    pair: ConfigPair
    theirs: tuple[Change, ...]
    mine: tuple[Change, ...]
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class MergeRow:
    """Neighbouring lines of the three texts, keys masked; without line ends."""

    kind: RowKind
    base: tuple[str, ...]
    theirs: tuple[str, ...]
    mine: tuple[str, ...]


def merge_three(
    base: ConfigPair, theirs: ConfigPair, mine: ConfigPair, choices: Mapping[tuple[File, Path], Side] | None = None
) -> Merge:
    """Both changes of `base` in one pair. `choices` decides conflicts by file and path. Never raises."""
    pair, found = theirs, [_merged_file(file, base, theirs, mine, choices or {}) for file in FILES]
    for file, merge in zip(FILES, found, strict=True):
        pair = replace(pair, **{f"{file}_text": merge.text})
    return Merge(
        pair,
        tuple(change for merge in found for change in merge.theirs),
        tuple(change for merge in found for change in merge.mine),
        tuple(conflict for merge in found for conflict in merge.conflicts),
    )


def three_way_rows(base: str, theirs: str, mine: str) -> tuple[MergeRow, ...]:
    """The three texts of one file side by side, in runs of lines that were changed by the same side."""
    texts = [masked(text).splitlines() for text in (base, theirs, mine)]
    return tuple(_rows(*texts))


@dataclass(frozen=True, slots=True)
class _FileMerge:
    text: str
    theirs: tuple[Change, ...] = ()
    mine: tuple[Change, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def _merged_file(
    file: File, base: ConfigPair, theirs: ConfigPair, mine: ConfigPair, choices: Mapping[tuple[File, Path], Side]
) -> _FileMerge:
    old, others, ours = (
        pair.settings_text if file == "settings" else pair.config_text for pair in (base, theirs, mine)
    )
    name = "settings.json" if file == "settings" else "config.toml"
    try:
        documents = [open_document(text, name) for text in (old, others, ours)]
    except LabError:
        return _by_text(file, old, others, ours, choices)
    taken, changed = _changes(file, documents[0], documents[1]), _changes(file, documents[0], documents[2])
    if others in (old, ours):
        return _FileMerge(ours, taken, changed)
    merged = _by_key(file, documents, taken, changed, choices)
    whole = _by_lines(old, others, ours)
    # lines keep comments and layout of both; the keys have the last word on what the result says
    if whole is not None and _same_keys(whole, merged.text, name):
        return replace(merged, text=whole)
    return merged


def _by_key(
    file: File,
    documents: list[Document],
    theirs: tuple[Change, ...],
    mine: tuple[Change, ...],
    choices: Mapping[tuple[File, Path], Side],
) -> _FileMerge:
    result, taken = documents[1], {change.path: change for change in theirs}
    conflicts = []
    for change in mine:
        rival = taken.get(change.path) or _rival_above(change.path, taken)
        if rival is not None and rival.new != change.new:
            conflicts.append(Conflict(file, change.path, change.old, _at(documents[1], change.path), change.new))
            if choices.get((file, change.path)) != "mine":
                continue
        try:
            result = _applied(result, change, documents[2])
        except LabError:
            conflicts.append(Conflict(file, change.path, change.old, _at(documents[1], change.path), change.new))
    return _FileMerge(result.text, theirs, mine, tuple(conflicts))


def _by_lines(base: str, theirs: str, mine: str) -> str | None:
    """The merged text where the two never changed the same run of lines."""
    pieces: list[str] = []
    for row in _rows(*(text.splitlines(keepends=True) for text in (base, theirs, mine))):
        if row.kind == "conflict":
            return None
        pieces += row.mine if row.kind == "mine" else row.theirs
    return "".join(pieces)


def _same_keys(text: str, other: str, name: str) -> bool:
    try:
        one, two = (dict(open_document(each, name).leaves()) for each in (text, other))
    except LabError:
        return False
    return one.keys() == two.keys() and all(_same(one[path], two[path]) for path in one)


def _rival_above(path: Path, taken: Mapping[Path, Change]) -> Change | None:
    """Their change of a key whose table mine goes into, or the other way round."""
    return next(
        (change for other, change in taken.items() if other[: len(path)] == path or path[: len(other)] == other), None
    )


def _applied(document: Document, change: Change, mine: Document) -> Document:
    if change.new is ABSENT:
        return document.remove(change.path)
    return document.set(change.path, change.new, mine.literal(change.path))


def _by_text(file: File, base: str, theirs: str, mine: str, choices: Mapping[tuple[File, Path], Side]) -> _FileMerge:
    """Files that cannot be read as keys: whoever changed it has it; both, and it is one conflict."""
    if theirs in (base, mine):
        return _FileMerge(mine)
    if mine == base:
        return _FileMerge(theirs)
    chosen = mine if choices.get((file, ())) == "mine" else theirs
    return _FileMerge(chosen, conflicts=(Conflict(file, (), masked(base), masked(theirs), masked(mine)),))


def _changes(file: File, old: Document, new: Document) -> tuple[Change, ...]:
    before, after = dict(old.leaves()), dict(new.leaves())
    paths = dict.fromkeys((*before, *after))
    found = [Change(file, path, before.get(path, ABSENT), after.get(path, ABSENT)) for path in paths]
    return tuple(change for change in found if not _same(change.old, change.new))


def _same(old: object, new: object) -> bool:
    return type(old) is type(new) and old == new


def _at(document: Document, path: Path) -> object:
    return document.get(path) if document.has(path) else ABSENT


def _rows(base: list[str], theirs: list[str], mine: list[str]) -> Iterator[MergeRow]:
    """Lines that all three have are the fixed points; what lies between two of them is one row."""
    at = [0, 0, 0]
    for start, their_start, my_start, length in _common(base, theirs, mine):
        yield from _between(base[at[0] : start], theirs[at[1] : their_start], mine[at[2] : my_start])
        if length:
            shared = tuple(base[start : start + length])
            yield MergeRow("same", shared, shared, shared)
        at = [start + length, their_start + length, my_start + length]


def _common(base: list[str], theirs: list[str], mine: list[str]) -> Iterator[tuple[int, int, int, int]]:
    in_theirs, in_mine = _partners(base, theirs), _partners(base, mine)
    start, length = 0, 0
    for line in range(len(base) + 1):
        both = line in in_theirs and line in in_mine
        follows = (
            both
            and length > 0
            and in_theirs[line] == in_theirs[line - 1] + 1
            and in_mine[line] == in_mine[line - 1] + 1
        )
        if length and not follows:
            yield start, in_theirs[start], in_mine[start], length
            length = 0
        if both:
            start, length = (start, length + 1) if length else (line, 1)
    yield len(base), len(theirs), len(mine), 0


def _partners(base: list[str], other: list[str]) -> dict[int, int]:
    matcher = difflib.SequenceMatcher(None, base, other, autojunk=False)
    return {block.a + step: block.b + step for block in matcher.get_matching_blocks() for step in range(block.size)}


def _between(base: list[str], theirs: list[str], mine: list[str]) -> Iterator[MergeRow]:
    if not (base or theirs or mine):
        return
    kind: RowKind = "conflict"
    if theirs == mine:
        kind = "both"
    elif mine == base:
        kind = "theirs"
    elif theirs == base:
        kind = "mine"
    yield MergeRow(kind, tuple(base), tuple(theirs), tuple(mine))
