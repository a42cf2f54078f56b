"""Hands out the requests of one measurement: numbered, built ahead as far as memory allows, ended by count or order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from lab.load.connection import Exchange

AHEAD_BYTES = 64 << 20
OPEN_END_SECONDS = 3.0
BUILT_PER_TURN = 20

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

    async def build_ahead(self, at_most: int) -> None:
        """Build up to `at_most` requests now, so that none has to be built between two reads.

        Where the number of requests is open this takes a few seconds at most; `closed` ends it.
        """
        size = 0
        give_up = time.monotonic() + OPEN_END_SECONDS if self._count is None else None
        for number in range(at_most if self._count is None else min(at_most, self._count)):
            request = self._build(number)
            size += len(request)
            self._ahead.append(request)
            if number % BUILT_PER_TURN == 0:
                await asyncio.sleep(0)
            if size > AHEAD_BYTES or self.closed or (give_up is not None and time.monotonic() > give_up):
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
