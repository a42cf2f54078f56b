"""Runs of known keys with values in a text: the blocks of an article that are for the lab's two files.

A text may have lost its quotes, equals signs, colons, brackets and line breaks, so nothing of the format is relied
on: what is left is the keys that a file has in one form, their tables and the types of their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from lab.configs.dialects import Entry
from lab.configs.paste_grammar import SAYS_NOTHING, Form, grammar
from lab.configs.paste_values import ReadValue, read_after

_SKIP = re.compile(r"""[\s,;"'`]*""")
_HEADER = re.compile(r"""\[{1,2}[ \t]*["']?([A-Za-z_][\w.-]*)["']?[ \t]*\]{1,2}""")
_OPEN = re.compile(r"""["'`]?\s*[:=]?\s*\{""")
_COMMENT = re.compile(r"#|//")
_COMMENT_REACH = 240
_FOREIGN_KEY = re.compile(r"""["'`]?([A-Za-z_][\w.-]*)["'`]?[ \t]*(?:=(?!=)|:(?!/))[ \t]*""")
_FOREIGN_VALUE = re.compile(r"""\"[^"\n]*\"|'[^'\n]*'|\[[^\]\n]*\]|[^\s,;{}\[\]\x00]+""")
_GAP_WORDS = re.compile(r"[ \t]*([A-Za-z_][\w.-]*(?:[ \t]+[\w./:+-]+){0,3})[ \t]+")
_MOST_EMPTY = 40
_REQUEST_BODY = {"messages", "role", "content"}
_EXACT, _GUESSED, _UNPLACED, _TABLE = 3, 1, -1, 1


@dataclass(frozen=True, slots=True)
class Item:
    path: tuple[str, ...]
    entry: Entry
    read: ReadValue
    start: int
    key_end: int
    end: int
    reasons: tuple[str, ...]
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Leftover:
    start: int
    end: int
    reason: str


@dataclass(slots=True)
class Block:
    """What one run of text holds for one file in one form. `request`: it is the body of a single request."""

    form: Form
    start: int
    end: int
    items: list[Item] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    structure: int = 0
    request: bool = False

    @property
    def score(self) -> int:
        exact = sum(not item.reasons for item in self.items)
        guessed = len(self.items) - exact
        return exact * _EXACT + guessed * _GUESSED + self.structure * _TABLE + len(self.leftovers) * _UNPLACED

    @property
    def sure(self) -> bool:
        """Enough to be a block of configuration and no sentence that names keys."""
        exact = sum("paste-table-guessed" not in item.reasons for item in self.items)
        return exact >= 3 or (self.structure > 0 and exact >= 1)


def read_block(text: str, start: int, form: Form) -> Block | None:
    """The run that begins at `start`, read as a file of that form; None where not even its first word fits."""
    reader = _Reader(text, start, form)
    reader.run()
    return reader.block if reader.block.items else None


