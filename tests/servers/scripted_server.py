"""A server in a thread that answers each request with exactly the bytes, moments and endings that a test asks for."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

Ending = Literal["end", "close", "reset", "hold"]


@dataclass(frozen=True)
class Asked:
    """One request as it arrived; `number` counts the POST requests from 0."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    number: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """`steps` are (milliseconds after the request, bytes). How the body is framed and how it ends:

    `chunked` and `length` keep the connection, `until-close` does not. `end` closes the framing, `close` closes the
    socket instead, `reset` resets it, `hold` leaves everything open.
    """

    steps: tuple[tuple[float, bytes], ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    framing: Literal["chunked", "until-close", "length"] = "chunked"
    ending: Ending = "end"
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bool = False  # the steps are the whole answer, status line included


def stream(*steps: tuple[float, bytes], ending: Ending = "end", framing: str = "chunked") -> Answer:
    return Answer(steps, ending=ending, framing=framing)  # type: ignore[arg-type]


def page(body: bytes, status: int = 200, content_type: str = "application/json", **headers: str) -> Answer:
    return Answer(((0, body),), status, content_type, "length", headers=headers)


def models(*names: str) -> Answer:
    listed = [{"id": name, "object": "model", "owned_by": "test"} for name in names]
    return page(json.dumps({"object": "list", "data": listed}).encode())


class ScriptedServer:
    """`answer` says what a request gets; GET /v1/models lists `m` unless `answer_get` says otherwise."""

    def __init__(
        self,
        answer: Callable[[Asked], Answer],
        answer_get: Callable[[Asked], Answer] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.asked: list[Asked] = []
        self.wrote_ms: dict[int, list[float]] = {}  # by the number of the POST: when each step was really written
        self.sockets = 0
        self.most_sockets = 0
        self.under_way = 0
        self._answer = answer
        self._answer_get = answer_get or (
            lambda asked: models("m") if asked.path.endswith("/models") else page(b"", 404)
        )
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()

    @property
    def base_url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}/v1"

    @property
    def posts(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == "POST"]

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, sock=self._socket, ssl=self._tls)
        self._ready.set()
        await self._stop.wait()
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.sockets += 1
        self.most_sockets = max(self.most_sockets, self.sockets)
        try:
            while (asked := await self._read(reader)) is not None:
                self.under_way += 1
                try:
                    if not await self._write(asked, reader, writer):
                        break
                finally:
                    self.under_way -= 1
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.sockets -= 1
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Asked | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = first.split(" ", 2)
        asked = Asked(method, path, headers, body, len(self.posts))
        self.asked.append(asked)
        return asked

    async def _write(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """True when the connection is kept."""
        loop = asyncio.get_running_loop()
        arrived = loop.time()
        answer = self._answer(asked) if asked.method == "POST" else self._answer_get(asked)
        gone = loop.create_task(reader.read(1))
        if not answer.raw:
            writer.write(_head(answer))
        for at_ms, data in answer.steps:
            delay = arrived + at_ms / 1000 - loop.time()
            if delay > 0:
                await asyncio.wait([gone], timeout=delay)
            if gone.done():
                raise ConnectionError("the client has gone")
            self.wrote_ms.setdefault(asked.number, []).append((loop.time() - arrived) * 1000)
            chunked = answer.framing == "chunked" and not answer.raw
            writer.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        return await self._end(answer, reader, writer)

    async def _end(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if answer.ending == "hold":
            await reader.read()
            return False
        if answer.ending == "reset":
            await writer.drain()
            await asyncio.sleep(0.05)  # a reset may overtake what was written before it
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        if answer.ending == "end" and answer.framing == "chunked" and not answer.raw:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return answer.ending == "end" and answer.framing != "until-close" and not answer.raw


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} X", f"Content-Type: {answer.content_type}"]
    if answer.framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
    elif answer.framing == "length":
        lines.append(f"Content-Length: {sum(len(data) for _, data in answer.steps)}")
    else:
        lines.append("Connection: close")
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
