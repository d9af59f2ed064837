"""Protects that no call of the FVP passes for its script's exit status: each is judged by what it
printed, each test by what it simulated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from harness.core.verdict import Verdict
from harness.suites.ci.results import (
    Exactness,
    FvpCall,
    JobResult,
    JobVerdict,
    doubts,
    other_outputs,
    read_calls,
    read_tests,
)
from harness.suites.standin.record import REFUSED

_BEGUN = """\
I [executorch:arm_executor_runner.cpp:1500 main()] PTE @ 0x70000000 [----ET12]
I [executorch:arm_executor_runner.cpp:900 run_model()] Starting the model execution...
"""
_ERRORS = """\
I [executorch:arm_executor_runner.cpp:1284 verify()]  max_absolute_error:  {}
I [executorch:arm_executor_runner.cpp:1300 verify()] TEST: BundleIO index[0] Test_result: PASS
"""
_END = """\
I [executorch:arm_executor_runner.cpp:1540 main()] Model run: 1
I [executorch:arm_executor_runner.cpp:1545 main()] Program complete, exiting.
I [executorch:arm_executor_runner.cpp:1550 main()] \4
"""


def call(folder: Path, console: str, *, ended: bool = True) -> FvpCall:
    folder.mkdir(exist_ok=True)
    (folder / "1-1.log").write_text(console)
    if ended:
        (folder / "1-1.json").write_text(json.dumps({"model": "FVP_Corstone_SSE-320"}))
    (found,) = read_calls(folder)
    return found


@pytest.mark.parametrize(
    ("error", "exactness"),
    [("0.000000", Exactness.PYTORCH), ("0.192000", Exactness.TOLERANCE)],
)
def test_a_compared_call_passes_with_its_error(
    tmp_path: Path, error: str, exactness: Exactness
) -> None:
    found = call(tmp_path, _BEGUN + _ERRORS.format(error) + _END)
    assert (found.verdict, found.exactness, found.error) == (Verdict.PASS, exactness, float(error))
    assert doubts([found], (), tmp_path, simulates=True) == ()


def test_a_call_that_compares_nothing_is_said_so(tmp_path: Path) -> None:
    found = call(tmp_path, _BEGUN + _END)
    assert (found.verdict, found.exactness) == (Verdict.COMPLETED, Exactness.NOTHING)
    assert found.proven


@pytest.mark.parametrize(
    ("console", "ended", "reason"),
    [
        ("", True, "simulation 1: NO_VERDICT: the log is empty"),
        (_BEGUN, True, "simulation 1: NO_VERDICT: the runner never says it completed"),
        (_BEGUN + _ERRORS.format("0.0") + _END, False, "simulation 1: HANG: the simulation was"),
        (
            _BEGUN + "TEST: BundleIO index[0] Test_result: FAIL\n" + _END,
            True,
            "simulation 1: MISMATCH",
        ),
    ],
)
def test_a_call_without_proof_is_doubted(
    tmp_path: Path, console: str, ended: bool, reason: str
) -> None:
    found = call(tmp_path, console, ended=ended)
    assert not found.proven
    (doubt,) = doubts([found], (), tmp_path, simulates=True)
    assert doubt.startswith(reason)


def test_a_job_that_simulates_nothing_is_doubted(tmp_path: Path) -> None:
    assert doubts((), (), tmp_path, simulates=True) == ("nothing was simulated",)
    assert doubts((), (), tmp_path, simulates=False) == ()


def test_a_refused_program_is_doubted(tmp_path: Path) -> None:
    (tmp_path / REFUSED).touch()
    (doubt,) = doubts((), (), tmp_path, simulates=False)
    assert doubt == "the stand-in refused a program: the reason was not kept"
    (tmp_path / REFUSED).write_text("its sections overlap\n")
    (doubt,) = doubts((), (), tmp_path, simulates=False)
    assert doubt == "the stand-in refused a program: its sections overlap"


def phase(outcome: str, message: str = "", xfail: str | None = None) -> Mapping[str, object]:
    return {
        "test": "ops/test_add.py::test_add",
        "when": "call",
        "outcome": outcome,
        "message": message,
        "xfail": xfail,
        "seconds": 1.0,
        "consoles": [],
        "difference": None,
        "constant": False,
    }


def test_a_missing_fvp_is_not_an_expected_failure(tmp_path: Path) -> None:
    """ExecuTorch's XfailIfNoCorstone300: exit status 0."""
    path = tmp_path / "tests.jsonl"
    reason = "Did not find Corstone-300 FVP on path"
    path.write_text(json.dumps(phase("skipped", "FileNotFoundError", reason)))
    tests, reruns = read_tests(path)
    assert reruns == 0
    found = doubts((), tests, tmp_path, simulates=True)
    assert found[0] == "1 test expected to fail for want of an FVP or ELF"
    assert "no test passed" in found


def test_repeated_tests_are_counted_and_judged_by_their_last_run(tmp_path: Path) -> None:
    path = tmp_path / "tests.jsonl"
    path.write_text("\n".join(json.dumps(phase(outcome)) for outcome in ("rerun", "passed")))
    tests, reruns = read_tests(path)
    assert (reruns, [test.result for test in tests]) == (1, ["passed"])


def test_a_call_that_proves_less_than_before_is_named(tmp_path: Path) -> None:
    exact = call(tmp_path / "a", _BEGUN + _ERRORS.format("0.000000") + _END)
    about = call(tmp_path / "b", _BEGUN + _ERRORS.format("0.192000") + _END)
    before = JobResult("e2e", "p", "c1", JobVerdict.PASSED, calls=(exact,))
    assert tuple(other_outputs(before, [exact])) == ()
    (found,) = other_outputs(before, [about])
    assert found == "simulation 1: exact to PyTorch at c1, now within the job's tolerance only"


def test_a_result_is_read_back_as_it_was_kept() -> None:
    result = JobResult(
        name="e2e/mv2",
        place="trunk.yml:1",
        commit="cff6f4dd+edits",
        verdict=JobVerdict.UNPROVEN,
        reasons=("nothing was simulated",),
        status=0,
        calls=(FvpCall("FVP", "PASS", "", Exactness.TOLERANCE, 0.5),),
        tests={"passed": 3},
        exact=(2, 3),
    )
    assert TypeAdapter(JobResult).validate_json(json.dumps(result.as_json())) == result
    assert result.exactness == (
        "1 call within the job's tolerance only; 2 of 3 tests exact to PyTorch"
    )
