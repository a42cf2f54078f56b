"""Who: a name, made at its first use."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from lab.store.models import Person


def utc_now() -> datetime:
    return datetime.now(UTC)


def person_id(session: Session, name: str) -> int:
    """The number of the person of that name; inside a writing transaction, so that nobody makes it meanwhile."""
    clean = name.strip()[:255] or "unknown"
    found = session.scalar(select(Person.id).where(Person.name == clean))
    if found is not None:
        return found
    person = Person(name=clean, created_at=utc_now())
    session.add(person)
    session.flush()
    return person.id
