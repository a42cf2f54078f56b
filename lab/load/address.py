"""Where requests go: the address taken apart, and the route to it (direct or through a proxy)."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from lab.findings import error

COMPLETIONS = "/chat/completions"
_PROXY_VARIABLES = {"https": ("HTTPS_PROXY", "ALL_PROXY"), "http": ("HTTP_PROXY", "ALL_PROXY")}


@dataclass(frozen=True, slots=True)
class Address:
    """A base address; `path` has no slash at its end."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(self.scheme) else f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Route:
    """`proxy` None is the direct way; `variable` names the environment variable that asked for the proxy."""

    proxy: Address | None = None
    variable: str | None = None
    authorization: str | None = None


DIRECT = Route()


def read_address(base_url: str) -> Address:
    """Raises LabError when the text is no http or https address."""
    text = base_url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError:
        raise error("address-unreadable", address=base_url) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise error("address-unreadable", address=base_url)
    return Address(parts.scheme, _ascii_host(parts), port or _default_port(parts.scheme), _path(parts))


def find_route(address: Address, variables: Mapping[str, str], *, use_proxy: bool) -> Route:
    """Loopback is always direct: a proxy variable must not make a healthy local engine look dead."""
    if not use_proxy or address.is_loopback:
        return DIRECT
    no_proxy = _read(variables, "NO_PROXY")[1]
    if no_proxy and proxy_bypass_environment(f"{address.host}:{address.port}", {"no": no_proxy}):
        return DIRECT
    for wanted in _PROXY_VARIABLES[address.scheme]:
        name, value = _read(variables, wanted)
        if value:
            return _proxy_route(name, value)
    return DIRECT


def _proxy_route(variable: str, value: str) -> Route:
    parts = urlsplit(value if "://" in value else f"http://{value}")
    if parts.scheme != "http" or not parts.hostname:
        raise error("proxy-not-http", variable=variable, scheme=parts.scheme)
    try:
        port = parts.port or 80
    except ValueError:
        raise error("proxy-not-http", variable=variable, scheme=parts.scheme) from None
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Route(Address("http", parts.hostname, port, ""), variable, authorization)


def _read(variables: Mapping[str, str], name: str) -> tuple[str, str]:
    for spelled in (name.lower(), name):
        if variables.get(spelled):
            return spelled, variables[spelled].strip()
    return name, ""


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _ascii_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    try:
        return host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise error("address-unreadable", address=host) from None


def _path(parts: SplitResult) -> str:
    path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~-._")
    return f"{path}?{parts.query}" if parts.query else path
