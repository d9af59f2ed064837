"""Protects the promise: PASS means proven, and the first cause is named.

Each test plants one fault into a run that would pass without it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.config.budgets import Budgets, Slack
from harness.core.judgement import Blame, Judgement
from harness.core.verdict import ExitCode, Verdict
from harness.export.estimates import Estimate, NpuCost, NpuOperator
from harness.export.program import CpuOperator, Delegation, OutputAccuracy
from harness.judge.evidence import ByDesign, Evidence, Expectation, Outputs, TensorDiff
from harness.judge.executorch_defects import ProgramDefect
from harness.judge.reference import Reference
from harness.judge.rules import judge, worst_lsb
from harness.log.parser import parse_console
from harness.sim.simulator import NpuResult, NpuStop, NpuUse
from harness.sim.transcript import Ending
from harness.system.process import Stop
from harness.system.quota import Excess
from tests.judge.published_logs import PUBLISHED
from tests.judge.stranger_logs import COMPLETED

GOOD_LOG = b"""I [executorch:runner.cpp:10 main()] build id 00112233445566778899
I [executorch:runner.cpp:20 main()] Method loaded.
I [executorch:runner.cpp:30 main()] Program complete, exiting.
"""
EXACT = TensorDiff("output 0", 0, True, 0, 4, worst_lsb=0.0)
ACCURACY = OutputAccuracy("output0", 100, 38.0, 0.97, 0.01)
WORSE = replace(ACCURACY, sqnr_db=30.0)
OFF_BY_ONE = TensorDiff("output 0", 1, False, 1, 4, (0, 2), 1.5, 1.0, 0.5, 1.0)
REFERENCE = Reference("aa", (("11",),), {"pte_bytes": 1000}, {"gcc 12": {"elf_text": 10_000}}, ())
GOOD: dict[str, Any] = {
    "log": GOOD_LOG,
    "ending": Ending(Stop.EXITED, 0, None, 0.2),
    "outputs": Outputs((EXACT,), sha256=(("11",),)),
    "metrics": {"pte_bytes": 1000, "elf_text": 10_000},
    "expectation": Expectation("00112233445566778899", True, "aa", "gcc 12", 0.0, REFERENCE),
}


def verdict(**changes: Any) -> Judgement:
    facts = {**GOOD, **changes}
    expectation = facts.pop("expectation")
    return judge(Evidence(parse_console(facts.pop("log")), **facts), expectation)


def expecting(**changes: Any) -> Expectation:
    changed: Expectation = replace(GOOD["expectation"], **changes)
    return changed


def test_all_proofs_present_is_pass() -> None:
    assert verdict() == Judgement(Verdict.PASS)


def test_what_executorch_is_known_to_compute_wrongly_is_not_a_pass() -> None:
    defect = ProgramDefect("cat-of-channels-last", 3, "aten::cat.out", "[2] in order [0]")
    judged = verdict(expectation=expecting(defects=(defect,)))
    assert judged.cause is not None
    assert (judged.verdict, judged.cause.kind) == (Verdict.MISMATCH, "known_defect")
    accepted = verdict(expectation=expecting(accepted_defects=(defect,)))
    assert accepted.passed
    assert accepted.notes == (
        "accepted, known defect `cat-of-channels-last` of ExecuTorch: instruction 3 "
        "(aten::cat.out of [2] in order [0])",
    )


@pytest.mark.parametrize("reference", [None, replace(REFERENCE, pte_sha256="", outputs=())])
def test_in_ci_a_case_that_was_never_accepted_is_not_a_pass(reference: Reference | None) -> None:
    """Only the oracle of the same export stands behind it; so where only its size was accepted."""
    how = "hil accept board/mine --reason"
    desk = verdict(expectation=expecting(reference=reference))
    assert (desk.verdict, desk.notes) == (Verdict.PASS, ("no reference run accepted yet",))
    ci = verdict(expectation=expecting(reference=reference, accept_command=how))
    assert ci.cause is not None
    assert (ci.verdict, ci.cause.kind) == (Verdict.NO_VERDICT, "not_accepted")
    assert f"accept it with: {how}; or let it be new with --allow-new" in ci.cause.text
    assert verdict(expectation=expecting(accept_command=how)).passed
    assert verdict(
        expectation=expecting(reference=None, truth=REFERENCE, accept_command=how)
    ).passed
    wrong = expecting(reference=None, accept_command=how)
    assert verdict(outputs=Outputs((OFF_BY_ONE,)), expectation=wrong).verdict is Verdict.MISMATCH


def driven(line: str) -> dict[str, object]:
    """The harness drives the guest or the board, and ended the run with this line."""
    ending = Ending(Stop.EXITED, 1, None, 0.2, problem=line)
    return {"log": line.encode() + b"\n" + GOOD_LOG, "ending": ending}


CAUSES = {
    "an error line before a good end": (
        {"log": b"E [executorch:x.cpp:1 f()] something broke\n" + GOOD_LOG},
        "FAULT",
        "runner_error",
        1,
    ),
    "a fatal line": (
        {"log": b"F [executorch:x.cpp:1 f()] assertion\n" + GOOD_LOG},
        "FAULT",
        "runner_error",
        1,
    ),
    "a hard fault": (
        {"log": GOOD_LOG + b"Hard fault. irq=-13, pc=0x10000abc, lr=0x1, xpsr=0x2, sp=0x3\n"},
        "FAULT",
        "hard_fault",
        4,
    ),
    "a missing operator": (
        {"log": b"E [executorch:m.cpp:1 f()] kernel 'aten::exp.out' not found.\n" + GOOD_LOG},
        "FAULT",
        "operator_missing",
        1,
    ),
    "non-zero exit without a word": (
        {"ending": Ending(Stop.EXITED, 3, None, 0.1)},
        "FAULT",
        "exit_status",
        3,
    ),
    "a status of the runner's that shells have for what they cannot start": (
        {"ending": Ending(Stop.EXITED, 126, None, 0.1)},
        "FAULT",
        "exit_status",
        3,
    ),
    "the simulator died of a signal": (
        {"ending": Ending(Stop.EXITED, None, 11, 0.1)},
        "NO_VERDICT",
        "simulator_killed",
        3,
    ),
    "somebody else killed the simulator": (
        {"ending": Ending(Stop.EXITED, None, 9, 0.1)},
        "INFRA",
        "simulator_killed",
        3,
    ),
    "a guest that ended without a word of the runner": (
        {"ending": Ending(Stop.EXITED, None, None, 5.0)},
        "NO_VERDICT",
        "exit_unknown",
        3,
    ),
    "a guest that refused the login": (
        driven("hil: the guest refuses the login of root"),
        "INFRA",
        "login_refused",
        1,
    ),
    "a guest that never came to its login": (
        driven("hil: the guest did not come to its login prompt within 120 s"),
        "HANG",
        "guest_silent",
        1,
    ),
    "a guest without the run's files": (
        driven("hil: the guest has no directory /work"),
        "INFRA",
        "no_root_file_system",
        1,
    ),
    "a guest whose disk is full": (
        {
            "log": b"E [executorch:posix.cpp:77 write_file()] s0-0.bin: no space left on the "
            b"device\n"
            b"E [executorch:runner.cpp:190 write_outputs()] cannot write output 0 (8 bytes)\n",
            "ending": Ending(Stop.EXITED, 1, None, 0.2, disk_full=True),
        },
        "INFRA",
        "disk_full",
        1,
    ),
    "a board whose power stays off": (
        driven("hil: the board cannot be driven: its power stays off"),
        "INFRA",
        "board_unreachable",
        1,
    ),
    "a board whose cable was pulled": (
        driven("hil: the serial line broke off: Input/output error; is it in place?"),
        "INFRA",
        "board_lost",
        1,
    ),
    "a board that does not answer": (
        driven("hil: the board did not answer within 30 s (0 bytes came)"),
        "NO_VERDICT",
        "board_silent",
        1,
    ),
    "a board that stops": (
        driven("hil: the board said nothing for 20 s"),
        "HANG",
        "guest_silent",
        1,
    ),
    "a board that starts again": (
        driven("hil: the board began again after frame 7; look at it"),
        "FAULT",
        "board_restarted",
        1,
    ),
    "a serial line that is damaged twice": (
        driven("hil: the board's console was damaged twice, frame 3 at byte 9: x"),
        "NO_VERDICT",
        "console_damaged",
        1,
    ),
    "a board with another program": (
        driven("hil: the board runs another program image (none)"),
        "NO_VERDICT",
        "wrong_program",
        1,
    ),
    "the deadline": ({"ending": Ending(Stop.DEADLINE, None, 9, 60.0)}, "HANG", "deadline", 3),
    "a stall": ({"ending": Ending(Stop.STALL, None, 9, 9.0)}, "HANG", "stall", 3),
    "too much output": (
        {"ending": Ending(Stop.OUTPUT_LIMIT, None, 9, 2.0, excess=Excess.TOTAL_BYTES)},
        "FAULT",
        "output_limit",
        3,
    ),
    "other firmware": (
        {"log": GOOD_LOG.replace(b"0011", b"ffff")},
        "NO_VERDICT",
        "wrong_firmware",
        None,
    ),
    "firmware that does not say what it is": (
        {"log": GOOD_LOG.split(b"\n", 1)[1]},
        "NO_VERDICT",
        "wrong_firmware",
        None,
    ),
    "no end marker": ({"log": GOOD_LOG.rsplit(b"I [", 1)[0]}, "NO_VERDICT", "no_end_marker", 2),
    "empty log": ({"log": b""}, "INFRA", "not_started", None),
    "empty log of a guest that was started": (
        {"log": b"", "ending": Ending(Stop.EXITED, 0, None, 0.2, began=True)},
        "NO_VERDICT",
        "wrong_firmware",
        None,
    ),
    "an output that was not written": (
        {"outputs": Outputs((EXACT,), missing=("s1-0.bin",))},
        "NO_VERDICT",
        "output_missing",
        None,
    ),
    "an output of the wrong size": (
        {"outputs": Outputs((EXACT,), misshapen=("s1-0.bin has 3 bytes, expected 4",))},
        "MISMATCH",
        "output_size",
        None,
    ),
    "an output that the program has not": (
        {"outputs": Outputs((EXACT,), undeclared=("s0-1.bin",))},
        "MISMATCH",
        "output_undeclared",
        None,
    ),
    "an input that the guest rewrote": (
        {
            "ending": replace(GOOD["ending"], rewritten=("s0i0.bin",)),
            "outputs": Outputs((EXACT, OFF_BY_ONE), sha256=(("11",),)),
        },
        "NO_VERDICT",
        "files_rewritten",
        None,
    ),
    "an exit status that reads as 0": (
        {"ending": replace(GOOD["ending"], exit_status=None, signal=31)},
        "FAULT",
        "exit_status",
        3,
    ),
    "nothing compared": ({"outputs": Outputs(())}, "NO_VERDICT", "nothing_compared", None),
    "wrong by one LSB": (
        {"outputs": Outputs((EXACT, OFF_BY_ONE), sha256=(("11",),))},
        "MISMATCH",
        "outputs_differ",
        None,
    ),
    "not the accepted outputs": (
        {"outputs": Outputs((EXACT,), sha256=(("22",),))},
        "MISMATCH",
        "reference_outputs",
        None,
    ),
    "a program in which nobody could look for known defects": (
        {"expectation": expecting(defects_unread="it has 2 chains")},
        "NO_VERDICT",
        "defects_unread",
        None,
    ),
    "another .pte than the exported one": (
        {"expectation": expecting(pte_unchanged=False)},
        "NO_VERDICT",
        "program_changed",
        None,
    ),
    "another program than the accepted run's, in CI": (
        {"expectation": expecting(pte_sha256="bb", strict=True)},
        "MISMATCH",
        "reference_program",
        None,
    ),
    "growth beyond the slack": (
        {"metrics": {"pte_bytes": 1257, "elf_text": 10_000}},
        "OVER_BUDGET",
        "grown",
        None,
    ),
    "an accuracy below its budget": (
        {
            "accuracy": (ACCURACY,),
            "expectation": expecting(budgets=Budgets(min_sqnr_db=40)),
        },
        "OVER_BUDGET",
        "accuracy",
        None,
    ),
    "an operator on the CPU that the budget wants on the NPU": (
        {
            "delegation": Delegation(3, (CpuOperator("sort", "", None, None, "no rule"),)),
            "expectation": expecting(budgets=Budgets(delegated="all")),
        },
        "OVER_BUDGET",
        "not_delegated",
        None,
    ),
    "an accuracy below the accepted one, though the program is another": (
        {
            "accuracy": (WORSE,),
            "expectation": expecting(
                reference=replace(REFERENCE, accuracy=(ACCURACY,)), pte_sha256="bb", strict=True
            ),
        },
        "OVER_BUDGET",
        "accuracy",
        None,
    ),
    "a console that was cut, and a lower accuracy": (
        {
            "accuracy": (WORSE,),
            "ending": Ending(Stop.EXITED, 0, None, 0.2, console_complete=False),
            "expectation": expecting(reference=replace(REFERENCE, accuracy=(ACCURACY,))),
        },
        "NO_VERDICT",
        "console_cut",
        3,
    ),
    "a figure that was not measured": (
        {"metrics": {"pte_bytes": 1000}},
        "NO_VERDICT",
        "not_measured",
        None,
    ),
    "a console that somebody kept open": (
        {
            "ending": Ending(Stop.EXITED, 0, None, 0.2, console_complete=False),
            "metrics": {"pte_bytes": 1257, "elf_text": 10_000},
        },  # and so its figures prove nothing
        "NO_VERDICT",
        "console_cut",
        3,
    ),
    "a simulator that did not start": (
        {
            "log": b"qemu-system-arm: unsupported machine type\n",
            "ending": Ending(Stop.EXITED, 1, None, 0.1),
        },
        "INFRA",
        "simulator_error",
        1,
    ),
}


def test_an_accuracy_that_was_never_accepted_is_compared_with_nothing() -> None:
    assert verdict(accuracy=(WORSE,)) == Judgement(Verdict.PASS)


def test_a_low_accuracy_is_the_first_note_of_a_pass() -> None:
    judged = verdict(accuracy=(replace(ACCURACY, sqnr_db=3.0),), differences=("another CPU",))
    assert judged.passed
    assert judged.notes[0].startswith("low accuracy: output0 has an SQNR of 3 dB")


@pytest.mark.parametrize("name", CAUSES)
def test_each_planted_fault_gets_its_name(name: str) -> None:
    changes, expected_verdict, kind, line = CAUSES[name]
    result = verdict(**changes)
    assert result.verdict == expected_verdict
    assert result.cause is not None
    assert (result.cause.kind, result.cause.line) == (kind, line)


_LICENCE = b"License checkout failed\n"
_POWER = "hil: the board cannot be driven: its power stays off"
_DISK = b"E [executorch:p.cpp:1 f()] s0-0.bin: no space left on the device\n"
# What the console has, whether the guest was started, and the rest of the ending.
WHOSE = {
    "a simulator before its guest": (_LICENCE + GOOD_LOG, {}, "INFRA", "licence"),
    "a guest after its first line": (GOOD_LOG + _LICENCE, {}, "FAULT", "licence"),
    "a guest that is known to run": (_LICENCE, {"began": True}, "FAULT", "licence"),
    "a simulator whose guest never ran": (_LICENCE, {"began": False}, "INFRA", "licence"),
    "a native program": (_LICENCE, {"native": True}, "FAULT", "licence"),
    "a board's process": (_POWER.encode(), {"problem": _POWER}, "INFRA", "board_unreachable"),
    "a guest in its words": (_POWER.encode(), {}, "FAULT", "board_unreachable"),
    "a guest before the harness": (
        b"hil: the board cannot be driven: x\nhil: the board said nothing for 20 s\n",
        {"problem": "hil: the board said nothing for 20 s"},
        "FAULT",
        "board_unreachable",
    ),
    "a full disk": (_DISK, {"disk_full": True}, "INFRA", "disk_full"),
    "a guest's full disk": (_DISK, {}, "FAULT", "disk_full"),
    "a login before the runner": (b"Login incorrect\n", {"began": False}, "INFRA", "login_refused"),
    "a guest without a login": (b"Login incorrect\n", {"began": True}, "FAULT", "login_refused"),
    "words that nobody knows": (b"result: -15\n", {}, "INFRA", "not_started"),
    "words of a guest that ran": (b"result: -15\n", {"began": True}, "FAULT", "exit_status"),
    "silence": (b"", {}, "INFRA", "not_started"),
    "a signal before the guest": (
        b"what()\n",
        {"exit_status": None, "signal": 6},
        "INFRA",
        "not_started",
    ),
    "a crash amid the run": (
        GOOD_LOG + b"terminate called after throwing an instance of 'x'\n",
        {"exit_status": None, "signal": 6},
        "NO_VERDICT",
        "simulator_killed",
    ),
}


@pytest.mark.parametrize("whose", WHOSE)
def test_whose_words_they_are(whose: str) -> None:
    log, changes, expected, kind = WHOSE[whose]
    ending = replace(Ending(Stop.EXITED, 1, None, 0.2), **changes)
    result = verdict(log=log, ending=ending)
    assert result.cause is not None
    assert (result.verdict, result.cause.kind) == (expected, kind)


def test_the_first_failure_is_the_cause_not_the_last() -> None:
    log = (
        b"E [executorch:m.cpp:1 f()] kernel 'aten::exp.out' not found.\n"
        b"I [executorch:m.cpp:2 f()] Loading of method forward failed with status 0x14\n"
        b"F [executorch:m.cpp:3 f()] assert failed\n"
    )
    result = verdict(log=log, ending=Ending(Stop.EXITED, 1, None, 0.1))
    assert result.cause is not None
    assert result.cause.kind == "operator_missing"
    assert result.cause.facts == {"operator": "aten::exp.out", "operators": ["aten::exp.out"]}


def test_all_missing_operators_are_in_the_facts() -> None:
    log = b"".join(
        b"E [executorch:m.cpp:1 f()] kernel 'aten::%s.out' not found.\n" % name
        for name in (b"exp", b"log", b"exp")
    )
    result = verdict(log=log)
    assert result.cause is not None
    assert result.cause.facts is not None
    assert result.cause.facts["operators"] == ["aten::exp.out", "aten::log.out"]


def test_who_wanted_the_memory_is_in_the_cause() -> None:
    """newlib-nano prints no %zu, so the allocator, which speaks first, names no number."""
    log = (
        b"E [executorch:memory_allocator.h:105 allocate()] Memory allocation failed: zuB requested "
        b"(adjusted for alignment), zuB available\n"
        b"E [executorch:kernel_runtime_context.h:94 allocate_temp()] Failed to allocate temp "
        b"memory. Bytes requested: zu\n"
        b"E [executorch:op.cpp:210 f()] quantized_conv2d_out: failed to allocate scratch buffer "
        b"(4608 bytes, error 33)\n"
    )
    result = verdict(log=log)
    assert result.cause is not None
    assert (result.cause.kind, result.cause.line) == ("allocation_failed", 1)
    wanted = {"kernel": "quantized_conv2d_out", "pool": "scratch buffer", "needed": "4608"}
    assert result.cause.facts == wanted
    assert "; line 3: quantized_conv2d_out: failed to allocate scratch buffer (4608 bytes" in (
        result.cause.text
    )


def test_an_allocation_that_says_its_numbers_needs_no_other() -> None:
    log = (
        b"E [executorch:m.h:1 f()] Memory allocation failed: 9B requested, 8B available\n"
        b"E [executorch:op.cpp:2 f()] add_out: failed to allocate scratch buffer (7 bytes)\n"
    )
    result = verdict(log=log)
    assert result.cause is not None
    assert result.cause.facts == {"needed": "9", "had": "8"}
    assert "add_out" not in result.cause.text


def test_the_operator_that_executorch_names_last_is_in_the_cause() -> None:
    """Its kernels say what is wrong, and not for which operator."""
    log = GOOD_LOG.replace(
        b"I [executorch:runner.cpp:30 main()] Program complete, exiting.",
        b"E [executorch:tensor_util.h:1 f()] Expected tensor to have default dim order, or not\n"
        b"E [executorch:method.cpp:1484 execute_instruction()] KernelCall failed at instruction "
        b"0:3 in operator aten::convolution.out: 0x12\n"
        b"E [executorch:runner.cpp:30 main()] Execution of method forward failed with status 0x12",
    )
    cause = verdict(log=log).cause
    assert cause is not None
    assert cause.text == "aten::convolution.out: Expected tensor to have default dim order, or not"
    assert (cause.line, cause.facts["operator"]) == (3, "aten::convolution.out")


def test_scratch_of_other_kernels_is_explained() -> None:
    """A program for a Cortex-M0+ on a runner with Helium, as ExecuTorch's tests once ran it."""
    log = (
        b"E [executorch:op.cpp:244 f()] quantized_depthwise_conv2d_out: scratch buffer size "
        b"incorrect - actual: (0) needed: (2752)\n"
    )
    result = verdict(log=log)
    assert result.cause is not None
    assert (result.verdict, result.cause.kind) == (Verdict.FAULT, "scratch_mismatch")
    assert "needed: (2752); the program was exported for other kernels" in result.cause.text


