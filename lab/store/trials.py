"""Trials: claimed by one runner, moved through their states, given back after an interruption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, case, literal, select, update
from sqlalchemy.orm import Session

from lab.findings import error
from lab.records.plan import Arm
from lab.records.states import TrialState
from lab.records.summary import Mark
from lab.records.workload import Stage
from lab.store import models
from lab.store.columns import UtcDateTime
from lab.store.database import Store
from lab.store.intents import changed
from lab.store.mapping import to_arm, to_experiment, to_marks, to_stage
from lab.store.people import utc_now
from lab.store.transitions import ACTIVE_TRIAL, OPEN_EXPERIMENT, allowed_from, is_final
from lab.store.views import TrialRow, TrialWork


def next_trial(store: Store, host: str) -> TrialWork | None:
    """Claims the first queued trial of the host's queue; None where nothing is to do. No two callers get the same."""
    with store.writing() as session:
        while (candidate := _first_queued(session, host)) is not None:
            if _claim(session, candidate):
                return _work(session, candidate)
    return None


def _first_queued(session: Session, host: str) -> int | None:
    query = (
        select(models.Trial.id)
        .join(models.Experiment, models.Experiment.id == models.Trial.experiment_id)
        .where(
            models.Experiment.host == host,
            models.Experiment.state.in_(OPEN_EXPERIMENT),
            models.Experiment.stop_requested_at.is_(None),
            models.Trial.state == "queued",
        )
        .order_by(models.Experiment.queue_position, models.Trial.position)
        .limit(1)
    )
    return session.scalar(query)


def _claim(session: Session, trial_id: int) -> bool:
    """The row count tells whether it was still there: a lock hint would be ignored by SQLite."""
    claiming = update(models.Trial).where(models.Trial.id == trial_id, models.Trial.state == "queued")
    return changed(session, claiming.values(state="starting", started_at=utc_now(), ended_at=None)) == 1


def _work(session: Session, trial_id: int) -> TrialWork:
    trial = session.get_one(models.Trial, trial_id)
    row = session.get_one(models.Experiment, trial.experiment_id)
    if row.state == "queued":
        row.state = "running"
        row.started_at = row.started_at or utc_now()
    arms = session.scalars(
        select(models.Arm).where(models.Arm.experiment_id == row.id).order_by(models.Arm.index)
    ).all()
    by_id = {arm.id: to_arm(arm) for arm in arms}
    config = session.get_one(models.ConfigVersion, row.config_hash)
    return TrialWork(
        trial_id=trial.id,
        experiment_id=row.id,
        experiment=to_experiment(row, tuple(by_id.values()), config),
        arm=by_id[trial.arm_id],
        arm_id=trial.arm_id,
        block=trial.block,
        position=trial.position,
        attempt=trial.attempt,
        done_stages=_done_stages(session, trial.id),
        following=_following(session, row.id, by_id),
        experiment_started_at=row.started_at,
    )


def _done_stages(session: Session, trial_id: int) -> tuple[Stage, ...]:
    query = select(models.Measurement.stage_kind, models.Measurement.stage_value)
    query = query.where(models.Measurement.trial_id == trial_id).order_by(models.Measurement.id)
    return tuple(to_stage(kind, value) for kind, value in session.execute(query))


def _following(session: Session, experiment_id: int, arms: Mapping[int, Arm]) -> Arm | None:
    query = select(models.Trial.arm_id).where(
        models.Trial.experiment_id == experiment_id, models.Trial.state == "queued"
    )
    arm_id = session.scalar(query.order_by(models.Trial.position).limit(1))
    return None if arm_id is None else arms[arm_id]


def set_trial_state(
    store: Store,
    trial_id: int,
    state: TrialState,
    *,
    failure: str | None = None,
    message: Mapping[str, Any] | None = None,
    log_tail: str | None = None,
    launch_id: int | None = None,
    marks: Sequence[Mark] = (),
) -> None:
    """Moves a trial to a state that may follow its present one; what is None stays as it was, marks add up.

    The same state again only stores the rest. Raises LabError for a move that is not allowed: a finished trial never
    changes.
    """
    with store.writing() as session:
        row = _get(session, trial_id)
        if is_final("trial", row.state) or (state != row.state and row.state not in allowed_from("trial", state)):
            raise error("transition-refused", kind="trial", id=trial_id, state=row.state, wanted=state)
        row.state = state
        news = {"failure": failure, "log_tail": log_tail, "launch_id": launch_id}
        for name, value in news.items():
            if value is not None:
                setattr(row, name, value)
        if message is not None:
            row.message = dict(message)
        if marks:
            row.marks = [*row.marks, *(mark.model_dump(mode="json") for mark in marks)]
        if is_final("trial", state):
            row.ended_at, row.progress = utc_now(), None


