"""Queueing experiments, ending them, and reading one whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from lab.configs.pair import ConfigPair, pair_hash
from lab.findings import error
from lab.metrics.cache_use import judge_cache
from lab.metrics.compare import compare_arms
from lab.metrics.growth import fit_ladders, judge_ladders
from lab.metrics.knee import find_knees
from lab.metrics.ladder import judge_tpot
from lab.metrics.pool import pool_arms
from lab.records.plan import Experiment, PlannedTrial
from lab.records.states import ExperimentState
from lab.store import models
from lab.store.database import Store
from lab.store.history import rows_of
from lab.store.intents import insert_intent
from lab.store.mapping import to_arm, to_experiment
from lab.store.measurements import measurement_rows
from lab.store.people import person_id, utc_now
from lab.store.requests import ttft_by_measurement
from lab.store.transitions import ACTIVE_TRIAL, ENDED_EXPERIMENT, OPEN_EXPERIMENT, allowed_from
from lab.store.trials import trial_rows
from lab.store.views import ArmRow, ExperimentView

LARGEST_ID = 2**63 - 1


def save_config_version(store: Store, settings_text: str, config_text: str) -> str:
    """Keeps the pair's texts; returns their hash, the same for the same texts."""
    with store.writing() as session:
        return keep_config(session, settings_text, config_text)


def get_config_version(store: Store, config: str) -> tuple[str, str] | None:
    """The texts of settings.json and config.toml under that hash."""
    with store.reading() as session:
        row = session.get(models.ConfigVersion, config)
        return None if row is None else (row.settings_text, row.config_text)


def keep_config(session: Session, settings_text: str, config_text: str) -> str:
    """Inside a writing transaction: the texts under their hash, which is returned."""
    name = pair_hash(ConfigPair(settings_text, config_text))
    if session.get(models.ConfigVersion, name) is None:
        session.add(
            models.ConfigVersion(hash=name, settings_text=settings_text, config_text=config_text, created_at=utc_now())
        )
        session.flush()
    return name


def queue_experiment(
    store: Store, experiment: Experiment, trials: Sequence[PlannedTrial], *, person: str, host: str
) -> int:
    """Stores the experiment with its config pair, arms and trials, all queued at the end of the host's queue."""
    with store.writing() as session:
        return _insert_experiment(session, experiment, trials, person, host)


def queue_experiment_once(
    store: Store, experiment: Experiment, trials: Sequence[PlannedTrial], *, person: str, host: str
) -> tuple[int, bool]:
    """The same, unless the very same experiment waits or runs on that host: then its number and False.

    Looked for inside the transaction that would write it, so that of two who ask at once only one queues it.
    """
    with store.writing() as session:
        session.get(models.Host, host, with_for_update=True)  # PostgreSQL lets two write at once, SQLite does not
        still_open = select(models.Experiment).where(
            models.Experiment.host == host,
            models.Experiment.name == experiment.name,
            models.Experiment.state.in_(("paused", *OPEN_EXPERIMENT)),
        )
        for row in session.scalars(still_open):
            if load_experiment(session, row, load_arms(session, row.id)) == experiment:
                return row.id, False
        return _insert_experiment(session, experiment, trials, person, host), True


def _insert_experiment(
    session: Session, experiment: Experiment, trials: Sequence[PlannedTrial], person: str, host: str
) -> int:
    last = session.scalar(select(func.max(models.Experiment.queue_position)).where(models.Experiment.host == host))
    row = models.Experiment(
        name=experiment.name,
        question=experiment.question,
        state="queued",
        host=host,
        person_id=person_id(session, person),
        config_hash=keep_config(session, experiment.settings_text, experiment.config_text),
        repeats=experiment.repeats,
        order=experiment.order,
        seed=experiment.seed,
        workload=experiment.workload.model_dump(mode="json"),
        slo=experiment.slo.model_dump(mode="json"),
        limits=experiment.limits.model_dump(mode="json"),
        queue_position=(last or 0) + 1,
        created_at=utc_now(),
    )
    session.add(row)
    session.flush()
    _add_arms_and_trials(session, row.id, experiment, trials)
    return row.id


def _add_arms_and_trials(
    session: Session, experiment_id: int, experiment: Experiment, trials: Sequence[PlannedTrial]
) -> None:
    arms = [
        models.Arm(
            experiment_id=experiment_id,
            index=index,
            name=arm.name,
            target=arm.target,
            engine=arm.engine,
            base_url=arm.base_url,
            api_key_env=arm.api_key_env,
            knobs=dict(arm.set),
        )
        for index, arm in enumerate(experiment.arms)
    ]
    session.add_all(arms)
    session.flush()
    session.add_all(
        models.Trial(
            experiment_id=experiment_id,
            arm_id=arms[trial.arm].id,
            block=trial.block,
            position=trial.position,
            attempt=1,
            state="queued",
            marks=[],
        )
        for trial in trials
    )
    session.flush()


