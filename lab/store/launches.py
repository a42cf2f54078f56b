"""Starts of engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any, cast

from sqlalchemy import select

from lab.findings import error
from lab.records.states import LaunchState
from lab.store.database import Store
from lab.store.models import Launch
from lab.store.people import utc_now
from lab.store.transitions import LIVE_LAUNCH, allowed_from, is_final
from lab.store.views import ExpectedStart, LaunchRow, LaunchStep

# so many earlier starts say what one takes
_REMEMBERED_STARTS = 20
# an engine that serves many trials goes from ready to busy and back for each
_LONGEST_HISTORY = 100
# the steps of its start stay whatever follows
_KEPT_BEGINNING = 20


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
    phase: str | None = None,
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
            phase=phase,
            started_at=utc_now(),
        )
        row.history = [_step(row, 0.0)]
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
    after_s: float | None = None,
) -> None:
    """Stores news of a launch; what is None stays as it was.

    A new state or phase becomes a step of its history; `after_s` says when, in seconds from the launch (default: by the
    system's clock). The end is stamped with its time at the state `stopped` or `failed`, or with `ended`; `ended` may
    tell how it went. Raises LabError for a state that cannot follow.
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
        row.history = _with_step(row, after_s)


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


def expected_start(store: Store, host: str, engine: str, served_name: str | None) -> ExpectedStart | None:
    """What a start of this model should take here, from the newest starts that succeeded; None where there is none."""
    query = (
        select(Launch)
        .where(Launch.host == host, Launch.engine == engine, Launch.served_name == served_name)
        .where(Launch.ready_s.is_not(None))
        .order_by(Launch.id.desc())
        .limit(_REMEMBERED_STARTS)
    )
    with store.reading() as session:
        starts = [_view(row) for row in session.scalars(query)]
    if not starts:
        return None
    reached: dict[str, list[float]] = {}
    for step in (step for launch in starts for step in launch.history if step.state == "starting" and step.phase):
        reached.setdefault(step.phase or "", []).append(step.after_s)
    phases = sorted(((phase, median(times)) for phase, times in reached.items()), key=lambda each: each[1])
    return ExpectedStart(len(starts), median(launch.ready_s or 0.0 for launch in starts), dict(phases))


def _step(row: Launch, after_s: float | None) -> dict[str, Any]:
    now = utc_now()
    passed_s = (now - row.started_at).total_seconds() if after_s is None else after_s
    step = {"state": row.state, "phase": row.phase if row.state == "starting" else None, "at": now.isoformat()}
    return {**step, "after_s": round(passed_s, 2), "line": row.last_line}


def _with_step(row: Launch, after_s: float | None) -> list[Any]:
    """The history with a step more where state or phase is new, else with the newest line at its last step."""
    history = list(row.history or [])
    step = _step(row, after_s)
    if history and (history[-1]["state"], history[-1]["phase"]) == (step["state"], step["phase"]):
        return [*history[:-1], {**history[-1], "line": step["line"]}]
    return [*history[:_KEPT_BEGINNING], *history[_KEPT_BEGINNING:][-_LONGEST_HISTORY:], step]


def _steps(history: list[Any] | None) -> tuple[LaunchStep, ...]:
    return tuple(LaunchStep(**{**step, "at": datetime.fromisoformat(step["at"])}) for step in history or ())


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
        history=_steps(row.history),
    )
