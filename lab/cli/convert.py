"""`lab convert`: the live config pair in the other article's form."""

from __future__ import annotations

import click

from lab.cli.findings_report import finding_json
from lab.cli.pair_saving import dry_run_option, note_option, report_change, save
from lab.cli.store_access import json_option
from lab.configs.convert import convert
from lab.configs.fresh_findings import fresh_findings
from lab.configs.knobs import Dialect
from lab.configs.pair import diff_pair, read_pair
from lab.environment import read_environment
from lab.findings import has_errors


@click.command("convert", short_help="Turn the config pair into the other article's form.")
@click.option(
    "--to", "form", type=click.Choice(["1", "3"]), help="The article whose form is wanted; default the other."
)
@note_option
@dry_run_option
@json_option
def convert_pair(form: str | None, note: str, dry_run: bool, as_json: bool) -> int:
    """Convert the live settings.json and config.toml; what has no counterpart is listed.

    In article 1's form settings.json is the engine's side, in article 3's config.toml is. The old form is kept as a
    version: `lab restore` puts it back. Exit status 2 when the result has an error that was not there before.
    """
    env = read_environment()
    old = read_pair(env.config_dir)
    to: Dialect = 1 if (form or ("3" if old.dialect == 1 else "1")) == "1" else 3
    conversion = convert(old, to)
    findings = (*conversion.lost, *conversion.notes)
    fresh = tuple(each for each in fresh_findings(old, conversion.pair) if each.severity == "error")
    write = bool(diff_pair(old, conversion.pair)) and not dry_run and not fresh
    version = save(env, old, conversion.pair, note=note or f"form of article {to}") if write else None
    report_change(
        old,
        conversion.pair,
        (*findings, *fresh),
        version,
        as_json=as_json,
        form=to,
        lost=[finding_json(each) for each in conversion.lost],
    )
    return 2 if has_errors(fresh) else 0
