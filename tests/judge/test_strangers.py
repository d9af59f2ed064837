"""Logs as strangers send them: whole consoles in the public formats, each with its verdict.

Every row is (log, verdict, kind of the cause, its line); the logs were written for this test.
"""

from __future__ import annotations

import pytest

from harness.judge.console_log import judge_log
from harness.log.parser import parse_console
from tests.judge.published_logs import PUBLISHED
from tests.judge.stranger_failures import BAD, LINUX_OOPS, ZEPHYR_AARCH64
from tests.judge.stranger_logs import COMPLETED, GOOD, UNPROVEN

LOGS = {**GOOD, **COMPLETED, **UNPROVEN, **BAD, **PUBLISHED}


@pytest.mark.parametrize("name", LOGS)
def test_verdict_cause_and_line(name: str) -> None:
    log, verdict, kind, line = LOGS[name]
    judged = judge_log(parse_console(log))
    assert (judged.verdict, judged.cause and judged.cause.kind) == (verdict, kind), judged.cause
    if verdict != "PASS":
        assert judged.cause is not None
        assert judged.cause.line == line, judged.cause


@pytest.mark.parametrize("name", {**BAD, **PUBLISHED})
def test_carriage_returns_change_nothing(name: str) -> None:
    log, verdict, kind, line = LOGS[name]
    judged = judge_log(parse_console(log.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")))
    assert (judged.verdict, judged.cause and judged.cause.kind) == (verdict, kind), judged.cause
    assert line is None or (judged.cause is not None and judged.cause.line == line)


def test_a_kernel_says_where_it_was() -> None:
    """Not as an address: the kernel prints its own symbols."""
    (oops,) = parse_console(LINUX_OOPS.replace(b"Segmentation fault\n", b"")).failures
    assert oops.facts["pc_symbol"] == "ethosu_job_submit+0x44"
    assert oops.facts["lr_symbol"] == "ethosu_ioctl+0x90"


def test_an_a_profile_fault_has_its_pc() -> None:
    (fault,) = parse_console(ZEPHYR_AARCH64).failures
    assert (fault.facts["pc"], fault.facts["reason"]) == ("0x0000000040001f4c", "0")


def test_tensors_of_the_linux_runner() -> None:
    """On one line or wrapped; elided elements are no whole tensor."""
    one, two, three = parse_console(
        b"Output 0: tensor(sizes=[1, 2], [0.5, -1.])\n"
        b"Output 1: tensor(sizes=[2, 3], [\n  1., 2., 3.,\n  4., 5., 6.])\n"
        b"OutputX 2: tensor(sizes=[1000], [1., 2., ..., 3.])\n"
    ).tensors
    assert (one.sizes, one.elements, one.whole) == ((1, 2), 2, True)
    assert (two.elements, two.whole) == (6, True)
    assert not three.whole


def test_a_fault_between_the_lines_of_a_block_is_seen() -> None:
    log = b'#[RUN THIS]\necho "QUJD\nHard fault. irq=-13, pc=0x0, lr=0x1\nREVG\n'
    assert parse_console(log).failures[0].line == 3


def test_numbers_of_absurd_length_are_survived() -> None:
    """Python refuses to read an integer of more than 4300 digits."""
    digits = b"9" * 6000
    for line in (
        b"Output[%s][0]: (int) 1",
        b"Output[0][%s]: (int) 1",
        b"Output[0][0]: (int) %s",
        b"I [executorch:a.cpp:1 f()] planned_x: %s",
        b"[%s] = 1.0",
        b"Output 0: tensor(sizes=[%s], [1.])",
        b"I [executorch:a.cpp] [%s] = 1",
        b"x: Listening for serial connection on port %s",
    ):
        parse_console(line % digits + b"\n")


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        (
            "Zephyr minimal log, stack overflow",
            {"pc": "0x1000123c", "lr": "0x1000456d", "fault": "E: ***** USAGE FAULT *****"},
        ),
        ("Zephyr stack guard, registers first", {"pc": "0x080136dc", "lr": "0x08006239"}),
        ("Zephyr 1.12", {"pc": "0xe0000000"}),
        ("Zephyr, a hard fault that was a bus fault", {"bfar": "0x24060000"}),
    ],
)
def test_a_dump_of_zephyr_is_one_fault_with_its_registers(name: str, facts: dict[str, str]) -> None:
    """Each line of it was an error of its own, and the first of them hid the fault."""
    (fault,) = parse_console(PUBLISHED[name][0]).failures
    assert facts.items() <= fault.facts.items()


def test_what_a_run_survived_is_reported_next_to_its_verdict() -> None:
    (note, *_) = judge_log(parse_console(PUBLISHED["what is ignored does not matter"][0])).notes
    assert note.startswith("the run went on after line"), note
