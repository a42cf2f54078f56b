"""The list of experiments: search, filters, totals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Executable, Select, Text, func, or_, select
from sqlalchemy import cast as as_type
from sqlalchemy.orm import Session

from lab.records.states import ExperimentState
from lab.store import models
from lab.store.database import Store
from lab.store.views import BestResult, ExperimentRow, Totals


def list_experiments(
    store: Store,
    *,
    search: str | None = None,
    state: ExperimentState | None = None,
    person: str | None = None,
    tag: str | None = None,
    host: str | None = None,
    limit: int = 200,
    offset: int = 0,
) -> tuple[ExperimentRow, ...]:
    """The newest first. Every word of `search` must stand in name, question, person, arm, knob, tag or note."""
    with store.reading() as session:
        query = _filtered(select(models.Experiment), search, state, person, tag, host)
        query = query.order_by(models.Experiment.id.desc()).limit(limit).offset(offset)
        return rows_of(session, session.scalars(query).all())


def count_experiments(
    store: Store,
    *,
    search: str | None = None,
    state: ExperimentState | None = None,
    person: str | None = None,
    tag: str | None = None,
    host: str | None = None,
) -> int:
    """How many the same filters meet, for paging."""
    with store.reading() as session:
        query = _filtered(select(func.count()).select_from(models.Experiment), search, state, person, tag, host)
        return session.scalar(query) or 0


def list_people(store: Store) -> tuple[str, ...]:
    """Everybody who queued an experiment."""
    query = select(models.Person.name).join(models.Experiment, models.Experiment.person_id == models.Person.id)
    with store.reading() as session:
        return tuple(session.scalars(query.distinct().order_by(models.Person.name)))


def history_totals(store: Store) -> Totals:
    """Sums over the whole history."""
    measured = models.Measurement
    with store.reading() as session:
        trials = _mapping(session, select(models.Trial.state, func.count()).group_by(models.Trial.state))
        count, requests, tokens = session.execute(
            select(func.count(), func.sum(measured.requests), func.sum(measured.output_tokens)).select_from(measured)
        ).one()
        return Totals(
            experiments=session.scalar(select(func.count()).select_from(models.Experiment)) or 0,
            trials=sum(trials.values()),
            trials_failed=trials.get("failed", 0),
            measurements=count,
            requests=requests or 0,
            output_tokens=tokens or 0,
            people=session.scalar(select(func.count()).select_from(models.Person)) or 0,
        )


def _filtered(
    query: Select[Any],
    search: str | None,
    state: str | None,
    person: str | None,
    tag: str | None,
    host: str | None,
) -> Select[Any]:
    experiment = models.Experiment
    conditions: list[ColumnElement[bool]] = [_mentions(word) for word in (search or "").split()]
    if state is not None:
        conditions.append(experiment.state == state)
    if host is not None:
        conditions.append(experiment.host == host)
    if person is not None:
        conditions.append(experiment.person_id.in_(select(models.Person.id).where(models.Person.name == person)))
    if tag is not None:
        conditions.append(experiment.id.in_(select(models.Tag.experiment_id).where(models.Tag.name == tag)))
    return query.where(*conditions)


def _mentions(word: str) -> ColumnElement[bool]:
    arm, note, tag = models.Arm, models.Note, models.Tag

    def has(column: Any) -> Any:
        return column.icontains(word, autoescape=True)

    return or_(
        has(models.Experiment.name),
        has(models.Experiment.question),
        models.Experiment.person_id.in_(select(models.Person.id).where(has(models.Person.name))),
        models.Experiment.id.in_(select(arm.experiment_id).where(or_(has(arm.name), has(as_type(arm.knobs, Text))))),
        models.Experiment.id.in_(select(tag.experiment_id).where(has(tag.name))),
        models.Experiment.id.in_(select(note.experiment_id).where(has(note.text))),
    )


def rows_of(session: Session, experiments: Sequence[models.Experiment]) -> tuple[ExperimentRow, ...]:
    """List rows for the given experiments, with a handful of queries however many they are."""
    ids = [row.id for row in experiments]
    authors = models.Person.id.in_({row.person_id for row in experiments})
    people = _mapping(session, select(models.Person.id, models.Person.name).where(authors))
    arms = _grouped(session, models.Arm.experiment_id, models.Arm.name, ids, models.Arm.index)
    tags = _grouped(session, models.Tag.experiment_id, models.Tag.name, ids, models.Tag.name)
    notes, trials, best = _count_notes(session, ids), _count_trials(session, ids), _best(session, ids)
    return tuple(
        ExperimentRow(
            id=row.id,
            name=row.name,
            question=row.question,
            state=cast(ExperimentState, row.state),
            person=people[row.person_id],
            host=row.host,
            created_at=row.created_at,
            started_at=row.started_at,
            ended_at=row.ended_at,
            arms=tuple(arms[row.id]),
            trials_total=sum(trials[row.id].values()),
            trials_done=trials[row.id].get("done", 0),
            trials_failed=trials[row.id].get("failed", 0),
            notes=notes.get(row.id, 0),
            tags=tuple(tags[row.id]),
            stop_requested=row.stop_requested_at is not None,
            best=best.get(row.id),
        )
        for row in experiments
    )


def _mapping(session: Session, query: Executable) -> dict[Any, Any]:
    """The rows of a query for two columns."""
    return {key: value for key, value in session.execute(query)}  # noqa: C416  # dict() would call Result.keys()


def _grouped(session: Session, key: Any, value: Any, ids: Sequence[int], order: Any) -> Mapping[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for experiment_id, name in session.execute(select(key, value).where(key.in_(ids)).order_by(key, order)):
        found[experiment_id].append(name)
    return found


def _count_notes(session: Session, ids: Sequence[int]) -> Mapping[int, int]:
    note = models.Note
    query = select(note.experiment_id, func.count()).where(note.experiment_id.in_(ids)).group_by(note.experiment_id)
    return _mapping(session, query)


def _count_trials(session: Session, ids: Sequence[int]) -> Mapping[int, Mapping[str, int]]:
    trial = models.Trial
    query = select(trial.experiment_id, trial.state, func.count()).where(trial.experiment_id.in_(ids))
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for experiment_id, state, count in session.execute(query.group_by(trial.experiment_id, trial.state)):
        found[experiment_id][state] = count
    return found


def _best(session: Session, ids: Sequence[int]) -> Mapping[int, BestResult]:
    """The highest throughput per experiment, baselines apart: a dictionary keeps the last of its rows."""
    trial, arm, measured = models.Trial, models.Arm, models.Measurement
    query = (
        select(trial.experiment_id, arm.name, measured.output_tokens_per_s, measured.ttft_p95_ms)
        .join(trial, trial.id == measured.trial_id)
        .join(arm, arm.id == trial.arm_id)
        .where(trial.experiment_id.in_(ids), arm.target != "gateway", measured.output_tokens_per_s.is_not(None))
        .order_by(measured.output_tokens_per_s)
    )
    return {
        experiment_id: BestResult(name, tokens_per_s, ttft)
        for experiment_id, name, tokens_per_s, ttft in session.execute(query)
        if tokens_per_s is not None
    }
