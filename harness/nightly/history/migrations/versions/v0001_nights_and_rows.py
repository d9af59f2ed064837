"""Nights, what ended of them, and rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "nights",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("suite", sa.String, nullable=False),
        sa.Column("began", sa.String, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_index("ix_nights_began", "nights", ["began"])
    op.create_table(
        "endings",
        sa.Column("night", sa.String, primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True),
        sa.Column("time", sa.String, nullable=False),
    )
    op.create_table(
        "rows",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("night", sa.String, nullable=False),
        sa.Column("case", sa.String, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("time", sa.String, nullable=False),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("cause", sa.String, nullable=False),
        sa.Column("seconds", sa.Float),
        sa.Column("body", sa.JSON, nullable=False),
        sa.UniqueConstraint("night", "case", "attempt", name="one_row_per_try"),
    )
    op.create_index("ix_rows_time", "rows", ["time"])
    op.create_index("rows_of_case", "rows", ["case", "time", "verdict"])
