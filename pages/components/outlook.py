"""A config pair's launch, looked ahead at on this host as it is now."""

from __future__ import annotations

import streamlit as st

from lab.configs.pair import ConfigPair
from lab.engine.definition import load_definition
from lab.engine.model import hub_cache_dir
from lab.engine.model_facts import ModelFacts
from lab.engine.pair_command import pair_command
from lab.engine.preflight import Outlook, look_ahead, look_ahead_arms
from lab.findings import Finding
from lab.host.facts import HostFacts
from lab.host.occupants import without_group
from lab.records.plan import DEFAULT_ENGINE, Experiment
from lab.store import LaunchRow, list_launches
from pages.components.context import environment, get_store, host_name
from pages.components.host import current_facts
from pages.components.launch import LIVE_STATES

_LOOKED_AT = 50


def outlook(pair: ConfigPair, kind: str = DEFAULT_ENGINE, told: ModelFacts | None = None) -> Outlook:
    """Model, rules and memory of a launch of this pair; `told` is what the hub says of a model that is not here.

    Raises `LabError` where the engine is not defined.
    """
    env = environment()
    return look_ahead(pair, load_definition(kind, env.config_dir), env, host_for_a_launch(), told=told)


def rule_findings(pair: ConfigPair, kind: str = DEFAULT_ENGINE) -> tuple[Finding, ...]:
    """What command, model and rules say, without the memory of this moment: cheap enough for every second."""
    texts = (pair.settings_text, pair.config_text, pair.settings_file, pair.config_file)
    return _of_rules(texts, kind, _place())


@st.cache_data(ttl=10, show_spinner=False, max_entries=20)
def _of_rules(texts: tuple[str, str, str, str], kind: str, place: str) -> tuple[Finding, ...]:  # noqa: ARG001
    env, pair, host = environment(), ConfigPair(*texts), current_facts()
    built = pair_command(env, pair, kind, host.kind, look_for_engine=False)
    return (*built.findings, *look_ahead(pair, built.definition, env, host).findings)


def arm_findings(experiment: Experiment) -> tuple[Finding, ...]:
    """What model and host make of the arms of an experiment; an arm that cannot start fails alone."""
    return _of_arms(experiment.model_dump_json(), _place())


@st.cache_data(ttl=30, show_spinner=False, max_entries=50)
def _of_arms(experiment: str, place: str) -> tuple[Finding, ...]:  # noqa: ARG001
    return look_ahead_arms(Experiment.model_validate_json(experiment), environment(), host_for_a_launch())


def _place() -> str:
    """What else an answer is kept for: folders and variables that decide what a model's name means."""
    env = environment()
    return "|".join((str(env.run_dir), str(env.config_dir), str(hub_cache_dir(env.variables))))


def host_for_a_launch() -> HostFacts:
    """The host as the next launch will find it: what the lab's own engine holds now is free by then."""
    live = next((launch for launch in host_launches() if launch.state in LIVE_STATES), None)
    return without_group(current_facts(), live.pgid if live else None)


def host_launches() -> tuple[LaunchRow, ...]:
    """The launches of this host that a page looks at, the newest first."""
    return list_launches(get_store(), host_name(), _LOOKED_AT)
