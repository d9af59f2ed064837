"""Times are compared as the texts that they are."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from harness.run.record import now


def test_two_that_are_milliseconds_apart_are_in_order() -> None:
    first = now()
    time.sleep(0.005)
    assert first < now()


def test_it_is_the_time_in_utc() -> None:
    said = datetime.fromisoformat(now())
    assert abs((datetime.now(timezone.utc) - said).total_seconds()) < 60
    assert now().endswith("+00:00")


def test_it_sorts_after_the_same_second_of_older_histories() -> None:
    said = now()
    assert f"{said[:19]}+00:00" < said
