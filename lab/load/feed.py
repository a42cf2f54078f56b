"""Hands out the requests of one measurement: numbered, built ahead as far as memory allows, ended by count or order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from lab.load.connection import Exchange
from lab.load.share import ALL_OF_IT, Share

AHEAD_BYTES = 64 << 20
OPEN_END_SECONDS = 3.0
BUILT_PER_TURN = 20

BuildRequest = Callable[[int], bytes]


class Feed:
    def __init__(
        self,
        build: BuildRequest,
        count: int | None,
        *,
        first_index: int,
        share: Share = ALL_OF_IT,
        warmup: bool = False,
        marks: tuple[str, ...] = (),
    ) -> None:
        """`count` is what this process sends; its share says which numbers these requests have."""
        self._build = build
        self._count = count
        self._first_index = first_index
        self._share = share
        self._warmup = warmup
        self._marks = marks
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
            request = self._build(self._number(number))
            size += len(request)
            self._ahead.append(request)
            if number % BUILT_PER_TURN == 0:
                await asyncio.sleep(0)
            if size > AHEAD_BYTES or self.closed or (give_up is not None and time.monotonic() > give_up):
                break
        self._ahead.reverse()

    def next(self, scheduled_ns: int | None = None) -> Exchange | None:
        """None once the count is reached or the feed was closed."""
        if self.over:
            return None
        number = self._number(self.given)
        self.given += 1
        request = self._ahead.pop() if self._ahead else self._build(number)
        exchange = Exchange(self._first_index + number, request, warmup=self._warmup, scheduled_ns=scheduled_ns)
        exchange.marks = self._marks
        return exchange

    @property
    def over(self) -> bool:
        """Closed, or all of its number given out."""
        return self.closed or (self._count is not None and self.given >= self._count)

    def _number(self, given: int) -> int:
        return self._share.number + given * self._share.of


class Ramped:
    """Hands out requests of the ramp up to the start of the clock, from then on those that are measured."""

    def __init__(self, ramp: Feed, measured: Feed, clock_ns: int) -> None:
        self._ramp = ramp
        self._measured = measured
        self._clock_ns = clock_ns

    @property
    def closed(self) -> bool:
        return self._measured.closed

    def next(self, scheduled_ns: int | None = None) -> Exchange | None:
        due_ns = time.monotonic_ns() if scheduled_ns is None else scheduled_ns
        return (self._ramp if due_ns < self._clock_ns else self._measured).next(scheduled_ns)
