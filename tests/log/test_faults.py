"""What fault handlers say: one event with its kind and its registers, on every platform."""

from __future__ import annotations

import pytest

from harness.log.events import Kind
from harness.log.parser import LogParser, parse_console
from tests.log.lines import log

ZEPHYR = b"""[00:00:00.010,000] <err> os: ***** MPU FAULT *****
[00:00:00.010,000] <err> os:   Data Access Violation
[00:00:00.010,000] <err> os:   MMFAR Address: 0x4
[00:00:00.010,000] <err> os: r3/a4:  0x00000000 r12/ip:  0x00000001 r14/lr:  0x10000def
[00:00:00.010,000] <err> os: Faulting instruction address (r15/pc): 0x10000abc
[00:00:00.010,000] <err> os: >>> ZEPHYR FATAL ERROR 19: Unknown error on CPU 0
[00:00:00.010,000] <err> os: Halting system
"""
MLEK = b"""Exception caught by function BusFault_Handler
CTRL    : 0x00000000
IPSR    : 0x00000005
LR      : 0x10000def
PC      : 0x10000abc
"""
LOCKUP = b"""qemu: fatal: Lockup: can't escalate 3 to HardFault (current priority -1)

R00=00000000 R01=00000000 R02=00000000 R03=00000000
R12=00000000 R13=3007ff00 R14=10000def R15=10000abc
XPSR=61000003 -ZC- T S handler
"""
CORSTONE = (
    b"Hard fault. irq=-13, pc=0x10000abc, lr=0x10000def, xpsr=0x61000003, sp=0x3007ff00\n"
    b"            cfsr=0x00008200 bfar=0x00000004 mmfar=0x00000000\n"
)
FAULTS = {
    "corstone": CORSTONE,
    "tvm": CORSTONE.replace(b" mmfar=0x00000000", b"") + b"EXITTHESIM\n",
    "zephyr": ZEPHYR,
    "zephyr minimal": b"E: ***** HARD FAULT *****\n" + ZEPHYR.partition(b"\n")[2],
    "mlek": MLEK,
    "qemu lock-up": LOCKUP,
}
KINDS = {
    "zephyr": Kind.MPU_FAULT,
    "mlek": Kind.BUS_FAULT,
    "qemu lock-up": Kind.CPU_LOCKUP,
}


@pytest.mark.parametrize("platform", FAULTS)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_faults_of_every_platform_with_their_registers(platform: str, newline: bytes) -> None:
    """One event, with pc and lr, however many lines the platform spends on it."""
    (fault,) = parse_console(FAULTS[platform].replace(b"\n", newline)).failures
    assert fault.kind is KINDS.get(platform, Kind.HARD_FAULT)
    assert (fault.facts["pc"], fault.facts["lr"]) == ("0x10000abc", "0x10000def")


def test_armv6_m_says_only_hard_fault() -> None:
    assert parse_console(b"Hard fault\n").failures[0].kind is Kind.HARD_FAULT


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("2: Stack overflow", Kind.STACK_OVERFLOW),
        ("3: Kernel oops", Kind.ZEPHYR_FATAL),
        ("4: Kernel panic", Kind.ZEPHYR_FATAL),
    ],
)
def test_zephyr_fatal_errors_that_are_no_exception(reason: str, kind: Kind) -> None:
    (failure,) = parse_console(f">>> ZEPHYR FATAL ERROR {reason} on CPU 0\n".encode()).failures
    assert failure.kind is kind
    assert failure.facts["reason"] == reason[0]


