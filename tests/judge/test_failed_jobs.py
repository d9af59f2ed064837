"""A log of a whole job is no PASS when anything in it says that something failed.

Each line is as the tool prints it, beside a run that compared its outputs and completed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.verdict import Verdict
from harness.judge.console_log import judge_file, judge_log
from harness.log.job_lines import ends_well, is_job_line, job_lines
from harness.log.parser import parse_console
from tests.judge.stranger_logs import END, MATRIX, OK, PASS, RUNS, i

FAILED = {
    "make": "make: *** [Makefile:12: run] Error 2",
    "make in a folder": "make[2]: *** [CMakeFiles/run.dir/build.make:70: run] Error 1",
    "ninja": "ninja: build stopped: subcommand failed.",
    "ninja that was interrupted": "ninja: build stopped: interrupted by user.",
    "a step of ninja": "FAILED: zephyr/zephyr.elf",
    "west": "FATAL ERROR: command exited with status 1: /usr/bin/cmake --build build",
    "CMake": "CMake Error at CMakeLists.txt:3 (message):",
    "compiler": "main.c:3:5: error: expected ';' before 'return'",
    "collect2": "collect2: error: ld returned 1 exit status",
    "ctest": "50% tests passed, 1 tests failed out of 2",
    "ctest's test": "2/2 Test #2: runner_u85 .......................***Failed    0.01 sec",
    "ctest's time": "2/2 Test #2: runner_u85 .......................***Timeout  10.01 sec",
    "ctest's list": "The following tests FAILED:",
    "pytest": "========================= 1 failed, 1 passed in 0.12s =========================",
    "pytest -q": "1 failed, 1 passed in 0.12s",
    "pytest, an error": "=========== 3 passed, 1 error in 2.30s ===========",
    "pytest's summary": "FAILED tests/test_add.py::test_u55 - assert 1 == 2",
    "pytest -v": "tests/test_add.py::test_u55 FAILED                            [ 50%]",
    "JUnit": '<testsuite name="pytest" errors="0" failures="1" skipped="0" tests="2">',
    "unittest": "FAILED (failures=1)",
    "gtest": "[  FAILED  ] Conv.Int8 (3 ms)",
    "gtest's sum": " 1 FAILED TEST",
    "Twister": "INFO    - 1 of 2 test configurations passed (50.00%), 1 failed, 0 errored",
    "Twister's test": "ERROR   - mps3/corstone300/fvp sample.run FAILED : Timeout",
    "ztest": "PROJECT EXECUTION FAILED",
    "bazel": "Executed 1 out of 1 test: 1 fails locally.",
    "bazel's test": "//arm:runner_test                                          FAILED in 3.1s",
    "bazel's time": "//arm:runner_test                                          TIMEOUT in 2.0s",
    "bazel's progress": "[4 / 6] 1 / 2 tests, 1 failed; last test: //arm:runner_test",
    "bazel's build": "ERROR: Build did NOT complete successfully",
    "cargo": "test result: FAILED. 0 passed; 1 failed; 0 ignored",
    "gradle": "BUILD FAILED in 3s",
    "TAP": "not ok 2 - conv",
    "Python": "Traceback (most recent call last):",
    "subprocess": "Command '['./run.sh']' returned non-zero exit status 2.",
    "timeout": "timeout: sending signal TERM to command './run.sh'",
    "a signal": "Terminated",
    "a signal, in a script": "run.sh: line 3:  4711 Killed                  ./FVP_Corstone",
    "a command that is not there": "run.sh: line 4: west: command not found",
    "dash": "sh: 1: cmake: not found",
    "docker": "The command '/bin/sh -c make' returned a non-zero code: 2",
    "GitHub": "##[error]Process completed with exit code 1.",
    "GitHub's newer page": "Error: Process completed with exit code 1.",
    "GitHub's cancellation": "##[error]The operation was canceled.",
    "Azure": "##[error]Bash exited with code '1'.",
    "GitLab": "ERROR: Job failed: exit code 1",
    "GitLab's time": "ERROR: Job failed: execution took longer than 1h0m0s seconds",
    "Jenkins": "Finished: FAILURE",
    "Jenkins, unstable": "Finished: UNSTABLE",
    "CircleCI": "Exited with code exit status 1",
    "Buildkite": "\U0001f6a8 Error: The command exited with status 1",
    "Travis": 'The command "./run.sh" exited with 1.',
    "run_fvp": "[run_fvp] Simulation complete, 1",
    "run_fvp.sh by its path": "[backends/arm/scripts/run_fvp.sh] Simulation complete, 1",
    "run_fvp.sh's bundle": "[/x/run_fvp.sh] Bundled I/O check FAILED for add.bpte",
    "run_fvp.sh found none": "[/x/run_fvp.sh] No Test_result line found",
    "run_fvp.sh without its name": "No Test_result line found in the log",
}
WELL = {
    "pytest": "========================= 2 passed, 1 xfailed in 0.12s =========================",
    "ctest": "100% tests passed, 0 tests failed out of 2",
    "gtest": "[  PASSED  ] 2 tests.",
    "Twister": "INFO    - 2 of 2 test configurations passed (100.00%), 0 failed, 0 errored",
    "bazel": "//arm:runner_test                                          PASSED in 3.1s",
    "bazel, of a cached result": "//arm:runner_test                     (cached) PASSED in 3.1s",
    "bazel's target": "Target //arm:runner_test up-to-date:",
    "bazel's file": "  bazel-bin/runner_test",
    "bazel's progress at a terminal": "\r\x1b[1A\x1b[K\r\x1b[32m[4 / 5]\x1b[0m 1 / 1 tests;",
    "cargo": "test result: ok. 2 passed; 0 failed; 0 ignored",
    "Jenkins": "Finished: SUCCESS",
    "GitHub": "Process completed with exit code 0.",
    "JUnit": '<testsuite name="pytest" errors="0" failures="0" skipped="0" tests="2">',
    "run_fvp": "[/x/run_fvp.sh] Simulation complete, 0",
    "CircleCI": "Exited with code exit status 0",
    "make": "make: Leaving directory '/x'",
    "make, asked to go on": "make: [Makefile:8: tidy] Error 1 (ignored)",
    "no terminal for the FVP": "sh: 1: xterm: not found",
}
PREFIXES = [
    "",
    "2026-03-04T05:06:07.1234567Z ",
    "2026-03-04T05:06:07.123456Z 01O ",
    "[2026-03-04T05:06:07.123Z] ",
    "runner-1  | ",
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", FAILED)
def test_a_line_that_says_that_something_failed(name: str, prefix: str) -> None:
    """Before the run, behind it, and where nothing was compared."""
    line = f"{prefix}{FAILED[name]}\n".encode()
    for log, number in ((line + OK, 1), (OK + line, 5), (RUNS + MATRIX + END + line, 8)):
        judged = judge_log(parse_console(log))
        assert judged.verdict is Verdict.NO_VERDICT, judged
        assert judged.cause is not None
        assert (judged.cause.kind, judged.cause.line) == ("job_failed", number)
        shown = FAILED[name].strip().replace("##[", "## [")  # no command for a CI system
        assert shown in judged.cause.text


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", WELL)
def test_a_job_that_went_well_passes(name: str, prefix: str) -> None:
    lines = [prefix.encode() + line for line in OK.splitlines()]
    log = b"\n".join([*lines, prefix.encode() + WELL[name].encode(), b""])
    judged = judge_log(parse_console(log))
    assert judged.passed, judged


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("line", ["3 of 4 checks went wrong", "E: out of tea", "Segmentation"])
def test_a_line_that_nobody_is_known_to_print_is_shown_and_not_passed(
    line: str, prefix: str
) -> None:
    """Behind the end, and between two runs; before the first run it is nobody's business."""
    stray = f"{prefix}{line}\n".encode()
    for log in (OK + stray, OK + stray + OK):
        judged = judge_log(parse_console(log))
        assert judged.verdict is not Verdict.PASS
        assert judged.cause is not None
        assert (judged.cause.line, line in judged.cause.text) == (5, True)
    said = judge_log(parse_console(OK + b"3 of 4 checks went wrong\n" * 9))
    assert (said.verdict, said.cause and said.cause.kind) == (Verdict.NO_VERDICT, "unknown_line")
    assert judge_log(parse_console(b"3 of 4 checks went wrong\n" + OK)).passed


