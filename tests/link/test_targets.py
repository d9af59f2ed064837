"""Protects what explain learns from the files of CMake's generators: sources whose object is
missing, and targets by their names."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.link.diagnose.explain import explain
from harness.link.diagnose.tree import Tree, target_in
from tests.link.plants import PLANTS, Project

LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(api C)
add_subdirectory(lib)
add_executable(app app.c)
add_executable(tool EXCLUDE_FROM_ALL tool.c)
target_link_libraries(tool PRIVATE late)
"""
FILES = {
    "CMakeLists.txt": LISTS,
    "app.c": "int late(void);\nint main(void) { return late(); }\n",
    "tool.c": "int late(void);\nint main(void) { return late(); }\n",
    "lib/CMakeLists.txt": "add_library(late STATIC EXCLUDE_FROM_ALL late.c)\n",
    "lib/late.c": "int late(void) { return 1; }\n",
}


def _quiet(_message: str) -> None:
    pass


TOOLS = {"Unix Makefiles": ["make", "-C"], "Ninja": ["ninja", "-C"]}


def _generator(build: Path) -> str:
    return "Ninja" if (build / "build.ninja").is_file() else "Unix Makefiles"


def _make(build: Path, target: str) -> int:
    argv = [*TOOLS[_generator(build)], str(build), target]
    return subprocess.run(argv, capture_output=True, check=False).returncode


@pytest.fixture(params=TOOLS)
def build(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    argv = ["cmake", "-G", request.param, "-S", tmp_path / "source", "-B", tmp_path / "build"]
    subprocess.run(argv, check=True, capture_output=True)
    return tmp_path / "build"


def test_targets_with_sources_and_links(build: Path) -> None:
    tree, source = Tree(build), build.parent / "source" / "lib" / "late.c"
    made = tree.compile_commands[source]
    assert made is not None
    assert target_in(str(made)) == tree.target_of("liblate.a") == "late"
    assert tree.users_of(Path("lib/liblate.a")) == ("tool",)
    assert _make(build, "late") == 0
    assert made.is_file()  # the folder is right


def test_a_missing_object_and_then_the_library_that_has_it_are_the_cause(build: Path) -> None:
    """Makefiles have no data base of commands, and the object was never built. When it is, its
    library is linked by its name into the program by its name."""
    assert _make(build, "app") != 0
    failure = explain(build, _quiet).failures[0]
    assert failure.cause_kind == "object_missing"
    assert "lib/late.c:1 defines it" in failure.cause
    assert failure.fix == "Build and link target late."
    assert _make(build, "late") == 0
    failure = explain(build, _quiet).failures[0]
    assert failure.cause_kind == "library_not_linked"
    assert "(tool of the same build has it)" in failure.cause
    assert "target_link_libraries(app PRIVATE late)" in failure.fix


def test_the_target_that_needs_the_weak_default_is_named(tmp_path: Path) -> None:
    plant = next(p for p in PLANTS if p.name == "missing_weak_default")
    project = Project(plant, tmp_path / "source", tmp_path / "build")
    assert project.configure_and_build(fixed=False).returncode != 0
    failure = explain(project.build, _quiet).failures[0]
    assert "Add io_default.c to the sources of target backend" in failure.fix


def test_a_damaged_database_is_not_all_there_is(build: Path) -> None:
    found = Tree(build).compile_commands
    assert len(found) == 3
    for text in ("{", "[1]", json.dumps([{"file": "a.c"}])):
        (build / "compile_commands.json").write_text(text)
        assert Tree(build).compile_commands == found
