"""`lab restore`: the versions of the config pair, and one of them put back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from lab.cli.pair_saving import dry_run_option, note_option, report_change, save
from lab.cli.store_access import json_option, open_database
from lab.cli.table import table
from lab.cli.versions import find_pair, find_save, saves
from lab.configs.checks import check_pair
from lab.configs.pair import ConfigPair, filled_up, missing_files, read_pair
from lab.environment import Environment, read_environment
from lab.findings import has_errors

if TYPE_CHECKING:
    from lab.store import ConfigSaveRow


@click.command("restore", short_help="List the versions of the config pair, or put one back.")
@click.argument("version", required=False)
@note_option
@dry_run_option
@json_option
def restore(version: str | None, note: str, dry_run: bool, as_json: bool) -> int:
    """Put VERSION (a number, or `last`) back as the live pair; without one, list all versions.

    Putting back is a new version itself, so that nothing is lost. Where one of the two files does not exist any more,
    it alone is made anew and the other is left as it is. Exit status 2 when what was put back has an error.
    """
    env = read_environment()
    if version is None:
        return _listed(env, as_json)
    row = find_save(env, version)
    missing = missing_files(env.config_dir)
    old, new = _filled_up(env, row, missing) if missing else (read_pair(env.config_dir), find_pair(env, str(row.id)))
    findings = check_pair(new)
    written = None
    if not dry_run:
        written = save(env, old, new, note=note, source="restore", restored_id=row.id, missing=missing)
    report_change(old, new, findings, written, as_json=as_json, restored=row.id)
    return 2 if has_errors(findings) else 0


def _filled_up(env: Environment, row: ConfigSaveRow, missing: tuple[str, ...]) -> tuple[ConfigPair, ConfigPair]:
    from lab.store import stored_pair

    return filled_up(env.config_dir, missing, stored_pair(open_database(env), row.config_hash))


def _listed(env: Environment, as_json: bool) -> int:
    rows = saves(env)
    if as_json:
        listed = [
            {
                "version": row.id,
                "at": row.created_at.isoformat(),
                "person": row.person,
                "source": row.source,
                "note": row.note,
                "changes": None if row.changes is None else len(row.changes),
            }
            for row in rows
        ]
        click.echo(json.dumps({"versions": listed}, ensure_ascii=False, indent=2))
        return 0
    cells = [
        (str(row.id), f"{row.created_at:%Y-%m-%d %H:%M}", row.person or "–", row.source, row.note or "–")
        for row in rows
    ]
    click.echo(table(("version", "time (UTC)", "who", "source", "note"), cells))
    return 0
