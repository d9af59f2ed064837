"""The reader survives what a console can hold, however it is cut into pieces."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from harness.judge.console_log import judge_log
from harness.log.events import Kind, Observation
from harness.log.parser import LogParser, parse_console
from tests.log.lines import log


def test_a_line_cut_anywhere_gives_the_same() -> None:
    """However the bytes are cut into reads, the observation is the same (seed 1)."""
    data = (
        log("mid 2025", "build id 0011223344556677", "Method loaded.", newline="\r\n")
        + b"Hard fault. irq=-13, pc=0x10000abc, lr=0x1, xpsr=0x2, sp=0x3\n cfsr=0x00008200\n"
        + "\u00e9\u2666\n".encode()
        + b"Output[0][0]: (float) 0.5\nInfo: Simulation is stopping. Reason: CPU time has been"
        + b" exceeded.\n\xff\xfe\x00half a lin"
    )
    whole = parse_console(data)
    rng = random.Random(1)
    for _ in range(50):
        cuts = sorted(rng.sample(range(1, len(data)), 8))
        assert _in_pieces(data, cuts) == whole
    assert _in_pieces(data, list(range(1, len(data)))) == whole
    assert whole.cut


def _in_pieces(data: bytes, cuts: list[int]) -> Observation:
    reader = LogParser()
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        reader.feed(data[start:end])
    return reader.finish()


def test_random_bytes_are_survived() -> None:
    """Nothing that a console can hold raises (seed 2)."""
    rng = random.Random(2)
    words = [
        b"E [executorch:",
        b"Hard fault",
        b"Output[",
        b"0x14",
        b"\n",
        b"\r",
        b"\x04",
        b"] ",
        b'echo "',
        b": ",
        b"Test_result: ",
        b"status ",
        b"pc=",
        b"[0] = ",
        b"%",
        b"Output 0: tensor(sizes=[2], [",
        b'" | base64 -d >x',
        b"<err> a: ",
        b"ELR_ELn: 0x1",
        b"2026-01-01T00:00:00Z ",
        b"\xff\xfe",
        b"#[RUN THIS]",
        b"Error: ",
        b"I 00:00:00.1 ",
        b"executorch:a.cpp:1] ",
        b"license ",
        b"Listening for serial connection on port ",
        b"FVP_",
        b"ethosu_pmu_cntr",
    ]
    for _ in range(300):
        parse_console(b"".join(rng.choice([*words, rng.randbytes(3)]) for _ in range(200)))


def test_failures_are_counted_beyond_what_is_kept() -> None:
    """100 MB of error lines must not become 100 MB of events."""
    seen = parse_console(log("mid 2025", "broken", level="E") * 5000)
    assert len(seen.failures) == 1000
    assert seen.failures_dropped == 4000


def test_a_huge_line_is_read() -> None:
    seen = parse_console(b"x" * (8 << 20) + b"\nE [executorch:m.cpp:1 f()] broken\n")
    assert (seen.lines, seen.failures[0].line) == (2, 2)


def test_a_line_without_end_is_not_kept() -> None:
    """A guest can write one for as long as it runs; looking at it afterwards took longer than
    that. What follows the line is read."""
    reader, piece = LogParser(), b"x" * 65536
    tracemalloc.start()
    for _ in range(1024):
        reader.feed(piece)
    reader.feed(b"\n" + log("mid 2025", "build id 0011223344556677"))
    found = reader.finish()
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert found.build_id == "0011223344556677"


def test_a_long_line_of_outputs_is_read_to_its_end() -> None:
    values = 40_000
    line = f"Output 0: tensor(sizes=[{values}], [" + "0.5, " * (values - 1) + "0.25])\n"
    for size in (1000, 65536, len(line)):
        reader = LogParser()
        for start in range(0, len(line), size):
            reader.feed(line[start : start + size].encode())
        (tensor,) = reader.finish().tensors
        assert (tensor.elements, tensor.whole) == (values, True)


BOOT = b"[    0.000000] Linux version 6.1.0 (debian-kernel@lists.debian.org)\r\n"
INTERRUPTED = (
    BOOT + b"I [executorch:runner.cpp:272 run()] Program[   12.345678] random: crng init done\r\n"
    b"[   12.345679] virtio: more\r\n complete, exiting.\r\n"
)


def test_a_message_of_linux_in_the_middle_of_a_line() -> None:
    """The line is read as if the message had come before it; the number is that of its end."""
    seen = parse_console(INTERRUPTED)
    assert seen.complete_line == 4
    assert seen.lines == 4
    assert (
        parse_console(INTERRUPTED.replace(BOOT, b"")).complete_line is None
    )  # not a Linux's console


def test_a_message_of_linux_in_the_last_line() -> None:
    """What it came into has no rest, and is read all the same."""
    seen = parse_console(BOOT + b"E [executorch:a.cpp:1 f()] broken[   12.345678] and over\r\n")
    assert [failure.text for failure in seen.failures] == ["broken"]


def test_time_stamps_of_a_ci_system_are_no_line_of_their_own() -> None:
    """In front of every line of Linux, too, where they begin nothing that goes on."""
    stamp = b"2026-01-01T00:00:00.0000000Z "
    log = b"".join(stamp + line for line in INTERRUPTED.splitlines(keepends=True))
    broken = log.replace(stamp + b" complete", b" complete")
    assert parse_console(broken).complete_line == 4


@pytest.mark.parametrize(
    "before",
    [
        b"\xef\xbb\xbf",
        b"2026-01-01T00:00:00.0000000Z ",
        b"[2026-01-01 00:00:00,5] ",
        b"\xef\xbb\xbf2026-01-01T00:00:00.0000000Z ",
    ],
)
def test_what_an_editor_or_a_ci_system_puts_in_front_is_not_part_of_the_line(before: bytes) -> None:
    """Rows that want the beginning of a line find it."""
    (crash,) = parse_console(before + b"Aborted (core dumped)\n").failures
    assert (crash.kind, crash.text) == (Kind.PROCESS_CRASH, "Aborted (core dumped)")


def test_only_errors_of_a_driver_are_failures() -> None:
    """A warning, and an information, of the very same words are not."""
    said = b": DMA of job 3 was slow (ethosu_driver.c:411)\n"
    assert parse_console(b"W" + said + b"I" + said).failures == ()
    assert [failure.kind for failure in parse_console(b"E" + said).failures] == [Kind.RUNNER_ERROR]


def test_the_last_letter_of_a_word_is_not_a_level() -> None:
    assert parse_console(b"NOTICE [executorch:a.cpp:1 f()] all is well\n").failures == ()
    assert len(parse_console(b"E [executorch:a.cpp:1 f()] broken\n").failures) == 1


def test_the_last_line_is_the_last_one_that_says_something() -> None:
    assert parse_console(b"first\nlast\n\r\n  \n").last_line == "last"
    reader = LogParser()
    for piece in (b"first\nlast\n", b"  \n"):
        reader.feed(piece)
    assert reader.finish().last_line == "last"


def test_nothing_takes_back_that_the_run_is_over() -> None:
    """The simulator is stopped soon after such a line, whatever else it says until then."""
    reader = LogParser()
    reader.feed(log("mid 2025", "broken", level="E"))
    assert not reader.final_failure
    reader.feed(b"Hard fault. irq=-13, pc=0x10000abc, lr=0x1, xpsr=0x2, sp=0x3\n")
    assert reader.final_failure
    reader.feed(log("mid 2025", "broken", level="E"))
    assert reader.final_failure


@pytest.mark.parametrize(
    "line",
    [
        b'assertion "drv->state == IDLE" failed: file "ethosu_driver.c", line 512',
        b"Aborted (core dumped)",
        b">>> ZEPHYR FATAL ERROR 4: Kernel panic on CPU 0",
        b"E [executorch:m.cpp:1 f()] Missing operator: [7] aten::exp.out",
    ],
)
def test_after_what_a_run_is_over(line: bytes) -> None:
    reader = LogParser()
    reader.feed(line + b"\n")
    assert reader.final_failure


FILLS = {
    "blanks": b" " * 4096,
    "zeros": b"\0" * 4096,
    "few zeros": b"\0" * 5,
    "tabs": b"\t" * 70,
    "dots": b" " + b"." * 5000 + b" ",
    "words": b"lorem ipsum " * 9000,
    "one word": b"x" * 70_000 + b" ",
}
RUN = log(
    "mid 2025",
    "Method loaded.",
    "Model executed successfully.",
    "TEST: BundleIO index[0] Test_result: PASS",
    "Program complete, exiting.",
)
STOPPED = b"Info: /OSCI/SystemC: Simulation stopped by user."


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("place", range(6))
def test_what_stands_behind_a_long_line_is_read(fill: str, place: int) -> None:
    """A failure at the end of any line, however much stands before it, however it is cut."""
    lines = (RUN + STOPPED + b"\n").splitlines()
    lines = [*lines, b""]
    lines[place] += FILLS[fill] + b"run.sh: line 4: Killed by FAILED job\n"
    data = b"\n".join(lines) + b"\n"
    assert judge_log(parse_console(data)).verdict == "NO_VERDICT"
    assert _in_pieces(data, list(range(1000, len(data), 1000))) == parse_console(data)


@pytest.mark.parametrize("fill", ["blanks", "zeros", "few zeros", "tabs", "dots"])
def test_a_line_that_is_only_filled_is_not_a_failure(fill: str) -> None:
    for place in (b"Model executed", b"Test_result: PASS", b"Program complete"):
        start = RUN.index(b"\n", RUN.index(place))
        data = RUN[:start] + FILLS[fill] + RUN[start:] + STOPPED + b"\n"
        assert judge_log(parse_console(data)).verdict == "PASS", place


@pytest.mark.parametrize(
    "output",
    [
        b"Output 0: tensor(sizes=[1, 2], [0.5, 1.])",
        b'#[RUN THIS]\necho "AAEC" | base64 -d >etdump.bin',
        STOPPED,
    ],
)
def test_what_runs_into_a_known_line_is_read(output: bytes) -> None:
    data = RUN + output + b"make: *** [Makefile:3: run] Error 2\n"
    assert judge_log(parse_console(data)).verdict == "NO_VERDICT"
