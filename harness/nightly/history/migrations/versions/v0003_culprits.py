"""The commit that a bisection found for a failure of a night."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "culprits",
        sa.Column("night", sa.String, primary_key=True),
        sa.Column("case", sa.String, primary_key=True),
        sa.Column("text", sa.String, nullable=False),
    )
