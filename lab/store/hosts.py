"""Hosts and what their runners last said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from lab.records.ceiling import ClientCeiling
from lab.store.database import Store
from lab.store.models import Host
from lab.store.people import utc_now
from lab.store.views import HostRow

_CEILING = "client_ceiling"


def heartbeat(
    store: Store,
    host: str,
    *,
    runner_pid: int | None,
    state: str,
    detail: str | None = None,
    trial_id: int | None = None,
    launch_id: int | None = None,
) -> None:
    """Stores that the runner lives and what it does now."""
    with store.writing() as session:
        row = _row(session, host)
        row.runner_pid, row.runner_state, row.detail = runner_pid, state, detail
        row.trial_id, row.launch_id, row.heartbeat_at = trial_id, launch_id, utc_now()


def save_host_facts(store: Store, name: str, kind: str, facts: Mapping[str, Any]) -> None:
    """Stores what the host is (`facts` as JSON), leaving what its runner said and what its client keeps up with."""
    with store.writing() as session:
        row = _row(session, name)
        kept = {key: value for key, value in (row.facts or {}).items() if key == _CEILING}
        row.kind, row.facts = kind, {**facts, **kept}


def save_client_ceiling(store: Store, name: str, ceiling: ClientCeiling) -> None:
    """Stores what the load generator of the host keeps up with, beside its facts."""
    with store.writing() as session:
        row = _row(session, name)
        row.facts = {**(row.facts or {}), _CEILING: ceiling.model_dump(mode="json")}


def get_client_ceiling(store: Store, name: str) -> ClientCeiling | None:
    """The stored ceiling of a host; None where it was never measured."""
    host = get_host(store, name)
    stored = host.facts.get(_CEILING) if host is not None and host.facts else None
    return None if stored is None else ClientCeiling.model_validate(stored)


def get_host(store: Store, name: str) -> HostRow | None:
    with store.reading() as session:
        row = session.get(Host, name)
        return None if row is None else _view(row)


def list_hosts(store: Store) -> tuple[HostRow, ...]:
    with store.reading() as session:
        return tuple(_view(row) for row in session.scalars(select(Host).order_by(Host.name)))


def _row(session: Session, name: str) -> Host:
    row = session.get(Host, name)
    if row is None:
        row = Host(name=name)
        session.add(row)
    return row


def _view(row: Host) -> HostRow:
    return HostRow(
        name=row.name,
        kind=row.kind,
        facts=row.facts,
        runner_pid=row.runner_pid,
        runner_state=row.runner_state,
        detail=row.detail,
        heartbeat_at=row.heartbeat_at,
        trial_id=row.trial_id,
        launch_id=row.launch_id,
    )
