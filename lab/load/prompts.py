"""The prompts of one job: of an exact length, of the articles' kinds, or the user's own.

Unless a shared prefix is asked for, each prompt starts with words that no other prompt of this lab starts with, so
that a prefix cache cannot answer. They follow from seed, salt, phase and number: the same job makes the same prompts.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.findings import error
from lab.load.prompt_file import read_prompt_file
from lab.load.tokenizer import Tokenizer
from lab.load.words import MIXED_PROMPTS, WORDS
from lab.records.workload import LoadJob, Prefix

MARKER_WORDS = 8
FITTING_TRIES = 60
FILLED_TOKENS = 8
CHECKED_PROMPTS = 256
CHECKED_TOKENS = 65_536
_FEWEST_WORDS = 24
_PIECES = (" a", ".", " .", "!", "a", " x", "0")

Message = dict[str, Any]
MakePrompt = Callable[[str, int], list[Message]]


@dataclass(frozen=True, slots=True)
class Prompts:
    """`make(phase, number)` gives the messages of one request; `notes` are codes of reservations."""

    make: MakePrompt
    notes: tuple[str, ...] = ()


def build_prompts(job: LoadJob, tokenizer: Tokenizer | None, lengths: tuple[int, ...]) -> Prompts:
    """`lengths` not empty asks for exact lengths.

    Raises LabError when an exact length is asked without a number, or a prompt file cannot be used.
    """
    if job.workload.prompts == "exact" or lengths:
        return _exact(job, tokenizer, lengths)
    if job.workload.prompts == "mixed":
        ready = [[_user(text)] for text in MIXED_PROMPTS]
        return Prompts(_marked(ready, job.workload.prefix, _source(job)))
    found = read_prompt_file(Path(job.workload.prompts))
    return Prompts(_marked(found.conversations, job.workload.prefix, _source(job)), found.notes)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _source(job: LoadJob) -> Callable[[str, int], random.Random]:
    def source(phase: str, number: int) -> random.Random:
        text = f"{job.seed}\x00{job.salt}\x00{phase}\x00{number}"
        return random.Random(hashlib.blake2b(text.encode(), digest_size=16).digest())

    return source


def _marked(
    ready: list[list[Message]], prefix: Prefix, source: Callable[[str, int], random.Random]
) -> Callable[[str, int], list[Message]]:
    def make(phase: str, number: int) -> list[Message]:
        messages = ready[number % len(ready)]
        if prefix == "shared":
            return messages
        marker = f"{source(phase, number).getrandbits(64):016x}"
        first, *others = messages
        return [{**first, "content": _with_marker(first.get("content"), marker)}, *others]

    return make


def _with_marker(content: Any, marker: str) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": f"[{marker}]"}, *content]
    return f"[{marker}] {content or ''}"


def _exact(job: LoadJob, tokenizer: Tokenizer | None, lengths: tuple[int, ...]) -> Prompts:
    if not lengths:
        raise error("prompt-length-missing")
    source = _source(job)
    makers = [_ExactLength(length, tokenizer, job.workload.prefix, random.Random(job.seed)) for length in lengths]

    def make(phase: str, number: int) -> list[Message]:
        return [_user(makers[number % len(makers)].make(source(phase, number)))]

    exact = tokenizer is not None and all(maker.is_exact(source) for maker in makers)
    return Prompts(make, () if exact else ("prompt-length-approximate",))


class _ExactLength:
    """Texts of `length` tokens: unique words in front, then a tail that is the same for all.

    Every word is one token alone and after a blank, so lengths add up; the sum is checked by encoding again.
    """

    def __init__(self, length: int, tokenizer: Tokenizer | None, prefix: Prefix, seeded: random.Random) -> None:
        self._length = length
        self._tokenizer = tokenizer
        self._words = list(WORDS) if tokenizer is None else _one_token_words(tokenizer)
        self._unique = min(MARKER_WORDS, length)
        shared = length // 2 if prefix == "shared" else 0
        self._start = seeded.choices(self._words, k=shared)
        self._tail = seeded.choices(self._words, k=max(0, length - shared - self._unique))
        self._additive = False

    def is_exact(self, source: Callable[[str, int], random.Random]) -> bool:
        """Encode a sample again; where lengths do not simply add up, every prompt is fitted on its own."""
        if self._tokenizer is None:
            return False
        count = min(CHECKED_PROMPTS, max(4, CHECKED_TOKENS // self._length))
        sample = [self._plain(source("check", number)) for number in range(count)]
        self._additive = all(count == self._length for count in self._tokenizer.count_each(sample))
        if self._additive:
            return True
        return self._tokenizer.count(self.make(source("check", 0))) == self._length

    def make(self, marker: random.Random) -> str:
        text = self._plain(marker)
        if self._additive or self._tokenizer is None:
            return text
        return _fit(text.split(" "), self._length, self._tokenizer, self._words, marker)

    def _plain(self, marker: random.Random) -> str:
        unique = marker.choices(self._words, k=self._unique)
        rest = self._length - self._unique - len(self._start)
        if rest < 0:
            return " ".join([*self._start, *unique][: self._length])
        return " ".join([*self._start, *unique, *self._tail])


def _fit(words: list[str], length: int, tokenizer: Tokenizer, choice: list[str], source: random.Random) -> str:
    """Take words off or put words on at the end until the encoding has the length; the nearest where it cannot."""
    text = " ".join(words)
    best, best_distance = text, abs(tokenizer.count(text) - length)
    for _ in range(FITTING_TRIES):
        text = _filled(" ".join(words), length, tokenizer)
        missing = length - tokenizer.count(text)
        if missing == 0:
            return text
        if abs(missing) < best_distance:
            best, best_distance = text, abs(missing)
        if missing > 0:
            words = words + source.choices(choice, k=max(1, missing // 4))
        else:
            words = words[: max(1, len(words) - max(1, -missing // 4))]
    return best


def _filled(text: str, length: int, tokenizer: Tokenizer) -> str:
    """The last few tokens by small pieces, where words are too coarse; the text as it is where none fits."""
    missing = length - tokenizer.count(text)
    if not 0 < missing <= FILLED_TOKENS:
        return text
    tries = [text + piece * missing for piece in _PIECES]
    return next((each for each in tries if tokenizer.count(each) == length), text)


def _one_token_words(tokenizer: Tokenizer) -> list[str]:
    for candidates in (list(WORDS), tokenizer.vocabulary_texts(4000)):
        alone = tokenizer.count_each(candidates)
        after = tokenizer.count_each([f"{word} {word}" for word in candidates])
        single = [word for word, one, two in zip(candidates, alone, after, strict=True) if one == 1 and two == 2]
        if len(set(single)) >= _FEWEST_WORDS:
            return sorted(set(single))
    return list(WORDS)
