"""What a config pair comes to with one kind of engine on this host: the command, and all that is to be said of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lab.configs.pair import ConfigPair
from lab.configs.placeholders import with_variables
from lab.engine.catalogue import cached_catalogue
from lab.engine.command import EngineCommand, build_command
from lab.engine.definition import EngineDefinition, list_engines, load_definition
from lab.engine.installation import check_installed, engine_python
from lab.engine.model import find_model
from lab.engine.request_fields import check_request
from lab.environment import Environment
from lab.findings import Finding, LabError
from lab.host.facts import HostKind
from lab.messages import word
from lab.plan import arm_pair
from lab.records.plan import Experiment

EXAMPLE_PORT = 8000


@dataclass(frozen=True, slots=True)
class PairCommand:
    """`findings` are those of the command, of the request's fields and of the installation."""

    definition: EngineDefinition
    command: EngineCommand
    findings: tuple[Finding, ...]


def pair_command(
    env: Environment,
    pair: ConfigPair,
    kind: str,
    host_kind: HostKind,
    *,
    explicit: frozenset[str] = frozenset(),
    look_for_engine: bool = True,
) -> PairCommand:
    """The command of a pair, an unset port as 8000; the engine's flags are those that were read last.

    `look_for_engine` false saves the tenth of a second that it takes to see whether the engine is installed. Raises
    `LabError` where the definition or the pair cannot be read.
    """
    definition = load_definition(kind, env.config_dir)
    # a variable that is not set stays as it stands in the file: the checks of the pair say so
    with contextlib.suppress(LabError):
        pair = with_variables(pair, env.variables)
    python, knobs = engine_python(kind, env), pair.engine_knobs()
    port = knobs.get("port")
    command = build_command(
        definition,
        knobs,
        explicit,
        host_kind=host_kind,
        model=find_model(str(knobs.get("model", "")), env),
        port=port if isinstance(port, int) else EXAMPLE_PORT,
        python=python,
        devices=None,
        variables=env.variables,
        catalogue=cached_catalogue(definition, python, env.run_dir),
    )
    missing = check_installed(definition, python) if look_for_engine else ()
    return PairCommand(definition, command, (*missing, *command.findings, *check_request(definition, pair, explicit)))


def check_arms(experiment: Experiment, env: Environment, host_kind: HostKind) -> tuple[Finding, ...]:
    """What the engines of an experiment lack of what its arms set, and which engines this host lacks.

    The second are warnings: the file may be for another host. Of the pair's own knobs only what forbids the launch is
    told, once for each arm.
    """
    found: list[Finding] = []
    for kind in dict.fromkeys(arm.engine for arm in experiment.arms if arm.target == "engine" and arm.engine):
        if kind in list_engines(env.config_dir):
            definition = load_definition(kind, env.config_dir)
            missing = check_installed(definition, engine_python(kind, env))
            found += [replace(each, severity="warning") for each in missing]
    return (*found, *_of_arms(experiment, env, host_kind))


def _of_arms(experiment: Experiment, env: Environment, host_kind: HostKind) -> Iterator[Finding]:
    for arm in experiment.arms:
        if arm.target != "engine" or arm.engine is None:
            continue
        explicit = frozenset(arm.set)
        try:
            built = pair_command(
                env,
                arm_pair(experiment, arm),
                arm.engine,
                host_kind,
                explicit=explicit,
                look_for_engine=False,
            )
        except LabError as problem:
            yield problem.findings[0]
            continue
        for finding in built.findings:
            about_model = str(finding.code).startswith(("model-", "default-model"))
            told = finding.severity == "error" or (
                finding.severity == "warning" and finding.params.get("knob") in explicit
            )
            if told and not about_model:
                params = {"arm": arm.name, "rule": finding.code, "reason": word(finding.code, finding.params)}
                yield Finding("arm-rule", finding.severity, params)
