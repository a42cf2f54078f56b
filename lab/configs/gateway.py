"""The gateway (TaoToken or any OpenAI-compatible address): from the files, the environment wins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lab.configs.secrets import placeholder_name
from lab.findings import Finding, LabError, error

if TYPE_CHECKING:
    from lab.configs.pair import ConfigPair

DEFAULT_KEY_VARIABLE = "TAOTOKEN_API_KEY"
_ENDPOINTS = ("/chat/completions", "/completions", "/models", "/embeddings", "/responses")
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00a0"))
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """`base_url` gets "/chat/completions" appended; `api_key_env` is the NAME of the key's variable.

    None is "not set"; `problem` says why an address that is set cannot be used.
    """

    base_url: str | None
    api_key_env: str
    model: str | None
    has_key: bool
    problem: Finding | None = None


def gateway_config(pair: ConfigPair, variables: Mapping[str, str]) -> GatewayConfig:
    """The gateway of a pair. TAOTOKEN_BASE_URL and TAOTOKEN_MODEL win over the files."""
    values = pair.lab_values()
    name = placeholder_name(values.get("gateway.api_key")) or _name(values.get("gateway.api_key_env"))
    base_url, problem = _address(variables.get("TAOTOKEN_BASE_URL") or values.get("gateway.base_url"), variables)
    model = variables.get("TAOTOKEN_MODEL") or pair.knobs().get("request_model")
    return GatewayConfig(
        base_url=base_url,
        api_key_env=name,
        model=clean_name(model) if isinstance(model, str) and model.strip() else None,
        has_key=bool(variables.get(name, "").strip()),
        problem=problem,
    )


def resolve_base_url(raw: str) -> str:
    """The address to which "/chat/completions" is appended. Raises "bad-base-url".

    Blanks, a tracking query, a final slash and a pasted endpoint path are taken off. A bare host or a path that ends
    in /api gets /v1 (the openai package appends nothing of its own); any other path is used as it is.
    """
    text = raw.translate(_INVISIBLE).strip()
    if "://" not in text:
        text = f"{_scheme_for(text)}://{text}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise error("bad-base-url", url=raw) from None
    if parts.scheme not in ("http", "https") or not host or any(mark in parts.netloc for mark in "@ \t"):
        raise error("bad-base-url", url=raw if "@" not in raw else "(with a user name)")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{'' if port is None else f':{port}'}{_path(parts.path)}"


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`${NAME}` and `{env:NAME}` by their values. Raises "variable-unset" that names the missing one."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        if not variables.get(name):
            raise error("variable-unset", name=name)
        return variables[name]

    return _VARIABLE.sub(value, text)


def clean_name(name: str) -> str:
    """A model's name without blanks around it and without invisible characters."""
    return name.translate(_INVISIBLE).strip()


def is_loopback(host: str) -> bool:
    """Whether an address or name stands for this machine only."""
    name = host.strip().strip("[]").lower()
    if name in ("localhost", ""):
        return name != ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _name(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) else DEFAULT_KEY_VARIABLE


def _address(raw: object, variables: Mapping[str, str]) -> tuple[str | None, Finding | None]:
    if not isinstance(raw, str) or not raw.strip():
        return None, None
    try:
        return resolve_base_url(expand(raw, variables)), None
    except LabError as problem:
        return None, problem.findings[0]


def _scheme_for(text: str) -> str:
    host = text.partition("/")[0]
    name = host.rpartition(":")[0] or host
    return "http" if is_loopback(name) or ":" in host else "https"


def _path(path: str) -> str:
    path = re.sub(r"/{2,}", "/", path).rstrip("/ ")
    for _ in range(2):
        ending = next((each for each in _ENDPOINTS if path.endswith(each)), "")
        path = path.removesuffix(ending).rstrip("/")
    path = re.sub(r"(/v1)+$", "/v1", path)
    return f"{path}/v1" if path in ("", "/api") else path
