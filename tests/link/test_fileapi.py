"""Protects what explain learns from CMake's File API: sources whose object is missing where
nothing else says so (Makefiles, no compile_commands.json), and targets by their names."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.link.diagnose.explain import explain
from harness.link.diagnose.tree import Tree
from harness.link.fileapi import ask, read_targets
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


@pytest.fixture
def build(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ask(tmp_path / "build")
    _cmake(tmp_path)
    return tmp_path / "build"


def _cmake(root: Path) -> None:
    argv = ["cmake", "-G", "Unix Makefiles", "-S", str(root / "source"), "-B", str(root / "build")]
    subprocess.run(argv, check=True, capture_output=True)


def _fails_to_link(build: Path) -> None:
    done = subprocess.run(["make", "-C", str(build), "app"], capture_output=True, check=False)
    assert done.returncode != 0


def test_targets_with_sources_and_links(build: Path) -> None:
    found = {target.name: target for target in read_targets(build)}
    late, tool = found["late"], found["tool"]
    assert late.type == "STATIC_LIBRARY"
    assert not late.links
    assert late.artifacts == (build / "lib" / "liblate.a",)
    assert late.sources == (build.parent / "source" / "lib" / "late.c",)
    assert tool.links
    assert tool.libraries() == ("lib/liblate.a",)
    subprocess.run(["make", "-C", str(build), "late"], check=True, capture_output=True)
    assert late.object_of(late.sources[0]).is_file()  # the folder is right


def test_a_source_whose_object_is_missing_is_found_by_it_alone(build: Path) -> None:
    """Makefiles have no data base of commands, and the object was never built."""
    assert (
        subprocess.run(
            ["make", "-C", str(build), "app"], capture_output=True, check=False
        ).returncode
        != 0
    )
    failure = explain(build, _quiet).failures[0]
    assert failure.cause_kind == "object_missing"
    assert "lib/late.c:1 defines it" in failure.cause
    assert failure.fix == "Build and link target late."


def test_a_library_is_linked_by_its_name_into_the_program_by_its_name(build: Path) -> None:
    subprocess.run(["make", "-C", str(build), "late"], check=True, capture_output=True)
    assert (
        subprocess.run(
            ["make", "-C", str(build), "app"], capture_output=True, check=False
        ).returncode
        != 0
    )
    failure = explain(build, _quiet).failures[0]
    assert failure.cause_kind == "library_not_linked"
    assert "(tool of the same build has it)" in failure.cause
    assert "target_link_libraries(app PRIVATE late)" in failure.fix


def test_the_target_that_needs_the_weak_default_is_named(tmp_path: Path) -> None:
    plant = next(p for p in PLANTS if p.name == "missing_weak_default")
    ask(tmp_path / "build")
    project = Project(plant, tmp_path / "source", tmp_path / "build")
    assert project.configure_and_build(fixed=False).returncode != 0
    failure = explain(project.build, _quiet).failures[0]
    assert "Add io_default.c to the sources of target backend" in failure.fix


def test_without_a_reply_or_with_a_damaged_one_there_are_no_targets(
    build: Path, tmp_path: Path
) -> None:
    assert read_targets(tmp_path) == ()
    index = next((build / ".cmake/api/v1/reply").glob("index-*.json"))
    for text in ("{", "[]", json.dumps({"objects": [{"kind": "codemodel"}]})):
        index.write_text(text)
        assert read_targets(build) == ()
        assert Tree(build).compile_commands == {}
