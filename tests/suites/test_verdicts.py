"""From what pytest reported to a result with a cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.suites.results import (
    Phase,
    Result,
    StandinMissing,
    SuiteReport,
    SuiteTest,
    require_found,
    results_of,
)

TEST = "ops/test_add.py::test_implementation_add[cortex-m55-x]"
MISSING = (
    b"E [executorch:method_loader.cpp:461 f()] kernel 'aten::sub.out' not found.\n"
    b"E [executorch:method_loader.cpp:470 f()] Missing operator: [2] aten::sub.out\n"
)
MISMATCH = """AssertionError: Output 0 does not match reference output.
\tGiven atol: 0.04, rtol: 0.001.
\tOutput tensor shape: torch.Size([1, 2, 3]), dtype: torch.float32
\tDifference: max: 1.5, abs: 2.5, mean abs error: 0.25.
\t-- Model vs. Reference --
"""


def phase(
    outcome: str = "passed",
    message: str = "",
    *,
    when: str = "call",
    xfail: str | None = None,
    consoles: tuple[bytes, ...] = (),
    test: str = TEST,
) -> Phase:
    return Phase(test, when, outcome, message, xfail, 0.5, consoles)


def one(*phases: Phase) -> SuiteTest:
    (verdict,) = results_of(phases)
    return verdict


def test_a_test_passes_when_all_its_phases_do() -> None:
    verdict = one(phase(when="setup"), phase(), phase(when="teardown"))
    assert (verdict.result, verdict.cause, verdict.seconds) == ("passed", "", 1.5)


@pytest.mark.parametrize("when", ["setup", "call", "teardown", "collect"])
def test_a_failure_in_any_phase_is_a_failure(when: str) -> None:
    """A teardown that fails after a call that passed must not be lost."""
    assert one(phase(), phase("failed", "Oops: x\nmore", when=when)).result == "failed"


def test_the_console_is_the_first_cause() -> None:
    raised = "RuntimeError: Corstone simulation failed. Problems: 2 found:"
    verdict = one(phase("failed", raised, consoles=(b"fine\n", MISSING)))
    assert verdict.cause.startswith("operator_missing: kernel 'aten::sub.out' not found")
    assert verdict.missing == ("aten::sub.out",)


def test_a_mismatch_has_its_numbers() -> None:
    assert one(phase("failed", MISMATCH)).cause == (
        "mismatch: Output 0 float32[1, 2, 3] differs by up to 2.5 (mean 0.25)"
    )


def test_any_other_cause_is_one_line() -> None:
    assert one(phase("failed", "\nValueError: bad\n  frame\n")).cause == "ValueError: bad"
    assert one(phase("failed", "", when="setup")).cause == "failed in setup"


def test_the_suites_own_xfail_has_the_cause_that_really_happened() -> None:
    verdict = one(phase("skipped", "ValueError: no\n more", xfail="not supported"))
    assert verdict.result == "xfailed"
    assert verdict.cause == "the suite's own: not supported [ValueError: no]"
    verdict = one(phase("skipped", MISMATCH, xfail="off by one", consoles=(b"fine\n",)))
    assert verdict.cause == (
        "the suite's own: off by one "
        "[mismatch: Output 0 float32[1, 2, 3] differs by up to 2.5 (mean 0.25)]"
    )


TOO_SMALL = (
    b"E [executorch:method_loader.cpp:160 f()] method allocator too small: 9 bytes needed, 1 "
    b"available; build with a larger HIL_METHOD_POOL_BYTES\n"
)
NO_BACKEND = b"E [executorch:method.cpp:60 init()] Backend EthosUBackend is not registered.\n"


@pytest.mark.parametrize(
    ("console", "reason", "result"),
    [
        (MISSING, "rounding differs", "failed"),
        (MISSING, "Missing operator in the test runner", "xfailed"),
        (TOO_SMALL, "rounding differs", "failed"),
        (TOO_SMALL, "does not fit the memory", "xfailed"),
        (NO_BACKEND, "rounding differs", "failed"),
    ],
)
def test_an_expected_failure_for_another_reason_is_a_failure(
    console: bytes, reason: str, result: Result
) -> None:
    """A runner that lacks an operator has not shown what the suite expects of it."""
    verdict = one(phase("skipped", "RuntimeError: x", xfail=reason, consoles=(console,)))
    assert verdict.result == result
    assert reason in verdict.cause
    if result == "failed":
        assert "expects a failure for another reason" in verdict.cause


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("Did not find Corstone-300 FVP or executor_runner on path", "FileNotFoundError: elf"),
        ("", "FileNotFoundError: [Errno 2] No such file or directory: 'FVP_Corstone_SSE-320'"),
        ("x", "FileNotFoundError: Did not find elf file /x/arm_executor_runner"),
    ],
)
def test_without_a_stand_in_nothing_is_an_expected_failure(reason: str, message: str) -> None:
    """ExecuTorch marks every test on the target to fail where there is no FVP."""
    verdicts = results_of([phase("skipped", message, xfail=reason), phase(test="other")])
    assert [v.result for v in verdicts] == ["failed", "passed"]
    with pytest.raises(StandinMissing, match="the stand-in or the runner was not found") as e:
        require_found(verdicts)
    assert e.value.exit_code == 3
    assert e.value.looked_for == TEST
    require_found(verdicts[1:])


def test_a_pass_the_suite_did_not_expect() -> None:
    """A runner with more operators than ExecuTorch's passes tests that are marked to fail."""
    assert one(phase(xfail="flaky")).cause == "although the suite expects a failure: flaky"
    verdict = one(phase("failed", "[XPASS(strict)] no broadcasting"))
    assert verdict.result == "passed"
    assert verdict.cause == "although the suite expects a failure: no broadcasting"


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ("failed", "ModuleNotFoundError: No module named 'torchvision'"),
        ("skipped", "Skipped: could not import 'torchvision': No module named 'torchvision'"),
    ],
)
def test_what_is_not_installed_is_named(outcome: str, message: str) -> None:
    verdict = one(phase(outcome, message, when="collect", test="models/test_mobilenet_v2.py"))
    assert verdict.result == "unsupported"
    assert verdict.cause == "needs torchvision, which is not installed"


