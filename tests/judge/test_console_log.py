"""A stranger's console log: what it proves, what it does not, and what nobody can know from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.core.verdict import Verdict
from harness.judge.console_log import JudgedLog, judge_log
from harness.log.parser import parse_console

P = "I [executorch:arm_executor_runner.cpp:1 main()] "
LOADED = f"{P}Method loaded.\n{P}Starting the model execution...\n"
PASS = f"{P}TEST: BundleIO index[0] Test_result: PASS\n"
END = f"{P}Program complete, exiting.\n"
HARD_FAULT = "Hard fault. irq=-13, pc=0x10000abc, lr=0x1, xpsr=0x2, sp=0x3\n"
LIMIT = "Info: Simulation is stopping. Reason: CPU time has been exceeded.\n"
LOGS = {
    "compared and complete": (LOADED + PASS + END, "PASS", None, None),
    "complete, then the model's limit": (LOADED + PASS + END + LIMIT, "PASS", None, None),
    "complete, outputs compared by nobody": (
        LOADED + "Output[0][0]: (float) 0.5\n" + END,
        "COMPLETED",
        "nothing_compared",
        4,
    ),
    "compared, but no end": (LOADED + PASS, "NO_VERDICT", "no_end_marker", 3),
    "silence after the start": (LOADED, "NO_VERDICT", "no_end_marker", 2),
    "limit": (LOADED + LIMIT, "HANG", "wall_limit", 3),
    "limit without a word": (LIMIT, "HANG", "wall_limit", 1),
    "failed comparison": (
        LOADED + PASS.replace("PASS", "FAIL") + END,
        "MISMATCH",
        "bundled_test_failed",
        3,
    ),
    "abort after PASS": (
        LOADED + PASS + "F [executorch:a.cpp:9] Problem running model\n",
        "FAULT",
        "runner_error",
        4,
    ),
    "fault": (LOADED + HARD_FAULT + "EXITTHESIM\n", "FAULT", "hard_fault", 3),
    "fault and yet an end": (HARD_FAULT + LOADED + PASS + END, "FAULT", "hard_fault", 1),
    "the C library prints zu": (
        "I [executorch:main.cpp:zu \x02\x03()] zu\n" * 3,
        "NO_VERDICT",
        "format_unknown",
        1,
    ),
    "an NPU that cannot read its commands": (
        LOADED + "E: NPU status=0x00000804, qread=0, cmd_end_reached=0 (ethosu_device.c:202)\n",
        "FAULT",
        "npu_driver_error",
        3,
    ),
    "no licence": ("Error: license checkout failed\n", "INFRA", "licence", 1),
    "empty": ("", "NO_VERDICT", "empty_log", None),
    "not a runner's": ("hello\nworld\n", "NO_VERDICT", "no_runner_line", 2),
    "only a boot": ("*** Booting Zephyr OS build v4.2.0 ***\n", "NO_VERDICT", "no_end_marker", 1),
    "run_fvp.sh says all is well": (
        "[run_fvp] Simulation complete, 0\nNo problems found!\n",
        "NO_VERDICT",
        "no_runner_line",
        2,
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_verdict_of_a_log(name: str) -> None:
    log, verdict, kind, line = LOGS[name]
    judged = judge_log(parse_console(log.encode()))
    assert judged.verdict == verdict
    assert (judged.cause and judged.cause.kind) == kind
    assert (judged.cause and judged.cause.line) == line


@pytest.mark.parametrize("name", LOGS)
def test_what_a_log_cannot_tell_is_said(name: str) -> None:
    seen = parse_console(LOGS[name][0].encode())
    judged = JudgedLog(Path("ci.log"), judge_log(seen), seen)
    assert any("exit status" in what for what in judged.unknowable)
    assert any("firmware" in what for what in judged.unknowable)
    assert judged.summary()["unknown"] == list(judged.unknowable)
    assert not set(judged.unknowable) & set(judged.judgement.notes)


def test_a_cut_log_is_said_to_be_cut() -> None:
    notes = judge_log(parse_console((LOADED + P + "Progr").encode())).notes
    assert any("may be cut" in note for note in notes)


def test_by_what_tolerance_a_runner_compared_is_said() -> None:
    said = "I [executorch:r.cpp:1 main()] TEST: BundleIO index[0] Test_result: PASS\n"
    notes = judge_log(parse_console(said.encode())).notes
    assert any("1 bundled test set(s) compared by the runner itself" in note for note in notes)


def test_the_command_takes_a_log(tmp_path: Path) -> None:
    """Exit codes: 0 for what passed or completed, 3 for a simulator that did not work, else 1."""
    log = tmp_path / "ci.log"
    codes = {
        "compared and complete": 0,
        "complete, outputs compared by nobody": 0,
        "fault": 1,
        "limit": 1,
        "no licence": 3,
        "empty": 1,
    }
    for name, code in codes.items():
        log.write_text(LOGS[name][0])
        result = CliRunner().invoke(main, ["judge", str(log), "--json"])
        assert result.exit_code == code, name
        summary = json.loads(result.output)
        assert summary["verdict"] == LOGS[name][1]
        assert summary["unknown"]
    log.write_text(LOGS["fault"][0])
    said = CliRunner().invoke(main, ["judge", str(log)]).output
    first, cause, *evidence = said.splitlines()
    assert first.startswith("FAULT hard_fault: look at the function of the fault")
    assert first.endswith(f"({log}:3)")
    assert cause.startswith("  cause: line 3: Hard fault. irq=-13")
    assert "  evidence: pc: 0x10000abc" in evidence
    assert "not known" not in said
    verbose = CliRunner().invoke(main, ["judge", str(log), "--verbose"]).output
    assert "not known: which .pte ran" in verbose
    assert CliRunner().invoke(main, ["judge", str(tmp_path / "absent")]).exit_code == 2


def test_what_completed_is_good_enough_unless_strict(tmp_path: Path) -> None:
    """One line says that nobody compared the outputs; --strict wants a comparison."""
    log = tmp_path / "ci.log"
    log.write_text(LOGS["complete, outputs compared by nobody"][0])
    judged = CliRunner().invoke(main, ["judge", str(log)])
    assert judged.exit_code == 0
    assert "COMPLETED nothing_compared" in judged.output
    assert judged.output.count("nothing in the log compares its outputs") == 1
    strict = CliRunner().invoke(main, ["judge", str(log), "--strict", "--json"])
    assert (strict.exit_code, json.loads(strict.output)["verdict"]) == (1, "COMPLETED")
    log.write_text(LOGS["compared and complete"][0])
    assert CliRunner().invoke(main, ["judge", str(log), "--strict"]).exit_code == 0


@pytest.mark.parametrize("end", ["Application exit code: 0.\n", "EXITTHESIM\n", END])
def test_a_limit_after_an_end_is_not_a_hang(end: str) -> None:
    """The model stops a program that has ended where nothing else tells it to."""
    judged = judge_log(parse_console((LOADED + PASS + end + LIMIT).encode()))
    assert judged.verdict is Verdict.PASS
    assert any("ended by the model's own limit" in note for note in judged.notes)
    assert judge_log(parse_console((LOADED + PASS + LIMIT).encode())).verdict is Verdict.HANG


def test_several_runs_that_completed_in_part() -> None:
    """Whatever one of them did well, what another did not is the verdict."""
    silent, good = LOADED + END, LOADED + PASS + END
    assert judge_log(parse_console((good + good).encode())).verdict is Verdict.PASS
    assert judge_log(parse_console((good + silent).encode())).verdict is Verdict.COMPLETED
    assert judge_log(parse_console((silent + good).encode())).verdict is Verdict.COMPLETED
    assert judge_log(parse_console((silent + LOADED).encode())).verdict is Verdict.NO_VERDICT
    ended = "Application exit code: 0.\n\x04\nEXITTHESIM\n"
    assert judge_log(parse_console((good + ended).encode())).verdict is Verdict.PASS
    assert judge_log(parse_console((good + ended + good + ended).encode())).verdict is Verdict.PASS
    assert (
        judge_log(parse_console((good + ended + LOADED + ended).encode())).verdict
        is Verdict.COMPLETED
    )


def test_a_bus_abort_of_the_npu_is_in_the_cause() -> None:
    judged = judge_log(parse_console(LOGS["an NPU that cannot read its commands"][0].encode()))
    assert judged.cause is not None
    assert judged.cause.text.endswith("a bus abort on its AXI interface M1 while reading a command")
