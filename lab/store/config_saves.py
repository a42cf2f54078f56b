"""Every version of the config pair: saved by the lab, or found changed on disk."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from lab.configs.changes import ChangedValue, changed_values
from lab.configs.checks import key_findings, parse_errors
from lab.configs.pair import (
    CONFIG_FILE,
    SETTINGS_FILE,
    ConfigPair,
    pair_hash,
    read_pair,
    write_pair,
)
from lab.configs.secrets import masked
from lab.findings import LabError, error
from lab.records.states import SaveSource
from lab.store.database import Store
from lab.store.experiments import LARGEST_ID, get_config_version, keep_config
from lab.store.models import ConfigSave, ConfigVersion, Person
from lab.store.people import person_id, utc_now
from lab.store.views import ConfigSaveRow

_KEY_FINDINGS = ("secret-in-file", "secret-in-text")


def save_pair(
    store: Store,
    config_dir: Path,
    old: ConfigPair,
    new: ConfigPair,
    *,
    host: str,
    person: str,
    source: SaveSource,
    note: str = "",
    restored_id: int | None = None,
    missing: Collection[str] = (),
) -> ConfigSaveRow | None:
    """Writes what changed to the folder's files and keeps it as a version, both or neither; None for no change.

    What stood on disk before is kept too, if nobody had seen it. Files named in `missing` do not exist and are
    made. Raises `LabError`: "changed-meanwhile" where the files are not the old ones any more, "secret-in-version" for
    a text or note with a key, what `write_pair` and the database say.
    """
    if not missing and (old.settings_text, old.config_text) == (new.settings_text, new.config_text):
        return None
    if holds_key(new) or masked(note) != note:
        raise error("secret-in-version")
    with store.writing() as session:
        # half a pair is no version: what is put back is compared with the last whole one
        parent = _latest(session, config_dir, host) if missing else _see_disk(session, config_dir, host)
        before = _texts(session, parent) if missing and parent else old
        row = _new_save(session, config_dir, new, parent, host=host, source=source)
        row.person_id, row.note, row.restored_id = person_id(session, person), note.strip(), restored_id
        row.changes = _changes(before, new)
        session.add(row)
        session.flush()
        view = _view(row, person)
        # last, so that nothing but the commit can fail once the files are new
        write_pair(config_dir, old, new, missing)
        return view


def note_disk(store: Store, config_dir: Path, *, host: str) -> ConfigSaveRow | None:
    """The version that the folder's files are; a change made outside the lab becomes one, as `external`.

    None where the files hold a key: such a text is not kept. Raises `LabError` where a file cannot be read.
    """
    disk = pair_hash(read_pair(config_dir))
    with store.reading() as session:
        latest = _latest(session, config_dir, host)
        if latest is not None and latest.config_hash == disk:
            return _view(latest, _name(session, latest))
    with store.writing() as session:
        row = _see_disk(session, config_dir, host)
        return None if row is None else _view(row, _name(session, row))


def list_config_saves(
    store: Store, config_dir: Path, *, host: str, search: str | None = None, limit: int | None = 100, offset: int = 0
) -> tuple[ConfigSaveRow, ...]:
    """The versions of a folder's pair, newest first. `search` looks into notes and names; `limit` None gives all."""
    query = select(ConfigSave, Person.name).outerjoin(Person, Person.id == ConfigSave.person_id)
    query = query.where(*_wanted(config_dir, host, search)).order_by(ConfigSave.id.desc())
    with store.reading() as session:
        return tuple(_view(row, name) for row, name in session.execute(query.limit(limit).offset(offset)))


def count_config_saves(store: Store, config_dir: Path, *, host: str, search: str | None = None) -> int:
    """How many versions there are of that folder's pair."""
    query = select(func.count(ConfigSave.id)).outerjoin(Person, Person.id == ConfigSave.person_id)
    with store.reading() as session:
        return session.scalar(query.where(*_wanted(config_dir, host, search))) or 0


