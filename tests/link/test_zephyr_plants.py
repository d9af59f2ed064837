"""Protects the promise of `hil link` for `west build`: the planted failures, in a workspace with
the shape of Zephyr's link (whole archives, kernel library, offsets object, two passes), are
explained, reduced to at most three objects, and gone when fixed as told."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.link.diagnose.explain import explain
from harness.link.reduce import reduce_build
from tests.link.plants import PLANTS, Plant
from tests.link.test_plants import _assert_explained
from tests.link.workspace import ZephyrProject, in_zephyr
from tests.thorough import cases

# What Zephyr changes is how the link is found and done again, and the linker script: in a push two
# plants show that, and one of them in the log of west and reduced. test_plants has every plant.
DAILY = [
    plant for plant in PLANTS if plant.name in ("missing_weak_default", "pte_in_orphan_section")
]
ONE_OF_EACH_KIND = list({plant.kind: plant for plant in reversed(PLANTS)}.values())
MORE = [plant for plant in ONE_OF_EACH_KIND if plant not in DAILY]


def _quiet(_message: str) -> None:
    pass


@dataclass(frozen=True)
class Place:
    """Where one plant after another is built."""

    workspace: Path
    folder: Path

    def project(self, plant: Plant) -> ZephyrProject:
        source, build = self.folder / "source", self.folder / "build"
        return ZephyrProject(in_zephyr(plant), source, build, self.workspace)

    def broken(self, plant: Plant) -> tuple[ZephyrProject, str]:
        """The project with its failure planted, and the log of the build that failed."""
        project = self.project(plant)
        done = project.configure_and_build(fixed=False)
        text = done.stdout + done.stderr
        assert done.returncode != 0
        assert project.plant.message in text
        return project, text


@pytest.fixture(scope="module")
def wrong(small_zephyr: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(small_zephyr, tmp_path_factory.mktemp("wrong"))


@pytest.fixture(scope="module")
def right(wrong: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(wrong.workspace, tmp_path_factory.mktemp("right"))


@pytest.mark.parametrize(
    "plant",
    cases(*DAILY, thorough=[plant for plant in PLANTS if plant not in DAILY]),
    ids=lambda plant: plant.name,
)
def test_the_build_directory_is_explained(plant: Plant, wrong: Place) -> None:
    project, _ = wrong.broken(plant)
    explanation = explain(project.build, _quiet)
    assert explanation.command is not None
    assert Path(explanation.command.output).name == "zephyr_pre0.elf"
    _assert_explained(explanation.failures[0], project.plant)


@pytest.mark.parametrize(
    "plant", cases(DAILY[0], thorough=[DAILY[1], *MORE]), ids=lambda plant: plant.name
)
def test_wests_log_is_explained_and_the_link_reduced_to_three_objects(
    plant: Plant, wrong: Place, tmp_path: Path
) -> None:
    project, text = wrong.broken(plant)
    log = tmp_path / "west.log"
    log.write_text(text)
    _assert_explained(explain(log, _quiet).failures[0], project.plant)
    reduced = reduce_build(project.build, tmp_path / "r", _quiet)
    assert 1 <= len(reduced.objects) + bool(reduced.stubs) <= 3
    moved = (tmp_path / "r").rename(tmp_path / "moved")
    done = subprocess.run(
        ["sh", str(moved / "repro.sh")], capture_output=True, text=True, cwd="/", check=False
    )
    assert done.returncode != 0
    assert project.plant.message in done.stdout + done.stderr


@pytest.mark.parametrize("plant", cases(*DAILY, thorough=MORE), ids=lambda plant: plant.name)
def test_the_fix_makes_both_passes_link(plant: Plant, right: Place) -> None:
    project = right.project(plant)
    program = project.build / "zephyr" / "zephyr.elf"
    program.unlink(missing_ok=True)
    done = project.configure_and_build(fixed=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert program.is_file()
    assert explain(project.build, _quiet).well
    with pytest.raises(UsageError, match="nothing to reduce"):
        reduce_build(project.build, right.folder / "r", _quiet)
