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
from typing import Any

import pytest

from tests.cli.conftest import Hil, Result
from tests.nightly.cluster import Farm, farm, until
from tests.nightly.sshd import some_store

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
            "nightly", place / "suite.yaml", "--history", f"sqlite:///{place}/h.db",
            *map(str, words), **environment,
        )  # fmt: skip

    return call


@pytest.fixture
def own_farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    with farm(tmp_path_factory.mktemp("farm")) as made:
        yield made


def rows(place: Path, hil: Hil) -> list[dict[str, Any]]:
    file = place / "out.jsonl"
    file.unlink(missing_ok=True)
    assert hil("history", "export", file, "--history", f"sqlite:///{place}/h.db").code == 0
    said = [json.loads(line) for line in file.read_text().splitlines()]
    return [one["row"] for one in said if "row" in one]


def test_a_key_is_exported_and_built_once_among_two_machines(
    own_farm: Farm, night: Night, place: Path
) -> None:
    """Both are given a case of that key at the same time, with nothing anywhere. Only who exports
    has torch in its memory, and a second build would have taken another time."""
    two = [own_farm.worker("a"), own_farm.worker("b")]
    said = night("--scheduler", own_farm.url, "--store", place / "store", "--json")
    assert said.code == 0, said
    assert {case["verdict"] for case in said.json["cases"]} == {"PASS"}
    assert sorted(one.has_mapped("libtorch_cpu") for one in two) == [False, True]
    stamps = [file.read_text() for one in two
              for file in (one.home / "cache" / "firmware").glob("*/firmware.json")]  # fmt: skip
    assert len(stamps) == 2
    assert stamps[0] == stamps[1]


def test_a_worker_that_is_killed_in_a_case(
    own_farm: Farm, night: Night, place: Path, hil: Hil, shared_hil_home: str
) -> None:
    """With a store, over SFTP where there is a server, that a night on one machine has filled. The
    simulator of one worker never ends, until the worker is killed; the case is run again by the
    other."""
    with some_store(place) as (store, home):
        filling = night("--store", store, "-j", 1, **home)
        assert filling.code == 0, filling
        slow = place / "bin" / "qemu-system-arm"
        slow.parent.mkdir()
        slow.write_text(SLOW.format(real=shutil.which("qemu-system-arm")))
        slow.chmod(0o755)
        doomed = own_farm.worker(
            "doomed", PATH=f"{slow.parent}{os.pathsep}{os.environ['PATH']}", **home
        )
        own_farm.worker("other", **home)
        running = subprocess.Popen(
            [sys.executable, "-m", "harness", "nightly", str(place / "suite.yaml"), "--json",
             "--history", f"sqlite:///{place}/h.db", "--scheduler", own_farm.url,
             "--store", store, "--night", "killed"],
            env={**os.environ, "HIL_HOME": shared_hil_home, **home},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        until(lambda: list((doomed.home / "runs").glob("*/console.log")))
        doomed.kill()
        answer = json.loads(running.communicate(timeout=300)[0])
    assert running.returncode == 0, answer
    assert {case["verdict"] for case in answer["cases"]} == {"PASS"}
    mine = sorted((r["case"], r["attempt"], r["verdict"], (r["cause"] or {}).get("kind"))
                  for r in rows(place, hil) if r["night"] == "killed")  # fmt: skip
    (lost,) = {row[0] for row in mine if row[1] == 2}
    (kept,) = {row[0] for row in mine} - {lost}
    assert mine == sorted([
        (lost, 1, "INFRA", "worker_lost"), (lost, 2, "PASS", None), (kept, 1, "PASS", None),
    ])  # fmt: skip
    assert not any(one.has_mapped("libtorch_cpu") for one in own_farm.members[-1:])


def test_dask_is_imported_where_it_is_asked_for() -> None:
    """A night on this machine, with its workers, costs nobody its start."""
    code = (
        "import sys, harness.nightly.pool, harness.nightly.night, harness.cli.nightly\n"
        "print([m for m in ('distributed', 'fsspec', 'paramiko') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
