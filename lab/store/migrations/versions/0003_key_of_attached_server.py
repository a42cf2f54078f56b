"""The variable that holds the key of an attached server."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("arm", sa.Column("api_key_env", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("arm", "api_key_env")
