"""`lab run`: queue an experiment and, if wanted, wait for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lab.cli.host_ahead import host_for_a_launch
from lab.cli.result_table import result_text
from lab.cli.store_access import json_option, open_database, system_user
from lab.environment import Environment, read_environment
from lab.findings import Finding, LabError, error
from lab.messages import word_finding

if TYPE_CHECKING:
    from lab.records.plan import Experiment
    from lab.store import Store


@click.command("run", short_help="Queue an experiment.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--wait", is_flag=True, help="Wait for the end, then print the result.")
@click.option("--repeats", type=click.IntRange(1, 100), help="Instead of the file's number of repeats.")
@click.option("--person", default=system_user, help="Who asks; default the system's user.")
@json_option
def run(file: Path, wait: bool, repeats: int | None, person: str, as_json: bool) -> int:
    """Queue the experiment of FILE; a runner is started where none is.

    With --wait the exit status is 0 when something was measured, 1 when nothing was or it was stopped.
    """
    from lab.host.runner_process import ensure_runner

    env = read_environment()
    experiment = _read(file, env)
    if repeats is not None:
        experiment = experiment.model_copy(update={"repeats": repeats})
    store = open_database(env)
    ensure_runner(env)
    experiment_id = _queue(store, experiment, person)
    if wait:
        return _wait(store, env, experiment_id, as_json)
    if as_json:
        click.echo(json.dumps({"experiment": {"id": experiment_id, "name": experiment.name, "state": "queued"}}))
    else:
        click.echo(f"Experiment {experiment_id} is queued. See it: python -m lab show {experiment_id}")
    return 0


def _read(file: Path, env: Environment) -> Experiment:
    """The checked experiment of a file; warnings go to stderr, errors are raised all at once."""
    from lab.configs.experiment_file import read_experiment
    from lab.configs.pair import read_pair

    path = _find(file, env)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise error("experiment-file-unreadable", file=str(path), reason=str(problem)) from problem
    experiment, findings = read_experiment(text, str(path), read_pair(env.config_dir))
    errors = tuple(each for each in findings if each.severity == "error")
    if errors or experiment is None:
        raise LabError(*errors)
    for finding in findings:
        if finding.severity == "warning":
            click.echo(word_finding(finding), err=True)
    for finding in _ahead(experiment, env):
        click.echo(word_finding(finding), err=True)
    return experiment


def _ahead(experiment: Experiment, env: Environment) -> tuple[Finding, ...]:
    """What engine, model and host will make of the arms: one that cannot start fails alone, so nothing is refused."""
    from lab.engine.pair_command import check_arms
    from lab.engine.preflight import look_ahead_arms

    host = host_for_a_launch(env)
    return (*check_arms(experiment, env, host.kind), *look_ahead_arms(experiment, env, host))


def _find(file: Path, env: Environment) -> Path:
    """The path as given, else the preset of that name."""
    preset = env.config_dir / "experiments" / f"{file.name}.toml"
    if not file.exists() and file.name == str(file) and preset.exists():
        return preset
    if not file.is_file():
        raise error("experiment-file-missing", file=str(file), folder=str(preset.parent))
    return file


def _queue(store: Store, experiment: Experiment, person: str) -> int:
    from lab.host.facts import host_facts
    from lab.plan import plan_trials
    from lab.store import queue_experiment

    host = host_facts().name
    return queue_experiment(store, experiment, plan_trials(experiment), person=person, host=host)


def _wait(store: Store, env: Environment, experiment_id: int, as_json: bool) -> int:
    from lab.cli.waiting import wait_for
    from lab.store import get_experiment, result_document

    wait_for(store, env, experiment_id)
    view = get_experiment(store, experiment_id)
    click.echo(json.dumps(result_document(view), ensure_ascii=False, indent=2) if as_json else result_text(view))
    return 0 if view.row.state == "done" else 1
