"""Why a database takes no writes just now: asked by who waits for somebody else's."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from lab.findings import Finding
from lab.store.database import Store, shown

# what passes without us: another writer, a database server that restarts, a disk that someone makes room on
PASSING = frozenset({"database-busy", "database-unreachable", "database-disk-full"})
_LOOK_S = 0.5
# a transaction that stores a measurement needs about as much
_NEEDED_BYTES = 1024 * 1024


def write_problem(store: Store) -> Finding | None:
    """What keeps everybody from writing: another writer, a full disk; None where nothing does, or nobody can tell.

    Takes half a second at most and changes nothing.
    """
    url = store.engine.url
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    params = {"database": shown(url)}
    try:
        free_bytes = shutil.disk_usage(Path(url.database).absolute().parent).free
    except OSError:
        return None
    if free_bytes < _NEEDED_BYTES:
        return Finding("database-disk-full", "warning", {**params, "reason": "no space left"})
    try:
        with closing(sqlite3.connect(url.database, timeout=_LOOK_S, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as problem:
        return Finding("database-held", "warning", {**params, "reason": str(problem)})
    return None