def get_config_save(store: Store, save_id: int) -> ConfigSaveRow:
    """One version; raises "config-save-unknown"."""
    with store.reading() as session:
        row = session.get(ConfigSave, save_id) if 0 < save_id <= LARGEST_ID else None
        if row is None:
            raise error("config-save-unknown", id=save_id)
        return _view(row, _name(session, row))


def stored_pair(store: Store, config_hash: str) -> ConfigPair:
    """The two texts under a version's `config_hash` or `parent_hash`. Raises "config-version-unknown"."""
    texts = get_config_version(store, config_hash)
    if texts is None:
        raise error("config-version-unknown", hash=config_hash[:12])
    return ConfigPair(*texts)


def holds_key(pair: ConfigPair) -> bool:
    """Whether a key stands written out in one of the texts, as far as can be told."""
    if parse_errors(pair):
        return any(masked(text) != text for text in (pair.settings_text, pair.config_text))
    return any(finding.code in _KEY_FINDINGS for finding in key_findings(pair))


def _see_disk(session: Session, config_dir: Path, host: str) -> ConfigSave | None:
    """The version on disk, added as `external` where it is not the latest known. Inside a writer's transaction.

    Read in there: a save of the lab, which changes files and versions in one transaction, cannot come in between.
    """
    disk = read_pair(config_dir)
    latest = _latest(session, config_dir, host)
    if (latest is not None and latest.config_hash == pair_hash(disk)) or holds_key(disk):
        return latest
    row = _new_save(session, config_dir, disk, latest, host=host, source="external")
    row.changes = _changes(_texts(session, latest), disk) if latest else []
    session.add(row)
    session.flush()
    return row


def _new_save(
    session: Session, config_dir: Path, pair: ConfigPair, parent: ConfigSave | None, *, host: str, source: SaveSource
) -> ConfigSave:
    return ConfigSave(
        host=host,
        folder=_folder(config_dir),
        created_at=utc_now(),
        source=source,
        note="",
        config_hash=keep_config(session, pair.settings_text, pair.config_text),
        parent_hash=parent.config_hash if parent else None,
    )


def _texts(session: Session, save: ConfigSave) -> ConfigPair:
    texts = session.get_one(ConfigVersion, save.config_hash)
    return ConfigPair(texts.settings_text, texts.config_text)


def _latest(session: Session, config_dir: Path, host: str) -> ConfigSave | None:
    query = select(ConfigSave).where(ConfigSave.host == host, ConfigSave.folder == _folder(config_dir))
    return session.scalar(query.order_by(ConfigSave.id.desc()).limit(1))


def _wanted(config_dir: Path, host: str, search: str | None) -> list[ColumnElement[bool]]:
    """The folder's versions that have every word in their note or their author's name."""
    words = (search or "").split()
    texts = (ConfigSave.note, Person.name)
    found = [or_(*(text.icontains(word, autoescape=True) for text in texts)) for word in words]
    return [ConfigSave.host == host, ConfigSave.folder == _folder(config_dir), *found]


def _folder(config_dir: Path) -> str:
    return str(config_dir.resolve())


def _name(session: Session, row: ConfigSave) -> str | None:
    return None if row.person_id is None else session.get_one(Person, row.person_id).name


def _changes(old: ConfigPair, new: ConfigPair) -> list[dict[str, Any]] | None:
    if holds_key(old):
        return None
    try:
        changes = changed_values(_named(old), _named(new))
    except LabError:
        return None
    return [asdict(change) for change in changes]


def _named(pair: ConfigPair) -> ConfigPair:
    """Under the plain names, so that the files are parsed by their kind whatever name is shown for them."""
    return ConfigPair(pair.settings_text, pair.config_text, SETTINGS_FILE, CONFIG_FILE)


def _view(row: ConfigSave, person: str | None) -> ConfigSaveRow:
    changes = None if row.changes is None else tuple(ChangedValue(**change) for change in row.changes)
    return ConfigSaveRow(
        id=row.id,
        host=row.host,
        folder=row.folder,
        created_at=row.created_at,
        person=person,
        source=cast(SaveSource, row.source),
        note=row.note,
        config_hash=row.config_hash,
        parent_hash=row.parent_hash,
        restored_id=row.restored_id,
        changes=changes,
    )
