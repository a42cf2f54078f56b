"""An OpenAI-compatible stream server of known timing, fast enough to be no bottleneck.

    python -m lab.load.timed_server --first-ms 200 --gap-ms 20 --tokens 100

Prints its port and serves until its standard input ends. Answers a request `first-ms` after it arrived (or after one
of `--slots` became free) and one token each `gap-ms`. `GET /stats` gives, per request, when it arrived and when its
first and last token were really written (nanoseconds of the monotonic clock), and the most sockets open at once.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import resource
import socket
import sys
import time
from collections import deque
from heapq import heappop, heappush
from typing import Any, cast

import orjson
import uvloop

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
ENVELOPE = b'data: {"id":"chatcmpl-0f1e2d3c4b5a69788796a5b4","object":"chat.completion.chunk","created":1700000000,'


def framed(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def chunk(delta: bytes, finish: bytes = b"null") -> bytes:
    return framed(
        ENVELOPE
        + b'"model":"m","choices":[{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}]}\n\n' % (delta, finish)
    )


class Stream:
    __slots__ = ("arrived_ns", "connection", "first_ns", "last_ns", "next", "started_ns", "tokens")

    def __init__(self, connection: Connection, tokens: int) -> None:
        self.connection = connection
        self.tokens = tokens
        self.arrived_ns = time.monotonic_ns()
        self.started_ns = 0
        self.first_ns = 0
        self.last_ns = 0
        self.next = 0


class Server:
    def __init__(self, first_ms: float, gap_ms: float, tokens: int, slots: int | None) -> None:
        self.first_ns = round(first_ms * 1e6)
        self.gap_ns = round(gap_ms * 1e6)
        self.tokens = tokens
        self.slots = slots
        self.running = 0
        self.waiting: deque[Stream] = deque()
        self.due: list[tuple[int, int, Stream]] = []
        self.serial = 0
        self.log: list[Stream] = []
        self.sockets = self.most_sockets = self.lost = 0
        self.timer: asyncio.TimerHandle | None = None
        self.words = [chunk(b'{"content":" w%d"}' % number) for number in range(512)]

    def arrive(self, connection: Connection, body: dict[str, Any]) -> None:
        asked = body.get("max_tokens") or body.get("max_completion_tokens")
        stream = Stream(connection, min(asked or self.tokens, self.tokens))
        connection.stream = stream
        self.log.append(stream)
        if self.slots is None or self.running < self.slots:
            self.start(stream)
        else:
            self.waiting.append(stream)

    def start(self, stream: Stream) -> None:
        self.running += 1
        now = time.monotonic_ns() if self.slots is not None else stream.arrived_ns
        stream.started_ns = now
        self.plan(now + self.first_ns, stream)

    def plan(self, at_ns: int, stream: Stream) -> None:
        self.serial += 1
        heappush(self.due, (at_ns, self.serial, stream))
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(0.001, self.turn)

    def turn(self) -> None:
        now = time.monotonic_ns()
        while self.due and self.due[0][0] <= now:
            at_ns, _, stream = heappop(self.due)
            self.write(stream)
            if stream.next < stream.tokens and stream.connection.stream is stream:
                self.serial += 1
                heappush(self.due, (at_ns + self.gap_ns, self.serial, stream))
        self.timer = asyncio.get_running_loop().call_later(0.001, self.turn) if self.due else None

    def write(self, stream: Stream) -> None:
        connection = stream.connection
        if connection.stream is not stream:
            return
        data = self.words[stream.next & 511]
        if stream.next == 0:
            data = HEAD + chunk(b'{"role":"assistant","content":""}') + data
        stream.next += 1
        if stream.next == stream.tokens:
            usage = b'{"prompt_tokens":16,"completion_tokens":%d,"total_tokens":%d}' % (
                stream.tokens,
                stream.tokens + 16,
            )
            data += chunk(b"{}", b'"length"') + framed(ENVELOPE + b'"model":"m","choices":[],"usage":%b}\n\n' % usage)
            data += framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        stream.last_ns = time.monotonic_ns()
        stream.first_ns = stream.first_ns or stream.last_ns
        connection.send(data)
        if stream.next == stream.tokens:
            connection.stream = None
            self.leave()

    def leave(self) -> None:
        self.running -= 1
        while self.waiting and (self.slots is None or self.running < self.slots):
            stream = self.waiting.popleft()
            if stream.connection.stream is stream:
                self.start(stream)

    def drop(self, stream: Stream) -> None:
        self.lost += 1
        if stream.started_ns:
            self.leave()

    def stats(self) -> bytes:
        log = [[s.arrived_ns, s.first_ns, s.last_ns, s.next] for s in self.log]
        found = {"log": log, "most_sockets": self.most_sockets, "sockets": self.sockets, "running": self.running}
        return orjson.dumps({**found, "waiting": len(self.waiting), "lost": self.lost})


class Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.rest = b""
        self.stream: Stream | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)
        self.fd = transport.get_extra_info("socket").fileno()
        self.server.sockets += 1
        self.server.most_sockets = max(self.server.most_sockets, self.server.sockets)

    def connection_lost(self, _exc: Exception | None) -> None:
        self.server.sockets -= 1
        stream, self.stream = self.stream, None
        if stream is not None:
            self.server.drop(stream)

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.rest += data
        head, mark, body = self.rest.partition(b"\r\n\r\n")
        if not mark:
            return
        lower = head.lower()
        at = lower.find(b"content-length:")
        length = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(body) < length:
            return
        self.rest = body[length:]
        if head.startswith(b"POST"):
            self.server.arrive(self, orjson.loads(body[:length]))
        else:
            self.answer(head.split(b" ", 2)[1])

    def answer(self, path: bytes) -> None:
        body = orjson.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]})
        if path.startswith(b"/stats"):
            body = self.server.stats()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)


async def serve(arguments: argparse.Namespace) -> None:
    server = Server(arguments.first_ms, arguments.gap_ms, arguments.tokens, arguments.slots)
    loop = asyncio.get_running_loop()
    listener = socket.create_server(("127.0.0.1", arguments.port), backlog=4096)
    await loop.create_server(lambda: Connection(server), sock=listener, backlog=4096)
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    gc.freeze()
    gc.disable()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), lambda: ended.set() if not os.read(sys.stdin.fileno(), 4096) else None)
    await ended.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--first-ms", type=float, default=200.0)
    parser.add_argument("--gap-ms", type=float, default=20.0)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--slots", type=int)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
