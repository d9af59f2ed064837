"""The date and time that records, nights and transcripts carry."""

from __future__ import annotations

from datetime import datetime, timezone


def now() -> str:
    """UTC in ISO 8601 with milliseconds, because nights and runs are sorted by it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