KINDS_OF_FAULTS = {
    "Hard fault. irq=-13, pc=0x0": Kind.HARD_FAULT,
    "Hard fault. irq=-12, pc=0x0": Kind.MPU_FAULT,
    "Hard fault. irq=-11, pc=0x0": Kind.BUS_FAULT,
    "Hard fault. irq=-10, pc=0x0": Kind.USAGE_FAULT,
    "Hard fault. irq=-9, pc=0x0": Kind.SECURE_FAULT,
    "Hard fault. irq=-4, pc=0x0": Kind.HARD_FAULT,
    "***** HARD FAULT *****": Kind.HARD_FAULT,
    "***** MPU FAULT *****": Kind.MPU_FAULT,
    "***** BUS FAULT *****": Kind.BUS_FAULT,
    "***** USAGE FAULT *****": Kind.USAGE_FAULT,
    "***** SECURE FAULT *****": Kind.SECURE_FAULT,
    "***** Debug monitor exception *****": Kind.DEBUG_FAULT,
    "***** Reserved Exception ( 0x1) *****": Kind.CPU_EXCEPTION,
    "Exception caught by function HardFault_Handler": Kind.HARD_FAULT,
    "Exception caught by function MemManage_Handler": Kind.MPU_FAULT,
    "Exception caught by function BusFault_Handler": Kind.BUS_FAULT,
    "Exception caught by function UsageFault_Handler": Kind.USAGE_FAULT,
    "Exception caught by function SecureFault_Handler": Kind.SECURE_FAULT,
    "Exception caught by function NMI_Handler": Kind.CPU_EXCEPTION,
    "FATAL ERROR: SecureFault": Kind.SECURE_FAULT,
    "FATAL ERROR: MemManage fault": Kind.MPU_FAULT,
    "FATAL ERROR: BusFault": Kind.BUS_FAULT,
    "PANIC at PC : 0x0000000002003a4c": Kind.BOOT_PANIC,
    "Unhandled Exception in EL3.": Kind.BOOT_PANIC,
    '"Synchronous Abort" handler, esr 0x96000010': Kind.BOOT_PANIC,
    ">>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0": Kind.CPU_EXCEPTION,
    ">>> ZEPHYR FATAL ERROR 1: Unhandled interrupt on CPU 0": Kind.CPU_EXCEPTION,
    ">>> ZEPHYR FATAL ERROR 16: Unknown error on CPU 0": Kind.MPU_FAULT,
    ">>> ZEPHYR FATAL ERROR 21: Unknown error on CPU 0": Kind.MPU_FAULT,
    ">>> ZEPHYR FATAL ERROR 22: Unknown error on CPU 0": Kind.BUS_FAULT,
    ">>> ZEPHYR FATAL ERROR 28: Unknown error on CPU 0": Kind.BUS_FAULT,
    ">>> ZEPHYR FATAL ERROR 29: Unknown error on CPU 0": Kind.USAGE_FAULT,
    ">>> ZEPHYR FATAL ERROR 36: Unknown error on CPU 0": Kind.USAGE_FAULT,
    ">>> ZEPHYR FATAL ERROR 37: Unknown error on CPU 0": Kind.SECURE_FAULT,
    ">>> ZEPHYR FATAL ERROR 44: Unknown error on CPU 0": Kind.SECURE_FAULT,
    ">>> ZEPHYR FATAL ERROR 45: Unknown error on CPU 0": Kind.CPU_EXCEPTION,
    ">>> ZEPHYR FATAL ERROR 210: Unknown error on CPU 0": Kind.CPU_EXCEPTION,
}


@pytest.mark.parametrize("line", KINDS_OF_FAULTS)
def test_every_exception_has_its_own_kind(line: str) -> None:
    """They were all called a hard fault once."""
    (fault,) = parse_console(line.encode() + b"\n").failures
    assert fault.kind is KINDS_OF_FAULTS[line]


def test_an_exception_without_a_name_may_get_one_from_a_line_below() -> None:
    zephyr = b"***** Reserved Exception ( 0x1) *****\n***** USAGE FAULT *****\nR0: 20001234\n"
    (fault,) = parse_console(zephyr).failures
    assert (fault.kind, fault.line) == (Kind.USAGE_FAULT, 1)
    (named,) = parse_console(b"***** BUS FAULT *****\n>>> ZEPHYR FATAL ERROR 19: x\n").failures
    assert named.kind is Kind.BUS_FAULT, "what has a name keeps it"


