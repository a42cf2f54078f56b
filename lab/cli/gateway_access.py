"""Which address, model and key a command line means: its own, else the gateway's."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lab.configs.gateway import DEFAULT_KEY_VARIABLE, GatewayConfig, gateway_config, resolve_base_url
from lab.configs.pair import read_pair
from lab.environment import Environment
from lab.findings import LabError, error


@dataclass(frozen=True, slots=True)
class Target:
    """`key_variable` None means that no key is sent; `key` is its value, never shown."""

    base_url: str | None
    model: str | None
    key_variable: str | None
    key: str | None = field(default=None, repr=False)


def find_target(env: Environment, base_url: str | None, model: str | None, key_variable: str | None) -> Target:
    """Raises LabError "key-variable-unset" when a variable was named that is not set."""
    gateway = _gateway(env)
    is_gateway = base_url is None or _same_host(base_url, gateway.base_url)
    if key_variable is not None and not env.variables.get(key_variable, "").strip():
        raise error("key-variable-unset", name=key_variable)
    variable = key_variable or (gateway.api_key_env if is_gateway else None)
    return Target(
        base_url=base_url or gateway.base_url,
        model=model or (gateway.model if is_gateway else None),
        key_variable=variable,
        key=env.variables.get(variable, "").strip() or None if variable else None,
    )


def _gateway(env: Environment) -> GatewayConfig:
    """The pair's gateway; a pair that cannot be read must not keep a command from another address."""
    try:
        return gateway_config(read_pair(env.config_dir), env.variables)
    except LabError:
        return GatewayConfig(env.gateway_base_url, DEFAULT_KEY_VARIABLE, env.gateway_model, has_key=False)


def _same_host(base_url: str, gateway: str | None) -> bool:
    if gateway is None:
        return False
    try:
        return urlsplit(resolve_base_url(base_url)).netloc == urlsplit(resolve_base_url(gateway)).netloc
    except LabError:
        return False
