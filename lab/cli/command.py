"""`lab command`: the engine command that the live config pair stands for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from lab.cli.findings_report import echo_findings, finding_json
from lab.cli.host_ahead import host_for_a_launch
from lab.cli.store_access import json_option
from lab.environment import Environment, read_environment
from lab.findings import Finding, has_errors
from lab.messages import word

if TYPE_CHECKING:
    from lab.engine.command import EngineCommand


@click.command("command", short_help="Show the engine command the live config pair stands for.")
@click.option("--engine", default="vllm", show_default=True, help="Kind of engine (configs/engines/).")
@json_option
def command(engine: str, as_json: bool) -> int:
    """Print the command as it would be run on this host, what the host changes in it, and every finding.

    The lab chooses a free port when it starts the engine; here 8000 stands for it. Exit status 2 when there is an
    error that forbids the start.
    """
    built, findings = _built(engine, read_environment())
    if as_json:
        click.echo(json.dumps(_report(built, findings), ensure_ascii=False, indent=2))
    else:
        click.echo(built.shown)
        for overlay in built.overlays:
            asked = "nothing" if overlay.asked is None else overlay.asked
            reason = word(overlay.reason_code, {"asked": overlay.asked, "used": overlay.used, "knob": overlay.knob})
            click.echo(f"overlay: {overlay.knob} = {overlay.used} instead of {asked}: {reason}", err=True)
        echo_findings(findings, err=True)
    return 2 if has_errors(findings) else 0


def _built(kind: str, env: Environment) -> tuple[EngineCommand, tuple[Finding, ...]]:
    from lab.configs.checks import check_launch
    from lab.configs.pair import read_pair
    from lab.engine.pair_command import pair_command
    from lab.engine.preflight import look_ahead

    pair = read_pair(env.config_dir)
    host = host_for_a_launch(env)
    built = pair_command(env, pair, kind, host.kind)
    ahead = look_ahead(pair, built.definition, env, host)
    memory = ahead.forecast.findings if ahead.forecast is not None else ()
    return built.command, (*check_launch(pair, kind), *built.findings, *ahead.findings, *memory)


def _report(built: EngineCommand, findings: tuple[Finding, ...]) -> dict[str, object]:
    return {
        "argv": list(built.argv),
        "shown": built.shown,
        "overlays": [
            {"knob": each.knob, "asked": each.asked, "used": each.used, "reason": each.reason_code}
            for each in built.overlays
        ],
        "findings": [finding_json(finding) for finding in findings],
    }
