"""`lab probe`: the connection doctor."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lab.cli.store_access import json_option
from lab.environment import read_environment
from lab.findings import error
from lab.messages import word

if TYPE_CHECKING:
    from lab.load.doctor import Diagnosis

_SIGNS = {True: "ok  ", False: "FAIL", None: "    "}


@click.command("probe", short_help="Check a connection step by step.")
@click.option("--base-url", help="Default: the gateway of the environment or of config.toml.")
@click.option("--model", help="Default: the gateway's, else the first that the server lists.")
@click.option("--api-key-env", metavar="NAME", help="The variable that holds the key.")
@json_option
def probe(base_url: str | None, model: str | None, api_key_env: str | None, as_json: bool) -> int:
    """Check address, key, route, models, one small request, streaming and token counts of a server."""
    from lab.cli.gateway_access import find_target
    from lab.load.doctor import connection_doctor

    env = read_environment()
    target = find_target(env, base_url, model, api_key_env)
    if target.base_url is None:
        raise error("base-url-missing")
    found = connection_doctor(
        target.base_url, target.key, target.model, key_variable=target.key_variable, variables=env.variables
    )
    if as_json:
        click.echo(json.dumps(_document(found), ensure_ascii=False, indent=2))
    else:
        for step in found.steps:
            click.echo(f"{_SIGNS[step.ok]} {step.name:<10} {word(step.code, step.params)}")
    return 0 if found.ok else 1


def _document(found: Diagnosis) -> dict[str, object]:
    steps = [{**asdict(step), "text": word(step.code, step.params)} for step in found.steps]
    document: dict[str, object] = {"ok": found.ok, "steps": steps}
    report = found.report
    if report is not None:
        document |= {
            "base_url": report.base_url,
            "models": list(report.models),
            "model": report.model,
            "include_usage": report.include_usage,
            "ignore_eos": report.ignore_eos,
            "max_tokens_field": report.max_tokens_field,
            "failure": report.failure,
            "message": report.message,
            "server_kind": report.server_kind,
            "notes": list(report.notes),
        }
    return document
