"""Whose history it is: suite, branch, commit and pull request of nights and rows.

What was there knows its suite alone; it is of the branch "". That a shard has ended follows from
its rows.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.drop_table("endings")
    of_rows = ("suite", "branch", "commit", "pull_request")
    for table, name in (("nights", "branch"), *(("rows", name) for name in of_rows)):
        op.add_column(table, sa.Column(name, sa.String, nullable=False, server_default=""))
    nights = sa.table("nights", *map(sa.column, ("id", "suite")))
    rows = sa.table("rows", *map(sa.column, ("night", "suite")))
    of_night = sa.select(nights.c.suite).where(nights.c.id == rows.c.night).scalar_subquery()
    op.execute(sa.update(rows).values(suite=sa.func.coalesce(of_night, "")))
