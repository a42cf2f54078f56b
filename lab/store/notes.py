"""Remarks and tags on experiments."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, select

from lab.store.database import Store
from lab.store.experiments import experiment_row
from lab.store.models import Note, Person, Tag
from lab.store.people import person_id, utc_now
from lab.store.views import NoteRow


def add_note(store: Store, experiment_id: int, person: str, text: str) -> int:
    """Stores a remark; returns its number. LabError where the experiment does not exist."""
    with store.writing() as session:
        experiment_row(session, experiment_id)
        author = person_id(session, person)
        row = Note(experiment_id=experiment_id, person_id=author, text=text.strip(), created_at=utc_now())
        session.add(row)
        session.flush()
        return row.id


def list_notes(store: Store, experiment_id: int) -> tuple[NoteRow, ...]:
    """The remarks on an experiment, oldest first."""
    query = (
        select(Note, Person.name)
        .join(Person, Person.id == Note.person_id)
        .where(Note.experiment_id == experiment_id)
        .order_by(Note.id)
    )
    with store.reading() as session:
        return tuple(
            NoteRow(note.id, note.experiment_id, name, note.text, note.created_at)
            for note, name in session.execute(query)
        )


def set_tags(store: Store, experiment_id: int, tags: Iterable[str]) -> None:
    """Replaces the tags of an experiment; blanks around a tag and empty ones are dropped."""
    names = {tag.strip()[:64] for tag in tags} - {""}
    with store.writing() as session:
        experiment_row(session, experiment_id)
        session.execute(delete(Tag).where(Tag.experiment_id == experiment_id))
        session.add_all(Tag(experiment_id=experiment_id, name=name) for name in sorted(names))


def list_tags(store: Store) -> tuple[str, ...]:
    """All tags in use."""
    with store.reading() as session:
        return tuple(session.scalars(select(Tag.name).distinct().order_by(Tag.name)))
