"""The first error of a failed build, and which kind of failure it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import BuildError, HarnessError, LinkError
from harness.core.verdict import Verdict
from harness.firmware.step import (
    FailedStep,
    LinkFailed,
    StepDiskFull,
    StepFailed,
    StepKilled,
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
        "c++ does not know the option -mx: it is misspelt, or of another compiler or version.",
        4,
    ),
    (
        StepDiskFull,
        NINJA.format(what="a.o") + "/tmp/cc.s: fatal error: No space left on device\n",
        "No space left on device while the runner was built",
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


COMPILED = NINJA.format(what="a.o")
BLAMES_NOBODY = "a.cpp:3:1: warning: unused [-Wunused]\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(
            (f"{COMPILED}{said}\n", said)
            for said in (
                "g++: fatal error: Killed signal terminated program cc1plus",
                "collect2: fatal error: ld terminated with signal 9 [Killed]",
                "cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes",
                "/usr/bin/ld: final link failed: memory exhausted",
                "ninja: fatal: posix_spawn: Cannot allocate memory",
            )
        ),
        (f"{COMPILED}ninja: build stopped: subcommand failed.\n", "FAILED: a.o"),
        (f"{COMPILED}[2/3] Building b.o\nninja: build stopped.\n", "FAILED: a.o"),
        (COMPILED + BLAMES_NOBODY, "FAILED: a.o"),
        (COMPILED, "FAILED: a.o"),
    ],
)
def test_a_compiler_that_was_killed_is_nobodys_fault(text: str, shown: str) -> None:
    """Also where nobody says so: a compiler or linker always says why it refuses something."""
    error = diagnose(text, FailedStep("build", Path("b.log"), "host", 1))
    assert (type(error), error.kind, error.verdict) == (StepKilled, "build_killed", Verdict.INFRA)
    assert error.message.endswith(f"(out of memory?): {shown}")


def test_a_silent_compiler_on_a_full_disk_was_not_killed() -> None:
    """ccache and the assembler say nothing, and what they wrote is deleted before anybody looks."""
    error = diagnose(COMPILED, FailedStep("build", Path("b.log"), "host", 1, None, 1712 << 10))
    assert (type(error), error.kind, error.verdict) == (StepDiskFull, "disk_full", Verdict.INFRA)
    assert error.message == "the disk has 1712 KiB left, and a compiler failed silently"
    killed = f"{COMPILED}g++: fatal error: Killed signal terminated program cc1plus\n"
    error = diagnose(killed, FailedStep("build", Path("b.log"), "host", 1, None, 1712 << 10))
    assert type(error) is StepKilled


def test_a_build_file_that_did_not_fit_is_a_full_disk() -> None:
    """CMake says that it has written it; with room on the disk it is another fault."""
    text = "ninja: error: loading 'build.ninja': No such file or directory\n"
    error = diagnose(text, FailedStep("build", Path("b.log"), "host", 1, None, 8 << 10))
    assert (type(error), error.verdict) == (StepDiskFull, Verdict.INFRA)
    assert error.message == "the disk has 8 KiB left, and CMake could not write build.ninja"
    assert type(diagnose(text, FailedStep("build", Path("b.log"), "host", 1))) is StepFailed


def test_a_build_that_was_killed_is_nobodys_fault() -> None:
    error = diagnose("[1/3] Building a.o\n", FailedStep("build", Path("b.log"), "host", None, 9))
    assert isinstance(error, StepKilled)
    assert "the build step, by signal 9" in error.message


@pytest.mark.parametrize("printed", ["", "the two tables differ\n"])
def test_another_command_may_fail_without_a_word(printed: str) -> None:
    text = f"FAILED: table.h\ncd /x && cmp a b\n{printed}ninja: build stopped: subcommand failed.\n"
    assert type(diagnose(text, FailedStep("build", Path("b.log"), "host", 1))) is StepFailed


def test_cmake_error_is_one_sentence() -> None:
    text = (
        "-- ok\nCMake Error at CMakeLists.txt:12 (message):\n  there is no\n  port 'x'\n\n\nmore\n"
    )
    error = diagnose(text, FailedStep("configure", Path("c.log"), "host", 1))
    assert error.message == "CMake Error at CMakeLists.txt:12 (message): there is no port 'x'"
    assert error.log_line == 2


@pytest.mark.parametrize(
    ("error", "base"),
    [(StepFailed, BuildError), (LinkFailed, LinkError)],
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
