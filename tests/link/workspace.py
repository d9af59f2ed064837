"""A west workspace in a temporary directory, made from tests/link/zephyr_standin without a
network: its repositories are local ones. And the real one that $ZEPHYR_BASE may name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.link.plants import _FILES, _SETTINGS, Plant, Project

REAL = os.environ.get("ZEPHYR_BASE")
WITHOUT_REAL = "$ZEPHYR_BASE is not set: only the small workspace of tests/link was built in"
needs_real_zephyr = pytest.mark.skipif(REAL is None, reason=WITHOUT_REAL)
STANDIN = Path(__file__).parent / "zephyr_standin"
BOARD = "mps3/corstone300/fvp"
WEST = str(Path(sys.executable).with_name("west"))
_GIT = [
    "git",
    "-c",
    "user.name=t",
    "-c",
    "user.email=t@example.invalid",
    "-c",
    "commit.gpgsign=false",
]
_CMAKE = """\
cmake_minimum_required(VERSION 3.20)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(planted)
target_sources(app PRIVATE ${APP})
zephyr_library_named(sensors)
zephyr_library_sources(sensor.c)
add_library(core STATIC core.c)
add_library(kernels STATIC add.c mul.c)
add_library(backend STATIC ${BACKEND})
foreach(each core kernels backend)
  target_link_libraries(${each} PRIVATE zephyr_interface)
endforeach()
zephyr_link_libraries(${LIBS})
"""


def make_workspace(root: Path) -> Path:
    """`west init` and `west update`; the path of its zephyr repository."""
    origin, manifest = root / "origin", root / "ws" / "manifest"
    shutil.copytree(STANDIN / "zephyr", origin)
    _commit(origin)
    manifest.mkdir(parents=True)
    text = (STANDIN / "manifest" / "west.yml.in").read_text()
    (manifest / "west.yml").write_text(text.replace("@ZEPHYR@", str(origin)))
    _commit(manifest)
    for words in (["init", "-l", str(manifest)], ["update"]):
        subprocess.run(
            [WEST, *words], cwd=root / "ws", env=_environment(root), check=True, capture_output=True
        )
    return root / "ws" / "zephyr"


def copy_workspace(zephyr: Path, root: Path) -> Path:
    """Another workspace with the same content, to be changed; the path of its zephyr repository."""
    shutil.copytree(zephyr.parent, root / "ws", symlinks=True)
    return root / "ws" / zephyr.name


def enter(zephyr: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small workspace for ``hil``, with the west whose Python has kconfiglib; that of a real
    one, which may be first in PATH, need not."""
    monkeypatch.setenv("ZEPHYR_BASE", str(zephyr))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(WEST).parent), os.environ["PATH"]]))


def _environment(root: Path) -> dict[str, str]:
    """The user's own configurations of git and west must not matter, nor a workspace of theirs."""
    around = {name: value for name, value in os.environ.items() if name != "ZEPHYR_BASE"}
    return {**around, "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "file"}


def _commit(repository: Path) -> None:
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*_GIT, *words], cwd=repository, check=True, capture_output=True)


@dataclass(frozen=True)
class ZephyrProject(Project):
    """A plant as an application of the workspace, built by `west build`."""

    workspace: Path

    def configure_and_build(self, *, fixed: bool) -> subprocess.CompletedProcess[str]:
        plant = self.plant
        files = {**_FILES, **plant.wrong, **(plant.right if fixed else {})}
        del files["runner.ld"]
        settings = {**_SETTINGS, **plant.settings, **(plant.right_settings if fixed else {})}
        lists = _CMAKE + (_SNIPPET if "runner.ld" in plant.right and fixed else "")
        for name in ("APP", "BACKEND", "LIBS"):
            lists = lists.replace("${" + name + "}", settings[name])
        files |= {"CMakeLists.txt": lists, "model.ld": _MODEL_LD, "sensor.c": "int sensor;\n"}
        self._write({name: text.replace("200000", "700000") for name, text in files.items()})
        self._prebuilt(fixed)
        done = subprocess.run(
            [WEST, "build", "-b", BOARD, "-d", str(self.build), str(self.source)],
            env={**os.environ, "ZEPHYR_BASE": str(self.workspace)},
            cwd=self.workspace,
            capture_output=True,
            text=True,
            check=False,
        )
        self._clean()
        return done


_SNIPPET = "zephyr_linker_sources(SECTIONS model.ld)\n"
_MODEL_LD = "network_model_sec : { *(network_model_sec) } >DDR\n"


def in_zephyr(plant: Plant) -> Plant:
    """What is said otherwise there: more room, so a larger model."""
    words = tuple(w.replace("200000", "700000") for w in plant.in_cause)
    return Plant(**{**vars(plant), "in_cause": words})
