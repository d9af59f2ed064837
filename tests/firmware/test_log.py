"""The first error of a failed build, and which kind of failure it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import BuildError, HarnessError, InfraError, LinkError
from harness.firmware.step import (
    FailedStep,
    LinkFailed,
    StepFailed,
    StepStarved,
    diagnose,
    unused_options,
)

NINJA = "[1/3] Building CXX object a.o\nFAILED: {what}\n/usr/bin/c++ -DX='error: no' -o {what}\n"

CASES = [
    (
        StepFailed,
        NINJA.format(what="a.o") + "In file included from x.h:1:\nsrc/a.cpp:3:1: error: boom\n"
        "src/a.cpp:9:1: error: second\n[2/3] Building b.o\n",
        "src/a.cpp:3:1: error: boom",
        5,
    ),
    (
        StepFailed,
        "[1/9] x\nb.cpp:1: warning: error: harmless\n"
        + NINJA.format(what="a.o")
        + "a.cpp:1:10: fatal error: nix.h: No such file or directory\ncompilation terminated.\n",
        "a.cpp:1:10: fatal error: nix.h: No such file or directory",
        6,
    ),
    (
        LinkFailed,
        NINJA.format(what="runner") + "/usr/bin/ld: a.o: in function `f':\n"
        "a.cpp:(.text+0x1): undefined reference to `g'\ncollect2: error: ld returned 1 exit status",
        "a.cpp:(.text+0x1): undefined reference to `g'",
        5,
    ),
    (
        LinkFailed,
        NINJA.format(what="runner") + "ld: runner section `.text' will not fit in region `ITCM'\n"
        "ld: region `ITCM' overflowed by 12 bytes\ncollect2: error: ld returned 1 exit status\n",
        "ld: runner section `.text' will not fit in region `ITCM'",
        4,
    ),
    (
        StepFailed,
        NINJA.format(what="a.o") + "c++: error: unrecognized command-line option '-mx'\n"
        "ninja: build stopped: subcommand failed.\n",
        "c++: error: unrecognized command-line option '-mx'",
        4,
    ),
    (
        StepStarved,
        NINJA.format(what="a.o") + "/tmp/cc.s: fatal error: No space left on device\n",
        "No space left on device while the runner was built",
        4,
    ),
    (
        StepStarved,
        NINJA.format(what="a.o") + "g++: fatal error: Killed signal terminated program cc1plus\n",
        "the compiler was killed (out of memory?): g++: fatal error: Killed signal terminated "
        "program cc1plus",
        4,
    ),
    (StepFailed, "nothing useful\n", "the build step failed and its log does not say why", None),
]


@pytest.mark.parametrize(("kind", "text", "message", "line"), CASES)
def test_first_error(kind: type[Exception], text: str, message: str, line: int | None) -> None:
    """The command that ninja echoes may look like an error; it is not taken for one."""
    error = diagnose(text, FailedStep("build", Path("b.log"), "host", 1))
    assert type(error) is kind
    assert error.message == message
    assert error.log_line == line
    assert (error.log, error.step, error.target, error.status) == ("b.log", "build", "host", 1)
    assert "b.log" in str(error.hint)


def test_cmake_error_is_one_sentence() -> None:
    text = (
        "-- ok\nCMake Error at CMakeLists.txt:12 (message):\n  there is no\n  port 'x'\n\n\nmore\n"
    )
    error = diagnose(text, FailedStep("configure", Path("c.log"), "host", 1))
    assert error.message == "CMake Error at CMakeLists.txt:12 (message): there is no port 'x'"
    assert error.log_line == 2


@pytest.mark.parametrize(
    ("error", "base"),
    [(StepStarved, InfraError), (StepFailed, BuildError), (LinkFailed, LinkError)],
)
def test_each_kind_ends_a_case_as_its_base_does(
    error: type[HarnessError], base: type[HarnessError]
) -> None:
    assert (error.kind, error.verdict, error.exit_code) == (base.kind, base.verdict, base.exit_code)


def test_unused_options() -> None:
    text = (
        "CMake Warning:\n  Manually-specified variables were not used by the project:\n\n"
        "    HIL_A\n    HIL_B\n\n\n-- Build files have been written\n"
    )
    assert unused_options(text) == ("HIL_A", "HIL_B")
    assert unused_options("-- fine\n") == ()