def test_growth_inside_the_slack_passes() -> None:
    assert verdict(metrics={"pte_bytes": 1256, "elf_text": 10_256}).passed


def test_what_is_over_its_limit_is_said_before_what_was_not_measured() -> None:
    """The one is proven, of the other nothing is known."""
    budgets = Budgets(limits={"pte_bytes": 999})
    result = verdict(metrics={"pte_bytes": 1000}, expectation=expecting(budgets=budgets))
    assert result.cause is not None
    assert result.cause.text == "pte_bytes is 1000 bytes, 1 over its limit of 999"
    assert result.cause.facts == {"metrics": ["pte_bytes"]}


def npu(cycles: int, vela: str = "5.1.0") -> NpuCost:
    operator = NpuOperator("Conv2D", "t", "body.0", cycles, 1)
    estimate = Estimate("ethos-u55-128", "c", "m", {"cycles_total": float(cycles)}, (operator,))
    return NpuCost({"ethos-u-vela": vela}, (estimate,))


def test_a_slower_npu_is_over_budget_with_the_layer_and_what_changed() -> None:
    accepted = replace(REFERENCE, npu_cost=npu(1000))
    accepted = replace(accepted, program={**REFERENCE.program, "npu_cycles_estimated": 1000})
    metrics = {**GOOD["metrics"], "npu_cycles_estimated": 8000}
    result = verdict(
        metrics=metrics, npu_cost=npu(8000, "5.2.0"), expectation=expecting(reference=accepted)
    )
    assert result.verdict is Verdict.OVER_BUDGET
    assert result.cause is not None
    assert result.cause.text == (
        "npu_cycles_estimated grew from 1000 to 8000 cycles (+7000, allowed up to 1256); Conv2D of "
        "layer body.0: 1,000 to 8,000 cycles; what changed: ethos-u-vela 5.1.0 to 5.2.0"
    )
    within = {**metrics, "npu_cycles_estimated": 1256}
    assert verdict(metrics=within, expectation=expecting(reference=accepted)).passed
    gone = verdict(expectation=expecting(reference=accepted))
    assert gone.cause is not None
    assert gone.cause.kind == "not_measured"


