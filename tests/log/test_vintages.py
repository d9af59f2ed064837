"""The grammar of every vintage: progress, figures, counters, outputs, ends, and what is noise."""

from __future__ import annotations

import pytest

from harness.log.events import Kind, Stage
from harness.log.parser import parse_console
from tests.log.lines import ENDS, VINTAGES, log


@pytest.mark.parametrize("vintage", VINTAGES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_good_run(vintage: str, newline: str) -> None:
    seen = parse_console(
        log(
            vintage,
            "Model PTE file loaded. Size: 960 bytes.",
            "Method loaded.",
            "Input prepared.",
            "Starting the model execution...",
            "Model executed successfully.",
            "model_pte_loaded_size:     960 bytes.",
            "method_allocator_used:     1355722 / 62914560  free: 61558838 ( used: 2 % ) ",
            "TEST: BundleIO index[0] Test_result: PASS",
            "Program complete, exiting.",
            newline=newline,
        )
    )
    assert seen.failures == ()
    assert seen.bundle_passes == 1
    assert seen.complete_line == 9
    assert seen.metrics["method_allocator_used"] == 1355722
    assert [p.stage for p in seen.progress] == [
        Stage.RUNNER,
        Stage.PROGRAM,
        Stage.METHOD,
        Stage.INPUTS,
        Stage.EXECUTING,
        Stage.EXECUTED,
        Stage.COMPLETE,
    ]


@pytest.mark.parametrize("end", ENDS)
def test_end_of_transmission_in_every_rendering(end: str) -> None:
    seen = parse_console(log("mid 2025", "Program complete, exiting.", ENDS[end]))
    assert (seen.complete_line, seen.lines) == (1, 2)
    assert seen.failures == ()


@pytest.mark.parametrize("vintage", VINTAGES)
@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("Loading of method forward failed with status 0x14", Kind.OPERATOR_MISSING, "0x14"),
        ("Loading of method forward failed with status 20", Kind.OPERATOR_MISSING, "0x14"),
        ("Loading of method forward failed with status 0x20", Kind.BACKEND_MISSING, "0x20"),
        ("Loading of method forward failed with error code 32", Kind.BACKEND_MISSING, "0x20"),
        ("Loading of method forward failed with status 0x21", Kind.ALLOCATION_FAILED, "0x21"),
        ("Loading of method forward failed with status 0x23", Kind.BAD_PROGRAM, "0x23"),
        ("Execution of method forward failed with status 0x12", Kind.RUNNER_ERROR, "0x12"),
        ("Execution of method forward failed with status 0x23", Kind.RUNNER_ERROR, "0x23"),
    ],
)
def test_both_notations_of_error_codes_at_level_i(
    vintage: str, text: str, kind: Kind, code: str
) -> None:
    """An I line, followed by "Method loaded." all the same, is the failure."""
    (failure,) = parse_console(log(vintage, text, "Method loaded.")).failures
    assert (failure.kind, failure.line, failure.facts["code"]) == (kind, 1, code)


@pytest.mark.parametrize("vintage", VINTAGES)
@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("kernel 'aten::exp.out' not found.", {"operator": "aten::exp.out"}),
        ("Missing operator: [29] aten::linear.out", {"operator": "aten::linear.out"}),
        (
            "There are 6 instructions don't have corresponding operator registered. See logs",
            {"count": "6"},
        ),
    ],
)
def test_missing_operators_in_all_forms(vintage: str, text: str, facts: dict[str, str]) -> None:
    (failure,) = parse_console(log(vintage, text, level="E")).failures
    assert failure.kind is Kind.OPERATOR_MISSING
    assert facts.items() <= failure.facts.items()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "Memory allocation failed: 6144000B requested (adjusted for alignment), 2000B "
            "available",
            {"needed": "6144000", "had": "2000"},
        ),
        (
            "Failed to allocate scratch buffer of 8197520 bytes from temp_allocator",
            {"needed": "8197520", "pool": "temp_allocator"},
        ),
        (
            "method allocator too small: 5000 bytes needed, 4096 available; build with a larger "
            "HIL_METHOD_POOL_BYTES",
            {"pool": "method allocator", "needed": "5000", "had": "4096"},
        ),
        (
            "input file allocator too small for input 's0i0.bin': 5000 bytes needed, 4096 "
            "available; "
            "build with a larger HIL_FILE_POOL_BYTES",
            {"pool": "input file allocator", "needed": "5000", "had": "4096"},
        ),
        (
            "In function main(), assert failed (buffer != nullptr): Could not allocate memory for "
            "memory planned buffer size 6144000",
            {"needed": "6144000"},
        ),
    ],
)
def test_allocations_with_pool_needed_and_had(text: str, facts: dict[str, str]) -> None:
    (failure,) = parse_console(log("mid 2025", text, level="E")).failures
    assert failure.kind is Kind.ALLOCATION_FAILED
    assert facts.items() <= failure.facts.items()


