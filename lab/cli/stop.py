"""`lab stop`: end an experiment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from lab.cli.store_access import FINISHED, find_experiment, open_database, system_user
from lab.environment import read_environment

if TYPE_CHECKING:
    from lab.store import Store

WITHIN_S = 60.0
_POLL_S = 0.2


@click.command("stop", short_help="Stop an experiment.")
@click.argument("experiment", metavar="ID")
@click.option("--person", default=system_user, help="Who stops it; default the system's user.")
def stop(experiment: str, person: str) -> int:
    """Stop experiment ID (a number, or `latest`): the trial in hand ends at once, the rest is cancelled."""
    from lab.host.runner_process import runner_alive
    from lab.store import request_stop

    env = read_environment()
    store = open_database(env)
    row = find_experiment(store, experiment).row
    if row.state in FINISHED:
        click.echo(f"Experiment {row.id} has ended already: {row.state}.")
        return 0
    request_stop(store, row.id, person)
    state = _wait_until_finished(store, row.id, WITHIN_S if runner_alive(env) else 0.0)
    if state in FINISHED:
        click.echo(f"Experiment {row.id}: {state}.")
        return 0
    click.echo(f"Experiment {row.id} is asked to stop; no runner has ended its trial yet.", err=True)
    return 1


def _wait_until_finished(store: Store, experiment_id: int, within_s: float) -> str:
    from lab.store import get_experiment

    deadline = time.monotonic() + within_s
    while (state := get_experiment(store, experiment_id).row.state) not in FINISHED and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return state
