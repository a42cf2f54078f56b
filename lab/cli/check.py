"""`lab check`: every finding on configuration and experiment files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from lab.cli.findings_report import echo_findings, finding_json
from lab.cli.host_ahead import host_for_a_launch
from lab.cli.offers import Offer, file_offers, pair_offers
from lab.cli.store_access import json_option
from lab.configs.checks import check_pair, parse_errors
from lab.configs.documents import open_toml
from lab.configs.experiment_file import check_file, read_experiment
from lab.configs.pair import CONFIG_FILE, SETTINGS_FILE, ConfigPair, read_pair
from lab.configs.pair_files import read_text
from lab.environment import Environment, read_environment
from lab.findings import Finding, LabError, has_errors
from lab.records.plan import DEFAULT_ENGINE

_CONFIG_TABLES = ("server", "request", "metrics", "model", "kv_cache", "batching", "prefill", "decode")
_EXPERIMENT_KEYS = ("arm", "sweep", "question", "repeats", "slo")


@click.command("check", short_help="Validate config and experiment files.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--repairs", is_flag=True, help="Show a diff for each finding that can be put right; none is applied.")
@json_option
def check(files: tuple[Path, ...], repairs: bool, as_json: bool) -> int:
    """Validate FILES; without any, the live config pair and all presets.

    A settings.json or config.toml is checked together with its partner in the same folder, or with the live one.
    Exit status 2 when there is an error, 0 otherwise.
    """
    env = read_environment()
    checked = files or _all_files(env)
    findings = _findings(checked, env)
    if as_json:
        report = {
            "files": [str(path) for path in checked],
            "findings": [finding_json(each) for each in findings],
            "repairs": [asdict(offer) for offer in _offers(checked, findings, env)],
        }
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        echo_findings(findings)
        for offer in _offers(checked, findings, env) if repairs else ():
            click.echo(f"{_place(offer)}: {offer.message}\n{offer.diff}", nl=False)
        errors = sum(each.severity == "error" for each in findings)
        click.echo(f"{len(checked)} files, {errors} errors, {len(findings) - errors} remarks")
    return 2 if has_errors(findings) else 0


def _offers(files: tuple[Path, ...], findings: tuple[Finding, ...], env: Environment) -> Iterator[Offer]:
    for path in dict.fromkeys(files):
        about = [each for each in findings if each.file == str(path)]
        if not about or not _readable(path, env):
            continue
        pair = _pair_of(path, env)
        yield from file_offers(path, about) if pair is None else pair_offers(pair, str(path), about)


def _readable(path: Path, env: Environment) -> bool:
    try:
        read_text(path)
        _pair_of(path, env)
    except LabError:
        return False
    return True


def _place(offer: Offer) -> str:
    return offer.file if offer.line is None else f"{offer.file}:{offer.line}"


def _all_files(env: Environment) -> tuple[Path, ...]:
    experiments = sorted((env.config_dir / "experiments").glob("*.toml"))
    return (env.settings_file, env.config_file, *experiments)


def _findings(files: tuple[Path, ...], env: Environment) -> tuple[Finding, ...]:
    found: list[Finding] = []
    for path in files:
        for finding in _of_file(path, env):
            if finding not in found:
                found.append(finding)
    return tuple(found)


def _of_file(path: Path, env: Environment) -> tuple[Finding, ...]:
    """A file that cannot be read is a finding like others, so that the rest is checked all the same."""
    try:
        read_text(path)
        pair = _pair_of(path, env)
        return _of_experiment(path, env) if pair is None else _of_pair(pair, path, env)
    except LabError as problem:
        return problem.findings


def _pair_of(path: Path, env: Environment) -> ConfigPair | None:
    """The file with its partner; None for an experiment file."""
    if path.suffix == ".json":
        settings, config = path, _partner(path, CONFIG_FILE, env.config_file)
    elif _is_config(path):
        settings, config = _partner(path, SETTINGS_FILE, env.settings_file), path
    else:
        return None
    return ConfigPair(read_text(settings), read_text(config), str(settings), str(config))


def _of_experiment(path: Path, env: Environment) -> tuple[Finding, ...]:
    """What the file says wrong, then what the engines of its arms have to say."""
    pair = read_pair(env.config_dir)
    found = tuple(each for each in check_file(path, pair) if each.file in (None, str(path)))
    experiment, _ = read_experiment(read_text(path), str(path), pair)
    if experiment is None:
        return found
    from lab.engine.pair_command import check_arms
    from lab.engine.preflight import look_ahead_arms

    host = host_for_a_launch(env)
    of_arms = (*check_arms(experiment, env, host.kind), *look_ahead_arms(experiment, env, host))
    return (*found, *(each.in_file(str(path)) for each in of_arms))


def _of_pair(pair: ConfigPair, about: Path, env: Environment) -> tuple[Finding, ...]:
    """What the checks of the pair say of one file, then what model and host make of it where it can be read."""
    found = check_pair(pair)
    if not parse_errors(pair):
        found += _ahead(pair, env)
    return tuple(each for each in found if each.file in (None, str(about)))


def _ahead(pair: ConfigPair, env: Environment) -> tuple[Finding, ...]:
    from lab.engine.definition import load_definition
    from lab.engine.preflight import look_ahead

    try:
        definition = load_definition(DEFAULT_ENGINE, env.config_dir)
    except LabError as problem:
        return problem.findings
    return look_ahead(pair, definition, env, host_for_a_launch(env)).findings


def _partner(path: Path, name: str, live: Path) -> Path:
    beside = path.parent / name
    return beside if beside.is_file() else live


def _is_config(path: Path) -> bool:
    """By its name, else by what stands in it."""
    if path.name == CONFIG_FILE:
        return True
    try:
        data = open_toml(read_text(path), str(path)).data
    except LabError:
        return False
    return not any(key in data for key in _EXPERIMENT_KEYS) and any(table in data for table in _CONFIG_TABLES)
