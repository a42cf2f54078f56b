"""Lets a few requests go per turn of the event loop, so that what arrives meanwhile is read and stamped in between."""

from __future__ import annotations

import asyncio
from collections import deque

SENDS_PER_TURN = 32


class Gate:
    def __init__(self, per_turn: int = SENDS_PER_TURN) -> None:
        self._per_turn = per_turn
        self._left = per_turn
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._renewing = False

    async def wait(self) -> None:
        """Return at once while this turn has room, else in a later turn, in order."""
        if not self._renewing:
            self._renewing = True
            asyncio.get_running_loop().call_soon(self._renew)
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        await place

    def _renew(self) -> None:
        self._left = self._per_turn
        while self._waiting and self._left > 0:
            place = self._waiting.popleft()
            if not place.done():
                self._left -= 1
                place.set_result(None)
        self._renewing = bool(self._waiting)
        if self._renewing:
            asyncio.get_running_loop().call_soon(self._renew)