def test_more_instructions_of_the_cpu_are_over_budget() -> None:
    firmware = {"gcc 12": {"elf_text": 10_000, "cpu_instructions": 100_000}}
    accepted = expecting(reference=replace(REFERENCE, firmware=firmware))
    more = verdict(metrics={**GOOD["metrics"], "cpu_instructions": 100_501}, expectation=accepted)
    assert more.cause is not None
    assert "grew from 100000 to 100501 instructions" in more.cause.text
    same = {**GOOD["metrics"], "cpu_instructions": 100_500}
    assert verdict(metrics=same, expectation=accepted).passed


def test_growth_is_reported_largest_first_with_its_figures() -> None:
    result = verdict(metrics={"pte_bytes": 1300, "elf_text": 12_000})
    assert result.cause is not None
    assert result.cause.text == (
        "elf_text grew from 10000 to 12000 bytes (+2000, allowed up to 10256); "
        "pte_bytes grew from 1000 to 1300 bytes (+300, allowed up to 1256)"
    )
    assert result.cause.facts == {"metrics": ["elf_text", "pte_bytes"]}


def test_the_slack_of_a_budget_holds_for_a_run_too() -> None:
    strict = expecting(budgets=Budgets(slack=Slack(bytes=0, share=0.0)))
    assert verdict(expectation=strict).passed
    grown = verdict(metrics={"pte_bytes": 1001, "elf_text": 10_000}, expectation=strict)
    assert grown.verdict is Verdict.OVER_BUDGET


