"""What the commands that read or write the history share."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import click

from lab.findings import error

if TYPE_CHECKING:
    from lab.environment import Environment
    from lab.store import ExperimentView, Store

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
FINISHED = ("done", "failed", "stopped")


def open_database(env: Environment) -> Store:
    from lab.store import open_store

    return open_store(env.database_url)


def system_user() -> str:
    """The operating system's user; "user" where it has no name (a container with a bare uid)."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "user"


def find_experiment(store: Store, which: str) -> ExperimentView:
    """The experiment of a number or of the word `latest`.

    Raises `LabError` "no-experiments", "experiment-not-found" or "experiment-unknown".
    """
    from lab.store import get_experiment, list_experiments

    if which == "latest":
        newest = list_experiments(store, limit=1)
        if not newest:
            raise error("no-experiments")
        return get_experiment(store, newest[0].id)
    if not which.isdecimal():
        raise error("experiment-not-found", id=which)
    return get_experiment(store, int(which))
