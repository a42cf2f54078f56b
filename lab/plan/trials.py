"""The order of trials, and the measurements inside one."""

from __future__ import annotations

import random

from lab.records.plan import Experiment, PlannedTrial
from lab.records.workload import Stage, Workload


def plan_trials(experiment: Experiment) -> tuple[PlannedTrial, ...]:
    """All trials in the order they run, one block per repeat.

    `balanced` turns every second block round (A B B A), so that a drift of the host hits all arms alike and the
    arm at the turn keeps its engine; `random` shuffles each block by the seed; `listed` keeps the file's order.
    """
    arms = list(range(len(experiment.arms)))
    shuffler = random.Random(experiment.seed)
    planned: list[PlannedTrial] = []
    for block in range(1, experiment.repeats + 1):
        for arm in _block(arms, block, experiment.order, shuffler):
            planned.append(PlannedTrial(arm=arm, block=block, position=len(planned)))
    return tuple(planned)


def _block(arms: list[int], block: int, order: str, shuffler: random.Random) -> list[int]:
    if order == "random":
        return shuffler.sample(arms, len(arms))
    return arms[::-1] if order == "balanced" and block % 2 == 0 else arms


def stages(workload: Workload) -> tuple[Stage, ...]:
    """The measurements of one trial: one per concurrency (closed), rate (open) or prompt length (ladder), else one."""
    if workload.kind == "closed" and workload.concurrency:
        return tuple(Stage(kind="concurrency", value=value) for value in workload.concurrency)
    if workload.kind == "open" and workload.rate_per_s:
        return tuple(Stage(kind="rate", value=value) for value in workload.rate_per_s)
    if workload.kind == "ladder" and workload.prompt_tokens:
        return tuple(Stage(kind="prompt_tokens", value=value) for value in workload.prompt_tokens)
    return (Stage(),)