def test_sizes_accepted_without_a_run_are_held_but_are_no_reference_run() -> None:
    sizes = Reference("", (), {"pte_bytes": 1000}, {"gcc 12": {"elf_text": 10_000}}, ())
    expectation = expecting(reference=sizes)
    assert verdict(expectation=expectation).notes == ("no reference run accepted yet",)
    grown = verdict(metrics={"pte_bytes": 1257, "elf_text": 1}, expectation=expectation)
    assert grown.verdict is Verdict.OVER_BUDGET


def test_tolerance_is_honoured() -> None:
    """That it is told is the record's part."""
    outputs = Outputs((EXACT, OFF_BY_ONE), sha256=(("22",),))
    tolerant = expecting(tolerance_lsb=1.0, pte_sha256="bb")
    assert verdict(outputs=outputs, expectation=tolerant).passed


@pytest.mark.parametrize("lsb", [1e9, 16.5, -1.0, float("nan")])
def test_nothing_is_expected_with_a_tolerance_that_says_nothing(lsb: float) -> None:
    """Whoever it comes from: an option, a file, a record that somebody edited."""
    with pytest.raises(ValueError, match="a tolerance of"):
        expecting(tolerance_lsb=lsb)


def test_recorded_outputs_that_do_not_apply_are_a_note() -> None:
    """A retrained model of the same size: one oracle less, and it is said."""
    result = verdict(expectation=expecting(pte_sha256="bb" * 32))
    assert result.passed
    assert result.notes == (
        "the recorded outputs were not compared: the program is not that of the accepted run (aa, "
        "this one is bbbbbbbbbbbb), and it gives the same outputs; what changed: not known",
    )


