"""`lab show`: the result table of one experiment."""

from __future__ import annotations

import json

import click

from lab.cli.result_table import result_text
from lab.cli.store_access import find_experiment, json_option, open_database
from lab.environment import read_environment


@click.command("show", short_help="Show one experiment's result table.")
@click.argument("experiment", metavar="ID")
@json_option
def show(experiment: str, as_json: bool) -> None:
    """Show the result table and the verdicts of experiment ID (a number, or `latest`)."""
    from lab.store import result_document

    view = find_experiment(open_database(read_environment()), experiment)
    if as_json:
        click.echo(json.dumps(result_document(view), ensure_ascii=False, indent=2))
    else:
        click.echo(result_text(view))
