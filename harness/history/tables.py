"""The history's tables. ``body`` is the whole of a row or a night as JSON; the other columns repeat
what is looked for, so that anybody's SQL finds it, too."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

nights = sa.Table(
    "nights",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("suite", sa.String, nullable=False),
    sa.Column("began", sa.String, nullable=False, index=True),  # ISO 8601, UTC: sorts as text
    sa.Column("body", sa.JSON, nullable=False),
)

endings = sa.Table(  # a night whose shards are all here has ended
    "endings",
    metadata,
    sa.Column("night", sa.String, primary_key=True),
    sa.Column("shard", sa.Integer, primary_key=True),
    sa.Column("time", sa.String, nullable=False),
)

rows = sa.Table(
    "rows",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("night", sa.String, nullable=False),
    sa.Column("case", sa.String, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("time", sa.String, nullable=False, index=True),
    sa.Column("target", sa.String, nullable=False),
    sa.Column("model", sa.String, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("verdict", sa.String, nullable=False),
    sa.Column("cause", sa.String, nullable=False),  # its kind, "" of a PASS
    sa.Column("seconds", sa.Float),  # all of the case; null where nobody measured
    sa.Column("body", sa.JSON, nullable=False),
    sa.UniqueConstraint("night", "case", "attempt", name="one_row_per_try"),
    sa.Index("rows_of_case", "case", "time", "verdict"),  # covers what is before a night
)
