"""The config pair that one arm stands for."""

from __future__ import annotations

from lab.configs.pair import ConfigPair
from lab.records.plan import Arm, Experiment


def arm_pair(experiment: Experiment, arm: Arm) -> ConfigPair:
    """The experiment's pair with the arm's knobs set, format kept.

    For `attach` and `gateway` the arm's model is the one that requests ask for, not the engine's.
    """
    pair = ConfigPair(experiment.settings_text, experiment.config_text)
    return pair.with_knobs({_knob_for(arm, name): value for name, value in arm.set.items()})


def _knob_for(arm: Arm, name: str) -> str:
    return "request_model" if name == "model" and arm.target != "engine" else name