WEST = b"""-- west build: generating a build system
Loading Zephyr default modules (Zephyr base).
-- Found west (found suitable version "1.5.0", minimum required is "0.14.0")
-- Could NOT find Dtc (missing: DTC) (Required is at least version "1.4.6")
-- Found BOARD.dts: /z/zephyr/boards/arm/mps3/mps3_corstone300_an547.dts
Parsing /z/zephyr/Kconfig
Configuration saved to '/b/zephyr/.config'
-- Looking for xtensa/config/core-isa.h - not found
-- Build files have been written to: /b
-- west build: building application
[1/1079] Preparing syscall dependency handling

[2/1079] Generating include/generated/zephyr/version.h
[1074/1079] Linking C executable zephyr/zephyr_pre0.elf
[1079/1079] Linking C executable zephyr/zephyr.elf
Memory region         Used Size  Region Size  %age Used
           FLASH:       13012 B       512 KB      2.48%
 NULL_PTR_DETECT:          0 GB         1 KB      0.00%
        IDT_LIST:          0 GB        32 KB      0.00%
Generating files from /b/zephyr/zephyr.elf for board: mps3
"""
WEST_RUNS = b"""-- west build: running target run
[0/1] To exit from QEMU enter: 'CTRL+a, x'[QEMU] CPU: cortex-m55
qemu-system-arm: warning: nic lan9118.0 has no peer
*** Booting Zephyr OS build ed13f90ba6ed ***
"""
WEST_FAILED = b"""FAILED: zephyr/CMakeFiles/run_qemu /b/zephyr/CMakeFiles/run_qemu
cd /b && /usr/bin/qemu-system-arm -cpu cortex-m55 -machine mps3-an547 -kernel /b/zephyr/zephyr.elf
ninja: build stopped: subcommand failed.
FATAL ERROR: command exited with status 1: /usr/bin/cmake --build /b --target run
"""


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_west_build_that_is_followed_by_its_run(prefix: str) -> None:
    """Real output of west 1.5 and Zephyr 4.1, of fewer files, for one and for two images."""
    one = WEST + WEST_RUNS + OK

    def judged(log: bytes) -> Verdict:
        lines = b"".join(prefix.encode() + line for line in log.splitlines(keepends=True))
        return judge_log(parse_console(lines)).verdict

    assert judged(one) is Verdict.PASS
    assert judged(one + one) is Verdict.PASS
    assert judged(one + WEST_FAILED) is Verdict.NO_VERDICT
    assert judged(one + WEST_FAILED + one) is Verdict.NO_VERDICT
    assert judged(one + WEST) is Verdict.PASS  # nobody said that it is to be run
    assert judged(one + WEST + WEST_RUNS) is not Verdict.PASS  # and then it did not run


