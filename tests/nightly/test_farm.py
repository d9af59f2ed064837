"""Protects a night on several machines as its user sees it: ``hil nightly --scheduler --store``.

The scheduler and its workers are processes with homes of their own, the cases are real.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Row
from tests.cli.conftest import Hil, Result
from tests.nightly.cluster import Farm, farm, until

TARGET = "corstone-300-m55"
SLOW = """#!/bin/sh
[ "$1" = --version ] && exec {real} --version
exec sleep 600
"""

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
Night = Callable[..., Result]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two targets, of one program and one firmware."""
    (tmp_path / "boards").mkdir()
    for name in ("mine", "yours"):
        (tmp_path / "boards" / f"{name}.yaml").write_text(f"extends: {TARGET}\n")
    (tmp_path / "suite.yaml").write_text(
        "cases:\n  - {targets: [boards/mine.yaml, boards/yours.yaml], models: [add], "
        "simulator: qemu}\n"
    )
    return tmp_path


@pytest.fixture
def night(hil: Hil, place: Path) -> Night:
    def call(*words: object, **environment: str) -> Result:
        return hil(
            "nightly",
            place / "suite.yaml",
            "--history",
            f"sqlite:///{place}/h.db",
            *map(str, words),
            **environment,
        )

    return call


@pytest.fixture
def own_farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    with farm(tmp_path_factory.mktemp("farm")) as made:
        yield made


def rows(place: Path) -> list[Row]:
    history = open_history(f"sqlite:///{place}/h.db")
    try:
        return list(history.every())
    finally:
        history.close()


def test_what_one_machine_made_others_take_and_one_of_them_is_killed(
    own_farm: Farm, night: Night, place: Path, shared_hil_home: str
) -> None:
    """The first machine has the session's program and builds. The others export nothing (they never
    load torch) and build nothing: their firmware has the first one's time of build. The simulator
    of one of them never ends; when it is killed, the other runs the case again."""
    store = place / "store"
    programs = own_farm.home("first") / "cache" / "programs"
    programs.parent.mkdir(parents=True)
    programs.symlink_to(Path(shared_hil_home) / "cache" / "programs")
    first = own_farm.worker("first")
    filling = night("--scheduler", own_farm.url, "--store", store)
    assert filling.code == 0, filling
    first.kill()
    slow = place / "bin" / "qemu-system-arm"
    slow.parent.mkdir()
    slow.write_text(SLOW.format(real=shutil.which("qemu-system-arm")))
    slow.chmod(0o755)
    doomed = own_farm.worker("doomed", PATH=f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    other = own_farm.worker("other")
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "harness",
            "nightly",
            str(place / "suite.yaml"),
            "--json",
            "--history",
            f"sqlite:///{place}/h.db",
            "--scheduler",
            own_farm.url,
            "--store",
            str(store),
            "--night",
            "killed",
        ],
        env={**os.environ, "HIL_HOME": shared_hil_home},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    until(lambda: list((doomed.home / "runs").glob("*/console.log")))
    doomed.kill()
    answer = json.loads(running.communicate(timeout=300)[0])
    assert running.returncode == 0, answer
    assert {case["verdict"] for case in answer["cases"]} == {"PASS"}
    mine = sorted(
        (r.case, r.attempt, r.verdict.name, r.cause.kind if r.cause else None)
        for r in rows(place)
        if r.night == "killed"
    )
    (lost,) = {row[0] for row in mine if row[1] == 2}
    (kept,) = {row[0] for row in mine} - {lost}
    assert mine == sorted(
        [
            (lost, 1, "INFRA", "worker_lost"),
            (lost, 2, "PASS", None),
            (kept, 1, "PASS", None),
        ]
    )
    assert not other.has_mapped("libtorch_cpu")
    stamps = [
        file.read_text()
        for member in (first, doomed, other)
        for file in (member.home / "cache" / "firmware").glob("*/firmware.json")
    ]
    assert stamps == stamps[:1] * 3


def test_dask_is_imported_where_it_is_asked_for() -> None:
    """A night on this machine, with its workers, costs nobody its start."""
    code = (
        "import sys, harness.nightly.pool, harness.nightly.night, harness.cli.nightly\n"
        "print([m for m in ('distributed', 'fsspec') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
