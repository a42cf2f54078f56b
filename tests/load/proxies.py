"""An HTTP proxy in a thread that opens tunnels to one local port, whatever name is asked for."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class TunnelProxy:
    def __init__(self, port: int) -> None:
        self.asked: list[str] = []
        self.refuse_with: str | None = None
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._tunnel, args=(client,), daemon=True).start()

    def _tunnel(self, client: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            part = client.recv(4096)
            if not part:
                return
            head += part
        self.asked.append(head.decode("latin-1"))
        if self.refuse_with is not None:
            client.sendall(f"HTTP/1.1 {self.refuse_with}\r\n\r\n".encode())
            client.close()
            return
        server = socket.create_connection(("127.0.0.1", self._target))
        self._sockets.append(server)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        threading.Thread(target=_pump, args=(server, client), daemon=True).start()
        _pump(client, server)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
