"""One row per request, written and read by the hundred thousand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, cast

import numpy as np
from sqlalchemy import Row, Table, insert, select
from sqlalchemy.orm import Session

from lab.records.arrivals import Arrivals
from lab.records.request import RequestRecord
from lab.records.table import COUNTS, FLAGS, TIMES, WORDS, RequestTable, Values, optional
from lab.store.database import Store
from lab.store.models import Request

Column = Sequence[Any]
TABLE = cast(Table, Request.__table__)
FIELDS = tuple(field.name for field in fields(RequestRecord))
_CHUNKS, _MARKS = FIELDS.index("chunk_times_ms"), FIELDS.index("marks")
_BATCH = 5000


def insert_requests(session: Session, measurement_id: int, records: Sequence[RequestRecord]) -> None:
    """Bulk insert, in batches so that memory stays bounded."""
    table = RequestTable.of(records)
    for start in range(0, len(table), _BATCH):
        batch = table[start : start + _BATCH]
        _insert(session, {"measurement_id": [measurement_id] * len(batch), **_columns(batch)})


def _insert(session: Session, columns: Mapping[str, Column]) -> None:
    """Rows as plain tuples where the driver takes them: SQLAlchemy's own path costs more than SQLite itself."""
    connection, statement = session.connection(), insert(TABLE).values(dict.fromkeys(columns))
    compiled = statement.compile(dialect=connection.dialect)
    rows: Iterable[tuple[Any, ...]]
    if compiled.positional and compiled.positiontup is not None:
        rows = zip(*(columns[name] for name in compiled.positiontup), strict=True)
        connection.exec_driver_sql(str(compiled), list(rows))
    else:
        rows = zip(*columns.values(), strict=True)
        connection.execute(insert(TABLE), [dict(zip(columns, row, strict=True)) for row in rows])


def _columns(batch: RequestTable) -> dict[str, Column]:
    """Python's own numbers, None for what cannot be had, also where it came as an infinity."""
    return {
        "index": batch.indexes.tolist(),
        **{name: batch.flag(name).tolist() for name in FLAGS},
        **{name: optional(_finite(batch.column(name))) for name in TIMES},
        **{name: optional(_finite(batch.column(name)), whole=True) for name in COUNTS},
        **{name: batch.words(name) for name in WORDS},
        "gaps": batch.packed_arrivals(),
        "text": batch.texts(),
    }


def _finite(values: Values) -> Values:
    return np.where(np.isfinite(values), values, np.nan)


def list_requests(store: Store, measurement_id: int) -> tuple[RequestRecord, ...]:
    """All requests of a measurement in the order of sending, warm-up included and flagged."""
    columns = [TABLE.c["gaps" if name == "chunk_times_ms" else name] for name in FIELDS]
    query = select(*columns).where(Request.measurement_id == measurement_id).order_by(Request.id)
    with store.reading() as session:
        found = session.execute(query).partitions(_BATCH)
        records = [record for rows in found for record in _records(rows)]
    # Sorting here is cheaper than letting the database carry the wide columns through a sort.
    return tuple(sorted(records, key=attrgetter("t0_ms", "index")))


def _records(rows: Sequence[Row[Any]]) -> Iterator[RequestRecord]:
    """The columns stand in the order of the record's fields."""
    for row in rows:
        values = list(row)
        values[_CHUNKS] = Arrivals(values[_CHUNKS])
        values[_MARKS] = tuple(values[_MARKS].split()) if values[_MARKS] else ()
        yield RequestRecord(*values)


def ttft_by_measurement(session: Session, measurement_ids: Iterable[int]) -> Mapping[int, list[float]]:
    """TTFT in milliseconds of the measured requests that did not fail, by measurement; answered from an index."""
    query = select(Request.measurement_id, Request.ttft_ms).where(
        Request.measurement_id.in_(tuple(measurement_ids)),
        Request.warmup.is_(False),
        Request.failure.is_(None),
        Request.ttft_ms.is_not(None),
    )
    found: dict[int, list[float]] = {}
    for measurement_id, value in session.execute(query):
        if value is not None:
            found.setdefault(measurement_id, []).append(value)
    return found
