"""Protects what crosses between two processes: a request and an error are afterwards what they
were before, and a child cannot make this process hold what is no error of the harness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.case.models import NamesMissing, find_model
from harness.errors import ExportError, HarnessError, InfraError, ToolMissing, Unknown, UsageError
from harness.export.checkout.wire import Order, error_fields, line, read_order, restored
from harness.export.failures import (
    DeadModelError,
    NothingDelegated,
    OraclesDisagree,
    StageFailed,
    UnsupportedTensor,
)
from harness.export.request import ExportRequest

REQUEST = ExportRequest(find_model("ds_cnn"), "ethos-u55-128", 7, "a", "Sram_Only")


def sent(error: HarnessError) -> HarnessError:
    fields: dict[str, Any] = json.loads(line(error_fields(error)))
    return restored(fields)


def test_an_order(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("ModelUnderTest = 1\n")
    own = ExportRequest(find_model(str(tmp_path / "mine.py")))
    order = Order("/env", "/root", "ab", {"executorch": "1"}, (REQUEST, own), 5)
    assert read_order(order.text()) == order


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
        OraclesDisagree(0, 1, "add", element=(1, 2), lsb=9, bound_lsb=2),
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
    [("os", "system"), ("builtins", "SystemExit"), ("harness.errors", "Path"),
     ("harness.errors", "Nothing")],
)  # fmt: skip
def test_what_is_no_error_of_ours(module: str, name: str) -> None:
    there = restored({"module": module, "name": name, "attributes": {"message": "m", "hint": None}})
    assert type(there) is InfraError
    assert there.message == "m"
