"""The tables (DESIGN section 7). These objects never leave the store: see `views` for what does."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, Boolean, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from lab.store.columns import PlainFloat, PlainInteger, UtcDateTime

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        int: PlainInteger,
        float: PlainFloat,
        bool: Boolean,
        str: Text,
        bytes: LargeBinary,
        datetime: UtcDateTime,
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
    }


class Host(Base):
    """A machine with a runner; what the runner last said of itself."""

    __tablename__ = "host"

    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    kind: Mapped[str | None] = mapped_column(String(32))
    facts: Mapped[dict[str, Any] | None]
    runner_pid: Mapped[int | None]
    runner_state: Mapped[str | None] = mapped_column(String(32))
    detail: Mapped[str | None]
    heartbeat_at: Mapped[datetime | None]
    trial_id: Mapped[int | None]
    launch_id: Mapped[int | None]


class Person(Base):
    __tablename__ = "person"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String(255), unique=True)
    created_at: Mapped[datetime]


class ConfigVersion(Base):
    """One config pair, whole, under the hash of its text."""

    __tablename__ = "config_version"

    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    settings_text: Mapped[str]
    config_text: Mapped[str]
    created_at: Mapped[datetime]


class ConfigSave(Base):
    """One change of a folder's config pair: by the lab, or found on disk (`external`, then without a person)."""

    __tablename__ = "config_save"
    __table_args__ = (Index(None, "host", "folder"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    host: Mapped[str] = mapped_column(String(255))
    folder: Mapped[str]
    created_at: Mapped[datetime]
    person_id: Mapped[int | None] = mapped_column(ForeignKey("person.id"))
    source: Mapped[str] = mapped_column(String(16))
    note: Mapped[str]
    config_hash: Mapped[str] = mapped_column(ForeignKey("config_version.hash"))
    parent_hash: Mapped[str | None] = mapped_column(ForeignKey("config_version.hash"))
    restored_id: Mapped[int | None] = mapped_column(ForeignKey("config_save.id"))
    changes: Mapped[list[Any] | None]


class Experiment(Base):
    __tablename__ = "experiment"
    __table_args__ = (Index(None, "host", "state", "queue_position"), Index(None, "created_at"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str]
    question: Mapped[str]
    state: Mapped[str] = mapped_column(String(16))
    host: Mapped[str] = mapped_column(String(255))
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    config_hash: Mapped[str] = mapped_column(ForeignKey("config_version.hash"))
    repeats: Mapped[int]
    order: Mapped[str] = mapped_column(String(16))
    seed: Mapped[int]
    workload: Mapped[dict[str, Any]]
    slo: Mapped[dict[str, Any]]
    limits: Mapped[dict[str, Any]]
    queue_position: Mapped[int]
    stop_requested_at: Mapped[datetime | None]
    stop_requested_by: Mapped[str | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class Arm(Base):
    __tablename__ = "arm"
    __table_args__ = (Index(None, "experiment_id", "index", unique=True),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiment.id", ondelete="CASCADE"))
    index: Mapped[int]
    name: Mapped[str]
    target: Mapped[str] = mapped_column(String(16))
    engine: Mapped[str | None] = mapped_column(String(64))
    base_url: Mapped[str | None]
    api_key_env: Mapped[str | None]
    knobs: Mapped[dict[str, Any]]


class Launch(Base):
    __tablename__ = "launch"
    __table_args__ = (Index(None, "host", "state"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    host: Mapped[str] = mapped_column(String(255))
    engine: Mapped[str] = mapped_column(String(64))
    argv: Mapped[list[Any]]
    environment_names: Mapped[list[Any]]
    log_path: Mapped[str]
    pid: Mapped[int | None]
    pgid: Mapped[int | None]
    start_time: Mapped[float | None]
    port: Mapped[int | None]
    served_name: Mapped[str | None]
    state: Mapped[str] = mapped_column(String(16))
    phase: Mapped[str | None]
    last_line: Mapped[str | None]
    effective: Mapped[dict[str, Any] | None]
    ready_s: Mapped[float | None]
    failure: Mapped[str | None] = mapped_column(String(64))
    ended: Mapped[dict[str, Any] | None]
    history: Mapped[list[Any] | None]
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class Trial(Base):
    __tablename__ = "trial"
    __table_args__ = (Index(None, "experiment_id", "position", unique=True), Index(None, "state"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiment.id", ondelete="CASCADE"))
    arm_id: Mapped[int] = mapped_column(ForeignKey("arm.id", ondelete="CASCADE"), index=True)
    launch_id: Mapped[int | None] = mapped_column(ForeignKey("launch.id"), index=True)
    block: Mapped[int]
    position: Mapped[int]
    attempt: Mapped[int]
    state: Mapped[str] = mapped_column(String(16))
    failure: Mapped[str | None] = mapped_column(String(64))
    message: Mapped[dict[str, Any] | None]
    log_tail: Mapped[str | None]
    progress: Mapped[dict[str, Any] | None]
    marks: Mapped[list[Any]]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class Measurement(Base):
    """`summary` holds every number; the columns beside it are copies that lists sort and filter by."""

    __tablename__ = "measurement"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    trial_id: Mapped[int] = mapped_column(ForeignKey("trial.id", ondelete="CASCADE"), index=True)
    stage_kind: Mapped[str | None] = mapped_column(String(32))
    stage_value: Mapped[float | None]
    summary: Mapped[dict[str, Any]]
    asked: Mapped[dict[str, Any]]
    requests: Mapped[int]
    succeeded: Mapped[int]
    output_tokens: Mapped[int | None]
    output_tokens_per_s: Mapped[float | None]
    ttft_p95_ms: Mapped[float | None]
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime]


class Request(Base):
    """One call. Narrow columns stand before wide ones, so that reading a few of them skips the rest.

    Column types are plain: `requests.to_row` makes the values plain, since rows come by the hundred thousand.
    """

    __tablename__ = "request"
    __table_args__ = (Index("ix_request_ttft", "measurement_id", "warmup", "failure", "ttft_ms"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    measurement_id: Mapped[int] = mapped_column(Integer, ForeignKey("measurement.id", ondelete="CASCADE"))
    index: Mapped[int] = mapped_column(Integer)
    warmup: Mapped[bool]
    incomplete: Mapped[bool]
    tokens_estimated: Mapped[bool]
    failure: Mapped[str | None] = mapped_column(String(32))
    http_status: Mapped[int | None] = mapped_column(Integer)
    t0_ms: Mapped[float] = mapped_column(Float(53))
    sent_ms: Mapped[float | None] = mapped_column(Float(53))
    scheduled_ms: Mapped[float | None] = mapped_column(Float(53))
    client_wait_ms: Mapped[float | None] = mapped_column(Float(53))
    connect_ms: Mapped[float | None] = mapped_column(Float(53))
    first_byte_ms: Mapped[float | None] = mapped_column(Float(53))
    ttft_ms: Mapped[float | None] = mapped_column(Float(53))
    first_answer_ms: Mapped[float | None] = mapped_column(Float(53))
    e2e_ms: Mapped[float | None] = mapped_column(Float(53))
    tpot_ms: Mapped[float | None] = mapped_column(Float(53))
    engine_queue_ms: Mapped[float | None] = mapped_column(Float(53))
    engine_prefill_ms: Mapped[float | None] = mapped_column(Float(53))
    prompt_tokens: Mapped[int | None] = mapped_column(Integer)
    completion_tokens: Mapped[int | None] = mapped_column(Integer)
    cached_tokens: Mapped[int | None] = mapped_column(Integer)
    finish_reason: Mapped[str | None]
    marks: Mapped[str | None]
    message: Mapped[str | None]
    gaps: Mapped[bytes]
    text: Mapped[str]


class Sample(Base):
    __tablename__ = "sample"
    __table_args__ = (Index(None, "measurement_id", "series", "at_ms"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    measurement_id: Mapped[int] = mapped_column(ForeignKey("measurement.id", ondelete="CASCADE"))
    series: Mapped[str] = mapped_column(String(128))
    at_ms: Mapped[float]
    value: Mapped[float | None]


class Intent(Base):
    """What a person wants of a host's runner."""

    __tablename__ = "intent"
    __table_args__ = (Index(None, "host", "closed_at"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    host: Mapped[str] = mapped_column(String(255))
    kind: Mapped[str] = mapped_column(String(32))
    experiment_id: Mapped[int | None] = mapped_column(ForeignKey("experiment.id", ondelete="CASCADE"))
    payload: Mapped[dict[str, Any] | None]
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    created_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    outcome: Mapped[str | None]


class Note(Base):
    __tablename__ = "note"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiment.id", ondelete="CASCADE"), index=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("person.id"))
    text: Mapped[str]
    created_at: Mapped[datetime]


class Tag(Base):
    __tablename__ = "tag"

    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiment.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