@pytest.mark.parametrize("kept", [0, 99, 101])
def test_a_console_that_lost_its_end_since_is_cut(kept: int) -> None:
    """Nobody knows what a runner said there; the lines that are left are all good."""
    ending = Ending(Stop.EXITED, 0, None, 0.2, console_bytes=100)
    assert verdict(ending=ending, console_bytes=100).passed
    cut = verdict(ending=ending, console_bytes=kept)
    assert cut.cause is not None
    assert (cut.verdict, cut.cause.kind) == (Verdict.NO_VERDICT, "console_cut")
    assert f"of the console's 100 bytes {kept} are there" in cut.cause.text


def test_a_new_toolchain_is_new_not_grown() -> None:
    result = verdict(
        metrics={"pte_bytes": 1000, "elf_text": 99_999}, expectation=expecting(toolchain="gcc 14")
    )
    assert result.passed
    assert result.notes == ("no accepted footprint for toolchain gcc 14",)


def test_without_a_reference_it_says_so() -> None:
    result = verdict(expectation=expecting(reference=None))
    assert result.passed
    assert result.notes == ("no reference run accepted yet",)


def test_the_worst_difference_names_tensor_index_and_size() -> None:
    result = verdict(outputs=Outputs((OFF_BY_ONE,), sha256=(("11",),)))
    assert result.cause is not None
    assert result.cause.text.startswith("output 0[0, 2] of input set 1 is off by 1 LSB")
    assert result.cause.facts is not None
    assert result.cause.facts["index"] == [0, 2]


