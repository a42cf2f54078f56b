"""Bringing a database to this version's tables, by one process at a time."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from lab.findings import error

_FOLDER = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x1AB_70_0E  # any number, the same in every version
_ONE_AT_A_TIME = Lock()  # Alembic keeps its context in a module


def is_current(connection: Connection) -> bool:
    """Whether nothing is left to do; a look that waits for nobody."""
    return _revision(connection) == _scripts().get_current_head()


def migrate(connection: Connection, database: str) -> None:
    """Runs the missing migrations in one transaction; `connection` begins it as a writer.

    Of two processes that open a new file together the second waits, and then finds nothing left to do.
    Raises LabError for a database of a newer version, or one with tables that are not the lab's.
    """
    with connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        revision = _revision(connection)
        if revision is None:
            _refuse_foreign(connection, database)
        elif revision not in {script.revision for script in _scripts().walk_revisions()}:
            raise error("database-newer", database=database, revision=revision)
        config = alembic_config()
        config.attributes["connection"] = connection
        with _ONE_AT_A_TIME:
            command.upgrade(config, "head")


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(alembic_config())


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _refuse_foreign(connection: Connection, database: str) -> None:
    tables = sorted(set(inspect(connection).get_table_names()) - {"alembic_version"})
    if tables:
        raise error("database-foreign", database=database, tables=", ".join(tables[:3]))
