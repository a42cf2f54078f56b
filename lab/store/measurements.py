"""Measurements: stored whole in one transaction, never changed afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, insert, select
from sqlalchemy.orm import Session

from lab.findings import error
from lab.records.request import ClientUsage, LoadResult, ProcessUsage
from lab.records.sample import Sample
from lab.records.states import Target
from lab.records.summary import Summary
from lab.records.workload import Stage
from lab.store import models
from lab.store.columns import plain_float
from lab.store.database import Store
from lab.store.mapping import to_marks, to_stage
from lab.store.requests import insert_requests, list_requests
from lab.store.transitions import is_final
from lab.store.views import MeasurementRow

_SAMPLE_BATCH = 10_000
SKIPPED_STAGE = frozenset({"stage-too-long", "stage-refused-as-too-long"})
"""Marks of a trial about stages that were left out: nothing against those that were measured."""


def save_measurement(
    store: Store,
    trial_id: int,
    stage: Stage,
    result: LoadResult,
    summary: Summary,
    samples: Sequence[Sample],
    started_at: datetime,
    ended_at: datetime,
) -> int:
    """Stores one stage with its requests and samples, all or nothing; returns its number.

    Raises LabError where the trial has ended or has this stage already.
    """
    with store.writing() as session:
        _check(session, trial_id, stage)
        row = models.Measurement(
            trial_id=trial_id,
            stage_kind=stage.kind,
            stage_value=stage.value,
            summary=summary.model_dump(mode="json"),
            asked=_asked(result),
            requests=summary.requests,
            succeeded=summary.succeeded,
            output_tokens=summary.output_tokens,
            output_tokens_per_s=summary.output_tokens_per_s,
            ttft_p95_ms=summary.ttft_ms.p95,
            started_at=started_at,
            ended_at=ended_at,
        )
        session.add(row)
        session.flush()
        insert_requests(session, row.id, result.records)
        _insert_samples(session, row.id, samples)
        return row.id


def _check(session: Session, trial_id: int, stage: Stage) -> None:
    trial = session.get(models.Trial, trial_id)
    if trial is None:
        raise error("trial-unknown", id=trial_id)
    if is_final("trial", trial.state):
        raise error("transition-refused", kind="trial", id=trial_id, state=trial.state, wanted="measuring")
    query = select(models.Measurement.stage_kind, models.Measurement.stage_value)
    stored = session.execute(query.where(models.Measurement.trial_id == trial_id)).all()
    if (stage.kind, stage.value) in [(kind, value) for kind, value in stored]:
        shown = "single" if stage.kind is None else f"{stage.kind} {stage.value:g}"
        raise error("measurement-exists", trial_id=trial_id, stage=shown)


def _asked(result: LoadResult) -> dict[str, Any]:
    """All of the load result but its records."""
    return {
        "requests": result.requests_asked,
        "concurrency": result.concurrency_asked,
        "rate_per_s": result.rate_asked_per_s,
        "window_s": result.window_s,
        "output_tokens": result.output_tokens_asked,
        "stopped": result.stopped,
        "notes": list(result.notes),
        "client": asdict(result.client),
    }


def _insert_samples(session: Session, measurement_id: int, samples: Sequence[Sample]) -> None:
    connection, statement = session.connection(), insert(models.Sample.__table__)  # type: ignore[arg-type]
    for start in range(0, len(samples), _SAMPLE_BATCH):
        rows = [
            {"measurement_id": measurement_id, "series": s.series, "at_ms": s.at_ms, "value": plain_float(s.value)}
            for s in samples[start : start + _SAMPLE_BATCH]
        ]
        connection.execute(statement, rows)


def load_result(store: Store, measurement_id: int) -> LoadResult:
    """What the loader brought back, as it was stored, so that it can be summarised anew."""
    with store.reading() as session:
        row = session.get(models.Measurement, measurement_id)
        if row is None:
            raise error("measurement-unknown", id=measurement_id)
        asked = row.asked
    return LoadResult(
        records=list_requests(store, measurement_id),
        client=_client(asked["client"]),
        requests_asked=asked["requests"],
        concurrency_asked=asked["concurrency"],
        rate_asked_per_s=asked["rate_per_s"],
        window_s=asked["window_s"],
        output_tokens_asked=asked["output_tokens"],
        stopped=asked["stopped"],
        notes=tuple(asked["notes"]),
    )


def _client(stored: dict[str, Any]) -> ClientUsage:
    processes = tuple(ProcessUsage(**each) for each in stored.get("processes", ()))
    return ClientUsage(**{**stored, "processes": processes})


def list_samples(store: Store, measurement_id: int) -> tuple[Sample, ...]:
    """The telemetry of a measurement, series by series in the order of time."""
    query = select(models.Sample.at_ms, models.Sample.series, models.Sample.value)
    query = query.where(models.Sample.measurement_id == measurement_id)
    with store.reading() as session:
        rows = session.execute(query.order_by(models.Sample.series, models.Sample.at_ms))
        return tuple(Sample(at_ms, series, value) for at_ms, series, value in rows)


def measurement_rows(session: Session, *where: ColumnElement[bool]) -> tuple[MeasurementRow, ...]:
    """Measurements in the order of arms, repeats and stages."""
    query = (
        select(models.Measurement, models.Trial, models.Arm)
        .join(models.Trial, models.Trial.id == models.Measurement.trial_id)
        .join(models.Arm, models.Arm.id == models.Trial.arm_id)
        .where(*where)
        .order_by(models.Trial.experiment_id, models.Arm.index, models.Trial.block, models.Measurement.id)
    )
    return tuple(_view(row, trial, arm) for row, trial, arm in session.execute(query))


def _view(row: models.Measurement, trial: models.Trial, arm: models.Arm) -> MeasurementRow:
    return MeasurementRow(
        id=row.id,
        trial_id=row.trial_id,
        arm_id=arm.id,
        arm_name=arm.name,
        target=cast(Target, arm.target),
        repeat=trial.block,
        stage=to_stage(row.stage_kind, row.stage_value),
        summary=Summary.model_validate(row.summary),
        started_at=row.started_at,
        ended_at=row.ended_at,
        trial_marks=tuple(mark for mark in to_marks(trial.marks) if mark.code not in SKIPPED_STAGE),
    )
