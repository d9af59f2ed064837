"""Protects what is built from a checkout: the right program, after kills and collisions, without a
byte written to the user's folders, and errors that name the user's files."""

from __future__ import annotations

import os
import random
import re
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from harness.config.loading import load_target
from harness.core.errors import BuildError, LinkError, ToolMissing
from harness.core.simulator_name import SimulatorName
from harness.firmware.checkout import find_checkout, specs
from harness.firmware.source import BuildRequest, Firmware, source_named
from harness.firmware.step import LinkFailed, StepFailed
from harness.formats.elf import read_elf
from harness.sim.simulator import pick
from harness.system import paths
from tests.firmware.executorch import builder
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.products import (
    M55,
    U55,
    U85,
    built,
    compiled,
    mark,
    marked,
    stack_limit,
)
from tests.firmware.executorch.small import CHECKS, KERNEL, edit, git, sdk_platform
from tests.firmware.sealed import load_firmware
from tests.thorough import amount, cases

Home = Callable[[str], Path]

pytestmark = pytest.mark.usefixtures("home")


# --- What comes out --------------------------------------------------------------------------


QEMU_MEMORY = (
    (0x10000000, 0x80000),
    (0x11000000, 0x200000),
    (0x30000000, 0x80000),
    (0x31000000, 0x400000),
    (0x70000000, 0x10000000),
)


def segments(firmware: Firmware) -> list[tuple[int, int]]:
    """Address and size of what is loaded."""
    found = read_elf(firmware.elf).segments
    return [(one.load, one.size) for one in found if one.size]


def assert_in_qemus_memory(firmware: Firmware) -> None:
    """A Corstone-320 has other memory, and so has its linker script."""
    for address, size in segments(firmware):
        assert any(a <= address and address + size <= a + n for a, n in QEMU_MEMORY), hex(address)


Snapshot = dict[str, tuple[int, int, int]]


def snapshot(folder: Path) -> tuple[Snapshot, str, bytes]:
    """Names, sizes and times of all files and folders, what git says of them, and its index."""
    files: Snapshot = {}
    for path in (folder, *folder.rglob("*")):
        found = path.lstat()
        size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
        files[str(path)] = (found.st_mode, size, found.st_mtime_ns)
    git_folder = git(folder, "rev-parse", "--absolute-git-dir")
    index = (Path(git_folder) / "index").read_bytes()
    said = git(folder, "--no-optional-locks", "status", "--porcelain", "--ignored")
    return files, said, index


@pytest.mark.parametrize("target", cases(M55, U85, thorough=[U55]))
def test_a_checkouts_runner(source: Source, target: str) -> None:
    """Nothing is written to the user's folders."""
    folders = [source.root, *(part.folder for part in source.find().parts.values())]
    folders = [folder for folder in folders if (folder / ".git").exists()]
    before = [snapshot(folder) for folder in folders]
    told: list[str] = []
    firmware = built(source, target, told.append)
    for folder, then in zip(folders, before, strict=True):
        for was, now in zip(then, snapshot(folder), strict=True):
            assert now == was, folder
    commit = source.find().revision.commit
    assert told[0] == f"{target} (ExecuTorch {commit[:8]}): configuring the runner"
    assert re.search(r"building the runner (\d+)/\1$", told[-2])
    assert told[-1].endswith("the runner is built")
    assert (firmware.source, firmware.target) == (source_named("executorch"), target)
    assert firmware.checkout is not None
    assert firmware.checkout.commit == commit
    assert firmware.checkout.platform == "hil"
    assert firmware.map.is_file()
    names = {symbol.name for symbol in read_elf(firmware.elf).symbols}
    assert {"main", "_start", "Reset_Handler", "ethosu_invoke_v3"} <= names
    assert ("ethosu_init" in names) == (target != M55), "its NPU, if it has one, is initialised"
    if target == U85:
        assert_in_qemus_memory(firmware)
    del told[:]
    again = built(source, target, told.append)
    assert (again, told) == (firmware, [])
    assert load_firmware(firmware.directory) == firmware