class _Reader:
    def __init__(self, text: str, start: int, form: Form) -> None:
        self.text = text
        self.form = form
        self.grammar = grammar(form)
        self.at = start
        self.table: tuple[str, ...] = ()
        self.block = Block(form, start, start)
        self.taken: set[tuple[str, ...]] = set()
        self.comment: str | None = None
        self.after_comment = False
        self.empty = 0  # steps since the last value
        # inside a brace that opened before the first key: where it closes, the block ends
        self.braced = re.search(r"""\{[\s"'`]*$""", text[max(0, start - 20) : start]) is not None
        self.depth = 0

    def run(self) -> None:
        while self.empty < _MOST_EMPTY and self._step():
            self.empty += 1
        self.block.end = self._closed_end()

    def _step(self) -> bool:
        self.at = self._skipped(self.at)
        here = self.text[self.at : self.at + 1]
        if here == "}":
            self.table, self.depth, self.at = self.table[:-1], self.depth - 1, self.at + 1
            return not self.braced or self.depth >= 0
        if here == "{":
            self.at += 1
            self.depth += 1
            return True
        if self._comment() or self._header():
            return True
        found = self._item(self.at)
        if found is not None:
            return self._take(found)
        return self._table_word() or self._foreign() or self._gap()

    def _skipped(self, at: int) -> int:
        match = _SKIP.match(self.text, at)
        return match.end() if match else at

    def _take(self, item: Item) -> bool:
        if item.path in self.taken:
            return False
        item = self._split(item)
        self.taken.add(item.path)
        self.empty = 0
        self.block.items.append(item)
        self.block.end = self.at = item.end
        self.table = item.path[:-1]
        self.comment, self.after_comment = None, False
        return True

    def _item(self, at: int) -> Item | None:
        """A key that may stand here, with a value of its type behind it."""
        for word, end in self.grammar.words_at(self.text, at):
            for path, reasons in self._paths(word):
                item = self._read(path, at, end, reasons)
                if item is not None and item.path not in self.taken:
                    return item
        return None

    def _paths(self, word: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Where a key of that name can belong, the surest first: this table, its whole path, the root, any table."""
        keys = self.grammar.keys
        if (*self.table, word) in keys:
            yield (*self.table, word), ()
        if "." in word:
            yield tuple(word.split(".")), ()
        if self.table and (word,) in keys:
            yield (word,), ("paste-table-guessed",)
        places = self.grammar.leaves.get(word, ())
        if len(places) == 1 and word not in SAYS_NOTHING:
            yield places[0], ("paste-table-guessed",)

    def _read(self, path: tuple[str, ...], start: int, end: int, reasons: tuple[str, ...]) -> Item | None:
        entry = self.grammar.keys[path]
        read = read_after(self.text, end, entry, path[-1], inside=bool(self.block.items))
        if read is None or _runs_on(self.text, end, read):
            return None
        unsure = ("paste-after-comment",) if self.after_comment else ()
        return Item(path, entry, read, start, end, read.end, (*reasons, *read.reasons, *unsure), self.comment)

    def _split(self, item: Item) -> Item:
        """A word that swallowed the next key gives it back, where nothing could go on behind the whole word."""
        start = item.read.word
        if start is None or self._goes_on(item.end):
            return item
        for at in range(start + 1, item.end - 1):
            following = self._item(at) if self._begins_key(at) else None
            if (following is not None and "paste-glued" not in following.reasons) or self._table_at(at) is not None:
                shorter = read_after(self.text[:at], item.key_end, item.entry, item.path[-1], inside=True)
                if shorter is not None and shorter.end == at:
                    return replace(item, read=shorter, end=at, reasons=(*item.reasons, "paste-glued"))
        return item

    def _begins_key(self, at: int) -> bool:
        return any(True for _ in self.grammar.words_at(self.text, at))

    def _goes_on(self, at: int) -> bool:
        """Whether a key, a table, a bracket or the end follows."""
        at = self._skipped(at)
        if at >= len(self.text) or self.text[at] in "}]#[\x00":
            return True
        return self._item(at) is not None or self._table_at(at) is not None

    def _header(self) -> bool:
        match = _HEADER.match(self.text, self.at)
        if match is None:
            return False
        path = tuple(match.group(1).split("."))
        if path not in self.grammar.tables:
            if self.block.items:
                self.block.leftovers.append(Leftover(match.start(), match.end(), "paste-unknown-table"))
            return False
        self._enter(path, match.end())
        return True

    def _enter(self, path: tuple[str, ...], end: int) -> None:
        self.depth += self.text[end - 1] == "{"
        self.table = path
        self.block.structure += 1
        self.block.end = self.at = end
        self.comment, self.after_comment = None, False

    def _table_word(self) -> bool:
        found = self._table_at(self.at)
        if found is None:
            return False
        self._enter(*found)
        return True

    def _table_at(self, at: int) -> tuple[tuple[str, ...], int] | None:
        """A table's name with a brace behind it, or with one of its own keys."""
        for word, end in self.grammar.words_at(self.text, at):
            for path in ((*self.table, word), (word,)):
                if path not in self.grammar.tables:
                    continue
                opened = _OPEN.match(self.text, end)
                if opened is not None:
                    return path, opened.end()
                first = self._first_key(path, self._skipped(end))
                if first is not None:
                    return path, first
        return None

    def _first_key(self, table: tuple[str, ...], at: int) -> int | None:
        """Where the table's first key stands, or the comment above it."""
        if self.text[at : at + 1] in (":", "="):
            at = self._skipped(at + 1)
        if self.text[at : at + 1] != "#":
            return at if self._is_key_of(table, at) else None
        reach = range(at, min(len(self.text), at + _COMMENT_REACH))
        return at if any(self._is_key_of(table, place) for place in reach) else None

    def _is_key_of(self, table: tuple[str, ...], at: int) -> bool:
        for word, end in self.grammar.words_at(self.text, at):
            entry = self.grammar.keys.get((*table, word))
            if entry is not None and read_after(self.text, end, entry, word, inside=True) is not None:
                return True
        return False

    def _comment(self) -> bool:
        """A comment: to the end of its line where lines are left, else to the next key."""
        mark = _COMMENT.match(self.text, self.at)
        if mark is None or not (self.block.items or self.block.structure):
            return False
        line_end = self.text.find("\n", mark.end())
        if self._own_line(mark.start()) and line_end >= 0:
            self.comment, self.at = self.text[mark.end() : line_end].strip(), line_end + 1
            return True
        limit = min(len(self.text), mark.end() + _COMMENT_REACH)
        for at in range(mark.end(), limit):
            if self.text[at] == "\n":
                self.comment, self.at = None, at + 1
                return True
            if self.text[at] in "[#" or self._begins_key(at):
                header = _HEADER.match(self.text, at)
                known = header is not None and tuple(header.group(1).split(".")) in self.grammar.tables
                if known or self.text[at] == "#" or self._next_key(at):
                    self.comment, self.at = self.text[mark.end() : at].strip(), at
                    self.after_comment = not known and self.text[at] != "#"
                    return True
        return False

    def _next_key(self, at: int) -> bool:
        item = self._item(at)
        return item is not None and "paste-glued" not in item.reasons and "paste-table-guessed" not in item.reasons

    def _own_line(self, at: int) -> bool:
        """Whether the comment's line holds at most one setting: then lines are still lines."""
        line_start = self.text.rfind("\n", 0, at) + 1
        return sum(item.start >= line_start for item in self.block.items) <= 1

    def _foreign(self) -> bool:
        """A key that no form knows, with a sign and a value: told, not placed."""
        if not (self.block.items or self.block.structure):
            return False
        key = _FOREIGN_KEY.match(self.text, self.at)
        value = None if key is None else _FOREIGN_VALUE.match(self.text, key.end())
        if key is None:
            return False
        if key.group(1) in _REQUEST_BODY:
            self.block.request = True
        if value is None:
            return False
        self.block.leftovers.append(Leftover(key.start(), value.end(), "paste-unknown-key"))
        self.block.end = self.at = value.end()
        return True

    def _gap(self) -> bool:
        """A few words that nothing knows, with a sure key behind them."""
        gap = _GAP_WORDS.match(self.text, self.at) if self.block.items else None
        if gap is None:
            return False
        if gap.group(1).split()[0] in _REQUEST_BODY:
            self.block.request = True
        for end in [
            match.end() + gap.start(1) for match in re.finditer(r"\S+\s+", gap.group()[gap.start(1) - gap.start() :])
        ]:
            item = self._item(end)
            if (item is not None and not item.reasons) or self._table_at(end) is not None:
                self.block.leftovers.append(Leftover(gap.start(1), end, "paste-unknown-key"))
                self.block.end = self.at = end
                return True
        return False

    def _closed_end(self) -> int:
        """The brackets that close behind the last value belong to the block."""
        match = re.compile(r"""["'`\s]*(?:[}\]][\s,]*)*[}\]]""").match(self.text, self.block.end)
        return match.end() if match else self.block.end


def _runs_on(text: str, key_end: int, read: ReadValue) -> bool:
    """Whether a number or truth value is the beginning of something longer (a version, a date)."""
    if isinstance(read.value, bool) or not isinstance(read.value, int | float) or read.end <= key_end:
        return False
    return re.match(r"[-./:]\d|%", text[read.end : read.end + 2]) is not None
