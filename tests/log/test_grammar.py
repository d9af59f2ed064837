"""Protects the log grammar: each form a runner can print is read as what it is."""

from __future__ import annotations

import pytest

from harness.log.events import Kind
from harness.log.parser import parse_console

PREFIXES = (
    "E executorch:file.cpp:60] ",
    "E [executorch:file.cpp:364] ",
    "E [executorch:file.cpp:211 main()] ",
    "E [executorch:main.cpp] ",
)

FAILURES = {
    "kernel 'aten::exp.out' not found.": (Kind.OPERATOR_MISSING, {"operator": "aten::exp.out"}),
    "Missing operator: [29] aten::linear.out": (
        Kind.OPERATOR_MISSING,
        {"operator": "aten::linear.out"},
    ),
    "method allocator too small: 5000 bytes needed, 4096 bytes available": (
        Kind.ALLOCATION_FAILED,
        {"pool": "method allocator", "needed": "5000", "had": "4096"},
    ),
    "Memory allocation failed: 52224B requested (adjusted for alignment), 49024B available": (
        Kind.ALLOCATION_FAILED,
        {"needed": "52224", "had": "49024"},
    ),
    "Memory allocation failed: zuB requested (adjusted for alignment), zuB available": (
        Kind.ALLOCATION_FAILED,
        {},
    ),
    "quantized_transpose_conv2d_out: failed to allocate output scratch buffer (2359296 bytes, "
    "error 33)": (
        Kind.ALLOCATION_FAILED,
        {
            "kernel": "quantized_transpose_conv2d_out",
            "pool": "output scratch buffer",
            "needed": "2359296",
        },
    ),
    "quantized_transpose_conv2d_out: output scratch buffer size incorrect - actual: (0) needed: "
    "(2752)": (
        Kind.SCRATCH_MISMATCH,
        {
            "kernel": "quantized_transpose_conv2d_out",
            "pool": "output scratch buffer",
            "had": "0",
            "needed": "2752",
        },
    ),
    "cortex_m::quantized_conv2d.out: planned scratch 0 bytes, kernel needs 2752": (
        Kind.SCRATCH_MISMATCH,
        {"kernel": "cortex_m::quantized_conv2d.out", "had": "0", "needed": "2752"},
    ),
    "Backend EthosUBackend is not registered.": (
        Kind.BACKEND_MISSING,
        {"backend": "EthosUBackend"},
    ),
    "cannot write out-0.bin": (Kind.OUTPUT_NOT_WRITTEN, {}),
    "anything else": (Kind.RUNNER_ERROR, {}),
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("message", FAILURES)
def test_failures_in_every_vintage(prefix: str, message: str) -> None:
    observation = parse_console(f"boot\n{prefix}{message}\n".encode())
    assert len(observation.failures) == 1
    event = observation.failures[0]
    kind, facts = FAILURES[message]
    assert (event.kind, event.line) == (kind, 2)
    assert facts.items() <= event.facts.items()


@pytest.mark.parametrize(
    "line",
    [
        "ExecuTorch MobileNetV2 sample",
        "Ethos-U backend registered successfully",
        "Error code = 0",
        "EXITTHESIM",
        "Finished running job",
        "I [executorch:m.cpp:1 f()] Error code 0, all fine",
    ],
)
def test_false_friends_are_not_failures(line: str) -> None:
    """Words that start like an error level or contain one."""
    assert parse_console(line.encode() + b"\n").failures == ()


def test_fault_registers_are_collected_over_two_lines() -> None:
    log = (
        b"Hard fault. irq=-13, pc=0x10000abc, lr=0x10000def, xpsr=0x61000003, sp=0x3007ff00\n"
        b"             cfsr=0x00008200 bfar=0x00000004 mmfar=0x00000000\n"
    )
    (fault,) = parse_console(log).failures
    assert fault.kind is Kind.HARD_FAULT
    assert fault.facts["pc"] == "0x10000abc"
    assert fault.facts["irq"] == "-13"
    assert fault.facts["cfsr"] == "0x00008200"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Hard fault", Kind.HARD_FAULT),
        ("***** MPU FAULT *****", Kind.MPU_FAULT),
        (">>> ZEPHYR FATAL ERROR 0: CPU exception", Kind.CPU_EXCEPTION),
        ("Exception caught by function BusFault_Handler", Kind.BUS_FAULT),
    ],
)
def test_fault_wordings_of_other_platforms(line: str, kind: Kind) -> None:
    assert parse_console(line.encode()).failures[0].kind is kind


def test_metrics_and_end_marker() -> None:
    prefix = b"I [executorch:runner.cpp:1 main()] "
    log = b"".join(
        prefix + line + b"\r\n"
        for line in (
            b"build id 0123456789abcdef",
            b"model_pte_program_size:     51168 bytes.",
            b"method_allocator_used:     2000 / 65536  free: 63536 ( used: 3 % ) ",
            b"stack_high_water:     1200 / 32768 bytes.",
            b"system_counter_ticks: 1800000 (set 1)",
            b"cpu_cycles: 5400000 (set 0)",
            b"op_ticks: 0 3 cortex_m::quantized_conv2d.out 4500",
            b"Program complete, exiting.",
        )
    )
    seen = parse_console(log)
    assert seen.build_id == "0123456789abcdef"
    assert seen.metrics["model_pte_program_size"] == 51168
    assert seen.metrics["method_allocator_used"] == 2000
    assert seen.metrics["method_allocator_used_total"] == 65536
    assert seen.metrics["stack_high_water"] == 1200
    assert seen.metrics["ticks_set1"] == 1_800_000
    assert seen.metrics["cycles_set0"] == 5_400_000
    assert seen.op_ticks[0].operator == "cortex_m::quantized_conv2d.out"
    assert seen.complete_line == 8
    assert seen.failures == ()


def test_a_metric_needs_its_own_number() -> None:
    """Upstream's memory gate takes any number it finds on the line."""
    log = b"I [executorch:runner.cpp:12 main()] method_allocator_used: <unavailable>\n"
    assert parse_console(log).metrics == {}


def test_garbage_bytes_do_not_stop_the_reader() -> None:
    log = b"E [executorch:m.cpp:1 f()] kernel '\xff\xfe\x00aten' not found.\n\x80\x81\nlast\n"
    seen = parse_console(log)
    assert seen.failures[0].kind is Kind.OPERATOR_MISSING
    assert seen.last_line == "last"


def test_end_marker_must_be_the_whole_message() -> None:
    prefix, marker = b"I [executorch:m.cpp:1 f()] ", b"Program complete, exiting."
    for said in (b'will say "' + marker + b'" later', marker + b" Not yet.", marker + b"42"):
        assert parse_console(prefix + said + b"\n").complete_line is None, said
    for said in (marker, marker + b"\x04", marker + b" Info: Simulation is stopping"):
        assert parse_console(prefix + said + b"\n").complete_line == 1, said
