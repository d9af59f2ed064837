"""Protects the promise of `hil link` in a real Zephyr workspace, where ZEPHYR_BASE names one: each
planted failure of `west build` is explained from the build directory and from the log, reduced to
at most three objects that fail with the same message, and gone when fixed as told."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.link.build_failure import build_failure
from harness.link.diagnose.explain import explain
from harness.link.failure import Failure
from harness.link.reduce import reduce_build
from tests.link.real_zephyr import needs_zephyr, west_build, write_sample
from tests.link.test_zephyr_logs import assert_stop_explained
from tests.link.zephyr_plants import PLANTS, ZephyrPlant
from tests.link.zephyr_plants_more import MORE_PLANTS
from tests.link.zephyr_stops import STOPS, ZephyrStop

pytestmark = needs_zephyr


def _quiet(_message: str) -> None:
    pass


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One application and one build directory for all plants: what they share is built once."""
    return tmp_path_factory.mktemp("zephyr")


def _assert_explained(failure: Failure, plant: ZephyrPlant) -> None:
    assert (failure.kind, failure.cause_kind) == (plant.kind, plant.cause_kind), failure.cause
    for words in plant.in_cause:
        assert words in failure.cause, failure.cause
    for words in plant.in_fix:
        assert words in failure.fix, failure.fix


@pytest.mark.parametrize("plant", [*PLANTS, *MORE_PLANTS], ids=lambda plant: plant.name)
def test_a_plant_is_explained_reduced_and_fixed(
    plant: ZephyrPlant, root: Path, tmp_path: Path
) -> None:
    source, tree = root / "probe", root / "build"
    write_sample(source, plant.wrong)
    log, status = west_build(source, tree)
    assert status != 0, log
    assert plant.message in log
    (root / f"{plant.name}.log").write_text(log)
    for what in (tree, root / f"{plant.name}.log"):
        failures = explain(what, _quiet).failures
        _assert_explained(
            next((f for f in failures if plant.message in f.text), failures[0]), plant
        )
    reduced = reduce_build(tree, tmp_path / "r", _quiet)
    assert 1 <= len(reduced.objects) + bool(reduced.stubs) <= 3
    moved = (tmp_path / "r").rename(tmp_path / "moved")
    done = subprocess.run(
        ["sh", str(moved / "repro.sh")], capture_output=True, text=True, cwd="/", check=False
    )
    assert done.returncode != 0
    assert plant.message in done.stdout + done.stderr
    write_sample(source, {**plant.wrong, **plant.right})
    log, status = west_build(source, tree)
    if plant.anew and status != 0:
        found = build_failure(log)
        assert found is not None
        assert "west build -p always" in found.fix
        shutil.rmtree(tree)
        log, status = west_build(source, tree)
    assert status == 0, log
    with pytest.raises(UsageError, match="nothing to reduce"):
        reduce_build(tree, tmp_path / "again", _quiet)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_a_build_that_stops_before_the_link(stop: ZephyrStop, tmp_path: Path) -> None:
    write_sample(tmp_path / "probe", stop.wrong)
    around = {**os.environ, **stop.environment}
    log, status = west_build(
        tmp_path / "probe", tmp_path / "build", stop.options, board=stop.board, environment=around
    )
    assert status != 0, log
    assert_stop_explained(stop, log)
    if stop.right:
        write_sample(tmp_path / "probe", {**stop.wrong, **stop.right})
        log, status = west_build(tmp_path / "probe", tmp_path / "build")
        assert status == 0, log
    shutil.rmtree(tmp_path)


def test_the_name_that_an_option_has_in_this_zephyr(tmp_path: Path) -> None:
    """ETHOS_U is what ARM_ETHOS_U is called elsewhere; the one that exists here is told."""
    stop = next(s for s in STOPS if s.name == "kconfig_renamed")
    write_sample(tmp_path / "probe", stop.wrong)
    log, _ = west_build(tmp_path / "probe", tmp_path / "build")
    found = build_failure(log)
    assert found is not None
    assert "Names like it: ARM_ETHOS_U," in found.fix