def test_firmware_of_a_checkout_elsewhere_says_where(read_only: Source) -> None:
    """The program is the same; the record names the checkout that was asked for."""
    first = built(read_only)
    assert not any("two values" in note for note in noted(first))
    git(read_only.folder, "clone", "-q", str(read_only.root), "clone")
    clone = Source(read_only.folder / "clone", read_only.parts, read_only.folder)
    git(clone.root, "checkout", "-q", "-b", "mine")
    other = built(clone)
    assert other.key == first.key
    assert other.checkout is not None
    assert (other.checkout.path, other.checkout.branch) == (str(clone.root), "mine")

    shutil.rmtree(clone.root / ".git")  # as an archive of it, whose content is its name
    other = built(clone)
    assert other.checkout is not None
    assert other.checkout.short.startswith("content ")
    assert other.key != first.key
    sizes = [[s[:6] for s in read_elf(each.elf).sections if s.allocated] for each in (first, other)]
    assert sizes[0] == sizes[1]


# --- Errors of the checkout ------------------------------------------------------------------


def test_a_compile_error_names_the_users_file(small: Source) -> None:
    kernel = small.root / KERNEL
    line = len(kernel.read_text().splitlines()) + 1
    with kernel.open("a") as file:
        file.write("int broken() { return nothing; }\n")
    with pytest.raises(StepFailed, match=rf"^{kernel}:{line}:\d+: error: 'nothing' was not") as e:
        built(small)
    assert isinstance(e.value, BuildError)
    assert not isinstance(e.value, LinkError)
    edit(kernel, "nothing", "1")
    built(small)
    assert compiled(small)[-1] != "", "it went on with what was compiled already"
    assert len(compiled(small)) < 60


def test_a_compile_error_in_a_part_names_the_users_file(small: Source) -> None:
    header = small.parts["cmsis-nn"] / "Include" / "kernels" / "requantize.h"
    edit(header, "namespace hil {", "namespace hil {\nint broken = nothing;")
    with pytest.raises(StepFailed, match=rf"^{header}:\d+:\d+: error: 'nothing' was not"):
        built(small)


def test_a_link_error_is_one(small: Source) -> None:
    edit(small.root / KERNEL, "namespace hil {", "int absent();\nnamespace hil {")
    edit(small.root / KERNEL, "HIL_TRY(check_numbers(ctx, n));", "if (absent()) return Error::Ok;")
    with pytest.raises(LinkFailed, match=r"op_quantized_add\.cpp") as caught:
        built(small)
    assert caught.value.verdict == "LINK_ERROR"
    assert "absent()" in str(caught.value.failures)


def test_a_configure_error_is_the_checkouts(small: Source) -> None:
    file = small.root / "backends" / "cortex_m" / "CMakeLists.txt"
    edit(file, "add_library(cortex_m_h", "message(FATAL_ERROR broken)\nadd_library(cortex_m_h")
    with pytest.raises(StepFailed, match=r"CMake Error at .*broken") as caught:
        built(small)
    assert caught.value.step == "configure"
    git(small.root, "checkout", "-q", ".")
    built(small)