def test_fopen_with_errno_0_is_semihosting_switched_off() -> None:
    text = "Could not open file s0i0.bin (errno: 0) for reading, exiting!"
    (failure,) = parse_console(log("mid 2025", text, level="F")).failures
    assert failure.kind is Kind.SEMIHOSTING_OFF


DRIVER = (
    "Soft reset timed out",
    "Failed to switch security state and privilege level",
    "NPU config mismatch. npu.product=1, npu.macs_per_cc=6, optimizer.macs_per_cc=8",
    "NPU status=0x00000104, qread=12, cmd_end_reached=0",
    "NPU error(s) occured during inference.",
    "NPU inference timed out",
    "Fast memory area too small. fast_memory_area=0, base_addr_size=4",
    "Base addr 2: 0x31000001 not aligned to 16 bytes",
    "Failed to invoke inference.",
)


@pytest.mark.parametrize("text", DRIVER)
@pytest.mark.parametrize("form", ["E: {} (ethosu_driver.c:411)", "{}", "\x1b[31mE: {}\x1b[0m"])
def test_npu_driver_errors_with_and_without_prefix(text: str, form: str) -> None:
    (failure,) = parse_console(form.format(text).encode() + b"\n").failures
    assert failure.kind is Kind.NPU_ERROR


def test_npu_mismatch_tells_the_figures() -> None:
    (failure,) = parse_console(f"E: {DRIVER[2]} (ethosu_driver.c:411)\n".encode()).failures
    assert failure.facts["optimizer.macs_per_cc"] == "8"
    assert failure.facts["npu.macs_per_cc"] == "6"


@pytest.mark.parametrize(
    "line",
    [
        "Failed to initialize timing-adapter #0",
        "Failed to initialize timing-adapter 1 for NPU 0",
        "I: Initializing NPU: base_address=0x58102000, fast_memory=0x0, secure=1, privileged=1",
        "W: something to note",
        "xterm: Xt error: Can't open display: ",
        "sh: 1: xterm: command not found",
        "Warning: FVP_Corstone: visualisation is disabled",
        "qemu-system-arm: warning: nic lan9118.0 has no peer",
        "[run_fvp] Simulation complete, 0",
        "Ethos-U backend registered successfully",
    ],
)
def test_noise_is_not_a_failure(line: str) -> None:
    assert parse_console(line.encode() + b"\n").failures == ()


def test_noise_that_runs_into_a_line_of_the_runner() -> None:
    """Host and UART share one pipe; the runner's line still counts."""
    data = (
        b"sh: 1: xterm: not foundI [executorch:m.cpp:1 main()] Method loaded.\n"
        b"I [executorch:m.cpp:2 main()] Program complete, exiting.Info: /OSCI/SystemC: "
        b"Simulation stopped by user.\n"
    )
    seen = parse_console(data)
    assert [p.stage for p in seen.progress if p.line == 1][-1] is Stage.METHOD
    assert seen.complete_line == 2
    assert seen.stop is not None
    assert seen.stop.reason == "stopped"


def test_two_lines_that_ran_into_one() -> None:
    data = b"I [executorch:m.cpp:1 f()] Method loaded.E [executorch:m.cpp:2 f()] broken\n"
    (failure,) = parse_console(data).failures
    assert (failure.kind, failure.text) == (Kind.RUNNER_ERROR, "broken")
