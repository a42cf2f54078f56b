"""A text pasted from an article: what of it belongs into the lab's two files, what was guessed, what is left over."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lab.configs.checks import PLACEHOLDER_MODEL
from lab.configs.knobs import Dialect, File, Removed
from lab.configs.pair import ConfigPair
from lab.configs.paste_blocks import Block, Item, read_block
from lab.configs.paste_clients import OtherBlock, other_blocks
from lab.configs.paste_grammar import FORMS, Form, starts
from lab.configs.positions import LOOKALIKES
from lab.configs.secrets import blanked, masked
from lab.configs.written_files import Leaf, write_file
from lab.findings import Finding, error
from lab.records.workload import Scalar

LONGEST = 100_000
_WALL = "\x00"  # stands where a block of another client was
_ASCII = str.maketrans({mark: ascii_ for mark, ascii_ in LOOKALIKES.items() if len(ascii_) == 1} | {"\ufeff": " "})
_ASCII |= {ord(mark): " " for mark, ascii_ in LOOKALIKES.items() if not ascii_}


@dataclass(frozen=True, slots=True)
class PastedValue:
    """One value for one of the two files; `start` and `end` are offsets into the pasted text.

    `reasons` are message codes that say what was guessed; none: it was understood. `literal` is a number's spelling.
    `knob` is None for a key that stands for nothing an engine has today.
    """

    file: File
    path: tuple[str, ...]
    knob: str | None
    value: object
    literal: str | None
    start: int
    end: int
    reasons: tuple[str, ...] = ()
    comment: str | None = None

    @property
    def guessed(self) -> bool:
        return bool(self.reasons)


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Text inside a block that could not be placed; keys written out are masked, `reason` is a message code."""

    start: int
    end: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class PasteResult:
    """`settings_text` and `config_text` are the rebuilt files; None where the text held nothing for one.

    `safe_text` is the pasted text with keys blanked, offsets unchanged: nothing else of it may be kept.
    """

    safe_text: str
    dialect: Dialect | None = None
    values: tuple[PastedValue, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    others: tuple[OtherBlock, ...] = ()
    notes: tuple[Finding, ...] = ()
    settings_text: str | None = None
    config_text: str | None = None

    @property
    def understood(self) -> tuple[PastedValue, ...]:
        return tuple(value for value in self.values if not value.guessed)

    @property
    def guessed(self) -> tuple[PastedValue, ...]:
        return tuple(value for value in self.values if value.guessed)


def read_paste(text: str, current: ConfigPair | None = None) -> PasteResult:
    """What a pasted text holds; `current` decides where the text alone leaves the form open.

    Nothing is written anywhere. Raises "paste-too-long".
    """
    if len(text) > LONGEST:
        raise error("paste-too-long", length=len(text), longest=LONGEST)
    plain = text.translate(_ASCII)
    others = other_blocks(plain)
    for other in others:
        plain = plain[: other.start] + _WALL * (other.end - other.start) + plain[other.end :]
    blocks = _blocks(plain, current)
    dialect = _dialect(blocks)
    used = [block for block in blocks if block.form[1] == dialect]
    values = _values(used)
    notes = [*_secret_notes(used, others, text), *_unused_notes(blocks, dialect)]
    return PasteResult(
        safe_text=blanked(text),
        dialect=dialect,
        values=values,
        unplaced=_unplaced(text, used, values),
        others=others,
        notes=tuple(notes),
        settings_text=_written("settings", values),
        config_text=_written("config", values),
    )


def replaced(pair: ConfigPair, result: PasteResult) -> ConfigPair:
    """The pair with the rebuilt files in place of its own; a file that the text said nothing of stays."""
    settings = pair.settings_text if result.settings_text is None else result.settings_text
    config = pair.config_text if result.config_text is None else result.config_text
    return replace(pair, settings_text=settings, config_text=config)


def merged(pair: ConfigPair, result: PasteResult) -> ConfigPair:
    """The pair's own files with the pasted values set: form, layout and comments of the pair stay."""
    values = [value for value in result.values if why_not_set(pair, value) is None]
    workload = {value.path[1]: value.value for value in values if value.path[0] == "workload"}
    knobs: dict[str, Scalar] = {}
    for value in values:
        if value.path[0] != "workload" and value.knob is not None and isinstance(value.value, str | int | float):
            knobs.setdefault(value.knob, value.value)
    pair = pair.with_knobs(knobs)
    return pair.with_workload(workload) if workload else pair


def why_not_set(pair: ConfigPair, value: PastedValue) -> str | None:
    """The message code of why `merged` leaves a value out; None where it sets it.

    An article's example name of a model stays out where the pair has a model: nothing could be started with it.
    """
    if value.path[0] == "workload":
        return None
    if value.knob is None or not pair.takes(value.knob):
        return "paste-no-place"
    own = pair.raw_value(value.knob) if value.value == PLACEHOLDER_MODEL else None
    return "paste-example-name" if own is not None else None


def _blocks(text: str, current: ConfigPair | None) -> list[Block]:
    sure, unsure = [], []
    end = 0
    for start in starts(text):
        if start < end:
            continue
        block = _best(text, start, current)
        if block is None or block.request:
            end = block.end if block is not None else end
            continue
        if block.sure:
            sure.append(block)
            end = block.end
        else:
            unsure.append(block)
    return sure or _apart(unsure)


def _apart(blocks: Sequence[Block]) -> list[Block]:
    """Of blocks that overlap, the first of the best."""
    chosen: list[Block] = []
    for block in sorted(blocks, key=lambda each: (-each.score, each.start)):
        if not any(other.start < block.end and block.start < other.end for other in chosen):
            chosen.append(block)
    return sorted(chosen, key=lambda each: each.start)


def _best(text: str, start: int, current: ConfigPair | None) -> Block | None:
    read = [block for form in FORMS if (block := read_block(text, start, form)) is not None]
    return max(read, key=lambda block: (block.score, _likely(text, block, current)), default=None)


def _likely(text: str, block: Block, current: ConfigPair | None) -> int:
    """Which of two equal readings: the file that the marks speak for, then the engine's side of the pair's form."""
    file, dialect = block.form
    piece = text[block.start : block.end]
    marks = 4 if ("{" in piece and file == "settings") or ("[" in piece and file == "config") else 0
    known = _known_form(current)
    return (
        marks + (2 if known is None or dialect == known else 0) + (file == ("settings" if dialect == 1 else "config"))
    )


def _known_form(current: ConfigPair | None) -> Dialect | None:
    return None if current is None else current.dialect


def _dialect(blocks: Sequence[Block]) -> Dialect | None:
    """The form of most of the text: the two files must have the same."""
    totals: dict[Dialect, int] = {}
    for block in blocks:
        totals[block.form[1]] = totals.get(block.form[1], 0) + block.score
    return max(totals, key=lambda dialect: totals[dialect], default=None)


def _values(blocks: Sequence[Block]) -> tuple[PastedValue, ...]:
    """Each place once: what comes first in the text has it."""
    found: dict[tuple[File, tuple[str, ...]], PastedValue] = {}
    for block in blocks:
        for item in block.items:
            found.setdefault((block.form[0], item.path), _value(block.form, item))
    return tuple(found.values())


def _value(form: Form, item: Item) -> PastedValue:
    gone = isinstance(item.entry, Removed)
    comment = None if item.comment is None else masked(item.comment)
    return PastedValue(
        file=form[0],
        path=item.path,
        knob=None if gone else item.entry.name,
        value=item.read.value,
        literal=item.read.literal,
        start=item.start,
        end=item.end,
        reasons=tuple(dict.fromkeys(item.reasons)),
        comment=comment,
    )


def _unplaced(text: str, blocks: Sequence[Block], values: Sequence[PastedValue]) -> tuple[Unplaced, ...]:
    kept = {(value.start, value.end) for value in values}
    safe = blanked(text)
    found = [
        Unplaced(left.start, left.end, safe[left.start : left.end], left.reason)
        for block in blocks
        for left in block.leftovers
    ]
    found += [
        Unplaced(item.start, item.end, safe[item.start : item.end], "paste-said-twice")
        for block in blocks
        for item in block.items
        if (item.start, item.end) not in kept
    ]
    return tuple(sorted(found, key=lambda each: each.start))


def _written(file: File, values: Sequence[PastedValue]) -> str | None:
    leaves = {v.path: Leaf(v.value, v.literal, v.comment) for v in values if v.file == file}
    return write_file(file, leaves) if leaves else None


def _secret_notes(blocks: Sequence[Block], others: Sequence[OtherBlock], text: str) -> Iterator[Finding]:
    lines = _line_starts(text)
    for block in blocks:
        for item in block.items:
            if item.read.secret:
                key = ".".join(item.path)
                yield Finding("paste-key-refused", "warning", {"key": key}, line=bisect.bisect(lines, item.start))
    for other in others:
        if blanked(text[other.start : other.end]) != text[other.start : other.end]:
            yield Finding(
                "paste-key-in-other", "warning", {"client": other.label}, line=bisect.bisect(lines, other.start)
            )


def _unused_notes(blocks: Sequence[Block], dialect: Dialect | None) -> Iterator[Finding]:
    for block in blocks:
        if block.form[1] != dialect:
            file, article = block.form
            yield Finding("paste-other-form", "warning", {"file": file, "article": article, "values": len(block.items)})


def _line_starts(text: str) -> list[int]:
    return [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