@pytest.mark.parametrize("turn", [1, -1])
def test_of_several_wrong_outputs_the_worst_is_named(turn: int) -> None:
    worse = replace(OFF_BY_ONE, output="output 1", worst_abs=2.0, worst_lsb=4.0)
    result = verdict(outputs=Outputs((OFF_BY_ONE, worse)[::turn], sha256=(("11",),)))
    assert result.cause is not None
    assert result.cause.text.startswith("output 1[0, 2] of input set 1 is off by 4 LSB")


def test_the_worst_of_all_is_not_known_when_one_has_no_scale() -> None:
    assert worst_lsb((EXACT, OFF_BY_ONE)) == 1.0
    assert worst_lsb((OFF_BY_ONE, replace(OFF_BY_ONE, worst_lsb=None))) is None


def test_a_bad_end_says_what_may_explain_it() -> None:
    result = verdict(log=GOOD_LOG + b"Killed\n", ending=Ending(Stop.EXITED, 1, None, 0.1))
    assert result.cause is not None
    assert result.cause.facts == {"suspect": "Killed", "suspect_line": 4}


def test_a_limit_of_the_model_after_the_end_is_a_note() -> None:
    limit = b"Info: Simulation is stopping. Reason: Simulated time has been exceeded.\n"
    result = verdict(log=GOOD_LOG + limit)
    assert result.passed
    assert result.notes == (
        "ended by the model's own limit after the runner had completed (line 4)",
    )


