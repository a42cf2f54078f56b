"""The words that a pasted text is searched for: keys and tables of each file in each form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from lab.configs.dialects import Entry, form_keys
from lab.configs.knobs import Dialect, File, Knob

Form = tuple[File, Dialect]
FORMS: tuple[Form, ...] = (("settings", 1), ("config", 1), ("settings", 3), ("config", 3))
# words of every text: without their table they name no key
SAYS_NOTHING = {"name", "enable", "kind", "repeat", "requests", "read", "connect", "host", "port"}


@dataclass(frozen=True, slots=True)
class Grammar:
    keys: Mapping[tuple[str, ...], Entry]
    tables: frozenset[tuple[str, ...]]
    leaves: Mapping[str, tuple[tuple[str, ...], ...]]
    names: Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]]  # by their first character, the longest first

    def words_at(self, text: str, at: int) -> Iterator[tuple[str, int]]:
        """The names that stand at a place, the longest first, each with its end."""
        for word, pattern in self.names.get(text[at : at + 1], ()):
            match = pattern.match(text, at)
            if match is not None:
                yield word, match.end()


@cache
def grammar(form: Form) -> Grammar:
    keys = {path: entry for path, entry in form_keys(*form).items() if _readable(entry)}
    tables = frozenset(path[:end] for path in keys for end in range(1, len(path)))
    leaves: dict[str, tuple[tuple[str, ...], ...]] = {}
    for path in keys:
        leaves[path[-1]] = (*leaves.get(path[-1], ()), path)
    words = {*leaves, *(table[-1] for table in tables), *(".".join(path) for path in keys if len(path) > 1)}
    names: dict[str, tuple[tuple[str, re.Pattern[str]], ...]] = {}
    for word in sorted(words, key=len, reverse=True):
        names[word[0]] = (*names.get(word[0], ()), (word, _pattern(word)))
    return Grammar(keys, tables, leaves, names)


def starts(text: str) -> Iterator[int]:
    """Places where a block may begin: a known word with no other word in front of it."""
    known = (name for form in FORMS for names in grammar(form).names.values() for name in names)
    words = "|".join(dict.fromkeys(pattern.pattern for _, pattern in known))
    for match in re.finditer(rf"(?<![A-Za-z0-9_./:?=&-])(?:{words})|\[", text):
        yield match.start()


def _readable(entry: Entry) -> bool:
    return not isinstance(entry, Knob) or entry.name != "devices"


def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(re.escape(word).replace("_", "[_-]"))
