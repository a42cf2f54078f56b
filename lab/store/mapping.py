"""From rows of the tables to the frozen values of `lab.records`."""

from __future__ import annotations

from lab.records.plan import Arm, Experiment, Limits, Slo
from lab.records.summary import Mark
from lab.records.workload import Stage, Workload
from lab.store import models


def to_arm(row: models.Arm) -> Arm:
    return Arm.model_validate(
        {
            "name": row.name,
            "target": row.target,
            "engine": row.engine,
            "base_url": row.base_url,
            "api_key_env": row.api_key_env,
            "set": row.knobs,
        }
    )


def to_experiment(row: models.Experiment, arms: tuple[Arm, ...], config: models.ConfigVersion) -> Experiment:
    return Experiment(
        name=row.name,
        question=row.question,
        repeats=row.repeats,
        order=row.order,  # type: ignore[arg-type]  # checked by the model
        seed=row.seed,
        workload=Workload.model_validate(row.workload),
        slo=Slo.model_validate(row.slo),
        limits=Limits.model_validate(row.limits),
        arms=arms,
        settings_text=config.settings_text,
        config_text=config.config_text,
    )


def to_stage(kind: str | None, value: float | None) -> Stage:
    return Stage.model_validate({"kind": kind, "value": value})


def to_marks(stored: list[dict[str, object]]) -> tuple[Mark, ...]:
    return tuple(Mark.model_validate(mark) for mark in stored)
