"""Starts of engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import select

from lab.findings import error
from lab.records.states import LaunchState
from lab.store.database import Store
from lab.store.models import Launch
from lab.store.people import utc_now
from lab.store.transitions import LIVE_LAUNCH, allowed_from, is_final
from lab.store.views import LaunchRow


def add_launch(
    store: Store,
    host: str,
    engine: str,
    argv: Sequence[str],
    environment_names: Sequence[str],
    log_path: str,
    pid: int | None,
    pgid: int | None,
    start_time: float | None,
    port: int | None,
    served_name: str | None,
) -> int:
    """Stores a launch that has just begun; returns its number. Names of variables only, never their values."""
    with store.writing() as session:
        row = Launch(
            host=host,
            engine=engine,
            argv=list(argv),
            environment_names=sorted(environment_names),
            log_path=str(log_path),
            pid=pid,
            pgid=pgid,
            start_time=start_time,
            port=port,
            served_name=served_name,
            state="starting",
            started_at=utc_now(),
        )
        session.add(row)
        session.flush()
        return row.id


def update_launch(
    store: Store,
    launch_id: int,
    *,
    state: LaunchState | None = None,
    phase: str | None = None,
    last_line: str | None = None,
    effective: Mapping[str, Any] | None = None,
    ready_s: float | None = None,
    failure: str | None = None,
    ended: Mapping[str, Any] | bool | None = None,
) -> None:
    """Stores news of a launch; what is None stays as it was.

    The end is stamped with its time at the state `stopped` or `failed`, or with `ended`; `ended` may tell how it went.
    Raises LabError for a state that cannot follow.
    """
    news = {"phase": phase, "last_line": last_line, "ready_s": ready_s, "failure": failure}
    with store.writing() as session:
        row = session.get(Launch, launch_id)
        if row is None:
            raise error("launch-unknown", id=launch_id)
        if state is not None and state != row.state:
            if row.state not in allowed_from("launch", state):
                raise error("transition-refused", kind="launch", id=launch_id, state=row.state, wanted=state)
            row.state = state
        for name, value in news.items():
            if value is not None:
                setattr(row, name, value)
        if effective is not None:
            row.effective = dict(effective)
        if isinstance(ended, Mapping):
            row.ended = dict(ended)
        if row.ended_at is None and (ended or is_final("launch", row.state)):
            row.ended_at = utc_now()


def get_launch(store: Store, launch_id: int) -> LaunchRow:
    """One launch; LabError where there is none of that number."""
    with store.reading() as session:
        row = session.get(Launch, launch_id)
        if row is None:
            raise error("launch-unknown", id=launch_id)
        return _view(row)


def list_launches(store: Store, host: str | None = None, limit: int = 50) -> tuple[LaunchRow, ...]:
    """The newest launches first, of one host or of all."""
    query = select(Launch).order_by(Launch.id.desc()).limit(limit)
    if host is not None:
        query = query.where(Launch.host == host)
    with store.reading() as session:
        return tuple(_view(row) for row in session.scalars(query))


def unfinished_launches(store: Store, host: str) -> tuple[LaunchRow, ...]:
    """Launches of the host whose end was never stored: a killed runner leaves them."""
    query = select(Launch).where(Launch.host == host, Launch.state.in_(LIVE_LAUNCH)).order_by(Launch.id)
    with store.reading() as session:
        return tuple(_view(row) for row in session.scalars(query))


def _view(row: Launch) -> LaunchRow:
    return LaunchRow(
        id=row.id,
        host=row.host,
        engine=row.engine,
        argv=tuple(row.argv),
        environment_names=tuple(row.environment_names),
        log_path=row.log_path,
        pid=row.pid,
        pgid=row.pgid,
        start_time=row.start_time,
        port=row.port,
        served_name=row.served_name,
        state=cast(LaunchState, row.state),
        phase=row.phase,
        last_line=row.last_line,
        effective=row.effective,
        ready_s=row.ready_s,
        failure=row.failure,
        ended=row.ended,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )
