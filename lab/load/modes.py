"""How requests are released: all at once, from slots, at fixed moments, in gangs."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence

from lab.load.connection import Exchange
from lab.load.feed import Feed, Ramped
from lab.load.gate import Gate
from lab.load.pool import Pool


async def burst(feed: Feed, pool: Pool, count: int) -> None:
    """Release `count` requests at once and wait until all have ended."""
    free_ns = time.monotonic_ns()
    waiting: list[asyncio.Future[None] | asyncio.Task[None]] = []
    gate = Gate()
    for _ in range(count):
        await gate.wait()
        exchange = feed.next()
        if exchange is None:
            break
        exchange.free_ns = free_ns
        waiting.append(_release(exchange, pool))
    if waiting:
        await asyncio.wait(waiting)


async def closed_loop(feed: Feed | Ramped, pool: Pool, slots: int, starts_ns: Sequence[int] = ()) -> None:
    """Keep `slots` requests under way until the feed ends; each slot opens at its moment where these are given."""

    gate = Gate()

    async def slot(start_ns: int | None) -> None:
        if start_ns is not None:
            await sleep_until(start_ns)
        while not feed.closed:
            free_ns = time.monotonic_ns()
            await gate.wait()
            exchange = feed.next()
            if exchange is None:
                return
            exchange.free_ns = free_ns
            await pool.perform(exchange)

    await asyncio.gather(*(slot(start_ns) for start_ns in starts_ns or (None,) * slots))


async def gangs(feed: Feed, pool: Pool, size: int, count: int) -> None:
    """Release `size` requests, wait for all of them, then the next: static batching as it was."""
    left = count
    while left > 0 and not feed.closed:
        await burst(feed, pool, min(size, left))
        left -= size


async def open_loop(feed: Feed | Ramped, pool: Pool, moments_s: Sequence[float], clock_ns: int) -> None:
    """Release each request at its moment, whatever became of those before it."""
    waiting: set[asyncio.Future[None] | asyncio.Task[None]] = set()
    for moment_s in moments_s:
        due_ns = clock_ns + round(moment_s * 1e9)
        await sleep_until(due_ns)
        exchange = feed.next(due_ns)
        if exchange is None:
            break
        released = _release(exchange, pool)
        waiting.add(released)
        released.add_done_callback(waiting.discard)
    if waiting:
        await asyncio.wait(waiting)


async def interference(
    decoders: Feed,
    intruders: Feed,
    pool: Pool,
    *,
    slots: int,
    moments_s: Sequence[float],
    clock_ns: int,
    until_ns: int = 0,
) -> None:
    """Steady decoders in `slots`, long prompts thrown in at their moments.

    Over when the last long prompt is, but not before `until_ns`.
    """
    steady = asyncio.ensure_future(closed_loop(decoders, pool, slots))
    try:
        await open_loop(intruders, pool, moments_s, clock_ns)
        await sleep_until(until_ns)
    finally:
        decoders.closed = True
        steady.cancel()
        await asyncio.gather(steady, return_exceptions=True)


async def sleep_until(due_ns: int) -> None:
    while (early_ns := due_ns - time.monotonic_ns()) > 0:
        await asyncio.sleep(math.ceil(early_ns / 1e6) / 1e3)  # the loop's timers round to whole milliseconds


def _release(exchange: Exchange, pool: Pool) -> asyncio.Future[None] | asyncio.Task[None]:
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if pool.start_now(exchange, waiter):
        return waiter
    return asyncio.get_running_loop().create_task(pool.perform(exchange))
