"""What production starts from: the two files with only the arm's values changed, vLLM's YAML, the launch command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.configs.documents import Document
from lab.configs.gateway import DEFAULT_KEY_VARIABLE
from lab.configs.pair import CONFIG_FILE, SETTINGS_FILE, ConfigPair
from lab.configs.secrets import is_literal_secret, masked
from lab.engine.definition import EngineDefinition
from lab.export.engine_side import EngineSide
from lab.export.launch_text import launch_text
from lab.export.vllm_yaml import vllm_yaml
from lab.findings import error
from lab.plan import arm_pair
from lab.records.plan import Arm, Experiment

LAUNCH_FILE = "launch.txt"


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file's plain name and its text."""

    name: str
    text: str


def export_arm(
    experiment: Experiment,
    arm_name: str,
    definition: EngineDefinition | None,
    effective: Mapping[str, Any] | None = None,
) -> tuple[ExportFile, ...]:
    """The files of one arm; keys are placeholders everywhere.

    `effective` is what the engine of a measured trial really took; None where that is not known. An arm that launches
    no engine (attach, gateway, or `definition` None) has the two configuration files only. Raises "no-such-arm".
    """
    arm = _find(experiment, arm_name)
    pair = without_keys(arm_pair(experiment, arm))
    files = [ExportFile(SETTINGS_FILE, pair.settings_text), ExportFile(CONFIG_FILE, pair.config_text)]
    if arm.target == "engine" and definition is not None:
        side = EngineSide.of(experiment, arm, pair, definition, effective)
        if definition.config_file is not None:
            files.append(ExportFile(definition.config_file, vllm_yaml(side)))
        files.append(ExportFile(LAUNCH_FILE, launch_text(side)))
    return tuple(files)


def _find(experiment: Experiment, arm_name: str) -> Arm:
    for arm in experiment.arms:
        if arm.name == arm_name:
            return arm
    raise error("no-such-arm", arm=arm_name, arms=", ".join(arm.name for arm in experiment.arms))


def without_keys(pair: ConfigPair) -> ConfigPair:
    """The pair with placeholders where a key was written out: an old record may hold what is refused today."""
    settings, config = _without_keys(pair.settings), _without_keys(pair.config)
    return ConfigPair(masked(settings.text), masked(config.text), pair.settings_file, pair.config_file)


def _without_keys(document: Document) -> Document:
    for path, value in list(document.leaves()):
        if is_literal_secret(path[-1], value):
            name = DEFAULT_KEY_VARIABLE
            document = document.set(path, name if path[-1].endswith("_env") else f"${{{name}}}")
    return document
