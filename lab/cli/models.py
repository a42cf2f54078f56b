"""`lab models`: the models of this host, or one of them; a look at the hub, a download."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from lab.cli.model_report import facts_json, facts_text, size_text
from lab.cli.store_access import json_option
from lab.engine.found_models import FoundModel, found_models
from lab.environment import Environment, read_environment
from lab.findings import LabError
from lab.messages import word_finding


@click.command("models", short_help="List the models of this host; look one up on the hub; fetch it.")
@click.argument("name", required=False)
@click.option("--hub", "ask_hub", is_flag=True, help="Ask the hub what NAME is, how large, and whether it is gated.")
@click.option("--download", is_flag=True, help="Fetch NAME from the hub into its cache; goes on where it ended.")
@json_option
def models(name: str | None, ask_hub: bool, download: bool, as_json: bool) -> int:
    """Without NAME: all models that lie here. With NAME: that one, from this disk or, with --hub, from the hub.

    Folders are looked for in .lab/models and in LAB_MODEL_DIRS; the live pair's model is listed too. Exit status 1 when
    NAME is incomplete here.
    """
    env = read_environment()
    if name is None:
        return _list(found_models(env, _live_model(env)), as_json)
    if download:
        return _download(name, env)
    return _from_hub(name, env, as_json) if ask_hub else _one(name, env, as_json)


def _live_model(env: Environment) -> str:
    from lab.configs.pair import read_pair

    try:
        return str(read_pair(env.config_dir).engine_knobs().get("model") or "")
    except LabError:
        return ""  # `lab check` says why


def _list(found: tuple[FoundModel, ...], as_json: bool) -> int:
    if as_json:
        click.echo(json.dumps({"models": [_model_json(model) for model in found]}, ensure_ascii=False, indent=2))
        return 0
    for model in found:
        state = "whole" if model.complete else "incomplete"
        click.echo(f"{model.name}\n  {model.source}, {state}, {facts_text(model.facts)}")
        for problem in model.facts.problems:
            click.echo(f"  {word_finding(problem)}")
    if not found:
        click.echo("No models here yet: `make setup` makes the default one, --download fetches one from the hub.")
    return 0


def _one(name: str, env: Environment, as_json: bool) -> int:
    from lab.engine.model import find_model
    from lab.engine.model_facts import read_model_facts

    model = find_model(name, env)
    if model.problem is not None:
        raise LabError(model.problem)
    if model.folder is None:
        click.echo(f"{name}: not on this disk; --hub asks for it, --download fetches it", err=True)
        return 1
    facts = read_model_facts(name, model.folder)
    found = FoundModel(name, model.source, facts)
    if as_json:
        click.echo(json.dumps(_model_json(found), ensure_ascii=False, indent=2))
    else:
        click.echo(f"{name}: {model.source}, {model.folder}\n  {facts_text(facts)}")
        for problem in facts.problems:
            click.echo(f"  {word_finding(problem)}")
    return 0 if facts.complete else 1


def _from_hub(name: str, env: Environment, as_json: bool) -> int:
    from lab.engine.hub import hub_model

    found = hub_model(name, env.variables)
    if as_json:
        report = {
            "name": name,
            "revision": found.revision,
            "gated": found.gated,
            "download_bytes": found.total_bytes,
            "files": [file.path for file in found.files],
            **{key: value for key, value in facts_json(found.facts).items() if key not in ("disk_bytes", "complete")},
        }
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        access = "gated, needs a token with access" if found.gated else "free"
        text = facts_text(found.facts).rpartition(", ")[0]
        click.echo(f"{name}: {access}, {size_text(found.total_bytes)} in {len(found.files)} files\n  {text}")
    return 0


def _download(name: str, env: Environment) -> int:
    from lab.engine.download import Progress, download

    def tell(progress: Progress) -> None:
        rate = f", {size_text(int(progress.bytes_per_s))}/s" if progress.bytes_per_s else ""
        done, total = size_text(progress.done_bytes), size_text(progress.total_bytes)
        click.echo(f"\r{done} of {total}{rate}   ", nl=False, err=True)

    folder = download(name, env.variables, tell if sys.stderr.isatty() else lambda _progress: None)
    click.echo(str(folder))
    return 0


def _model_json(model: FoundModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "source": model.source,
        "folder": str(model.facts.folder),
        "unfinished_bytes": model.unfinished_bytes,
        **facts_json(model.facts),
    }
