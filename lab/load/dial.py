"""Opening connections: names, TLS, and the proxy of a gateway."""

from __future__ import annotations

import asyncio
import socket
import ssl

from lab.load.address import Address, Route
from lab.load.connection import Connection
from lab.load.failures import classify_connecting
from lab.records.states import RequestFailure

CONNECT_TIMEOUT_S = 15.0
PROXY_HEAD_LIMIT = 16_384
_Place = tuple[socket.AddressFamily, tuple[object, ...]]


class ConnectError(Exception):
    """No connection: a failure class and one line that says why."""

    def __init__(self, failure: RequestFailure, message: str) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message


class Dialer:
    """Opens connections to one address by one route; remembers which of a name's addresses answered."""

    def __init__(self, address: Address, route: Route) -> None:
        self.address = address
        self.route = route
        self._tls = _tls_context() if address.scheme == "https" else None
        self._place: _Place | None = None

    async def open(self) -> Connection:
        """Raises ConnectError."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await self._open()
        except (OSError, TimeoutError) as reason:
            raise self._failure(reason) from None

    async def _open(self) -> Connection:
        loop = asyncio.get_running_loop()
        sock = await self._connect(self.route.proxy or self.address)
        try:
            if self.route.proxy is not None and self._tls is not None:
                await self._ask_for_tunnel(sock)
            connection = Connection(sock, tls=self._tls is not None)
            await loop.create_connection(
                lambda: connection,
                sock=sock,
                ssl=self._tls,
                server_hostname=self.address.host if self._tls is not None else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    async def _connect(self, to: Address) -> socket.socket:
        loop = asyncio.get_running_loop()
        if self._place is not None:
            return await _connect_to(self._place)
        found = await loop.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM)
        reason: OSError = ConnectionRefusedError(f"{to.host} has no address")
        for family, _, _, _, place in found:
            try:
                sock = await _connect_to((family, place))
            except OSError as failed:
                reason = failed
                continue
            self._place = (family, place)
            return sock
        raise reason

    async def _ask_for_tunnel(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        host = f"[{self.address.host}]" if ":" in self.address.host else self.address.host
        lines = [f"CONNECT {host}:{self.address.port} HTTP/1.1", f"Host: {host}:{self.address.port}"]
        if self.route.authorization is not None:
            lines.append(f"Proxy-Authorization: {self.route.authorization}")
        await loop.sock_sendall(sock, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        answer = b""
        while b"\r\n\r\n" not in answer and len(answer) < PROXY_HEAD_LIMIT:
            part = await loop.sock_recv(sock, 4096)
            if not part:
                raise ConnectError("proxy", f"{self._proxy_named()} closed the connection before a tunnel stood")
            answer += part
        status = answer.split(b"\r\n", 1)[0].split(b" ")
        if len(status) < 2 or not status[1].startswith(b"2"):
            said = b" ".join(status[1:]).decode("latin-1") or "no HTTP"
            raise ConnectError("proxy", f"{self._proxy_named()} refused the tunnel: {said}")

    def _proxy_named(self) -> str:
        proxy = self.route.proxy
        where = proxy.authority if proxy is not None else "–"
        return f"the proxy {where} (from the variable {self.route.variable})"

    def _failure(self, reason: OSError | TimeoutError) -> ConnectError:
        failure = classify_connecting(reason)
        target = f"{self.address.host}:{self.address.port}"
        said = _said(reason)
        if self.route.proxy is not None and failure != "tls":
            return ConnectError("proxy", f"{self._proxy_named()} could not be used for {target}: {said}")
        return ConnectError(failure, f"no connection to {target}: {said}")


async def _connect_to(place: _Place) -> socket.socket:
    family, where = place
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


def _said(reason: BaseException) -> str:
    if isinstance(reason, TimeoutError):
        return f"no answer within {CONNECT_TIMEOUT_S:g} s"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted ({reason.verify_message})"
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed ({reason.reason or reason})"
    if isinstance(reason, ConnectionRefusedError):
        return "connection refused"
    if isinstance(reason, socket.gaierror):
        return f"the name cannot be resolved ({reason.strerror})"
    return str(getattr(reason, "strerror", None) or reason or type(reason).__name__)


def _tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