def test_without_libstdcxx_nothing_is_built(
    read_only: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundled runner needs its headers only, ExecuTorch's links it: its package is named before
    a build of minutes."""
    compiler = tmp_path / "bin" / "arm-none-eabi-g++"
    compiler.parent.mkdir()
    real = shutil.which(compiler.name)
    bare = '[ "$1" = -print-file-name=libstdc++.a ] && { echo libstdc++.a; exit; }'
    compiler.write_text(f'#!/bin/sh\n{bare}\nexec {real} "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent), prepend=os.pathsep)
    monkeypatch.setenv("HIL_NO_SYSTEM_PACKAGES", "1")
    told: list[str] = []
    with pytest.raises(ToolMissing, match=r"has no libstdc\+\+\.a") as caught:
        built(read_only, M55, told.append)
    assert "libstdc++-arm-none-eabi-newlib" in str(caught.value.hint)
    assert not told


def test_a_build_without_its_products(small: Source) -> None:
    edit(
        small.root / "examples/arm/executor_runner/CMakeLists.txt",
        "-Xlinker -Map=arm_executor_runner.map",
        "",
    )
    with pytest.raises(BuildError, match=r"ended well but left no arm_executor_runner\.map"):
        built(small)
    assert not any(paths.cache_dir("firmware").glob("*/firmware.json"))


# --- Killed, and at the same time ------------------------------------------------------------


def reference(small: Source, home: Home) -> Firmware:
    """What a build that nobody disturbs gives."""
    home("undisturbed")
    firmware = built(small)
    home("hil")
    return firmware


@pytest.mark.parametrize("seed", cases(0, thorough=[1]))
def test_a_build_killed_at_any_moment(small: Source, home: Home, seed: int) -> None:
    """It is never taken for a whole one, and the next build succeeds."""
    randomness = random.Random(seed)
    print("seed", seed)
    began = time.monotonic()
    wanted = reference(small, home)
    whole = time.monotonic() - began
    for attempt in range(amount(2, 3)):
        moment = randomness.uniform(0, whole)
        print("killed after", moment, "of", whole)
        mark(small.root / CHECKS, f"x{seed}{attempt}")
        process = builder.start(small)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(moment)
        except TimeoutExpired:
            process.kill()
        process.communicate()
        for stamp in paths.cache_dir("firmware").glob("*/firmware.json"):
            assert load_firmware(stamp.parent) is not None, "a stamp is of a whole firmware"
    after = built(small)
    assert after.key != wanted.key
    git(small.root, "checkout", "-q", ".")
    assert built(small).elf_sha256 == wanted.elf_sha256


def test_two_processes_on_one_checkout(read_only: Source) -> None:
    """One builds, the other waits and takes the result."""
    found = [builder.finish(process) for process in [builder.start(read_only) for _ in range(2)]]
    assert len({(one["key"], one["sha256"]) for one in found}) == 1
    configured = [one for one in found if any("configuring" in line for line in one["told"])]
    assert len(configured) == 1
    assert sum("waiting" in line for one in found for line in one["told"]) <= 1


@pytest.mark.thorough
def test_two_processes_on_equal_checkouts(small: Source) -> None:
    """Two trees, one key: both come out, and neither breaks what the other puts there."""
    git(small.folder, "clone", "-q", str(small.root), "clone")
    clone = Source(small.folder / "clone", small.parts, small.folder)
    keys = set()
    for _ in range(2):
        processes = [builder.start(source) for source in (small, clone)]
        found = [builder.finish(process) for process in processes]
        keys.add(found[0]["key"])
        assert [one["root"] for one in found] == [str(small.root), str(clone.root)]
        assert len({one["key"] for one in found}) == 1
        for source in (small, clone):
            mark(source.root / KERNEL, "more")
    assert {path.name for path in paths.cache_dir("firmware").iterdir() if path.is_dir()} == keys


@pytest.mark.thorough
def test_a_second_harness_in_another_place(small: Source, home: Home) -> None:
    """Two state directories on one checkout at the same time."""
    processes = []
    for name in ("one", "two"):
        home(name)
        processes.append(builder.start(small))
    found = [builder.finish(process) for process in processes]
    assert found[0]["key"] == found[1]["key"]


# --- Other boards ----------------------------------------------------------------------------


def test_a_script_without_a_region_to_be_moved(small: Source) -> None:
    script = small.root / "examples/arm/executor_runner/Corstone-320.ld"
    text = script.read_text()
    for region in ("BROM", "ITCM", "BRAM")[: amount(1, 3)]:
        script.write_text(re.sub(rf"\b{region}\b", f"MY{region}", text))
        with pytest.raises(StepFailed, match=f"has no memory region {region}: a board"):
            built(small, U85)


def test_a_program_without_a_script(small: Source) -> None:
    cmake = small.root / "examples/arm/executor_runner/CMakeLists.txt"
    edit(cmake, 'target_link_options(arm_executor_runner PRIVATE "-T" "${script}")', "")
    with pytest.raises(StepFailed, match="linked without -T: its linker script is not known"):
        built(small, U85)


@pytest.mark.thorough
def test_an_edited_script_of_a_320(small: Source) -> None:
    """It is read when the build is configured, and moved again."""
    before = built(small, U85)
    script = small.root / "examples/arm/executor_runner/Corstone-320.ld"
    edit(script, "#define STACK_SIZE 0x5000", "#define STACK_SIZE 0x4000")
    after = built(small, U85)
    assert stack_limit(after) == stack_limit(before) + 0x1000
    assert_in_qemus_memory(after)


def test_an_fvps_runner_is_started_by_the_sdk(read_only: Source) -> None:
    """Linked where the checkout says, with the whole of the SDK beside its platform."""
    platform = sdk_platform(read_only.folder / "sdk")
    target = pick(load_target(U85), "fvp").target
    checkout = find_checkout(read_only.root, {**read_only.parts, "core_platform": platform})
    firmware = source_named("executorch").build(BuildRequest(target, SimulatorName.FVP, checkout))
    assert firmware.checkout is not None
    assert firmware.checkout.platform == "sdk"
    assert any(address == 0x12000000 for address, _ in segments(firmware))
    edit(platform / "targets" / "common" / "fault.cpp", "Hard fault.", "Fault.     ")
    again = find_checkout(read_only.root, {**read_only.parts, "core_platform": platform})
    assert marked(
        source_named("executorch").build(BuildRequest(target, SimulatorName.FVP, again)),
        "Fault.     ",
    )


def test_parts_of_the_checkout_itself(small: Source) -> None:
    """Nothing given: submodules and the SDK are where ExecuTorch's scripts put them."""
    for name, place in small.parts.items():
        where = small.root / specs()[name].place
        if where.is_dir():
            where.rmdir()
        git(small.folder, "clone", "-q", str(place), str(where))
    inside = Source(small.root, {}, small.folder)
    assert built(inside).elf.name == "executor_runner"


def test_two_values_of_a_definition_are_reported(small: Source) -> None:
    """A compiler only warns; the record has to say it, and from the cache no less."""
    definition = "target_compile_definitions(ethosu_target_common INTERFACE ETHOSU_ARENA=9)\n"
    with (small.root / "examples/arm/executor_runner/CMakeLists.txt").open("a") as file:
        file.write(definition)
    for _ in range(2):
        (note,) = (note for note in noted(built(small)) if "two values" in note)
        assert note == "ETHOSU_ARENA has two values: the platform's 1, and 9"


def test_a_runner_that_counts_cycles_without_asking_for_a_counter(small: Source) -> None:
    """ExecuTorch's, up to v1.3.1."""
    runner = small.root / "examples/arm/executor_runner/arm_executor_runner.cpp"
    with runner.open("a") as file:
        file.write("extern void et_pal_init() { ARM_PMU_Enable(); }\n")
    built(small)
    with runner.open("a") as file:
        file.write("#if !defined(__PMU_PRESENT)\n#endif\n")
    with pytest.raises(BuildError, match="ARM_PMU_Enable"):
        built(small)


def test_edited_files_are_named_and_those_that_the_program_lacks(small: Source) -> None:
    with (small.root / CHECKS).open("a") as file:
        file.write("// edited\n")
    (small.root / CHECKS).with_name("op_unused.cpp").write_text("int unused() { return 1; }\n")
    firmware = built(small)
    assert firmware.checkout is not None
    new = "backends/cortex_m/ops/op_unused.cpp"
    assert firmware.checkout.edited == (str(CHECKS), new)
    assert f"edited: {CHECKS}, {new}; not in this ELF: {new}" in noted(firmware)


def noted(firmware: Firmware) -> tuple[str, ...]:
    assert firmware.checkout is not None
    return firmware.checkout.notes
