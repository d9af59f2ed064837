"""Protects what crosses between two processes: a request and an error are afterwards what they
were before, and a child cannot make this process hold what is no error of the harness."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.config.models import NamesMissing, find_model
from harness.core.errors import (
    ExportError,
    HarnessError,
    InfraError,
    ToolMissing,
    Unknown,
    UsageError,
)
from harness.export.failures import (
    DeadModelError,
    NothingDelegated,
    StageFailed,
    UnsupportedTensor,
)
from harness.export.request import ExportRequest
from harness.export.wire import (
    Answers,
    BadMessage,
    answer,
    error_fields,
    restored,
    value_of,
)

REQUEST = ExportRequest(find_model("ds_cnn"), "ethos-u55-128", "a", "Sram_Only")


def received(data: bytes) -> list[dict[str, Any]]:
    ours, theirs = socket.socketpair()

    def send() -> None:
        with theirs, suppress(BrokenPipeError):  # the reader may have seen enough
            theirs.sendall(data)

    with ours:
        threading.Thread(target=send).start()
        answers, expected = Answers(ours), data.count(b"\n")
        found = []
        while len(found) < expected:
            found += answers.available()
        return found


def sent(error: HarnessError) -> HarnessError:
    (message,) = received(answer({"error": error_fields(error)}))
    return restored(message["error"])


def test_an_answer_may_come_in_pieces() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        answers, found = Answers(ours), []
        for byte in answer({"stage": "lower"}) + answer({"value": None}):
            theirs.sendall(bytes([byte]))
            found += answers.available()
        assert found == [{"stage": "lower"}, {"value": None}]
        assert not answers.ended
        theirs.shutdown(socket.SHUT_WR)
        assert answers.available() == []
        assert answers.ended


@pytest.mark.parametrize(
    "data", [b"hello, world", b"{}", b"[]", b"\xffabc", b"[" * 40_000, b"a" * (17 << 20)]
)
def test_bytes_that_are_no_answer(data: bytes) -> None:
    with pytest.raises(BadMessage):
        received(data + b"\n")


@pytest.mark.parametrize("message", [{"status": 0}, {"error": []}, {"error": {}}])
def test_an_answer_without_a_result(message: dict[str, Any]) -> None:
    with pytest.raises(BadMessage):
        value_of(message)


@pytest.mark.parametrize("fields", [{}, {"attributes": {}}, {"attributes": []}, []])
def test_an_error_without_its_fields(fields: Any) -> None:
    with pytest.raises(BadMessage):
        restored(fields)


def with_log(error: ExportError) -> ExportError:
    error.log = "one\ntwo"
    return error


@pytest.mark.parametrize(
    "error",
    [
        with_log(ExportError("no")),
        with_log(StageFailed(REQUEST, "lower", ValueError("first\nsecond"))),
        DeadModelError("m", ()),
        NothingDelegated("m", "ethos-u55-128"),
        ExportError("no", operators=("add", "mul"), element=(1, 2), lsb=9),
        UnsupportedTensor("x", "int"),
        NamesMissing(Path("/m.py"), ["ModelInputs"]),
        UsageError("no", hint="do", path="/p"),
        ToolMissing("no", tool="t", package="p"),
        Unknown("no", "a", ["ab", "c"]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error(error: HarnessError) -> None:
    there = sent(error)
    assert type(there) is type(error)
    assert str(there) == str(error)
    assert there.facts == {k: list_as_tuple(v) for k, v in error.facts.items()}
    assert (there.hint, there.kind, there.verdict) == (error.hint, error.kind, error.verdict)


def list_as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "SystemExit"),
        ("harness.core.errors", "Path"),
        ("harness.core.errors", "Nothing"),
        ("harness.no_such_module", "Nothing"),
        ("harness.export.child.worker", "HarnessError"),
    ],
)
def test_what_is_not_an_error_of_ours(module: str, name: str) -> None:
    there = restored({"module": module, "name": name, "attributes": {"message": "m", "hint": None}})
    assert type(there) is InfraError
    assert there.message == "m"
