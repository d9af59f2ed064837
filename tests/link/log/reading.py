"""Logs with one failure."""

from __future__ import annotations

from harness.link.failure import Failure, FailureKind
from harness.link.log.parse import parse

LINK_FAILED = "collect2: error: ld returned 1 exit status\n"


def only(text: str) -> Failure:
    failures = parse(text + "\n").failures
    assert len(failures) == 1, failures
    assert failures[0].kind in FailureKind
    return failures[0]
