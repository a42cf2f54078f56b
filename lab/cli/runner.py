"""`lab runner`: be the runner in the foreground, or end the one that runs."""

from __future__ import annotations

import os
import sys

import click

from lab.environment import read_environment

STOP_WITHIN_S = 60.0


@click.command("runner", short_help="Be the runner of this host, or end it.")
@click.option("--stop", is_flag=True, help="End the runner and its engine; the trial in hand goes back to the queue.")
def runner(stop: bool) -> None:
    """Be the runner of this host in the foreground, or end the one that runs."""
    if stop:
        _stop()
    else:
        # the process becomes the runner: signals of the terminal reach it without a go-between
        os.execv(sys.executable, [sys.executable, "-m", "lab.runner"])  # noqa: S606


def _stop() -> None:
    from lab.host.runner_process import runner_alive, stop_runner

    env = read_environment()
    if not runner_alive(env):
        click.echo("No runner runs here.")
        return
    stop_runner(env, STOP_WITHIN_S)
    click.echo("The runner and its engine have ended.")
