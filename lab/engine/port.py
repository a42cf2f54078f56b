"""A port of the loopback address: whether it is free, and who listens on it."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import psutil

LOOPBACK = "127.0.0.1"
_COVERS_LOOPBACK = (LOOPBACK, "0.0.0.0", "::")  # noqa: S104  addresses that are read, nothing is bound to them


@dataclass(frozen=True, slots=True)
class PortOwner:
    """`pid` and `name` are None where this host does not tell."""

    pid: int | None
    name: str | None


def port_is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1 at this port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def port_owner(port: int) -> PortOwner | None:
    """Who listens on 127.0.0.1 at this port; None where nobody does."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.Error:
        return None if port_is_free(port) else PortOwner(None, None)
    for connection in connections:
        if connection.status != psutil.CONN_LISTEN or not connection.laddr:
            continue
        if connection.laddr.port == port and connection.laddr.ip in _COVERS_LOOPBACK:
            return PortOwner(connection.pid, _name(connection.pid))
    return None


def _name(pid: int | None) -> str | None:
    try:
        return None if pid is None else psutil.Process(pid).name()
    except psutil.Error:
        return None