def test_a_register_keeps_what_the_fault_said_first() -> None:
    """A dump below may be of another context; what it adds belongs to the fault."""
    (fault,) = parse_console(CORSTONE + b"pc=0x20000000 lr=0x0 ipsr=0x3\n").failures
    assert (fault.facts["pc"], fault.facts["lr"]) == ("0x10000abc", "0x10000def")
    assert fault.facts["ipsr"] == "0x3"


def test_a_word_in_a_sentence_is_not_a_crash() -> None:
    assert parse_console(b"Aborted by the user\nWas it Aborted\n").failures == ()


def test_the_third_banner_without_an_end_is_a_reset_loop() -> None:
    """It ends the run: nothing else comes. Boots of programs that ended are none."""
    boot = b"*** Booting Zephyr OS build v4.1.0 ***\nI: starting\n"
    parser = LogParser()
    parser.feed(boot * 2)
    assert not parser.final_failure
    parser.feed(boot * 3)
    assert parser.final_failure
    (loop,) = parser.finish().failures
    assert (loop.kind, loop.line) == (Kind.RESET_LOOP, 5)
    assert loop.facts["above"] == "I: starting"  # the last word before the reset
    ended = log("mid 2025", "Program complete, exiting.")
    assert not parse_console((boot + ended) * 5).failures


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("USAGE FAULT", "Division by zero"),
        ("USAGE FAULT", "Illegal use of the EPSR"),
        ("BUS FAULT", "Precise data bus error"),
    ],
)
@pytest.mark.parametrize("level", ["E: ", "[00:00:00.010,000] <err> os: "])
def test_zephyr_says_which_fault_of_its_kind_it_was(kind: str, reason: str, level: str) -> None:
    said = f"{level}***** {kind} *****\n{level}  {reason}\n{level}r14/lr:  0x10000381\n"
    (fault,) = parse_console(said.encode()).failures
    assert fault.facts["which"] == reason
    assert fault.facts["lr"] == "0x10000381"


def test_what_the_kernel_says_directly_above_a_fault_is_its_cause() -> None:
    """Zephyr's C library names the option before the panic; the registers stand in between."""
    said = b"[00:00:00.000,000] <err> os: CONFIG_COMMON_LIBC_MALLOC_ARENA_SIZE is 0\n"
    dump = b"[00:00:00.008,000] <err> os: r0/a1:  0x00000004  r1/a2:  0x0000000a\n"
    panic = b"[00:00:00.008,000] <err> os: >>> ZEPHYR FATAL ERROR 4: Kernel panic on CPU 0\n"
    (fault,) = parse_console(said + dump + panic).failures
    assert (fault.kind, fault.line) == (Kind.ZEPHYR_FATAL, 1)
    assert fault.text == "CONFIG_COMMON_LIBC_MALLOC_ARENA_SIZE is 0"
    assert "Kernel panic" in fault.facts["fault"]
    assert fault.facts["r1"] == "0x0000000a"
    (alone,) = parse_console(said + b"booting\n" * 3 + panic).failures
    assert alone.line == 5, "what stands further above is not of this fault"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("input 0 has the wrong size: expected 4 bytes, got 8", Kind.INPUT_REJECTED),
        ("Expected input tensor to have dtype Float, but it has Char", Kind.RUNNER_ERROR),
        ("input.scalar_type() expected int8, mismatch", Kind.RUNNER_ERROR),
    ],
)
def test_a_kernels_complaint_is_not_a_rejected_input(message: str, kind: Kind) -> None:
    (failure,) = parse_console(f"E [executorch:op_add.cpp:9 f()] {message}\n".encode()).failures
    assert failure.kind is kind
