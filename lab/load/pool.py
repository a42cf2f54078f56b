"""The connections of one measurement: opened ahead, handed out, watched, closed at once."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable

from lab.load.answer import Answer
from lab.load.call import End
from lab.load.connection import Connection, Exchange
from lab.load.dial import ConnectError, Dialer

OPENING_AT_ONCE = 64
WATCH_EVERY_S = 0.25
IDLE_AFTER_END_NS = 2_000_000_000  # a stream that has said its finish reason and then nothing more
STALE_AFTER_NS = 4_000_000_000  # servers drop an idle connection after 5 s; a request must not meet that moment
_SPARE_FILES = 128


class Pool:
    def __init__(self, dialer: Dialer, timeout_s: float, on_part: Callable[[Exchange], None]) -> None:
        self._dialer = dialer
        self._timeout_s = timeout_s
        self._on_part = on_part
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._watch: asyncio.TimerHandle | None = None
        self.on_done: Callable[[Exchange], None] = lambda _exchange: None
        self.stopped = False

    @property
    def in_flight(self) -> int:
        return len(self._busy)

    async def open_ahead(self, count: int) -> None:
        """Bring the number of idle connections up to `count`; what cannot be opened is left to the requests."""
        allow_open_files(count + _SPARE_FILES)
        self._idle = [connection for connection in self._idle if self._is_fresh(connection)]
        while (missing := count - len(self._idle)) > 0 and not self.stopped:
            batch = [self._dialer.open() for _ in range(min(missing, OPENING_AT_ONCE))]
            opened = await asyncio.gather(*batch, return_exceptions=True)
            connections = [connection for connection in opened if isinstance(connection, Connection)]
            for connection in connections:
                connection.on_free = self._freed
            self._idle += connections
            if len(connections) < len(batch):
                return

    def start_watching(self) -> None:
        self._watch = asyncio.get_running_loop().call_later(WATCH_EVERY_S, self._look)

    async def perform(self, exchange: Exchange) -> None:
        """One request from the moment it may go until it has ended, whichever way."""
        if exchange.free_ns is None:
            exchange.free_ns = time.monotonic_ns()
        connection = self._take() or await self._open_for(exchange)
        if connection is None:
            self.on_done(exchange)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._start(connection, exchange, waiter)
        await waiter

    def start_now(self, exchange: Exchange, waiter: asyncio.Future[None]) -> bool:
        """The same without waiting: `waiter` hears of the end. False where no open connection was left."""
        connection = self._take()
        if connection is None:
            return False
        if exchange.free_ns is None:
            exchange.free_ns = time.monotonic_ns()
        self._start(connection, exchange, waiter)
        return True

    def _start(self, connection: Connection, exchange: Exchange, waiter: asyncio.Future[None]) -> None:
        exchange.waiter = waiter
        self._busy.add(connection)
        connection.start(exchange, self._timeout_s)

    def close(self, end: End) -> None:
        """Close every socket at once; requests under way end as `end`."""
        self.stopped = True
        if self._watch is not None:
            self._watch.cancel()
        for connection in list(self._busy):
            connection.close(end)
        for connection in self._idle:
            connection.close()
        self._busy.clear()
        self._idle.clear()

    def _take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if self._is_fresh(connection):
                return connection
            connection.close()
        return None

    def _is_fresh(self, connection: Connection) -> bool:
        stale = connection.used and time.monotonic_ns() - connection.idle_since_ns > STALE_AFTER_NS
        return not stale and connection.is_usable()

    async def _open_for(self, exchange: Exchange) -> Connection | None:
        started = time.monotonic_ns()
        try:
            connection = await self._dialer.open()
        except ConnectError as reason:
            exchange.failure, exchange.error = reason.failure, reason.message
            exchange.close("failed", time.monotonic_ns())
            return None
        if self.stopped:
            connection.close()
            exchange.close("cancelled", time.monotonic_ns())
            return None
        exchange.connect_ns = time.monotonic_ns() - started
        connection.on_free = self._freed
        return connection

    def _freed(self, connection: Connection, exchange: Exchange) -> None:
        self._busy.discard(connection)
        if connection.alive and not self.stopped:
            self._idle.append(connection)
        self.on_done(exchange)

    def _look(self) -> None:
        """Four times a second: end streams that are over but held open, and write down what is long."""
        now = time.monotonic_ns()
        for connection in list(self._busy):
            exchange = connection.exchange
            if exchange is None or not exchange.times:
                continue
            self._on_part(exchange)
            seen = len(exchange.times)
            if now - exchange.times[-1] > IDLE_AFTER_END_NS and exchange.checked != seen:
                exchange.checked = seen
                if _is_over(exchange):
                    connection.close("finished")
        self._watch = asyncio.get_running_loop().call_later(WATCH_EVERY_S, self._look)


def _is_over(exchange: Exchange) -> bool:
    answer = Answer()
    for at_ns, piece in zip(exchange.times, exchange.pieces, strict=True):
        answer.feed(at_ns, piece)
    return answer.is_over


def allow_open_files(count: int) -> None:
    """Raise this process's own limit as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
