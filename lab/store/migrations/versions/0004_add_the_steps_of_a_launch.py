"""The steps of a launch."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("launch", sa.Column("history", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("launch", "history")
