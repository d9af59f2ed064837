"""Adds the accuracy. Rows of before have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("rows", sa.Column("sqnr_db", sa.Float))
