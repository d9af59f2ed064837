"""What stands before the lines of a log: what is learned as a prefix, and what only quotes."""

from __future__ import annotations

import re

import pytest

from harness.judge.console_log import judge_log
from harness.log.parser import LogParser, parse_console
from tests.log.lines import log

LINES = (
    *log("mid 2025", "Method loaded.", "Starting the model execution...").splitlines(),
    b"Output[0][0]: (float) 0.5",
    *log(
        "mid 2025", "TEST: BundleIO index[0] Test_result: PASS", "Program complete, exiting."
    ).splitlines(),
    b"",
    b"Info: /OSCI/SystemC: Simulation stopped by user.",
)
# By who writes them; `%d` is the number of the line.
PREFIXES = {
    "journalctl": b"Nov 27 05:23:0%d board-7 runner[812]: ",
    "journalctl -o short-iso": b"2026-11-27T05:23:0%d+0000 board-7 runner[812]: ",
    "a kernel's clock": b"[  %d.013] ",
    "kubectl logs --prefix": b"[pod/u85-7f9c/runner] ",
    "a bracket and no blank": b"[u85-7f9c]",
    "TeamCity": b"[05:23:0%d]W:\t [Step 3/4] ",
    "stern": "u85-7f9c runner \u203a ".encode(),
    "Python's logging": b"2026-11-27 05:23:0%d,120 - board - INFO - ",
    "moreutils ts": b"Nov 27 05:23:0%d ",
}
QUOTES = {
    "a diff": b"+",
    "grep -n": b"fvp.log:%d:",
    "an indent": b"    ",
    "a mail": b"> ",
    "pytest's assertion": b"E       ",
    "a string": b'"',
}


def with_prefix(prefix: bytes, *more: bytes) -> bytes:
    numbered = enumerate((*LINES, *more))
    return b"".join(prefix.replace(b"%d", b"%d" % n) + line + b"\n" for n, line in numbered)


@pytest.mark.parametrize("name", PREFIXES)
def test_a_prefix_that_a_run_shares_is_learned(name: str) -> None:
    seen = parse_console(with_prefix(PREFIXES[name]))
    assert judge_log(seen).verdict == "PASS"
    assert [tensor.elements for tensor in seen.tensors] == [1]


@pytest.mark.parametrize("name", PREFIXES)
def test_a_failure_behind_a_learned_prefix_is_read(name: str) -> None:
    """`^` in the rows of the table is the beginning of what the program wrote."""
    failed = with_prefix(PREFIXES[name], b"make: *** [Makefile:3: run] Error 2")
    judged = judge_log(parse_console(failed))
    assert (judged.verdict, judged.cause and judged.cause.kind) == ("NO_VERDICT", "job_failed")


def test_a_level_that_changes_is_of_the_same_prefix() -> None:
    lines = with_prefix(PREFIXES["TeamCity"]).splitlines(keepends=True)
    mixed = [line.replace(b"W:", b" :") if n % 2 else line for n, line in enumerate(lines)]
    assert judge_log(parse_console(b"".join(mixed))).verdict == "PASS"


@pytest.mark.parametrize("name", QUOTES)
def test_a_quoted_run_proves_nothing(name: str) -> None:
    assert judge_log(parse_console(with_prefix(QUOTES[name]))).verdict == "NO_VERDICT"


def test_a_given_prefix_is_removed() -> None:
    prefixed = with_prefix(b"    ")
    parser = LogParser(prefix=re.compile(rb" {4}"))
    parser.feed(prefixed)
    assert judge_log(parser.finish()).verdict == "PASS"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("size", [1, 3, 4096])
def test_utf16_is_read_however_it_is_cut(encoding: str, mark: bool, size: int) -> None:
    """Filled with zeros too, as a log on a board's disk is after a crash."""
    text = with_prefix(b"").decode() + "\0" * 100 + "make: *** [x] Error 2\n"
    data = (("\ufeff" if mark else "") + text).encode(encoding)
    parser = LogParser()
    for start in range(0, len(data), size):
        parser.feed(data[start : start + size])
    seen = parser.finish()
    assert seen.complete_line == 5
    assert [suspect.text for suspect in seen.suspects] == ["make: *** [x] Error 2"]
