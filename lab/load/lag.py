"""How late the event loop comes to its own timers: what the client may have added to every time it stamped."""

from __future__ import annotations

import asyncio
import time
from array import array

EVERY_S = 0.01
TIMER_GRAIN_NS = 1_000_000  # the loop's timers count whole milliseconds


class LagMeter:
    def __init__(self) -> None:
        self._lags: array[int] = array("q")
        self._due_ns = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._lags = array("q")
        self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def p99_ms(self) -> float | None:
        """None before the first reading; numpy's linear method is not needed for a warning sign, nearest rank is."""
        if not self._lags:
            return None
        return sorted(self._lags)[min(len(self._lags) - 1, int(len(self._lags) * 0.99))] / 1e6

    def max_ms(self) -> float | None:
        return max(self._lags) / 1e6 if self._lags else None

    def _arm(self) -> None:
        self._due_ns = time.monotonic_ns() + round(EVERY_S * 1e9)
        self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._tick)

    def _tick(self) -> None:
        self._lags.append(max(0, time.monotonic_ns() - self._due_ns - TIMER_GRAIN_NS))
        self._arm()
