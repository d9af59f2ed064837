"""Protects the build tree that stays: after an edit only what depends on it is built, an edit that
ninja cannot see by its time is a build from nothing, and so is another Zephyr. In the small
workspace, and in the one that $ZEPHYR_BASE names."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.firmware.sources.bundled import in_kconfig
from harness.firmware.step import StepFailed
from harness.firmware.zephyr.west import WestJob, build_in_tree
from harness.firmware.zephyr.workspace import find_workspace
from tests.link.workspace import REAL, enter, needs_real_zephyr

_LISTS = """\
cmake_minimum_required(VERSION 3.20)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(two_files)
target_sources(app PRIVATE main.c other.c)
"""


@pytest.fixture(scope="module", params=["small", pytest.param("real", marks=needs_real_zephyr)])
def base(request: pytest.FixtureRequest, small_zephyr: Path) -> Path:
    return Path(str(REAL)) if request.param == "real" else small_zephyr


@pytest.fixture
def job(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WestJob:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    if str(base) != REAL:
        enter(base, monkeypatch)
    application = tmp_path / "application"
    application.mkdir()
    for name, text in {
        "CMakeLists.txt": _LISTS,
        "prj.conf": "",
        "main.c": "int other(void);\nint main(void) { return other(); }\n",
        "other.c": "int other(void) { return 1; }\n",
    }.items():
        (application / name).write_text(text)
    workspace = find_workspace("mps3/corstone300/an547")
    job = WestJob(workspace, application, {}, sorted(application.iterdir()))
    job.place.mkdir(parents=True)
    return job


def _said(job: WestJob) -> str:
    build_in_tree(job, "t", lambda _message: None)
    return (job.place / "build.log").read_text()


def test_after_an_edit_only_what_depends_on_it_is_built(job: WestJob) -> None:
    assert "Board: " in _said(job)  # west configured
    source = job.application / "other.c"
    times = source.stat()
    source.write_text("int other(void) { return 2; }\n")
    said = _said(job)
    assert "Board: " not in said
    assert "Building C object CMakeFiles/app.dir/other.c.obj" in said
    assert "Building C object CMakeFiles/app.dir/main.c.obj" not in said
    # put in place with its old time: ninja would take it for unchanged
    source.write_text("int other(void) { return 3; }\n")
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    said = _said(job)
    assert "Board: " in said
    assert "other.c.obj" in said


def test_a_failed_build_is_gone_on_with(job: WestJob) -> None:
    source = job.application / "other.c"
    good = source.read_text()
    source.write_text("int other(void) { return wrong; }\n")
    with pytest.raises(StepFailed, match="wrong"):
        _said(job)
    source.write_text(good)
    assert "Board: " not in _said(job)
    (job.place / "settled.json").unlink()  # as a killed build leaves it
    assert "Board: " in _said(job)
    other = replace(job, workspace=replace(job.workspace, identity="another"))
    assert other.place == job.place
    assert "Board: " in _said(other)


def test_the_npu_is_kconfigs() -> None:
    """With the symbols of targets/runner/ports/zephyr/module/Kconfig; none where there is none."""
    options = {
        "HIL_ETHOSU": "ON",
        "HIL_ETHOSU_DRIVER": "doorbell",
        "HIL_ETHOSU_BASE": "0x1",
        "HIL_ETHOSU_FAST_SCRATCH_BYTES": "64",
        "HIL_PORT": "zephyr",
    }
    assert in_kconfig(options) == {
        "HIL_PORT": "zephyr",
        "CONFIG_HIL_ETHOSU": "y",
        "CONFIG_HIL_ETHOSU_DOORBELL": "y",
        "CONFIG_HIL_ETHOSU_FAST_SCRATCH_BYTES": "64",
    }
    assert in_kconfig({**options, "HIL_ETHOSU_DRIVER": "registers"}) == {
        "HIL_PORT": "zephyr",
        "CONFIG_HIL_ETHOSU": "y",
        "CONFIG_HIL_ETHOSU_FAST_SCRATCH_BYTES": "64",
    }
    assert in_kconfig({"HIL_PORT": "zephyr"}) == {"HIL_PORT": "zephyr"}
