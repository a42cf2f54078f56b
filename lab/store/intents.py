"""What people want of a runner: written by pages and the command line, closed by the runner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from lab.records.states import IntentKind
from lab.store.database import Store
from lab.store.models import Intent, Person
from lab.store.people import person_id, utc_now
from lab.store.views import IntentRow


def add_intent(
    store: Store,
    host: str,
    kind: IntentKind,
    *,
    experiment_id: int | None = None,
    payload: Mapping[str, Any] | None = None,
    person: str,
) -> int:
    """Writes down what is wanted; returns its number."""
    with store.writing() as session:
        return insert_intent(session, host, kind, experiment_id, payload, person)


def insert_intent(
    session: Session,
    host: str,
    kind: IntentKind,
    experiment_id: int | None,
    payload: Mapping[str, Any] | None,
    person: str,
) -> int:
    """The same inside a transaction that does more."""
    row = Intent(
        host=host,
        kind=kind,
        experiment_id=experiment_id,
        payload=None if payload is None else dict(payload),
        person_id=person_id(session, person),
        created_at=utc_now(),
    )
    session.add(row)
    session.flush()
    return row.id


def open_intents(store: Store, host: str) -> tuple[IntentRow, ...]:
    """What is still wanted of this host's runner, oldest first."""
    with store.reading() as session:
        query = (
            select(Intent, Person.name)
            .join(Person, Person.id == Intent.person_id)
            .where(Intent.host == host, Intent.closed_at.is_(None))
            .order_by(Intent.id)
        )
        return tuple(_view(row, name) for row, name in session.execute(query))


def get_intent(store: Store, intent_id: int) -> IntentRow | None:
    with store.reading() as session:
        query = select(Intent, Person.name).join(Person, Person.id == Intent.person_id).where(Intent.id == intent_id)
        found = session.execute(query).first()
        return None if found is None else _view(found[0], found[1])


def recent_intents(store: Store, host: str, kind: IntentKind, limit: int = 20) -> tuple[IntentRow, ...]:
    """The newest wishes of one kind, open and closed."""
    with store.reading() as session:
        query = (
            select(Intent, Person.name)
            .join(Person, Person.id == Intent.person_id)
            .where(Intent.host == host, Intent.kind == kind)
            .order_by(Intent.id.desc())
            .limit(limit)
        )
        return tuple(_view(row, name) for row, name in session.execute(query))


def update_intent(store: Store, intent_id: int, payload: Mapping[str, Any]) -> bool:
    """Notes how far a wish is, in place of its payload; False where it was closed meanwhile."""
    with store.writing() as session:
        noting = update(Intent).where(Intent.id == intent_id, Intent.closed_at.is_(None)).values(payload=dict(payload))
        return changed(session, noting) == 1


def close_intent(store: Store, intent_id: int, outcome: str) -> bool:
    """Notes how it went; False where somebody closed it before."""
    with store.writing() as session:
        closing = (
            update(Intent)
            .where(Intent.id == intent_id, Intent.closed_at.is_(None))
            .values(closed_at=utc_now(), outcome=outcome)
        )
        return changed(session, closing) == 1


def changed(session: Session, statement: Any) -> int:
    """How many rows an update or delete met."""
    return int(cast(Any, session.execute(statement)).rowcount)


def _view(row: Intent, person: str) -> IntentRow:
    return IntentRow(
        id=row.id,
        host=row.host,
        kind=cast(IntentKind, row.kind),
        experiment_id=row.experiment_id,
        payload=row.payload,
        person=person,
        created_at=row.created_at,
        closed_at=row.closed_at,
        outcome=row.outcome,
    )