STRAY = b"3 of 4 checks went wrong\n"
ENDS_WELL = [
    *("Finished: SUCCESS", "Job succeeded", "Result: PASS", "CircleCI received exit code 0"),
    *("2 passed in 0.12s", "=== 1 passed, 3 skipped, 2 warnings in 0.12s ==="),
    *("[  PASSED  ] 2 tests.", "100% tests passed, 0 tests failed out of 2"),
    "test result: ok. 2 passed; 0 failed; 0 ignored",
    "Executed 0 out of 1 test: 1 test passes.",
    "INFO    - 2 of 3 test configurations passed (66.67%), 0 failed, 0 errored, 1 skipped",
]
# Lines of jobs that mean nothing: a job that failed has them, too, or nothing was run.
ENDS = [
    *("Cleaning up orphan processes", "##[section]Finishing: Bash", "Post job cleanup.", "OK"),
    *("1 skipped in 0.1s", "=== 3 deselected in 0.01s ===", "=== 2 warnings in 0.10s ==="),
    *("0 passed in 0.12s", "1 xfailed in 0.12s", "[  PASSED  ] 0 tests."),
    *("test result: ok. 0 passed; 0 failed; 3 ignored", "0 tests, 0 passed, 0 failed"),
    *("100% tests passed, 0 tests failed out of 0", "No problems found!"),
    "INFO    - 0 of 0 test configurations passed (0.00%), 0 failed, 0 errored",
]


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        *((end, Verdict.COMPLETED) for end in ENDS_WELL),
        *((end, Verdict.NO_VERDICT) for end in ENDS),
    ],
)
def test_a_line_that_nobody_knows_is_green_only_where_somebody_says_that_all_went_well(
    end: str, verdict: Verdict
) -> None:
    """It may have said that something failed: only who knows the exit status can say it did not."""
    log = OK + STRAY * 5 + end.encode() + b"\n"
    assert judge_log(parse_console(log)).verdict is verdict
    assert judge_log(parse_console(log + STRAY)).verdict is Verdict.NO_VERDICT
    assert judge_log(parse_console(log.replace(STRAY, b""))).passed  # each is known


