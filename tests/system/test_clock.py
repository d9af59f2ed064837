"""Times are compared as the texts that they are."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from harness.system.clock import now


def test_two_that_are_milliseconds_apart_are_in_order() -> None:
    first = now()
    time.sleep(0.005)
    assert first < now()


def test_it_is_the_time_in_utc() -> None:
    said = datetime.fromisoformat(now())
    assert abs((datetime.now(timezone.utc) - said).total_seconds()) < 60
    assert now().endswith("+00:00")


def test_it_sorts_with_those_in_seconds_of_older_histories() -> None:
    second = now()[:19]
    assert f"{second}+00:00" < f"{second}.001+00:00" < f"{second}.999+00:00"
