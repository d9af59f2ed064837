"""The time of day as records, nights and transcripts carry it."""

from __future__ import annotations

from datetime import datetime, timezone


def now() -> str:
    """UTC, ISO 8601, in milliseconds: nights and runs are put in order by it, and two of them may
    lie within a second. As texts they sort like the ones in seconds that were written before."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
