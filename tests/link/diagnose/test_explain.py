"""Whether a build's log is whole: no part of it is green."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.link.diagnose.explain import Explanation, explain_lines
from harness.link.log.lines import lines_of

SEED = 30
NINJA = (
    "-- west build: building application\n[1/4] Building C object a.c.obj\n"
    "[2/4] Linking C static library libapp.a\n[3/4] Building C object b.c.obj\n"
    "[4/4] Linking C executable zephyr.elf\nMemory region         Used Size\n"
)
NESTED = (
    "[1/3] Performing configure step\n[2/3] Performing build step\n[1/2] Building C object a.o\n"
    "[2/2] Linking C executable boot.elf\n[3/3] Completed 'boot'\n-- done\n"
)
CMAKE_MAKE = (
    "[ 50%] Building C object a.c.o\n[100%] Linking C executable x.elf\n[100%] Built target x.elf\n"
)
MAKE = "  CC a.o\n  LD x.elf\n  CC b.o\n  LD y.elf\n  SIZE y.elf\n"
KEIL = 'compiling a.c...\nlinking...\nProgram Size: Code=1\n"x.axf" - 0 Error(s), 0 Warning(s).\n'
IAR = "IAR ELF Linker V9\n\nFinished: 0 information, 2 warning and 0 error messages.\n"
WHOLE = {
    "ninja": NINJA,
    "nested": NESTED,
    "cmake": CMAKE_MAKE,
    "make": MAKE,
    "keil": KEIL,
    "iar": IAR,
}


def explained(text: str) -> Explanation:
    cut = not text.endswith("\n")
    return explain_lines(lines_of(text), Path("/nowhere/build.log"), lambda _: None, cut=cut)


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_log_is_green(name: str) -> None:
    assert explained(WHOLE[name]).well


@pytest.mark.parametrize("name", WHOLE)
def test_a_cut_log_is_not_green(name: str) -> None:
    text = WHOLE[name]
    for end in random.Random(SEED).sample(range(len(text)), min(200, len(text))):
        assert not explained(text[:end]).well, f"{text[:end]!r} (seed {SEED})"


def test_the_last_step_is_reported() -> None:
    text = "[18/141] Building C object a.c.obj\n[19/141] Linking C static library libapp.a\n"
    explanation = explained(text)
    assert explanation.unfinished == "[19/141] Linking C static library libapp.a"
    assert explanation.summary()["unfinished"] == explanation.unfinished


def test_a_counter_may_change_on_its_way() -> None:
    """ninja takes steps away that turn out to have nothing to do."""
    text = "[0/1] Re-running CMake...\n[1/9] Building C object a.o\n[2/2] Linking C executable x\n"
    assert explained(f"{text}x: 12 bytes\n").well


def test_the_last_step_may_have_failed_where_the_log_ends_with_it() -> None:
    """ninja tells a step, then that it failed: a log may be cut between the two."""
    text = "[1/2] Building C object a.o\n[2/2] Linking C executable x\n"
    assert explained(text).unfinished == "[2/2] Linking C executable x"
    assert explained(f"{text}FAILED: x\n").stopped is not None


def test_a_verbose_makefile_build_ends_with_its_counter() -> None:
    start = "/usr/bin/cmake -E cmake_progress_start /b/CMakeFiles 4\n"
    text = f"{start}[100%] Linking C executable x\n[100%] Built target x\n"
    assert explained(text).unfinished == "[100%] Built target x"
    assert explained(text + start.replace(" 4", " 0")).well


def test_a_driver_without_its_linker_is_not_a_silent_link() -> None:
    stopped = explained(
        'clang: error: unable to execute command: Executable "ld.lld" doesn\'t exist!\n'
        "clang: error: ld.lld command failed with exit code 1 (use -v to see invocation)\n"
    ).stopped
    assert stopped is not None
    assert (stopped.kind, stopped.fix.startswith("Install ld.lld")) == ("toolchain", True)


def test_a_link_that_fails_silently_is_reported_as_that() -> None:
    (failure,) = explained(
        "[4/4] Linking x.elf\ncollect2: error: ld returned 1 exit status\n"
    ).failures
    assert failure.cause == "The link failed, and the log does not say why."


def test_a_linker_that_cannot_start_is_not_an_unknown_message() -> None:
    stopped = explained(
        "/tc/bin/ld: /lib/libc.so.6: version `GLIBC_2.99' not found (required by /tc/bin/ld)\n"
        "collect2: error: ld returned 1 exit status\n"
    ).stopped
    assert stopped is not None
    assert stopped.kind == "toolchain"
