"""Edits of a text by offsets, and where a place of the edited text stood before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters from `start` to `end` become `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that put a fault right. `sure` False: they only step over it, and are no offer to the user."""

    edits: tuple[Edit, ...]
    sure: bool = True


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits made; of two that overlap the first given counts."""
    chosen: list[Edit] = []
    for edit in edits:
        if not any(_overlap(edit, other) for other in chosen):
            chosen.append(edit)
    for edit in sorted(chosen, key=lambda each: (each.start, each.end), reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def overlapping(edits: Sequence[Edit], others: Sequence[Edit]) -> bool:
    return any(_overlap(edit, other) for edit in edits for other in others)


def edit_between(old: str, new: str) -> tuple[Edit, ...]:
    """The one edit that turns `old` into `new`; none where they are equal."""
    if old == new:
        return ()
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return (Edit(start, len(old) - end, new[start : len(new) - end]),)


class EditedText:
    """A text that is edited step by step and still knows where everything stood at first."""

    def __init__(self, text: str) -> None:
        self.first = text
        self.text = text
        self._pieces: list[tuple[int, int, int]] = [(0, len(text), 0)]  # of the text now: start, end, offset at first

    def apply(self, edits: Sequence[Edit]) -> None:
        for edit in sorted(edits, key=lambda each: (each.start, each.end), reverse=True):
            self.text = self.text[: edit.start] + edit.new + self.text[edit.end :]
            self._pieces = _replaced(self._pieces, edit)

    def origin(self, offset: int) -> int:
        """Where the character stood at first; of one that is new, where the next old one stood."""
        first = 0
        for start, end, origin in self._pieces:
            if offset < start:
                return origin
            if offset < end:
                return origin + offset - start
            first = origin + end - start
        return first

    def original(self, edit: Edit) -> Edit:
        """An edit of the text now as one of the text at first: where it cuts into new text, all that was replaced."""
        start = self._before(edit.start)
        end = start if edit.end == edit.start else self.origin(edit.end - 1) + self._is_old(edit.end - 1)
        return Edit(start, max(start, end), edit.new)

    def _before(self, offset: int) -> int:
        """Where the character stood; of one that is new, where the text that it replaced began."""
        found = 0
        for start, end, origin in self._pieces:
            if offset < start:
                return found
            found = origin + min(offset, end) - start
        return found

    def _is_old(self, offset: int) -> bool:
        return any(start <= offset < end for start, end, _ in self._pieces)


def _replaced(pieces: Sequence[tuple[int, int, int]], edit: Edit) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    shift = len(edit.new) - (edit.end - edit.start)
    for start, end, origin in pieces:
        if start < edit.start:
            found.append((start, min(end, edit.start), origin))
        if end > edit.end:
            cut = max(start, edit.end)
            found.append((cut + shift, end + shift, origin + cut - start))
    return [piece for piece in found if piece[1] > piece[0]]


def _overlap(edit: Edit, other: Edit) -> bool:
    if edit == other:
        return True
    if edit.start == edit.end or other.start == other.end:
        inside, around = (edit, other) if edit.start == edit.end else (other, edit)
        return around.start < inside.start < around.end
    return edit.start < other.end and other.start < edit.end
