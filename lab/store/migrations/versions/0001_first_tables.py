"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "config_version",
    "host",
    "launch",
    "person",
    "experiment",
    "arm",
    "intent",
    "note",
    "tag",
    "trial",
    "measurement",
    "request",
    "sample",
)


def upgrade() -> None:
    _config_version()
    _host()
    _launch()
    _person()
    _experiment()
    _arm()
    _intent()
    _note()
    _tag()
    _trial()
    _measurement()
    _request()
    _sample()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def _config_version() -> None:
    op.create_table(
        "config_version",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("settings_text", sa.Text(), nullable=False),
        sa.Column("config_text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_config_version")),
    )


def _host() -> None:
    op.create_table(
        "host",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=True),
        sa.Column("runner_pid", sa.Integer(), nullable=True),
        sa.Column("runner_state", sa.String(length=32), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("trial_id", sa.Integer(), nullable=True),
        sa.Column("launch_id", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_host")),
    )


def _launch() -> None:
    op.create_table(
        "launch",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("engine", sa.String(length=64), nullable=False),
        sa.Column("argv", sa.JSON(), nullable=False),
        sa.Column("environment_names", sa.JSON(), nullable=False),
        sa.Column("log_path", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("pgid", sa.Integer(), nullable=True),
        sa.Column("start_time", sa.Float(53), nullable=True),
        sa.Column("port", sa.Integer(), nullable=True),
        sa.Column("served_name", sa.Text(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("last_line", sa.Text(), nullable=True),
        sa.Column("effective", sa.JSON(), nullable=True),
        sa.Column("ready_s", sa.Float(53), nullable=True),
        sa.Column("failure", sa.String(length=64), nullable=True),
        sa.Column("ended", sa.JSON(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_launch")),
    )
    op.create_index(op.f("ix_launch_host_state"), "launch", ["host", "state"], unique=False)


def _person() -> None:
    op.create_table(
        "person",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
        sa.UniqueConstraint("name", name=op.f("uq_person_name")),
    )


def _experiment() -> None:
    op.create_table(
        "experiment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("config_hash", sa.String(length=64), nullable=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.Column("order", sa.String(length=16), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("workload", sa.JSON(), nullable=False),
        sa.Column("slo", sa.JSON(), nullable=False),
        sa.Column("limits", sa.JSON(), nullable=False),
        sa.Column("queue_position", sa.Integer(), nullable=False),
        sa.Column("stop_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stop_requested_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["config_hash"], ["config_version.hash"], name=op.f("fk_experiment_config_hash_config_version")
        ),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_experiment_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_experiment")),
    )
    op.create_index(op.f("ix_experiment_created_at"), "experiment", ["created_at"], unique=False)
    op.create_index(
        op.f("ix_experiment_host_state_queue_position"), "experiment", ["host", "state", "queue_position"], unique=False
    )


def _arm() -> None:
    op.create_table(
        "arm",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("experiment_id", sa.Integer(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("target", sa.String(length=16), nullable=False),
        sa.Column("engine", sa.String(length=64), nullable=True),
        sa.Column("base_url", sa.Text(), nullable=True),
        sa.Column("knobs", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiment.id"], name=op.f("fk_arm_experiment_id_experiment"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_arm")),
    )
    op.create_index(op.f("ix_arm_experiment_id_index"), "arm", ["experiment_id", "index"], unique=True)


def _intent() -> None:
    op.create_table(
        "intent",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("experiment_id", sa.Integer(), nullable=True),
        sa.Column("payload", sa.JSON(), nullable=True),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiment.id"], name=op.f("fk_intent_experiment_id_experiment"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_intent_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_intent")),
    )
    op.create_index(op.f("ix_intent_host_closed_at"), "intent", ["host", "closed_at"], unique=False)


def _note() -> None:
    op.create_table(
        "note",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("experiment_id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiment.id"], name=op.f("fk_note_experiment_id_experiment"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_note_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_note")),
    )
    op.create_index(op.f("ix_note_experiment_id"), "note", ["experiment_id"], unique=False)


def _tag() -> None:
    op.create_table(
        "tag",
        sa.Column("experiment_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiment.id"], name=op.f("fk_tag_experiment_id_experiment"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("experiment_id", "name", name=op.f("pk_tag")),
    )


def _trial() -> None:
    op.create_table(
        "trial",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("experiment_id", sa.Integer(), nullable=False),
        sa.Column("arm_id", sa.Integer(), nullable=False),
        sa.Column("launch_id", sa.Integer(), nullable=True),
        sa.Column("block", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("failure", sa.String(length=64), nullable=True),
        sa.Column("message", sa.JSON(), nullable=True),
        sa.Column("log_tail", sa.Text(), nullable=True),
        sa.Column("progress", sa.JSON(), nullable=True),
        sa.Column("marks", sa.JSON(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["arm_id"], ["arm.id"], name=op.f("fk_trial_arm_id_arm"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["experiment.id"], name=op.f("fk_trial_experiment_id_experiment"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["launch_id"], ["launch.id"], name=op.f("fk_trial_launch_id_launch")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trial")),
    )
    op.create_index(op.f("ix_trial_arm_id"), "trial", ["arm_id"], unique=False)
    op.create_index(op.f("ix_trial_experiment_id_position"), "trial", ["experiment_id", "position"], unique=True)
    op.create_index(op.f("ix_trial_launch_id"), "trial", ["launch_id"], unique=False)
    op.create_index(op.f("ix_trial_state"), "trial", ["state"], unique=False)


def _measurement() -> None:
    op.create_table(
        "measurement",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("trial_id", sa.Integer(), nullable=False),
        sa.Column("stage_kind", sa.String(length=32), nullable=True),
        sa.Column("stage_value", sa.Float(53), nullable=True),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("asked", sa.JSON(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("succeeded", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens_per_s", sa.Float(53), nullable=True),
        sa.Column("ttft_p95_ms", sa.Float(53), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["trial_id"], ["trial.id"], name=op.f("fk_measurement_trial_id_trial"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurement")),
    )
    op.create_index(op.f("ix_measurement_trial_id"), "measurement", ["trial_id"], unique=False)


def _request() -> None:
    op.create_table(
        "request",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("measurement_id", sa.Integer(), nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("warmup", sa.Boolean(), nullable=False),
        sa.Column("incomplete", sa.Boolean(), nullable=False),
        sa.Column("tokens_estimated", sa.Boolean(), nullable=False),
        sa.Column("failure", sa.String(length=32), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("t0_ms", sa.Float(precision=53), nullable=False),
        sa.Column("sent_ms", sa.Float(precision=53), nullable=True),
        sa.Column("scheduled_ms", sa.Float(precision=53), nullable=True),
        sa.Column("client_wait_ms", sa.Float(precision=53), nullable=True),
        sa.Column("connect_ms", sa.Float(precision=53), nullable=True),
        sa.Column("first_byte_ms", sa.Float(precision=53), nullable=True),
        sa.Column("ttft_ms", sa.Float(precision=53), nullable=True),
        sa.Column("first_answer_ms", sa.Float(precision=53), nullable=True),
        sa.Column("e2e_ms", sa.Float(precision=53), nullable=True),
        sa.Column("tpot_ms", sa.Float(precision=53), nullable=True),
        sa.Column("engine_queue_ms", sa.Float(precision=53), nullable=True),
        sa.Column("engine_prefill_ms", sa.Float(precision=53), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=True),
        sa.Column("completion_tokens", sa.Integer(), nullable=True),
        sa.Column("cached_tokens", sa.Integer(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("marks", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("gaps", sa.LargeBinary(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["measurement_id"],
            ["measurement.id"],
            name=op.f("fk_request_measurement_id_measurement"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_request")),
    )
    op.create_index("ix_request_ttft", "request", ["measurement_id", "warmup", "failure", "ttft_ms"], unique=False)


def _sample() -> None:
    op.create_table(
        "sample",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("measurement_id", sa.Integer(), nullable=False),
        sa.Column("series", sa.String(length=128), nullable=False),
        sa.Column("at_ms", sa.Float(53), nullable=False),
        sa.Column("value", sa.Float(53), nullable=True),
        sa.ForeignKeyConstraint(
            ["measurement_id"],
            ["measurement.id"],
            name=op.f("fk_sample_measurement_id_measurement"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sample")),
    )
    op.create_index(
        op.f("ix_sample_measurement_id_series_at_ms"), "sample", ["measurement_id", "series", "at_ms"], unique=False
    )
