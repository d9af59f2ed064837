"""Building and keeping firmware, on a project of one source file in the runner's place."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import pytest

from harness.config.loading import load_target
from harness.config.target import Qemu, Region, Target
from harness.core.errors import BuildError, InfraError, LinkError, UsageError
from harness.firmware.cache import described
from harness.firmware.source import RUNNER, Firmware, source_named
from harness.firmware.sources import bundled as build_plan
from harness.firmware.sources.bundled import build
from harness.firmware.step import LinkFailed, StepFailed
from harness.formats.elf_overlap import SectionsOverlap
from harness.sim.simulator import pick
from harness.system import paths, toolchain
from tests.firmware.sealed import load_firmware
from tests.formats.test_elf_overlap import linked

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(executor_runner LANGUAGES CXX)
file(APPEND "{log}" "configured\\n")
set(HIL_PORT "" CACHE STRING "")
set(HIL_SCHEMA_DIR "" CACHE PATH "")
set(HIL_KNOWN "0" CACHE STRING "")
option(BUILD_TESTING "" ON)
# Every runner is told how large its pools are.
message(DEBUG "${HIL_FILE_POOL_BYTES} ${HIL_METHOD_POOL_BYTES} ${HIL_TEMP_POOL_BYTES}")
if(HIL_KNOWN STREQUAL "bad")
  message(FATAL_ERROR "bad is not a value")
endif()
message(STATUS "${HIL_PORT} ${HIL_SCHEMA_DIR} ${BUILD_TESTING}")
add_executable(executor_runner main.cpp)
target_compile_definitions(executor_runner PRIVATE KNOWN=${HIL_KNOWN})
target_link_options(executor_runner PRIVATE -Wl,--build-id
  "-Wl,-Map=$<TARGET_FILE:executor_runner>.map")
"""
TARGET = """\
description: a test
marker: t
compile_target: cortex-m55
port: host
cpu: native
toolchain: gcc
limits: {host: 1, stall: 1}
simulators:
  auto: [host]
  host: {}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project root with a runner that returns KNOWN, and an empty cache."""
    root = tmp_path / "project"
    (root / "targets" / "runner").mkdir(parents=True)
    (root / "cmake").mkdir()
    (root / "cmake" / "x.cmake").write_text("")
    text = CMAKE.replace("{log}", str(tmp_path / "configured"))
    (root / "targets" / "runner" / "CMakeLists.txt").write_text(text)
    source(root, "int main() { return KNOWN; }\n")
    (root / "targets" / "t.yaml").write_text(TARGET)
    monkeypatch.setattr(paths, "data_root", lambda: root)
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    return root


def source(root: Path, text: str) -> None:
    (root / "targets" / "runner" / "main.cpp").write_text(text)


@pytest.fixture
def target(project: Path) -> Target:
    return load_target("t")


def configured(tmp_path: Path) -> int:
    """How often CMake was started."""
    log = tmp_path / "configured"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_built_once(target: Target, tmp_path: Path) -> None:
    """An equal key is the same firmware, without CMake; it can be loaded from its directory."""
    told: list[str] = []
    first = build(target, progress=told.append)
    assert subprocess.run([first.elf], check=False).returncode == 0
    assert first.map.is_file()
    assert len(first.build_id) == 40
    assert first.toolchain_id.startswith("g++ ")
    assert told[0] == "t: configuring the runner"
    assert build(target) == first == load_firmware(first.directory)
    assert configured(tmp_path) == 1
    assert not (first.directory / "build").exists()


def test_another_option_is_another_firmware(target: Target, tmp_path: Path) -> None:
    plain, other = build(target), build(target, options={"HIL_KNOWN": "7"})
    assert plain.key != other.key
    assert subprocess.run([other.elf], check=False).returncode == 7
    assert build(replace(target, cmake={"HIL_KNOWN": "7"})).key == other.key
    assert configured(tmp_path) == 2


def test_a_simulator_may_want_a_runner_of_its_own(target: Target, tmp_path: Path) -> None:
    """The options of the simulator that will run it are in the build, and in its key."""
    told = Qemu(executable="qemu-system-arm", machine="m", cmake={"HIL_KNOWN": "7"})
    settings = replace(target.simulators, qemu=told)
    both = replace(target, simulators=settings)
    native, other = pick(both, "host").target, pick(both, "qemu").target
    assert subprocess.run([build(native).elf], check=False).returncode == 0
    assert subprocess.run([build(other).elf], check=False).returncode == 7
    assert build(pick(both).target).key == build(native).key


