"""Versions of the config pair."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "config_save",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("config_hash", sa.String(length=64), nullable=False),
        sa.Column("parent_hash", sa.String(length=64), nullable=True),
        sa.Column("restored_id", sa.Integer(), nullable=True),
        sa.Column("changes", sa.JSON(none_as_null=True), nullable=True),
        *_foreign_keys(),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_config_save")),
    )
    op.create_index(op.f("ix_config_save_host_folder"), "config_save", ["host", "folder"], unique=False)


def downgrade() -> None:
    op.drop_table("config_save")


def _foreign_keys() -> list[sa.ForeignKeyConstraint]:
    targets = {
        "config_hash": ("config_version", "hash"),
        "parent_hash": ("config_version", "hash"),
        "person_id": ("person", "id"),
        "restored_id": ("config_save", "id"),
    }
    return [
        sa.ForeignKeyConstraint([column], [f"{table}.{key}"], name=op.f(f"fk_config_save_{column}_{table}"))
        for column, (table, key) in targets.items()
    ]