def test_what_another_runner_was_accepted_as_telling_it_has_to_tell() -> None:
    accepted = replace(REFERENCE, firmware={"gcc 12": {"elf_text": 10_000, "stack_high_water": 9}})
    theirs = expecting(prints_all_figures=False, budgets=Budgets(limits={"stack_high_water": 99}))
    assert verdict(expectation=theirs).passed
    result = verdict(expectation=replace(theirs, reference=accepted))
    assert (result.verdict, result.cause and result.cause.kind) == ("NO_VERDICT", "not_measured")


def test_a_limit_of_our_runner_alone_is_not_held_of_another() -> None:
    """A checkout's has every kernel there is; of ours the figure has to be there."""
    limits = Budgets(limits={"elf_stripped": 1})
    theirs = verdict(expectation=expecting(prints_all_figures=False, budgets=limits))
    assert theirs.passed
    assert not any("elf_stripped" in note for note in theirs.notes)
    ours = verdict(expectation=expecting(budgets=limits))
    assert (ours.verdict, ours.cause and ours.cause.kind) == ("NO_VERDICT", "not_measured")


def test_a_hang_says_where_it_hung() -> None:
    where = {"pc": "0x00001000", "pc_symbol": "wait+0x2", "pc_source": "wait.c:3"}
    ending = Ending(Stop.DEADLINE, None, None, 5.0, where=where)
    result = verdict(ending=ending)
    assert result.cause is not None
    assert "after 5.0 s, in wait+0x2 (wait.c:3)" in result.cause.text


@pytest.mark.parametrize(
    ("limits", "verdict_name", "kind"),
    [
        ({"stack_high_water": 899}, "OVER_BUDGET", "over_limit"),
        ({"stack_high_water": 900}, "PASS", None),
        ({"temp_allocator": 5}, "NO_VERDICT", "not_measured"),
        ({"temp_allocator": 5, "pte_bytes": 999}, "NO_VERDICT", "not_measured"),
        ({"pte_bytes": 999}, "OVER_BUDGET", "over_limit"),
        ({"elf_text": 9_999}, "OVER_BUDGET", "over_limit"),
        ({"npu_scratch_bytes": 1}, "PASS", None),
    ],  # which no run measures: a gate holds it
)
def test_hard_limits_on_what_a_run_measures(
    limits: dict[str, int], verdict_name: str, kind: str | None
) -> None:
    """A limit that is written down is enforced, and one that cannot be is no PASS."""
    metrics = {"pte_bytes": 1000, "elf_text": 10_000, "stack_high_water": 900}
    result = verdict(metrics=metrics, expectation=expecting(budgets=Budgets(limits=limits)))
    assert result.verdict == verdict_name
    assert (result.cause.kind if result.cause else None) == kind


def test_without_a_model_of_an_npu_only_the_differences_are_noted() -> None:
    assert verdict(differences=("another CPU",)) == Judgement(Verdict.PASS, notes=("another CPU",))


FAILING = {"log": b"E [executorch:x.cpp:1 f()] Failed to invoke inference.\n" + GOOD_LOG}


@pytest.mark.parametrize(
    ("result", "name", "kind"),
    [
        ("unsupported", "NO_VERDICT", "npu_unsupported"),
        ("broken", "INFRA", "npu_model"),
        ("fault", "FAULT", "npu_fault"),
        ("refused", "FAULT", "npu_refused"),
    ],
)
@pytest.mark.parametrize("otherwise", [{}, FAILING], ids=["passed", "failed"])
def test_a_stop_of_the_npu_is_the_verdict_with_its_facts(
    otherwise: dict[str, Any], result: str, name: str, kind: str
) -> None:
    """Also when the run seemed to pass: a guest may ignore what its NPU says."""
    stop = NpuStop(2, NpuResult(result), "OFM_SCALE = 7", 0x24)
    judged = verdict(npu=NpuUse(2, stop), **otherwise)
    assert judged.verdict == name
    assert judged.cause is not None
    assert judged.cause.kind == kind
    assert judged.cause.text == "OFM_SCALE = 7 (job 2 of the NPU)"
    assert judged.cause.facts is not None
    assert judged.cause.facts["offset"] == 0x24
    assert judged.cause.line == (1 if otherwise else None)


