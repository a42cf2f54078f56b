"""One row per request, with the arrivals of its chunks packed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import numpy as np
from sqlalchemy import Row, insert, select
from sqlalchemy.orm import Session

from lab.records.request import RequestRecord
from lab.records.states import RequestFailure
from lab.store.columns import plain_float, plain_int
from lab.store.database import Store
from lab.store.models import Request

FLOATS = (
    "t0_ms", "sent_ms", "scheduled_ms", "client_wait_ms", "connect_ms", "first_byte_ms", "ttft_ms", "first_answer_ms",
    "e2e_ms", "tpot_ms", "engine_queue_ms", "engine_prefill_ms",
)  # fmt: skip
INTEGERS = ("index", "http_status", "prompt_tokens", "completion_tokens", "cached_tokens")
SAME = ("warmup", "incomplete", "tokens_estimated", "failure", "finish_reason", "message", "text")
_get_floats, _get_integers, _get_same = attrgetter(*FLOATS), attrgetter(*INTEGERS), attrgetter(*SAME)
BATCH = 5000


def insert_requests(session: Session, measurement_id: int, records: Sequence[RequestRecord]) -> None:
    """Bulk insert, in batches so that memory stays bounded."""
    connection, statement = session.connection(), insert(Request.__table__)  # type: ignore[arg-type]
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        connection.execute(statement, [_to_row(measurement_id, record) for record in batch])


def _to_row(measurement_id: int, record: RequestRecord) -> dict[str, Any]:
    row: dict[str, Any] = {"measurement_id": measurement_id}
    row.update(zip(SAME, _get_same(record), strict=True))
    for name, value in zip(FLOATS, _get_floats(record), strict=True):
        row[name] = value if value is None else plain_float(value)
    for name, value in zip(INTEGERS, _get_integers(record), strict=True):
        row[name] = plain_int(value)
    row["marks"] = " ".join(record.marks) or None
    row["gaps"] = pack_times(record.chunk_times_ms)
    return row


def pack_times(times_ms: Sequence[float]) -> bytes:
    """Arrivals as gaps in whole microseconds (the first from t0), four bytes each; no error adds up.

    A gap of more than 35 minutes does not fit; no request may take that long between two chunks.
    """
    if not times_ms:
        return b""
    micros = np.rint(np.array(times_ms, dtype=np.float64) * 1000).astype(np.int64)
    return np.diff(micros, prepend=0).astype("<i4").tobytes()


def unpack_times(packed: bytes) -> tuple[float, ...]:
    """Arrivals in milliseconds from t0, to the microsecond."""
    micros = np.cumsum(np.frombuffer(packed, dtype="<i4"), dtype=np.int64)
    return tuple((micros / 1000).tolist())


def list_requests(store: Store, measurement_id: int) -> tuple[RequestRecord, ...]:
    """All requests of a measurement in the order of sending, warm-up included and flagged."""
    query = (
        select(Request.__table__).where(Request.measurement_id == measurement_id).order_by(Request.t0_ms, Request.index)
    )
    with store.reading() as session:
        return tuple(_record(row) for row in session.execute(query))


def _record(row: Row[Any]) -> RequestRecord:
    return RequestRecord(
        index=row.index,  # type: ignore[arg-type]  # the column hides the tuple's method
        warmup=row.warmup,
        t0_ms=row.t0_ms,
        sent_ms=row.sent_ms,
        scheduled_ms=row.scheduled_ms,
        client_wait_ms=row.client_wait_ms,
        connect_ms=row.connect_ms,
        first_byte_ms=row.first_byte_ms,
        ttft_ms=row.ttft_ms,
        first_answer_ms=row.first_answer_ms,
        e2e_ms=row.e2e_ms,
        tpot_ms=row.tpot_ms,
        chunk_times_ms=unpack_times(row.gaps),
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cached_tokens=row.cached_tokens,
        tokens_estimated=row.tokens_estimated,
        finish_reason=row.finish_reason,
        failure=cast(RequestFailure | None, row.failure),
        message=row.message,
        http_status=row.http_status,
        incomplete=row.incomplete,
        text=row.text,
        engine_queue_ms=row.engine_queue_ms,
        engine_prefill_ms=row.engine_prefill_ms,
        marks=tuple(row.marks.split()) if row.marks else (),
    )


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


def list_ttft(store: Store, measurement_ids: Iterable[int]) -> Mapping[int, list[float]]:
    """The same for a page: what pooled percentiles are made of."""
    with store.reading() as session:
        return ttft_by_measurement(session, measurement_ids)
