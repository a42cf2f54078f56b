"""Hands out the requests of one measurement: numbered, built ahead as far as memory allows, ended by count or order."""

from __future__ import annotations

from collections.abc import Callable

from lab.load.connection import Exchange

AHEAD_BYTES = 64 << 20

BuildRequest = Callable[[int], bytes]


class Feed:
    def __init__(self, build: BuildRequest, count: int | None, *, first_index: int, warmup: bool = False) -> None:
        self._build = build
        self._count = count
        self._first_index = first_index
        self._warmup = warmup
        self._ahead: list[bytes] = []
        self.given = 0
        self.closed = False

    def build_ahead(self, at_most: int) -> None:
        """Build up to `at_most` requests now, so that none has to be built between two reads."""
        size = 0
        for number in range(at_most if self._count is None else min(at_most, self._count)):
            request = self._build(number)
            size += len(request)
            self._ahead.append(request)
            if size > AHEAD_BYTES:
                break
        self._ahead.reverse()

    def next(self, scheduled_ns: int | None = None) -> Exchange | None:
        """None once the count is reached or the feed was closed."""
        if self.closed or (self._count is not None and self.given >= self._count):
            return None
        number = self.given
        self.given += 1
        request = self._ahead.pop() if self._ahead else self._build(number)
        return Exchange(self._first_index + number, request, warmup=self._warmup, scheduled_ns=scheduled_ns)
