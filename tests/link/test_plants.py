"""Protects the promise of `hil link`: for every planted failure, explain names cause and fix,
reduce hands over at most three objects that fail with the same message, and the fix, done as it
says, makes the link succeed."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.link.diagnose.explain import explain
from harness.link.failure import Failure
from harness.link.reduce import reduce_build
from tests.link.plants import _FILES, PLANTS, Plant, Project


def _quiet(_message: str) -> None:
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one plant after another is built."""
    return tmp_path_factory.mktemp("plants")


@pytest.fixture(scope="module", params=PLANTS, ids=lambda plant: plant.name)
def broken(request: pytest.FixtureRequest, folder: Path) -> tuple[Project, str]:
    """A project with its failure planted, and the log of the build that failed."""
    root = folder / "broken"
    root.mkdir(exist_ok=True)
    project = Project(request.param, root / "source", root / "build")
    done = project.configure_and_build(fixed=False)
    assert done.returncode != 0
    return project, done.stdout + done.stderr


def _assert_explained(failure: Failure, plant: Plant) -> None:
    assert (failure.kind, failure.cause_kind) == (plant.kind, plant.cause_kind)
    about = failure.symbol or failure.region or " ".join(failure.files)
    assert plant.subject in about
    for words in plant.in_cause:
        assert words in failure.cause
    for words in plant.in_fix:
        assert words in failure.fix


def test_the_build_directory_is_explained(broken: tuple[Project, str]) -> None:
    project, _ = broken
    _assert_explained(explain(project.build, _quiet).failures[0], project.plant)


def test_the_log_is_explained_in_the_same_way(broken: tuple[Project, str], tmp_path: Path) -> None:
    project, text = broken
    log = project.build.parent / "build.log"
    log.write_text(text)
    _assert_explained(explain(log, _quiet).failures[0], project.plant)


def test_a_log_without_its_objects_has_the_same_kind(
    broken: tuple[Project, str], tmp_path: Path
) -> None:
    project, text = broken
    log = tmp_path / "build.log"
    log.write_text(text.replace(str(project.build.parent), "/elsewhere"))
    explanation = explain(log, _quiet)
    assert explanation.command is None
    assert explanation.failures[0].kind == project.plant.kind
    assert explanation.failures[0].fix


def test_it_is_reduced_to_three_objects(broken: tuple[Project, str], tmp_path: Path) -> None:
    project, text = broken
    assert project.plant.message in text
    out = tmp_path / "reduced"
    reduced = reduce_build(project.build, out, _quiet)
    assert 1 <= len(reduced.objects) + bool(reduced.stubs) <= 3
    moved = out.rename(tmp_path / "moved")  # self-contained
    done = subprocess.run(
        ["sh", str(moved / "repro.sh")], capture_output=True, text=True, cwd="/", check=False
    )
    assert done.returncode != 0
    assert project.plant.message in done.stdout + done.stderr
    assert {"README.md", "failure.json", "repro.sh"} <= {p.name for p in moved.iterdir()}


def _in_the_other_tree(folder: Path, plant: Plant) -> Project:
    root = folder / "fixed"
    root.mkdir(exist_ok=True)
    return Project(plant, root / "source", root / "build")


def test_the_fix_makes_it_link(broken: tuple[Project, str], folder: Path, tmp_path: Path) -> None:
    project = _in_the_other_tree(folder, broken[0].plant)
    (project.build / "runner.elf").unlink(missing_ok=True)
    done = project.configure_and_build(fixed=True)
    assert done.returncode == 0, done.stdout
    assert (project.build / "runner.elf").is_file()
    assert explain(project.build, _quiet).well
    with pytest.raises(UsageError, match="nothing to reduce"):
        reduce_build(project.build, tmp_path / "reduced", _quiet)


def test_a_static_of_the_same_name_elsewhere_is_not_the_cause(folder: Path, tmp_path: Path) -> None:
    """Another file has a function of that name for itself; the library that defines it for all
    was forgotten."""
    chosen = next(p for p in PLANTS if p.name == "kernel_library_not_linked")
    own = "__attribute__((used)) static int kernel_add(int a) { return a; }\n"
    plant = replace(chosen, wrong={"log.c": own + _FILES["log.c"]})
    project = _in_the_other_tree(folder, plant)
    assert project.configure_and_build(fixed=False).returncode != 0
    _assert_explained(explain(project.build, _quiet).failures[0], plant)
    reduced = reduce_build(project.build, tmp_path / "r", _quiet)
    assert 1 <= len(reduced.objects) + bool(reduced.stubs) <= 3


def test_a_wrapper_whose_source_was_forgotten(folder: Path, tmp_path: Path) -> None:
    chosen = next(p for p in PLANTS if p.name == "wrapped_without_a_wrapper")
    plant = replace(
        chosen,
        cause_kind="source_not_compiled",
        in_cause=("wrapper.c:1",),
        in_fix=("Add wrapper.c",),
        wrong={"wrapper.c": "int __wrap_log_line(int a) { return a; }\n"},
    )
    project = _in_the_other_tree(folder, plant)
    assert project.configure_and_build(fixed=False).returncode != 0
    _assert_explained(explain(project.build, _quiet).failures[0], plant)
    reduced = reduce_build(project.build, tmp_path / "r", _quiet)
    assert 1 <= len(reduced.objects) + bool(reduced.stubs) <= 3
