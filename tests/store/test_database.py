"""Opening: a new file, an old one, a foreign, newer, broken or locked one; each failure is one line."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from lab.findings import LabError
from lab.messages import word_finding
from lab.store import (
    Store,
    add_note,
    get_experiment,
    get_host,
    heartbeat,
    history_totals,
    list_experiments,
    list_notes,
    list_requests,
    list_samples,
    open_store,
)
from lab.store.models import Base

ASSETS = Path(__file__).parent / "assets"


def code_of(error: pytest.ExceptionInfo[LabError]) -> str:
    (finding,) = error.value.findings
    assert "\n" not in word_finding(finding)
    return finding.code


def test_a_new_file_has_all_tables_of_the_design(store: Store, database: Path) -> None:
    with closing(sqlite3.connect(database)) as outside:
        tables = {name for (name,) in outside.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    wanted = {
        "host", "person", "config_version", "experiment", "arm", "launch", "trial", "measurement", "request", "sample",
        "intent", "note", "tag", "config_save",
    }  # fmt: skip
    assert tables == wanted | {"alembic_version"}


def test_migrations_and_models_agree(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_the_file_is_its_owners_alone(store: Store, database: Path) -> None:
    heartbeat(store, "h", runner_pid=1, state="idle")
    for path in database.parent.glob("experiments.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_connections_are_set_up_for_many_processes(store: Store) -> None:
    with store.engine.connect() as connection:
        ask = connection.exec_driver_sql
        assert ask("PRAGMA journal_mode").scalar() == "wal"
        assert ask("PRAGMA foreign_keys").scalar() == 1
        assert (ask("PRAGMA busy_timeout").scalar() or 0) >= 15_000


def test_opening_again_changes_nothing(store: Store, url: str, database: Path) -> None:
    heartbeat(store, "h", runner_pid=1, state="idle")
    again = open_store(url)
    assert get_host(again, "h") is not None
    again.close()


@pytest.mark.parametrize("asset", sorted(ASSETS.glob("revision_*.db")), ids=lambda path: path.stem)
def test_databases_of_older_versions_open_with_what_they_hold(asset: Path, database: Path, url: str) -> None:
    shutil.copy(asset, database)
    store = open_store(url)
    (row,) = list_experiments(store)
    view = get_experiment(store, row.id)
    assert (row.name, row.state, row.tags) == ("Continuous batching on and off", "done", ("kept",))
    assert len(view.measurements) == 6
    first = view.measurements[0]
    assert first.summary.output_tokens_per_s == pytest.approx(29.0, abs=0.5)
    assert len(list_requests(store, first.id)) == 6 + 2
    assert list_samples(store, first.id)
    assert [note.text for note in list_notes(store, row.id)] == ["made by the first migration"]
    add_note(store, row.id, "Grace", "and still writable")
    store.close()


def test_there_is_an_old_database_for_every_migration() -> None:
    scripts = Path(__file__).parents[2] / "lab" / "store" / "migrations" / "versions"
    revisions = {path.name.split("_")[0] for path in scripts.glob("0*.py")}
    assert {path.stem.removeprefix("revision_") for path in ASSETS.glob("revision_*.db")} == revisions


def test_a_database_of_a_newer_version_is_refused(store: Store, url: str, database: Path) -> None:
    store.close()
    with closing(sqlite3.connect(database)) as outside:
        outside.execute("UPDATE alembic_version SET version_num = '9999'")
        outside.commit()
    with pytest.raises(LabError) as caught:
        open_store(url)
    assert code_of(caught) == "database-newer"


def test_a_database_of_something_else_is_refused_and_left_alone(url: str, database: Path) -> None:
    with closing(sqlite3.connect(database)) as outside:
        outside.execute("CREATE TABLE invoices (id INTEGER)")
        outside.commit()
    with pytest.raises(LabError) as caught:
        open_store(url)
    assert code_of(caught) == "database-foreign"
    with closing(sqlite3.connect(database)) as outside:
        assert outside.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)


def test_a_file_that_is_no_database_is_refused_and_left_alone(url: str, database: Path) -> None:
    database.write_bytes(b"dear diary, " * 1000)
    with pytest.raises(LabError) as caught:
        open_store(url)
    assert code_of(caught) == "database-corrupt"
    assert database.read_bytes() == b"dear diary, " * 1000


def test_a_truncated_database_is_one_line(store: Store, url: str, database: Path) -> None:
    store.close()
    for side in ("-wal", "-shm"):
        database.with_name(database.name + side).unlink(missing_ok=True)
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(database.stat().st_size - 4096))
    with pytest.raises(LabError) as caught:
        list_experiments(open_store(url))
    assert code_of(caught) == "database-corrupt"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError) as caught:
        open_store(f"sqlite:///{tmp_path}/file/x.db")
    assert code_of(caught) == "database-unreachable"


def test_a_folder_in_place_of_the_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LabError) as caught:
        open_store(f"sqlite:///{tmp_path}")
    assert code_of(caught) == "database-unreachable"


@pytest.mark.parametrize("url", ["experiments.db", "mystery://x/y", ""])
def test_an_address_that_is_none_is_one_line(url: str) -> None:
    with pytest.raises(LabError) as caught:
        open_store(url)
    assert code_of(caught) == "database-url"


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LabError) as caught:
        open_store("mystery://me:hunter2@host/db")
    assert "hunter2" not in word_finding(caught.value.findings[0])


def test_a_read_only_file_is_one_line(store: Store) -> None:
    # As the superuser may write anything, SQLite itself is told to refuse.
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.rollback()
    with pytest.raises(LabError) as caught:
        heartbeat(store, "h", runner_pid=1, state="idle")
    assert code_of(caught) == "database-read-only"


def test_a_full_disk_is_one_line_and_loses_nothing(store: Store) -> None:
    heartbeat(store, "before", runner_pid=1, state="idle")
    with store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        connection.rollback()
    with pytest.raises(LabError) as caught:
        for _ in range(100):
            heartbeat(store, "x" * 200, runner_pid=1, state="idle", detail="y" * 20_000)
            heartbeat(store, os.urandom(8).hex(), runner_pid=1, state="idle", detail="y" * 20_000)
    assert code_of(caught) == "database-disk-full"
    assert get_host(store, "before") is not None
    assert history_totals(store).experiments == 0


def test_the_tables_can_be_made_on_postgresql() -> None:
    # Without a server, the statements at least are PostgreSQL's.
    made = "\n".join(
        str(CreateTable(table).compile(dialect=postgresql.dialect())) for table in Base.metadata.sorted_tables
    )
    assert "TIMESTAMP WITH TIME ZONE" in made
    assert "BYTEA" in made
    assert "BLOB" not in made
