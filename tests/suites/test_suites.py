"""The suites of the installed wheel, and the failures that are known, laid over the results."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from harness.core.errors import InfraError, TargetError
from harness.suites.results import SuiteTest
from harness.suites.suites import (
    SUITES,
    KnownFailure,
    apply_known_failures,
    known_failures_for,
    read_known_failures,
    unknown_tests,
)


@pytest.mark.parametrize("suite", SUITES)
def test_a_wheel_without_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: str
) -> None:
    monkeypatch.setattr("harness.suites.suites.executorch_package", lambda: tmp_path)
    with pytest.raises(InfraError, match=f"has no {suite} suite"):
        _ = SUITES[suite].directory()


def expected(tmp_path: Path, text: str) -> dict[str, KnownFailure]:
    file = tmp_path / "e.yaml"
    file.write_text("failures:\n" + textwrap.indent(text, "  "))
    return read_known_failures(file)


def test_expectations_are_strict(tmp_path: Path) -> None:
    """A known failure is xfailed with both reasons; once it passes the run must fail."""
    known = expected(tmp_path, "t:\n  reason: because\n  finding: F\n")
    failed, passed, other = apply_known_failures(
        [
            SuiteTest("t", "failed", "numbers", 0),
            SuiteTest("t", "passed", "", 0),
            SuiteTest("u", "failed", "x", 0),
        ],
        known,
    )
    assert (failed.result, failed.cause) == ("xfailed", "because [numbers]")
    assert passed.result == "failed"
    assert "is a known failure (because) and passed" in passed.cause
    assert other.result == "failed"
    assert unknown_tests([other], known) == (
        "the list of known failures names t, which the suite does not have",
    )


@pytest.mark.parametrize(
    ("condition", "elf", "applies"),
    [
        ("elf_has: arm_x", b"..arm_x..", True),
        ("elf_has: arm_x", b"..", False),
        ("elf_lacks: op", b"..op..", False),
        ("elf_lacks: op", b"..", True),
    ],
)
def test_some_are_for_some_runners(
    tmp_path: Path, condition: str, elf: bytes, applies: bool
) -> None:
    known = expected(tmp_path, f"t:\n  reason: r\n  finding: f\n  {condition}\n")
    (tmp_path / "elf").write_bytes(elf)
    assert bool(known_failures_for(known, tmp_path / "elf")) is applies


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t: x\n", "failures.t: a mapping is wanted"),
        ("t:\n  reason: r\n", "required key 'failures.t.finding' is missing"),
        ("t:\n  reason: r\n  finding: f\n  more: x\n", "unknown key 'failures.t.more'"),
        ("t:\n  reason: 3\n  finding: f\n", "failures.t.reason: a string is wanted"),
    ],
)
def test_a_malformed_file_is_an_error_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(TargetError, match=r"e\.yaml:\d+: " + message):
        expected(tmp_path, text)


@pytest.mark.parametrize("suite", SUITES)
def test_every_expectation_has_its_finding(suite: str) -> None:
    """An xfail nobody explains is a hole in the suite."""
    root = Path(__file__).parent.parent.parent
    headings = (root / "docs" / "findings.md").read_text().splitlines()
    for expectation in read_known_failures(SUITES[suite].known_failures_file).values():
        assert f"## {expectation.finding}" in headings
