"""The steps of an engine's start, read from its log as it grows."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from lab.engine.definition import PhasePattern
from lab.engine.diagnosis import clean_line

FIRST_PHASE = "launching"
_LINE_CHARACTERS = 300
# a start has some hundred; whoever writes more has said enough
_MOST_SHAPES = 10_000


class PhaseReader:
    """Follows a log; steps only go forward, as some lines come again later.

    `seen` maps each step to the second, from the launch, at which it was first seen.
    """

    def __init__(self, log_path: Path, patterns: Sequence[PhasePattern], started_ns: int) -> None:
        self._path = log_path
        self._patterns = [(phase.name, re.compile(phase.pattern)) for phase in patterns]
        self._started_ns = started_ns
        self._position = 0
        self._rest = b""
        self._reached = -1
        self.last_line = ""
        self.news = 0  # lines that differ from all earlier ones in more than their figures
        self._shapes: set[str] = set()
        self.seen: dict[str, float] = {FIRST_PHASE: 0.0}

    @property
    def phase(self) -> str:
        return FIRST_PHASE if self._reached < 0 else self._patterns[self._reached][0]

    def read(self) -> bool:
        """Read what is new; True where the step or the last line changed."""
        before = (self._reached, self.last_line)
        for line in self._new_lines():
            text = clean_line(line)
            if text.strip():
                self.last_line = text.strip()[:_LINE_CHARACTERS]
                self._count(self.last_line)
                self._match(text)
        return before != (self._reached, self.last_line)

    def _count(self, line: str) -> None:
        shape = re.sub(r"\d+", "0", line)
        if shape not in self._shapes and len(self._shapes) < _MOST_SHAPES:
            self._shapes.add(shape)
            self.news += 1

    def _match(self, line: str) -> None:
        for place in range(len(self._patterns) - 1, self._reached, -1):
            name, pattern = self._patterns[place]
            if pattern.search(line):
                self._reached = place
                self.seen.setdefault(name, (time.monotonic_ns() - self._started_ns) / 1e9)
                return

    def _new_lines(self) -> list[str]:
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._position:
                    self._position, self._rest = 0, b""  # it was cut to its limit; steps only go forward anyway
                file.seek(self._position)
                data = file.read()
        except OSError:
            return []
        self._position += len(data)
        *whole, self._rest = re.split(rb"[\r\n]+", self._rest + data)
        return [line.decode("utf-8", "replace") for line in whole]