def set_experiment_state(store: Store, experiment_id: int, state: ExperimentState) -> None:
    """Moves an experiment to a state that may follow, such as `paused`; LabError otherwise."""
    with store.writing() as session:
        row = experiment_row(session, experiment_id)
        if row.state == state:
            return
        if row.state not in allowed_from("experiment", state):
            raise error("transition-refused", kind="experiment", id=experiment_id, state=row.state, wanted=state)
        row.state = state
        if state in ENDED_EXPERIMENT:
            row.ended_at = utc_now()


def request_stop(store: Store, experiment_id: int, person: str) -> ExperimentState:
    """Stops an experiment: what is queued is cancelled at once, the running trial is left to the runner.

    Returns the state afterwards; asking again, or for one that has ended, changes nothing.
    """
    with store.writing() as session:
        row = experiment_row(session, experiment_id)
        if row.state in ENDED_EXPERIMENT or row.stop_requested_at is not None:
            return _settle(session, row)
        row.stop_requested_at, row.stop_requested_by = utc_now(), person
        cancelling = update(models.Trial).where(
            models.Trial.experiment_id == experiment_id, models.Trial.state == "queued"
        )
        session.execute(cancelling.values(state="cancelled", ended_at=utc_now()))
        if _count_trials(session, experiment_id, ACTIVE_TRIAL):
            insert_intent(session, row.host, "stop-experiment", experiment_id, None, person)
        return _settle(session, row)


def finish_experiment_if_done(store: Store, experiment_id: int) -> ExperimentState:
    """Ends an experiment that has no trial left to run; returns its state."""
    with store.writing() as session:
        return _settle(session, experiment_row(session, experiment_id))


def finish_idle_experiments(store: Store, host: str) -> tuple[int, ...]:
    """Ends all open experiments of a host without trials left (a runner may die between a trial and the end)."""
    with store.writing() as session:
        query = select(models.Experiment).where(
            models.Experiment.host == host, models.Experiment.state.in_(OPEN_EXPERIMENT)
        )
        return tuple(row.id for row in session.scalars(query).all() if _settle(session, row) in ENDED_EXPERIMENT)


def _settle(session: Session, row: models.Experiment) -> ExperimentState:
    session.flush()
    if row.state not in ENDED_EXPERIMENT and not _count_trials(session, row.id, ("queued", *ACTIVE_TRIAL)):
        row.state, row.ended_at = _end_state(session, row), utc_now()
        session.flush()
    return cast(ExperimentState, row.state)


def _end_state(session: Session, row: models.Experiment) -> ExperimentState:
    if row.stop_requested_at is not None:
        return "stopped"
    measured = select(models.Measurement.id).join(models.Trial).where(models.Trial.experiment_id == row.id).limit(1)
    return "failed" if session.scalar(measured) is None else "done"


def _count_trials(session: Session, experiment_id: int, states: Sequence[str]) -> int:
    query = select(func.count()).where(models.Trial.experiment_id == experiment_id, models.Trial.state.in_(states))
    return session.scalar(query) or 0


def get_experiment(store: Store, experiment_id: int) -> ExperimentView:
    """One experiment with arms, trials, measurements and verdicts; LabError where there is none of that number."""
    with store.reading() as session:
        row = experiment_row(session, experiment_id)
        arms = load_arms(session, experiment_id)
        experiment = load_experiment(session, row, arms)
        measurements = measurement_rows(session, models.Trial.experiment_id == experiment_id)
        samples = ttft_by_measurement(session, [m.id for m in measurements])
        return ExperimentView(
            row=rows_of(session, [row])[0],
            experiment=experiment,
            arms=arms,
            trials=trial_rows(session, experiment_id),
            measurements=measurements,
            verdicts=(
                *compare_arms(measurements, ttft_ms=samples, slo=experiment.slo),
                *find_knees(measurements),
                *judge_ladders(measurements, samples),
                *judge_tpot(measurements),
                *judge_cache(measurements),
            ),
            ladders=fit_ladders(measurements, samples),
            pooled=pool_arms(measurements, samples),
        )


def load_arms(session: Session, experiment_id: int) -> tuple[ArmRow, ...]:
    query = select(models.Arm).where(models.Arm.experiment_id == experiment_id).order_by(models.Arm.index)
    return tuple(ArmRow(row.id, row.index, to_arm(row)) for row in session.scalars(query))


def load_experiment(session: Session, row: models.Experiment, arms: Sequence[ArmRow]) -> Experiment:
    config = session.get_one(models.ConfigVersion, row.config_hash)
    return to_experiment(row, tuple(arm.arm for arm in arms), config)


def experiment_row(session: Session, experiment_id: int) -> models.Experiment:
    """The row; raises "experiment-unknown", also for a number larger than a database can hold."""
    row = session.get(models.Experiment, experiment_id) if experiment_id <= LARGEST_ID else None
    if row is None:
        raise error("experiment-unknown", id=experiment_id)
    return row
