"""Protects what --json says of a failure: kinds as plain words; names of objects taken apart."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from harness.link.failure import (
    Failure,
    FailureKind,
    LinkCause,
    archive_of,
    file_name,
    member_of,
)


def test_kinds_are_plain_words_in_json_and_in_texts() -> None:
    failure = Failure(FailureKind.LTO, "gnu", 1, "lto1: x", cause_kind=LinkCause.STATIC)
    written = json.loads(json.dumps(asdict(failure)))
    assert written["kind"] == f"{failure.kind}" == "lto"
    assert written["cause_kind"] == f"{failure.cause_kind}" == "static"


@pytest.mark.parametrize(
    ("name", "archive", "member", "last"),
    [
        ("libx.a(y.o)", "libx.a", "y.o", "libx.a(y.o)"),
        ("a/main.o", "a/main.o", "a/main.o", "main.o"),
        ("C:\\b\\libx.a", "C:\\b\\libx.a", "C:\\b\\libx.a", "libx.a"),
    ],
)
def test_the_parts_of_an_objects_name(name: str, archive: str, member: str, last: str) -> None:
    assert (archive_of(name), member_of(name), file_name(name)) == (archive, member, last)
