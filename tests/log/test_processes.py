"""Protects a console of several processes: each proves itself, in the whole console's lines."""

from __future__ import annotations

import random

import pytest

from harness.log.events import Kind, StopReason, merge_observations
from harness.log.parser import LogParser, parse_console, parse_processes

from .lines import log

DONE = log("mid 2025", "Method loaded.", "Program complete, exiting.")
BROKEN = log("mid 2025", "Method loaded.")
LIMIT = b"Info: Simulation is stopping. Reason: CPU time has been exceeded.\n"


def of(*consoles: bytes):  # type: ignore[no-untyped-def]
    starts = [sum(map(len, consoles[:n])) for n in range(len(consoles))]
    return parse_processes(b"".join(consoles), starts)


@pytest.mark.parametrize(
    ("consoles", "completed", "line"),
    [
        ((DONE, DONE), (2, 4), 4),
        ((DONE, BROKEN), (2, None), None),
        ((BROKEN, DONE), (None, 3), None),
        ((DONE, b""), (2, None), None),
        ((b"", DONE), (None, 2), None),
    ],
)
def test_every_process_needs_its_own_end_marker(
    consoles: tuple[bytes, ...], completed: tuple[int | None, ...], line: int | None
) -> None:
    seen = of(*consoles)
    assert (seen.completed, seen.complete_line) == (completed, line)


def test_the_same_bytes_of_one_process_are_one_run() -> None:
    """What the boundaries protect from: without them the last marker speaks for all."""
    assert parse_console(BROKEN + DONE).complete_line == 3
    assert parse_processes(BROKEN + DONE, [0]) == parse_console(BROKEN + DONE)


def test_a_boundary_in_a_line_splits_it_and_counts_it_once() -> None:
    """A process may end in the middle of a line; the next one's output follows on it."""
    seen = of(DONE + b"\x04", log("mid 2025", "broken", level="E") + DONE)
    (failure,) = seen.failures
    assert (failure.kind, failure.line) == (Kind.RUNNER_ERROR, 3)
    assert (seen.completed, seen.lines) == ((2, 5), 5)


def test_nothing_of_a_process_reaches_into_the_next() -> None:
    """Registers that follow in another process are not those of the fault before."""
    fault = b"Hard fault. irq=-13, pc=0x10000abc, lr=0x1, xpsr=0x2, sp=0x3\n"
    (event,) = of(fault, b"            cfsr=0x00020000 bfar=0x00000000 mmfar=0x00000000\n").failures
    assert "cfsr" not in event.facts


def test_figures_are_the_largest_and_lists_are_all() -> None:
    passed = "TEST: BundleIO index[0] Test_result: PASS"
    first = log("mid 2025", "method_allocator_used: 9", "temp_allocator: 1", passed)
    second = log("mid 2025", "method_allocator_used: 7", "planned_allocator: 3", passed)
    seen = of(first, second)
    assert seen.metrics == {
        "method_allocator_used": 9,
        "temp_allocator": 1,
        "planned_allocator": 3,
    }
    assert (seen.bundle_passes, seen.bundle_lines) == (2, (3, 6))


def test_a_build_id_is_said_by_every_process_or_by_none() -> None:
    one, two = (log("mid 2025", f"build id {word * 8}") for word in ("ab", "cd"))
    assert of(one, one).build_id == "ab" * 8
    assert of(one, two).build_id is None
    assert of(one, DONE).build_id is None


def test_a_limit_is_of_the_process_that_it_stopped() -> None:
    """Where nothing ends the model, a process that completed may be ended by its limit."""
    assert of(DONE + LIMIT, DONE).stop is None
    assert of(DONE + LIMIT, BROKEN).stop is None
    for consoles in ((DONE, BROKEN + LIMIT), (BROKEN + LIMIT, DONE)):
        stop = of(*consoles).stop
        assert stop is not None
        assert stop.reason is StopReason.WALL_LIMIT


def test_read_along_is_read_again() -> None:
    """What a run observes while it goes on is what is read from its console afterwards."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    pieces = [DONE, BROKEN, b"x", b"\n", LIMIT, log("zephyr sample", "[0] = 4.0"), b"E: bad\n", b""]
    for _ in range(200):
        consoles = [b"".join(rng.choices(pieces, k=rng.randrange(5))) for _ in range(3)]
        live, lines = [], 0
        for console in consoles:
            reader = LogParser(lines)
            reader.feed(console)
            live.append(reader.finish())
            lines = live[-1].lines - live[-1].cut
        assert merge_observations(live) == of(*consoles)


def test_a_run_has_a_process() -> None:
    with pytest.raises(ValueError, match="at least one process"):
        merge_observations([])