def set_trial_progress(store: Store, trial_id: int, progress: Mapping[str, Any] | None) -> None:
    """Stores how far a trial is (JSON); ignored for one that has ended meanwhile."""
    with store.writing() as session:
        storing = update(models.Trial).where(models.Trial.id == trial_id, models.Trial.state.in_(ACTIVE_TRIAL))
        session.execute(storing.values(progress=None if progress is None else dict(progress)))


def give_back_trial(store: Store, trial_id: int) -> TrialState:
    """Puts an interrupted trial back into the queue with its attempt counted; its stored measurements stay.

    A trial of a stopped experiment is cancelled instead; one that has ended stays as it is. Returns the state.
    """
    with store.writing() as session:
        _get(session, trial_id)
        _give_back(session, models.Trial.id == trial_id)
        session.expire_all()
        return cast(TrialState, _get(session, trial_id).state)


def recover_trials(store: Store, host: str) -> tuple[int, ...]:
    """Gives back every trial that a runner of this host left unfinished; returns their numbers."""
    with store.writing() as session:
        on_host = select(models.Experiment.id).where(models.Experiment.host == host)
        left = models.Trial.experiment_id.in_(on_host)
        query = select(models.Trial.id).where(left, models.Trial.state.in_(ACTIVE_TRIAL)).order_by(models.Trial.id)
        found = tuple(session.scalars(query))
        _give_back(session, models.Trial.id.in_(found))
        return found


def _give_back(session: Session, which: ColumnElement[bool]) -> None:
    stopped = select(models.Experiment.id).where(models.Experiment.stop_requested_at.is_not(None))
    cancelled = models.Trial.experiment_id.in_(stopped)
    giving = update(models.Trial).where(which, models.Trial.state.in_(ACTIVE_TRIAL))
    session.execute(
        giving.values(
            state=case((cancelled, "cancelled"), else_="queued"),
            ended_at=case((cancelled, literal(utc_now(), UtcDateTime)), else_=None),
            attempt=models.Trial.attempt + 1,
            progress=None,
            launch_id=None,
        ),
        execution_options={"synchronize_session": False},
    )


def trial_rows(session: Session, experiment_id: int) -> tuple[TrialRow, ...]:
    """The trials of an experiment in their order."""
    query = (
        select(models.Trial, models.Arm.name)
        .join(models.Arm, models.Arm.id == models.Trial.arm_id)
        .where(models.Trial.experiment_id == experiment_id)
        .order_by(models.Trial.position)
    )
    return tuple(_view(row, name) for row, name in session.execute(query))


def trial_of_launch(store: Store, launch_id: int) -> tuple[int, str] | None:
    """The experiment and the name of the arm that a launch failed for, the newest; None where no trial failed by it."""
    query = (
        select(models.Trial.experiment_id, models.Arm.name)
        .join(models.Arm, models.Arm.id == models.Trial.arm_id)
        .where(models.Trial.launch_id == launch_id, models.Trial.state == "failed")
        .order_by(models.Trial.id.desc())
        .limit(1)
    )
    with store.reading() as session:
        row = session.execute(query).first()
    return None if row is None else (row[0], row[1])


def active_trial(store: Store, host: str) -> int | None:
    """The trial that runs on the host now."""
    query = (
        select(models.Trial.id)
        .join(models.Experiment, models.Experiment.id == models.Trial.experiment_id)
        .where(models.Experiment.host == host, models.Trial.state.in_(ACTIVE_TRIAL))
        .limit(1)
    )
    with store.reading() as session:
        return session.scalar(query)


def _view(row: models.Trial, arm_name: str) -> TrialRow:
    return TrialRow(
        id=row.id,
        arm_id=row.arm_id,
        arm_name=arm_name,
        block=row.block,
        position=row.position,
        state=cast(TrialState, row.state),
        failure=row.failure,
        message=row.message,
        attempt=row.attempt,
        launch_id=row.launch_id,
        started_at=row.started_at,
        ended_at=row.ended_at,
        progress=row.progress,
        log_tail=row.log_tail,
        marks=to_marks(row.marks),
    )


def _get(session: Session, trial_id: int) -> models.Trial:
    row = session.get(models.Trial, trial_id)
    if row is None:
        raise error("trial-unknown", id=trial_id)
    return row
