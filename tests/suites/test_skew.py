"""Protects that a suite of the wheel says why tests fail on a runner of another version."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.suites import run
from harness.suites.run import SuiteOptions, skew_note

_FUNCTIONS = {
    "three": "(Tensor a, int b, *, Tensor(a!) out)",
    "two": "(Tensor a, *, Tensor(a!) out)",
    "other": "(Tensor a, float b, *, Tensor(a!) out)",
}


def _declare(root: Path, **signatures: str) -> Path:
    file = root / "backends" / "cortex_m" / "ops" / "operators.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(
        "".join(
            f"- func: cortex_m::{name}.out{_FUNCTIONS[signature]} -> Tensor(a!)\n"
            for name, signature in signatures.items()
        )
    )
    return root


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _declare(tmp_path / "wheel", conv="three", add="three")
    monkeypatch.setattr(run, "executorch_package", lambda: root)


def _note(checkout: Path | None, **options: Any) -> str:
    there: Any = None if checkout is None else SimpleNamespace(root=checkout)
    return skew_note(SuiteOptions(checkout=there, **options))


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"conv": "three", "add": "three"}, ""),
        ({"conv": "three", "younger": "two"}, ""),
        ({"conv": "two", "add": "three"}, "cortex_m::conv.out takes 2 arguments, not 3; a test"),
        ({"conv": "other", "add": "three"}, "cortex_m::conv.out takes arguments of other types; "),
        ({"conv": "two", "add": "two"}, "not 3 (and 1 more operator); a test"),
    ],
)
@pytest.mark.usefixtures("wheel")
def test_operators_of_other_arguments_are_named(
    there: dict[str, str], said: str, tmp_path: Path
) -> None:
    note = _note(_declare(tmp_path / "checkout", **there))
    assert said in note if said else note == ""
    assert not note or note.endswith("--exporter checkout runs the checkout's tests")


@pytest.mark.usefixtures("wheel")
def test_tests_of_the_checkout_and_a_bundled_runner_need_no_note(tmp_path: Path) -> None:
    checkout = _declare(tmp_path / "checkout", conv="two")
    exporter: Any = object()
    assert _note(checkout, exporter=exporter) == ""
    assert _note(None) == ""