def test_a_skip_keeps_its_reason() -> None:
    verdict = one(phase("skipped", "Skipped: hangs", when="setup"))
    assert (verdict.result, verdict.cause) == ("skipped", "hangs")


@pytest.mark.parametrize(
    "line",
    [
        b"E [executorch:doorbell_device.cpp:82 run()] the NPU stand-in does not support: DIV = 1\n",
        b"E: the NPU stand-in does not support: DIV = 1\n",
    ],
)
def test_what_the_npu_model_does_not_do_is_a_result_of_its_own(line: bytes) -> None:
    """It is no failure of the runner, and no pass."""
    verdict = one(phase("failed", "RuntimeError: x", consoles=(b"fine\n" + line,)))
    assert (verdict.result, verdict.cause) == ("unsupported", "the NPU model: DIV = 1")
    assert one(phase(consoles=(line,))).result == "passed"


def test_tests_that_only_compile_are_told_apart() -> None:
    assert not one(phase()).simulated
    assert one(phase(consoles=(b"",))).simulated


@pytest.mark.parametrize(
    ("test", "group"),
    [
        (TEST, "add"),
        ("models/test_ds_cnn.py::t", "models/ds_cnn"),
        ("misc/test_x.py::t", "misc/x"),
        ("test_explicit_layout.py::t", "explicit_layout"),
    ],
)
def test_groups(test: str, group: str) -> None:
    assert SuiteTest(test, "passed", "", 0).group == group


@pytest.mark.parametrize(
    ("results", "complaints", "code"),
    [
        (["passed", "xfailed", "unsupported", "skipped"], (), 0),
        (["passed", "failed"], (), 1),
        (["xfailed"], (), 1),
        ([], (), 1),
        (["passed"], ("a stranger",), 1),
    ],
)
def test_exit_codes(results: list[Result], complaints: tuple[str, ...], code: int) -> None:
    """A run in which nothing passed proves nothing."""
    verdicts = tuple(SuiteTest(f"t{n}", result, "", 0) for n, result in enumerate(results))
    report = SuiteReport("s", "q", "e", verdicts, 1.0, Path("l"), complaints)
    assert report.exit_code == code