def test_firmware_knows_the_memory_it_was_linked_for(tmp_path: Path) -> None:
    options = {"HIL_REGION_SRAM": "0x60000000:0x200000", "HIL_PORT": "cortex_m"}
    firmware = Firmware(tmp_path, "t", "k", "gcc", "id", "sha", 1.0, options)
    assert firmware.regions == (Region(name="SRAM", origin=0x60000000, size=0x200000),)


def test_regions_of_a_checkouts_elf_are_those_of_its_map(tmp_path: Path) -> None:
    whose = source_named("executorch")
    firmware = Firmware(tmp_path, "t", "k", "gcc", "id", "sha", 1.0, source=whose)
    firmware.map.write_text(
        "Discarded input sections\n\n.text 0x0 0x4 a.o\n\nMemory Configuration\n\n"
        "Name   Origin     Length     Attributes\n"
        "BROM   0x10000000 0x00008000 xr\n*default* 0x00000000 0xffffffff\n\n"
        "Linker script and memory map\n\n.text 0x10000000 0x10\n"
    )
    (region,) = firmware.regions
    assert (region.name, region.origin, region.size) == ("BROM", 0x10000000, 0x8000)
    firmware.map.write_text("nothing")
    with pytest.raises(UsageError, match="is not a map"):
        firmware.regions  # noqa: B018


