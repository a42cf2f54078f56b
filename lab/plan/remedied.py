"""An experiment with a remedy: the same arms, but one of them with the knobs that the remedy changes."""

from __future__ import annotations

from collections.abc import Mapping

from lab.configs.arms import cell_name
from lab.configs.checks import check_launch
from lab.configs.pair import ConfigPair
from lab.configs.rules import VLLM
from lab.findings import Finding
from lab.plan.arm import arm_pair
from lab.records.plan import Arm, Experiment
from lab.records.workload import Scalar


def with_remedy(
    experiment: Experiment, arm_name: str, changes: Mapping[str, Scalar | None], *, alone: bool = False
) -> Experiment:
    """A copy in which the arm of this name sets `changes` too; None takes a knob out, of the pair as well.

    `alone` leaves the other arms out. The arm is named by what was changed, so that it is not mistaken for the old one.
    """
    pair = ConfigPair(experiment.settings_text, experiment.config_text)
    pair = pair.with_knobs({knob: None for knob, value in changes.items() if value is None})
    arms = tuple(_remedied(arm, changes) if arm.name == arm_name else arm for arm in experiment.arms)
    if alone:
        arms = tuple(arm for old, arm in zip(experiment.arms, arms, strict=True) if old.name == arm_name)
    return experiment.model_copy(
        update={"arms": arms, "settings_text": pair.settings_text, "config_text": pair.config_text}
    )


def check_remedy(experiment: Experiment) -> tuple[Finding, ...]:
    """What stands against launching the engine arms of an experiment, each remark once."""
    engines = [arm for arm in experiment.arms if arm.target == "engine"]
    found = [finding for arm in engines for finding in check_launch(arm_pair(experiment, arm), arm.engine or VLLM)]
    return tuple({(each.code, str(each.params)): each for each in found}.values())


def _remedied(arm: Arm, changes: Mapping[str, Scalar | None]) -> Arm:
    kept = {knob: value for knob, value in arm.set.items() if knob not in changes}
    new = {knob: value for knob, value in changes.items() if value is not None}
    said = cell_name(new) if new else ", ".join(f"no {knob}" for knob in changes)
    return arm.model_copy(update={"name": f"{arm.name}, {said}", "set": {**kept, **new}})
