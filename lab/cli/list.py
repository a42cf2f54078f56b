"""`lab list`: the history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

import click

from lab.cli.store_access import json_option, open_database
from lab.cli.table import table
from lab.environment import read_environment
from lab.records.states import ExperimentState

if TYPE_CHECKING:
    from lab.store import ExperimentRow

HEADINGS = ("id", "name", "state", "trials", "failed", "who", "host", "created (UTC)")


@click.command("list", short_help="List the experiments.")
@click.option("--search", metavar="TEXT", help="Only those with TEXT in name or question.")
@click.option("--state", type=click.Choice(get_args(ExperimentState)), help="Only those in this state.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many.")
@json_option
def list_command(search: str | None, state: ExperimentState | None, limit: int, as_json: bool) -> None:
    """List the experiments, the newest first."""
    from lab.store import list_experiments

    rows = list_experiments(open_database(read_environment()), search=search, state=state, limit=limit)
    if as_json:
        click.echo(json.dumps([_as_dict(row) for row in rows], ensure_ascii=False, indent=2))
    elif rows:
        click.echo(table(HEADINGS, [_cells(row) for row in rows]))
    else:
        click.echo("No experiments.")


def _cells(row: ExperimentRow) -> tuple[object, ...]:
    trials = f"{row.trials_done}/{row.trials_total}"
    created = row.created_at.strftime("%Y-%m-%d %H:%M")
    return (str(row.id), row.name, row.state, trials, row.trials_failed, row.person, row.host, created)


def _as_dict(row: ExperimentRow) -> dict[str, object]:
    return {
        "id": row.id,
        "name": row.name,
        "question": row.question,
        "state": row.state,
        "person": row.person,
        "host": row.host,
        "created_at": row.created_at.isoformat(),
        "started_at": row.started_at.isoformat() if row.started_at else None,
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
        "trials_total": row.trials_total,
        "trials_done": row.trials_done,
        "trials_failed": row.trials_failed,
    }
