"""The hot path: one connection, one request at a time; every read is stamped and kept, nothing is decoded."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from array import array
from collections.abc import Callable
from contextlib import suppress

import httptools

from lab.load.call import Call, End
from lab.records.states import RequestFailure

DONE_GRACE_S = 0.1  # how long the end of the HTTP answer may lag behind the stream's own [DONE]
# A server that writes in small pieces waits for the acknowledgement of each; delayed by 40 ms, that would be measured.
_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)
_DONE_LINE = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\][ \t]*[\r\n]")


class Exchange:
    """One request and all that came back, while it is under way."""

    __slots__ = (
        "checked", "connect_ns", "encoding", "end", "ended_ns", "error", "failure", "free_ns", "index", "location",
        "marks", "pieces", "request", "scheduled_ns", "sent_ns", "spilled", "status", "times", "waiter", "warmup",
    )  # fmt: skip

    def __init__(self, index: int, request: bytes, *, warmup: bool = False, scheduled_ns: int | None = None) -> None:
        self.index = index
        self.request = request
        self.warmup = warmup
        self.scheduled_ns = scheduled_ns
        self.free_ns = scheduled_ns
        self.sent_ns: int | None = None
        self.connect_ns: int | None = None
        self.status: int | None = None
        self.encoding: str | None = None
        self.location: str | None = None
        self.failure: RequestFailure | None = None
        self.error: str | None = None
        self.end: End | None = None
        self.ended_ns = 0
        self.times: array[int] = array("q")
        self.pieces: list[bytes] = []
        self.marks: tuple[str, ...] = ()
        self.checked = 0
        self.waiter: asyncio.Future[None] | None = None

    def close(self, end: End, at_ns: int) -> None:
        self.end = end
        self.ended_ns = at_ns
        self.request = b""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def call(self) -> Call:
        t0 = self.scheduled_ns if self.scheduled_ns is not None else self.sent_ns
        return Call(
            index=self.index,
            warmup=self.warmup,
            t0_ns=t0 or self.free_ns or self.ended_ns,
            ended_ns=self.ended_ns,
            end=self.end or "cancelled",
            sent_ns=self.sent_ns,
            scheduled_ns=self.scheduled_ns,
            free_ns=self.free_ns,
            connect_ns=self.connect_ns,
            status=self.status,
            encoding=self.encoding,
            location=self.location,
            failure=self.failure,
            error=self.error,
            marks=self.marks,
        )


class Connection(asyncio.Protocol):
    """Kept alive between requests where the server allows it; `on_idle` hears when it is free or gone."""

    __slots__ = (
        "_delimited", "_done_seen", "_headers_done", "_now", "_parser", "_sock", "_timer", "_tls", "_transport",
        "alive", "exchange", "idle_since_ns", "on_free", "used",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, *, tls: bool) -> None:
        self._sock = sock
        self._tls = tls  # then only the transport may write and look ahead
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._now = 0
        self._delimited = False
        self._headers_done = False
        self._done_seen = False
        self.exchange: Exchange | None = None
        self.alive = False
        self.used = False
        self.idle_since_ns = time.monotonic_ns()
        self.on_free: Callable[[Connection, Exchange], None] | None = None

    # what the pool asks

    def is_usable(self) -> bool:
        """False once the server closed it; asks the socket, since that news may not have been read yet."""
        if not self.alive or self._transport is None or self._transport.is_closing():
            return False
        if self._tls or not self.used:
            return True
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # closed, or bytes that nobody asked for

    def start(self, exchange: Exchange, timeout_s: float) -> None:
        """Send the request: t0 is taken right before its bytes leave."""
        self.exchange = exchange
        self.used = True
        self._parser = httptools.HttpResponseParser(self)
        self._delimited = self._headers_done = self._done_seen = False
        loop = asyncio.get_running_loop()
        late_s = 0.0 if exchange.scheduled_ns is None else (time.monotonic_ns() - exchange.scheduled_ns) / 1e9
        self._timer = loop.call_later(max(0.0, timeout_s - late_s), self._expire, timeout_s)
        exchange.sent_ns = time.monotonic_ns()
        self._write(exchange.request)

    def close(self, end: End | None = None) -> None:
        """Close the socket at once; `end` is how a request under way is to be called."""
        if self.exchange is not None:
            self._end(end or "cancelled", time.monotonic_ns(), keep=False)
        self.alive = False
        if self._transport is not None:
            self._transport.abort()

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self.alive = True

    def data_received(self, data: bytes) -> None:
        self._now = time.monotonic_ns()
        if self.exchange is None:  # bytes that no request asked for
            self.close()
            return
        try:
            self._parser.feed_data(data)  # type: ignore[union-attr]
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as reason:
            self._broken(reason)

    def connection_lost(self, exc: Exception | None) -> None:
        self.alive = False
        exchange = self.exchange
        if exchange is None:
            return
        if self._headers_done and not self._delimited and exc is None:
            self._end("closed", time.monotonic_ns(), keep=False)
            return
        if exc is not None:
            exchange.error = f"the connection was lost ({exc.strerror if isinstance(exc, OSError) else exc})"
        self._end("lost", time.monotonic_ns(), keep=False)

    # httptools' side

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower()):
            self._delimited = True
        elif name == b"content-encoding":
            self.exchange.encoding = value.decode("latin-1")  # type: ignore[union-attr]
        elif name == b"location":
            self.exchange.location = value.decode("latin-1")  # type: ignore[union-attr]

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()  # type: ignore[union-attr]
        if status >= 200:
            self.exchange.status = status  # type: ignore[union-attr]
            self._headers_done = True

    def on_body(self, body: bytes) -> None:
        exchange = self.exchange
        if exchange is None:
            return
        exchange.times.append(self._now)
        exchange.pieces.append(body)
        if b"[DONE]" in body and not self._done_seen and _DONE_LINE.search(body):
            self._done_seen = True
            asyncio.get_running_loop().call_later(DONE_GRACE_S, self._finish, exchange)

    def on_message_complete(self) -> None:
        if self.exchange is None or not self._headers_done:  # an interim answer (1xx)
            return
        self._end("complete", self._now, keep=bool(self._parser.should_keep_alive()))  # type: ignore[union-attr]

    # ends

    def _finish(self, exchange: Exchange) -> None:
        """The stream has said that it is over, but the server keeps the answer open."""
        if self.exchange is exchange:
            self.close("finished")

    def _expire(self, timeout_s: float) -> None:
        if self.exchange is not None:
            self.exchange.error = f"no whole answer within {timeout_s:g} s"
            self.close("timeout")

    def _broken(self, reason: Exception) -> None:
        exchange = self.exchange
        if exchange is None:
            self.close()
            return
        exchange.error = f"the answer is not HTTP ({reason})"
        self.close("lost")

    def _end(self, end: End, at_ns: int, *, keep: bool) -> None:
        exchange, self.exchange = self.exchange, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.idle_since_ns = at_ns
        if not keep:
            self.alive = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.abort()
        if exchange is not None:
            exchange.close(end, at_ns)
            if self.on_free is not None:
                self.on_free(self, exchange)

    def _write(self, request: bytes) -> None:
        """Straight into the socket where it can be: the transport would send only after this turn of the loop."""
        sent = 0
        with suppress(OSError):  # a full buffer or a lost connection: the transport deals with both
            if not self._tls:
                sent = self._sock.send(request)
            if _QUICK_ACK is not None:
                self._sock.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)
        if sent < len(request) and self._transport is not None:
            self._transport.write(request[sent:])