def test_a_pass_without_work_for_the_npu_is_noted() -> None:
    assert "given no work" in verdict(npu=NpuUse(0)).notes[-1]
    assert verdict(npu=NpuUse(3)).notes == ()
    assert verdict(npu=NpuUse(0), **FAILING).notes == ()


def test_a_pass_that_differs_by_design_is_noted() -> None:
    """The outputs are not those of the definition: which difference that is, and how far."""
    outputs = Outputs((EXACT,), (), (), (("11",),), ByDesign(("half-away",), (OFF_BY_ONE,)))
    (note,) = verdict(outputs=outputs).notes
    assert note.startswith("differs by design (half-away): output 0[0, 2] of input set 1 is off by")
    assert verdict(outputs=outputs, **FAILING).notes == ()


def test_a_mismatch_names_its_place() -> None:
    wrong = {"outputs": Outputs((OFF_BY_ONE,), sha256=(("11",),))}
    plain, placed = verdict(**wrong), verdict(**wrong, mismatch_at="delegate 1, CONV2D")
    assert plain.cause is not None
    assert placed.cause is not None
    assert placed.cause.text == f"{plain.cause.text}; first: delegate 1, CONV2D"
    assert placed.cause.facts == {**(plain.cause.facts or {}), "mismatch_at": "delegate 1, CONV2D"}
    fault = verdict(**FAILING, mismatch_at="delegate 1")
    assert fault == verdict(**FAILING)


BLAME = Blame("compiler", "the compiler (Vela 9), not your model", {"culprit": "compiler"})


def test_whose_fault_it_is_is_said_of_a_mismatch_and_of_a_fault_of_the_npu() -> None:
    wrong = {"outputs": Outputs((OFF_BY_ONE,), sha256=(("11",),))}
    stop = NpuStop(1, NpuResult.FAULT, "IFM reaches 0x10", 4)
    for facts in (wrong, {"npu": NpuUse(1, stop)}):
        plain, blamed = verdict(**facts), verdict(**facts, blame=BLAME)
        assert plain.cause is not None
        assert blamed.cause is not None
        assert blamed.verdict is plain.verdict
        assert blamed.cause.text == f"{plain.cause.text}; whose fault: {BLAME.text}"
        assert blamed.cause.facts == {**(plain.cause.facts or {}), "culprit": "compiler"}
    assert verdict(blame=BLAME) == verdict()
    hang = {"ending": Ending(Stop.DEADLINE, None, 9, 60.0)}
    assert verdict(**hang, blame=BLAME) == verdict(**hang)


TRUTH = Reference("aa", (("22",),), {}, {}, (), truth=True)
THEIRS = Outputs((OFF_BY_ONE,), sha256=(("22",),))


def test_a_truth_stands_in_for_the_oracle_and_the_own_reference() -> None:
    result = verdict(outputs=THEIRS, expectation=expecting(truth=TRUTH))
    assert result.verdict is Verdict.PASS
    assert "judged by an accepted run, the case's truth, not by the oracle" in result.notes


def test_what_the_oracle_says_is_not_the_truth() -> None:
    result = verdict(expectation=expecting(truth=TRUTH))
    assert result.verdict is Verdict.MISMATCH
    assert result.cause is not None
    assert result.cause.kind == "truth_outputs"


def test_a_truth_of_another_program_is_none() -> None:
    other = replace(TRUTH, pte_sha256="bb")
    result = verdict(outputs=THEIRS, expectation=expecting(truth=other))
    assert result.cause is not None
    assert result.cause.kind == "outputs_differ"
    passed = verdict(expectation=expecting(truth=other))
    assert passed.verdict is Verdict.PASS
    assert any("no truth for this .pte" in note for note in passed.notes)


@pytest.mark.parametrize("name", {**COMPLETED, **PUBLISHED})
def test_no_run_of_ours_is_completed(name: str) -> None:
    """What is good enough for a stranger's log proves nothing of a run: not its console, not with
    the outputs missing, not when it is one of several cases."""
    log = {**COMPLETED, **PUBLISHED}[name][0]
    for outputs in (Outputs(()), Outputs((), missing=("s0-0.bin",))):
        found = verdict(log=log, outputs=outputs, expectation=expecting(build_id=None))
        assert found.verdict not in (Verdict.COMPLETED, Verdict.PASS)
    assert not Verdict.COMPLETED.passed
    assert Verdict.COMPLETED.exit_code is ExitCode.FAILED
