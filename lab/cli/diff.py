"""`lab diff`: what differs between two versions of the config pair."""

from __future__ import annotations

import json

import click

from lab.cli.store_access import json_option
from lab.cli.versions import DISK, LAST, find_pair, saves
from lab.configs.changes import changed_values
from lab.configs.pair import diff_pair
from lab.environment import Environment, read_environment
from lab.findings import LabError


@click.command("diff", short_help="Compare versions of the config pair.")
@click.argument("old", required=False)
@click.argument("new", default=DISK)
@json_option
def diff(old: str | None, new: str, as_json: bool) -> int:
    """Print what differs from OLD to NEW.

    Each is the number of a version, `last`, `disk` (the live files) or a folder with a settings.json and config.toml.
    Without any, the live files are compared with the version before them.
    """
    env = read_environment()
    old = old or _before(env)
    before, after = find_pair(env, old), find_pair(env, new)
    shown = diff_pair(before, after)
    if as_json:
        try:
            changes = [
                {"file": each.file, "key": each.key, "old": each.old, "new": each.new}
                for each in changed_values(before, after)
            ]
        except LabError:
            changes = None  # a text that cannot be parsed has no keys to compare
        report = {"old": old, "new": new, "diff": shown, "changes": changes}
        click.echo(json.dumps(report, ensure_ascii=False, indent=2, default=str))
    else:
        click.echo(shown or "No difference.", nl=not shown)
    return 0


def _before(env: Environment) -> str:
    """The version before the one on disk; the one on disk where it is the only one."""
    newest = saves(env, limit=2)
    return str(newest[-1].id) if newest else LAST
