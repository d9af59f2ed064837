"""A command of a build is bounded and leaves its log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.core.errors import InfraError
from harness.firmware import step
from harness.firmware.step import StepFailed, build_with_cmake, run_step
from harness.system.progress import silent
from tests.processes import ends


def script(tmp_path: Path, text: str, *, places: dict[str, str] | None = None) -> list[str]:
    """Run a shell script as a step "build" and give what was told meanwhile."""
    told: list[str] = []
    run_step("build", ("sh", "-c", text), tmp_path, "t", told.append, {"MARK": "here"}, places)
    return told


def test_a_step_leaves_its_log_and_tells_how_far_it_is(tmp_path: Path) -> None:
    told = script(tmp_path, "echo '[1/3] Building x'; echo '[2/3] Building y' >&2; echo $MARK")
    assert told[-2:] == ["t: building the runner 2/3", "t: the runner is built"]
    assert (tmp_path / "build.log").read_text().split("\n")[2] == "here"


def test_a_step_has_only_the_environment_that_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXXFLAGS", "-DSURPRISE")
    script(tmp_path, "env")
    names = {line.partition("=")[0] for line in (tmp_path / "build.log").read_text().splitlines()}
    assert "CXXFLAGS" not in names
    assert {"PATH", "LC_ALL", "MARK"} <= names


def test_a_step_that_fails_names_the_users_files(tmp_path: Path) -> None:
    said = "echo ../link/a/x.cpp:3:1: error: no such thing; exit 1"
    with pytest.raises(StepFailed, match=r"^\.\./link/a/x\.cpp:3:1: error: no such thing"):
        script(tmp_path, said)
    with pytest.raises(StepFailed, match=r"^/home/me/a/x\.cpp:3:1: error: no such") as caught:
        script(tmp_path, said, places={"../link": "/home/me"})
    assert (caught.value.step, caught.value.status) == ("build", 1)
    assert caught.value.log == str(tmp_path / "build.log")


def test_a_step_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that it has started."""
    monkeypatch.setattr(step, "_SILENT_SECONDS", 0.3)
    with pytest.raises(InfraError, match="the build step was stopped: stall"):
        script(tmp_path, "sleep 60 & echo $! > child; wait")
    assert ends(int((tmp_path / "child").read_text()))


def test_a_step_ends_with_whoever_started_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from harness.firmware.step import run_step\n"
        "run_step('build', ('sh', '-c', 'echo $$ > pid; exec sleep 60'), Path(sys.argv[1]),"
        " 't', print)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    while not (pid := tmp_path / "pid").is_file() or not pid.read_text().strip():
        assert child.poll() is None
    started = int(pid.read_text())
    child.kill()
    child.wait()
    assert ends(started)


_PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(small C)
add_executable(executor_runner main.c)
target_compile_options(executor_runner PRIVATE -g
  "-ffile-prefix-map=${CMAKE_BINARY_DIR}=build" "-ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}=.")
target_link_options(executor_runner PRIVATE -Wl,-Map,executor_runner.map)
"""


def test_a_cache_behind_a_link_makes_the_same_program(tmp_path: Path) -> None:
    """Homes may share a cache by a link; no folder of the machine is left in the program."""
    (source := tmp_path / "source").mkdir()
    (source / "CMakeLists.txt").write_text(_PROJECT)
    (source / "main.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (directory := tmp_path / "link" / "key").mkdir()
    build_with_cmake(source, directory, {}, "small", silent)
    assert str(tmp_path).encode() not in (directory / "executor_runner").read_bytes()
