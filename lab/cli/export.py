"""`lab export`: the files of a measured arm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lab.cli.store_access import find_experiment, json_option, open_database
from lab.environment import Environment, read_environment
from lab.findings import error

if TYPE_CHECKING:
    from lab.export import ExportFile
    from lab.store import ExperimentView, Store


@click.command("export", short_help="Write the files of a measured arm.")
@click.argument("experiment_id", metavar="ID")
@click.option("--arm", required=True, help="The arm's name.")
@click.option("--to", "directory", required=True, type=click.Path(path_type=Path, file_okay=False), help="A folder.")
@json_option
def export(experiment_id: str, arm: str, directory: Path, as_json: bool) -> int:
    """Write settings.json, config.toml, vllm.yaml and launch.txt of an arm of experiment ID (or `latest`).

    Only the arm's values differ from the files the experiment was queued with; keys are placeholders.
    """
    from lab.export import write_export

    env = read_environment()
    store = open_database(env)
    files = _files(store, find_experiment(store, experiment_id), arm, env)
    write_export(files, directory)
    names = [str(directory / file.name) for file in files]
    click.echo(json.dumps({"files": names}, ensure_ascii=False, indent=2) if as_json else "\n".join(names))
    return 0


def _files(store: Store, view: ExperimentView, arm: str, env: Environment) -> tuple[ExportFile, ...]:
    from lab.engine.definition import load_definition
    from lab.export import export_arm

    measured = {row.arm_name for row in view.measurements}
    chosen = next((row.arm for row in view.arms if row.arm.name == arm), None)
    if chosen is None:
        raise error("no-such-arm", arm=arm, arms=", ".join(row.arm.name for row in view.arms))
    if arm not in measured:
        raise error("arm-not-measured", arm=arm, arms=", ".join(sorted(measured)) or None)
    definition = load_definition(chosen.engine or "vllm", env.config_dir) if chosen.target == "engine" else None
    return export_arm(view.experiment, arm, definition, _effective(store, view, arm))


def _effective(store: Store, view: ExperimentView, arm: str) -> Mapping[str, Any] | None:
    """What the engine of the arm's newest measured trial took; None where no launch recorded it."""
    from lab.store import get_launch

    measured = {row.trial_id for row in view.measurements}
    for trial in reversed(view.trials):
        if trial.arm_name == arm and trial.id in measured and trial.launch_id is not None:
            launch = get_launch(store, trial.launch_id)
            if launch is not None and launch.effective:
                return launch.effective
    return None
