"""Protects the promise of `hil link` for `west build`: the planted failures, in a workspace with
the shape of Zephyr's link (whole archives, kernel library, offsets object, two passes), are
explained, reduced to at most three objects, and gone when fixed as told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.link.diagnose.explain import explain
from harness.link.reduce import reduce_build
from tests.link.plants import PLANTS
from tests.link.test_plants import _assert_explained
from tests.link.workspace import ZephyrProject, in_zephyr, make_workspace


def _quiet(_message: str) -> None:
    pass


@pytest.fixture(scope="module")
def zephyr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("west"))


@pytest.fixture(scope="module", params=PLANTS, ids=lambda plant: plant.name)
def broken(
    request: pytest.FixtureRequest, zephyr: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ZephyrProject, str]:
    root = tmp_path_factory.mktemp(request.param.name)
    plant = in_zephyr(request.param)
    project = ZephyrProject(plant, root / "source", root / "build", zephyr)
    done = project.configure_and_build(fixed=False)
    assert done.returncode != 0
    assert plant.message in done.stdout + done.stderr
    return project, done.stdout + done.stderr


def test_the_build_directory_and_the_log_of_west_are_explained(
    broken: tuple[ZephyrProject, str],
) -> None:
    project, text = broken
    explanation = explain(project.build, _quiet)
    assert explanation.command is not None
    assert Path(explanation.command.output).name == "zephyr_pre0.elf"
    _assert_explained(explanation.failures[0], project.plant)
    log = project.build.parent / "west.log"
    log.write_text(text)
    _assert_explained(explain(log, _quiet).failures[0], project.plant)


def test_it_is_reduced_to_three_objects(broken: tuple[ZephyrProject, str], tmp_path: Path) -> None:
    project, _ = broken
    reduced = reduce_build(project.build, tmp_path / "r", with_test=False, progress=_quiet)
    assert 1 <= len(reduced.objects) + bool(reduced.stubs) <= 3
    moved = (tmp_path / "r").rename(tmp_path / "moved")
    done = subprocess.run(
        ["sh", str(moved / "repro.sh")], capture_output=True, text=True, cwd="/", check=False
    )
    assert done.returncode != 0
    assert project.plant.message in done.stdout + done.stderr


def test_the_fix_makes_both_passes_link(
    broken: tuple[ZephyrProject, str], zephyr: Path, tmp_path: Path
) -> None:
    plant = broken[0].plant
    project = ZephyrProject(plant, tmp_path / "source", tmp_path / "build", zephyr)
    done = project.configure_and_build(fixed=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project.build / "zephyr" / "zephyr.elf").is_file()
    assert explain(project.build, _quiet).well
    with pytest.raises(UsageError, match="nothing to reduce"):
        reduce_build(project.build, tmp_path / "r", with_test=False, progress=_quiet)