@pytest.mark.parametrize("change", ["source", "new file", "cmake", "schema", "toolchain"])
def test_every_ingredient_is_in_the_key(
    target: Target, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Whatever decides the result changes the key; a file of an editor does not."""
    package = tmp_path / "executorch"
    (package / "schema").mkdir(parents=True)
    (package / "schema" / "program.fbs").write_text("table A {}")
    monkeypatch.setattr(build_plan, "executorch_package", lambda: package)
    before = build_plan.make_plan(target, {}).key()
    (project / "targets" / "runner" / ".main.cpp.swp").write_text("x")
    assert build_plan.make_plan(target, {}).key() == before
    if change == "source":
        source(project, "int main() { return 1; }\n")
    elif change == "new file":
        (project / "targets" / "runner" / "more.h").write_text("")
    elif change == "cmake":
        (project / "cmake" / "x.cmake").write_text("# changed")
    elif change == "schema":
        (package / "schema" / "program.fbs").write_text("table B {}")
    else:
        monkeypatch.setattr(toolchain, "toolchain_id", lambda _name: "g++ 99.0")
    assert build_plan.make_plan(target, {}).key() != before


@pytest.mark.parametrize("damage", ["stamp", "elf", "map", "half a stamp"])
def test_damaged_firmware_is_built_again(target: Target, tmp_path: Path, damage: str) -> None:
    """The stamp is written last: without it, or with another ELF than it names, nothing is
    reused. This is also what a killed build leaves."""
    first = build(target)
    if damage == "stamp":
        (first.directory / "firmware.json").unlink()
    elif damage == "elf":
        first.elf.write_bytes(first.elf.read_bytes()[:-1])
    elif damage == "map":
        first.map.unlink()
    else:
        (first.directory / "firmware.json").write_text(json.dumps({"key": first.key}))
    assert load_firmware(first.directory) is None
    again = build(target)
    assert again.build_id == first.build_id
    assert configured(tmp_path) == 2


def test_killed_build_is_not_reused(project: Path, target: Target, tmp_path: Path) -> None:
    """A process killed while it compiles: the next one builds from scratch, at once."""
    source(project, '#include "/dev/stdin"\nint main() { return KNOWN; }\n')
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    source(project, f'#include "{pipe}"\nint main() {{ return KNOWN; }}\n')  # waits for ever
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(project)])
    with opened_by_compiler(pipe, child):
        child.send_signal(signal.SIGKILL)
        child.wait()
        (directory,) = (p for p in paths.cache_dir("firmware").iterdir() if p.is_dir())
        assert load_firmware(directory) is None
    source(project, "int main() { return KNOWN; }\n")
    assert build(target).elf.is_file()


def opened_by_compiler(pipe: Path, child: subprocess.Popen[bytes]) -> TextIO:
    """Our end of the pipe as soon as there is the other one, or a failure if there never is."""
    while True:
        try:
            return open(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "w")
        except OSError as error:
            if error.errno != errno.ENXIO or child.poll() is not None:  # it will never be there
                raise
            time.sleep(0.02)


CHILD = """
import sys
from pathlib import Path
from harness.system import paths
paths.data_root = lambda: Path(sys.argv[1])
from harness.firmware.sources.bundled import build
from harness.sim.simulator import pick
from harness.config.loading import load_target
print(build(load_target("t")).build_id)
"""


def test_several_processes_build_once(project: Path, tmp_path: Path) -> None:
    """As under ``pytest -n 4``: one builds, the others wait and take the result."""
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, str(project)], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    said = {child.communicate()[0] for child in children}
    assert [child.returncode for child in children] == [0] * 4
    assert len(said) == 1
    assert configured(tmp_path) == 1


def test_compile_error(project: Path, target: Target) -> None:
    source(project, "int main() { return nothing; }\n")
    with pytest.raises(StepFailed, match=r"main\.cpp:1:\d+: error: .nothing. was not decl") as e:
        build(target)
    assert not isinstance(e.value, LinkError)
    assert e.value.verdict == "BUILD_ERROR"
    assert "error: " in Path(e.value.log).read_text()


def test_link_error(project: Path, target: Target) -> None:
    source(project, "int absent(); int main() { return absent() + KNOWN; }\n")
    with pytest.raises(LinkFailed) as caught:
        build(target)
    assert caught.value.verdict == "LINK_ERROR"
    assert caught.value.failures
    assert "undefined reference to `absent()'" in Path(caught.value.log).read_text()


def test_configure_error(target: Target) -> None:
    with pytest.raises(StepFailed, match=r"CMake Error at .*bad is not a value") as caught:
        build(target, options={"HIL_KNOWN": "bad"})
    assert caught.value.step == "configure"


def test_misspelt_option(target: Target) -> None:
    """CMake only warns of an option that nothing reads; here it is an error."""
    with pytest.raises(BuildError, match="has no option HIL_KNOWNN") as caught:
        build(target, options={"HIL_KNOWNN": "1"})
    assert caught.value.unused == ("HIL_KNOWNN",)


@pytest.mark.parametrize("option", [("A B", "1"), ("A", "1;2"), ("A", "1\n2"), ("-DA", "1")])
def test_option_that_is_none(target: Target, option: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="not a build option"):
        build(target, options=dict([option]))


def test_no_build_id(project: Path, target: Target) -> None:
    """Without it a console could not be tied to the firmware that wrote it."""
    file = project / "targets" / "runner" / "CMakeLists.txt"
    file.write_text(file.read_text().replace("--build-id", "--build-id=none"))
    with pytest.raises(BuildError, match="has no build id"):
        build(target)


def test_source_changed_meanwhile(project: Path, target: Target) -> None:
    """The key must be that of what was compiled."""

    def meddle(_message: str) -> None:
        (project / "cmake" / "new.cmake").write_text("")

    with pytest.raises(InfraError, match="the harness changed while its runner was built"):
        build(target, progress=meddle)


def test_disk_full(project: Path, target: Target) -> None:
    """Said by the compiler: infrastructure, not the runner's fault."""
    source(project, "#error No space left on device\n")
    with pytest.raises(InfraError, match="No space left on device while the runner") as caught:
        build(target)
    assert caught.value.kind == "disk_full"


def test_unusable_cache(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "file"))
    with pytest.raises(InfraError, match="building the runner: Not a directory"):
        build(target)


def test_environment_cannot_change_the_result(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiler flags of the caller are not in the key, so they must not reach the compiler."""
    monkeypatch.setenv("CXXFLAGS", "-DKNOWN=5 --no-such-flag")
    monkeypatch.setenv("LDFLAGS", "--no-such-flag")
    assert isinstance(build(target), Firmware)


def test_firmware_that_overwrites_itself_is_not_kept(tmp_path: Path) -> None:
    linked(tmp_path, ram="0x31000000").rename(tmp_path / RUNNER)
    with pytest.raises(SectionsOverlap, match=r"\.data .* lies over \.text"):
        described(tmp_path, "corstone-300-m55", "gcc", {}, build_id="")
