"""Opening the database: connections, short transactions, failures in one line."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.orm import Session

from lab.findings import LabError, error
from lab.store.columns import from_json, to_json
from lab.store.migrate import is_current, migrate

BUSY_TIMEOUT_S = 15
_WRITING = "lab_writing"


@dataclass(frozen=True, slots=True)
class Store:
    """An open database; the functions of `lab.store` take it first. Safe to share between threads."""

    engine: Engine

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A consistent view; never waits for a writer on SQLite."""
        with _in_one_line(self.engine.url), self.engine.connect() as connection, Session(connection) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One short transaction, committed at the end, undone on an exception.

        On SQLite it takes the writer's place at its beginning: one that reads first and writes later could not wait
        for its turn, since what it has read may be outdated by then.
        """
        with (
            _in_one_line(self.engine.url),
            _writer(self.engine) as connection,
            connection.begin(),
            Session(connection, expire_on_commit=False) as session,
        ):
            yield session
            session.flush()

    def close(self) -> None:
        self.engine.dispose()


def open_store(url: str) -> Store:
    """The database at the URL, made and migrated to this version's tables where it has to be.

    Raises LabError where it cannot be opened, comes from a newer version, or belongs to something else.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        _prepare_file(parsed)
    engine = _make_engine(parsed)
    try:
        with _in_one_line(parsed):
            _set_wal(engine)
            with engine.connect() as connection:
                current = is_current(connection)
            if not current:
                with _writer(engine) as connection:
                    migrate(connection, shown(parsed))
    except BaseException:
        engine.dispose()
        raise
    return Store(engine)


def shown(url: URL) -> str:
    """The address as it may be shown: a file's path, or the URL without its password."""
    return url.database if url.get_backend_name() == "sqlite" and url.database else url.render_as_string()


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError) as cause:
        raise error("database-url", url=url.split("@")[-1]) from cause
    return parsed


def _prepare_file(url: URL) -> None:
    """Makes the file readable by its owner only; SQLite gives its side files the same mode."""
    if not url.database or url.database == ":memory:":
        return
    path = Path(url.database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as cause:
        raise error("database-unreachable", database=str(path), reason=cause.strerror or str(cause)) from cause


def _make_engine(url: URL) -> Engine:
    options: dict[str, Any] = {"json_serializer": to_json, "json_deserializer": from_json, "pool_pre_ping": True}
    if url.get_backend_name() != "sqlite":
        return create_engine(url, **options)
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S}, **options)
    event.listen(engine, "connect", _set_up_connection)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up_connection(connection: Any, _record: object) -> None:
    # The driver's own idea of when a transaction begins would commit tables half made and take locks late.
    connection.isolation_level = None
    for pragma in ("foreign_keys = ON", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get(_WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _writer(engine: Engine) -> Connection:
    return engine.connect().execution_options(**{_WRITING: True})


def _set_wal(engine: Engine) -> None:
    """Readers and the writer do not block each other then. The mode stays with the file.

    Changing it needs the file alone and does not wait for that by itself: another process may be doing the same.
    """
    if engine.dialect.name != "sqlite":
        return
    raw, deadline = engine.raw_connection(), time.monotonic() + BUSY_TIMEOUT_S
    try:
        while not _is_wal(raw.cursor(), give_up=time.monotonic() > deadline):
            time.sleep(0.02)
    finally:
        raw.close()


def _is_wal(cursor: Any, *, give_up: bool) -> bool:
    try:
        if cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            return True
        return bool(cursor.execute("PRAGMA journal_mode = WAL").fetchone())
    except sqlite3.OperationalError as cause:
        if give_up or "locked" not in str(cause):
            raise
        return False


_REASONS = (
    ("database is locked", "database-busy"),
    ("readonly", "database-read-only"),
    ("disk is full", "database-disk-full"),
    ("disk I/O error", "database-disk-full"),
    ("file is not a database", "database-corrupt"),
    ("malformed", "database-corrupt"),
    ("unable to open", "database-unreachable"),
)


@contextmanager
def _in_one_line(url: URL) -> Iterator[None]:
    """A database that fails is something the user can put right; a wrong statement stays the programmer's."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as cause:
        problem = _problem(cause, url)
        if problem is None:
            raise
        raise problem from cause


def _problem(cause: DBAPIError | sqlite3.Error, url: URL) -> LabError | None:
    original = cause.orig if isinstance(cause, DBAPIError) else cause
    reason = next(iter(str(original).splitlines()), type(original).__name__)
    for text, code in _REASONS:
        if text in reason:
            return error(code, database=shown(url), reason=reason)
    lost = isinstance(cause, OperationalError | InterfaceError) and url.get_backend_name() != "sqlite"
    if lost:
        return error("database-unreachable", database=shown(url), reason=reason)
    return None