# Real tools say each of these in jobs that went well.
HARMLESS = [
    "-- Performing Test HAVE_GETRANDOM - Failed",
    "tests/test_errors.py::test_fails_on_bad_input PASSED                  [ 50%]",
    "XFAIL tests/test_conv.py::test_u55 - AssertionError: Output 0 does not match",
    "main.c:3:5: warning: this error message is never shown [-Wformat]",
    "[3/9] Building C object src/error/fail.c.obj",
    "arm-none-eabi-gcc -Werror -fno-exceptions -c error.c -o error.o",
    "max error: 0.00390625",
    "mean absolute error 1e-03 (tolerance 0.01)",
    "0 errors, 0 failures",
    "no errors were found",
    "Fail:              0",
    "# fail 0",
    "failed: 0, passed: 12",
    "error: null",
    "Error code = 0",
    "error rate 0.02",
    "+ ./run.sh || echo failed",
    "$ ./run.sh || exit 1",
    "  if-no-files-found: error",
    "make: [Makefile:6: tidy] Error 1 (ignored)",
    "xterm: Xt error: Can't open display:",
    "\x1b[36;1m./run.sh || { echo failed; exit 1; }\x1b[0m",
    "ERROR: pip's dependency resolver does not currently take into account all the packages",
]

# Said by tools that no row of the table knows.
UNFORESEEN = [
    "a.txt: FAILED",
    "a.txt b.txt differ: byte 1, line 1",
    "tool: conv: 3 outputs mismatch",
    "RuntimeError: boom",
    "boost::wrapexcept<std::runtime_error>: unhandled exception",
    "3 errors generated.",
    "✖ failing tests:",
    "npm ERR! Test failed.  See above for more details.",
    "nox > Command ./run.sh failed with exit code 1",
    "fatal: not a git repository",
    "thread 'main' panicked at src/lib.rs:2:5",
    "==123== ERROR SUMMARY: 1 errors from 1 contexts",
    "mps3: failed=1 unreachable=0",
    "the job was cancelled",
]


@pytest.mark.parametrize(
    ("line", "failed"),
    [*((line, False) for line in HARMLESS), *((line, True) for line in UNFORESEEN)],
)
def test_words_of_failure_whoever_says_them(line: str, failed: bool) -> None:
    stray = f"{line}\n".encode()
    for log in (stray + OK, OK + stray)[: 1 + failed]:
        judged = judge_log(parse_console(log))
        assert judged.passed is not failed
        assert (judged.cause is not None and judged.cause.kind == "job_failed") is failed


def test_the_lines_of_a_job_that_mean_nothing_are_none_that_mean_a_failure() -> None:
    for row in job_lines():
        assert is_job_line(row["example"].encode()), row
        assert ends_well(row["example"].encode()) or "ends" not in row, row
    wrong = [line for line in FAILED.values() if is_job_line(line.encode())]
    assert wrong == []


def test_a_thousand_other_doubts_hide_no_failed_job() -> None:
    noise = b"ERROR:   BL2: no measured boot\n" * 1200
    judged = judge_log(parse_console(OK + noise + b"make: *** [run] Error 2\n"))
    assert judged.cause is not None
    assert judged.cause.kind == "job_failed"


QUOTED = PASS.decode().strip()
BARE = "TEST: BundleIO index[0] Test_result: PASS"


