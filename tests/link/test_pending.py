"""A build directory says what it still has to do, and a compile error is told as the cause."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.link.build import pending_steps
from harness.link.build_failure import BuildFailureKind
from harness.link.diagnose.explain import Explanation, explain

GENERATORS = ("Ninja", "Unix Makefiles")
LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(planted C)
add_library(core STATIC core.c)
add_executable(app main.c)
target_link_libraries(app PRIVATE core)
add_custom_target(always ALL COMMAND ${CMAKE_COMMAND} -E true)
"""
FILES = {
    "CMakeLists.txt": LISTS,
    "core.c": "int core(void) { return 1; }\n",
    "main.c": "int core(void);\nint main(void) { return core(); }\n",
}


class Build:
    def __init__(self, root: Path, generator: str) -> None:
        self.source, self.directory = root / "source", root / "build"
        self.source.mkdir()
        self.restore()
        self._run(["cmake", "-S", str(self.source), "-B", str(self.directory), "-G", generator])

    def restore(self) -> None:
        for name, text in FILES.items():
            (self.source / name).write_text(text)

    def build(self) -> int:
        return self._run(["cmake", "--build", str(self.directory)])

    def explained(self) -> Explanation:
        return explain(self.directory, lambda _: None)

    @staticmethod
    def _run(argv: list[str]) -> int:
        return subprocess.run(argv, capture_output=True, check=False).returncode


@pytest.fixture(scope="module", params=GENERATORS)
def configured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    return Build(tmp_path_factory.mktemp("pending"), request.param)


@pytest.fixture
def built(configured: Build) -> Build:
    configured.restore()
    assert configured.build() == 0
    return configured


def test_a_build_that_ended_has_nothing_left(built: Build) -> None:
    assert pending_steps(built.directory).next_step == ""
    assert built.explained().well


@pytest.mark.parametrize("name", ["main.c", "core.c"])
def test_a_compile_error_is_the_cause(built: Build, name: str) -> None:
    """Of a good build, then an error: the objects of an earlier state would still link."""
    file = built.source / name
    file.write_text(f"{FILES[name]}int broken(void) {{ return nothing; }}\n")
    assert built.build() != 0
    explained = built.explained()
    assert not explained.well
    assert explained.stopped is not None
    assert explained.stopped.kind is BuildFailureKind.COMPILE
    assert explained.stopped.file == str(file)
    assert "nothing" in explained.stopped.text


def test_a_build_that_was_killed_is_unfinished(built: Build) -> None:
    (built.source / "core.c").write_text("int core(void) { return 2; }\n")
    explained = built.explained()
    assert not explained.well
    assert explained.stopped is None
    assert explained.unfinished is not None
    assert explained.unfinished.startswith("compiling ")
    assert built.build() == 0
    assert built.explained().well


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_failed_link_is_explained_though_others_are_out_of_date(
    generator: str, tmp_path: Path
) -> None:
    built = Build(tmp_path, generator)
    assert built.build() == 0
    lists = f"{LISTS}add_executable(other other.c)\n"
    (built.source / "CMakeLists.txt").write_text(lists)
    (built.source / "other.c").write_text("int gone(void);\nint main(void) { return gone(); }\n")
    assert built.build() != 0
    (built.source / "main.c").touch()
    (failure,) = built.explained().failures
    assert failure.symbol == "gone"


def test_a_missing_header_is_the_cause_unless_the_build_generates_it(tmp_path: Path) -> None:
    built = Build(tmp_path, "Ninja")
    made = (
        "add_custom_command(OUTPUT made.h COMMAND ${CMAKE_COMMAND} -E touch made.h)\n"
        "add_custom_target(header ALL DEPENDS made.h)\nadd_dependencies(core header)\n"
    )
    (built.source / "CMakeLists.txt").write_text(LISTS + made)
    assert built.build() == 0
    (built.directory / "made.h").unlink()
    main = built.source / "main.c"
    main.write_text(f'#include "made.h"\n{FILES["main.c"]}')
    assert built.explained().stopped is None
    main.write_text(f'#include "nowhere.h"\n{FILES["main.c"]}')
    stopped = built.explained().stopped
    assert stopped is not None
    assert stopped.where == f"{main}:1"


@pytest.mark.parametrize("generator", GENERATORS)
def test_what_cannot_be_made_is_reported(generator: str, tmp_path: Path) -> None:
    built = Build(tmp_path, generator)
    assert built.build() == 0
    (built.source / "core.c").unlink()
    explained = built.explained()
    assert not explained.well
    assert explained.stopped is not None
    assert "core.c" in explained.stopped.text