@pytest.mark.parametrize(
    "line",
    [
        f"checking for: {BARE}",
        f'grep -q "{BARE}" fvp.log',
        f'grep -q "{QUOTED}" fvp.log',
        f"checking for: {QUOTED}",
        f"E       AssertionError: assert '{BARE}' in 'I [executorch'",
        f"+ expect '{QUOTED}'",
        f"{BARE}' not in fvp.log",
    ],
)
def test_a_marker_that_is_quoted_compares_nothing(line: str) -> None:
    judged = judge_log(parse_console(RUNS + MATRIX + line.encode() + b"\n" + END))
    said = Verdict.NO_VERDICT if "AssertionError" in line else Verdict.COMPLETED
    assert judged.verdict is said


@pytest.mark.parametrize("before", [b"1: ", b"12:34:56 ", b"DEBUG   - DEVICE: ", b"\x04"])
def test_a_marker_behind_a_tools_prefix_or_a_line_without_end_counts(before: bytes) -> None:
    log = RUNS + before + PASS + before + END
    assert judge_log(parse_console(log)).passed


def test_the_all_ops_image_passes_by_its_own_summary() -> None:
    log = (
        "Test_exec: add\nTest_result: add PASS\nTest_exec: conv\nTest_result: conv PASS\n"
        "Test_result: SUMMARY 2/2 PASS\n"
    )
    assert judge_log(parse_console(log.encode())).passed
    failed = log.replace("conv PASS", "conv FAIL (execute)").replace("2/2 PASS", "1/2 FAIL")
    judged = judge_log(parse_console(failed.encode()))
    assert judged.verdict is Verdict.MISMATCH
    assert judged.cause is not None
    assert judged.cause.kind == "test_failed"
    assert judged.cause.facts == {"test": "conv", "step": "execute"}


@pytest.mark.parametrize("summary", ["166/167 FAIL", "166/167 PASS", "0/0 PASS"])
def test_a_summary_that_is_not_of_all_tests_passes_nothing(summary: str) -> None:
    log = f"Test_result: add PASS\nTest_result: SUMMARY {summary}\n"
    judged = judge_log(parse_console(log.encode()))
    assert judged.verdict in (Verdict.MISMATCH, Verdict.NO_VERDICT)


NAN = b"Output[0][0]: (float) nan\nOutput[0][1]: (float) -nan\n"


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (RUNS + NAN + END, "only_nan"),
        (RUNS + END, "no_inference"),
        (RUNS + i("Model executed successfully 0 time(s) in 0.00 ms."), "no_end_marker"),
        (RUNS + i("0 inferences finished") + END, "no_inference"),
        (RUNS + i("Starting the model execution...") + i("0 outputs: ") + END, "no_inference"),
    ],
)
def test_a_run_that_did_nothing_is_not_completed(log: bytes, kind: str) -> None:
    judged = judge_log(parse_console(log))
    assert judged.verdict is Verdict.NO_VERDICT
    assert judged.cause is not None
    assert judged.cause.kind == kind


def test_one_number_among_nan_is_an_output() -> None:
    judged = judge_log(parse_console(RUNS + NAN + b"Output[0][2]: (float) 1.0\n" + END))
    assert judged.verdict is Verdict.COMPLETED


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('<?xml version="1.0"?><testsuites><testsuite name="pytest" failures="0">', "JUnit"),
        ("===== test session starts =====\ncollected 2 items\n", "pytest"),
        ("[1/9] Building C object a.o\n", "hil link explain"),
        ("[ 50%] Building C object a.o\n", "hil link explain"),
        ("make: *** [all] Error 2\n", "hil link explain"),
    ],
)
def test_a_file_that_is_not_a_console_is_named(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    judgement = judge_file(tmp_path / "log").judgement
    assert judgement.verdict is Verdict.NO_VERDICT
    note = judgement.notes[-1]
    assert what in note


def test_a_console_is_not_taken_for_a_build_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"[1/9] Building C object a.o\n" + OK)
    judgement = judge_file(tmp_path / "log").judgement
    assert judgement.passed
    assert not any("hil link explain" in note for note in judgement.notes)
