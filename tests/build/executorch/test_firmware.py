"""Protects what is built from a checkout: the right program for the sources as they are, after any
kind of edit, kill and collision, without a byte written to the user's folders."""

from __future__ import annotations

import os
import random
import re
import shutil
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from harness.build.executorch import firmware as checkout_firmware
from harness.build.executorch.checkout import find_checkout
from harness.build.executorch.firmware import RUNNER, CheckoutChanged, build_checkout
from harness.build.executorch.parts import SPECS
from harness.build.firmware import Firmware, load_firmware
from harness.build.log import LinkFailed, StepFailed
from harness.build.source import FirmwareSource
from harness.errors import BuildError, LinkError
from harness.formats.elf import read_elf
from harness.simulate.pick import pick
from harness.system import paths, toolchain
from harness.system.progress import Progress, silent
from harness.target.loading import load_target
from harness.target.model import SimulatorName
from tests.build.executorch import builder
from tests.build.executorch.conftest import Source
from tests.build.executorch.small import KERNEL, OPS, PORTABLE, commit, edit, git, sdk_platform

M55, U55, U85 = "corstone-300-m55", "corstone-300-u55-128", "corstone-320-u85-256"
Home = Callable[[str], Path]

pytestmark = pytest.mark.usefixtures("home")


def built(source: Source, target: str = M55, progress: Progress = silent) -> Firmware:
    chosen = pick(load_target(target), "qemu").target
    return build_checkout(chosen, SimulatorName.QEMU, source.find(), progress=progress)


def tree(source: Source, target: str = M55) -> Path:
    return paths.cache_dir("executorch") / source.plan(target).tree()


def compiled(source: Source, target: str = M55) -> list[str]:
    """The sources that the last build compiled."""
    log = (tree(source, target) / "build.log").read_text()
    found = re.findall(r"^\[\d+/\d+\] Building \w+ object (\S+)", log, re.MULTILINE)
    return sorted(Path(name).name.partition(".obj")[0] for name in found)


def marked(firmware: Firmware, text: str) -> bool:
    return text.encode() in firmware.elf.read_bytes()


def mark(path: Path, text: str) -> None:
    """Make a source leave a text in the program, where no linker takes it for unused."""
    with path.open("a") as file:
        section = f'.pushsection .mark\\n.asciz \\"<{text}>\\"\\n.popsection'
        file.write(f'\n__asm__("{section}");\n')


def stack_limit(firmware: Firmware) -> int:
    symbols = read_elf(firmware.elf).symbols
    return next(symbol.value for symbol in symbols if symbol.name == "__StackLimit")


def replaced(path: Path, old: str, new: str) -> None:
    """An edit that keeps the file's time, as ``cp -p`` and ``mv`` of another version do."""
    before = path.stat()
    edit(path, old, new)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


# --- What comes out --------------------------------------------------------------------------


@pytest.mark.parametrize("target", [M55, U55, U85])
def test_a_checkouts_runner(source: Source, target: str) -> None:
    told: list[str] = []
    firmware = built(source, target, told.append)
    commit = source.find().revision.commit
    assert told[0] == f"{target} (ExecuTorch {commit[:10]}): configuring the runner"
    assert re.search(r"building the runner (\d+)/\1$", told[-1])
    assert (firmware.source, firmware.target) == (FirmwareSource.EXECUTORCH, target)
    assert firmware.checkout is not None
    assert firmware.checkout.commit == commit
    assert firmware.checkout.platform == "hil"
    assert firmware.map.is_file()
    names = {symbol.name for symbol in read_elf(firmware.elf).symbols}
    assert {"main", "_start", "Reset_Handler", "ethosu_invoke_v3"} <= names
    assert ("ethosu_init" in names) == (target != M55), "its NPU, if it has one, is initialised"
    del told[:]
    again = built(source, target, told.append)
    assert (again, told) == (firmware, [])
    assert load_firmware(firmware.directory) == firmware


def test_firmware_of_a_checkout_elsewhere_says_where(small: Source) -> None:
    """The program is the same; the record names the checkout that was asked for."""
    first = built(small)
    git(small.folder, "clone", "-q", str(small.root), "clone")
    git(small.folder / "clone", "checkout", "-q", "-b", "mine")
    other = built(Source(small.folder / "clone", small.parts, small.folder))
    assert other.key == first.key
    assert other.checkout is not None
    assert (other.checkout.path, other.checkout.branch) == (str(small.folder / "clone"), "mine")


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


def test_nothing_is_written_to_the_users_folders(source: Source) -> None:
    folders = [source.root, *(part.folder for part in source.find().parts.values())]
    folders = [folder for folder in folders if (folder / ".git").exists()]
    before = [snapshot(folder) for folder in folders]
    built(source)
    for folder, then in zip(folders, before, strict=True):
        for was, now in zip(then, snapshot(folder), strict=True):
            assert now == was, folder


# --- Edits -----------------------------------------------------------------------------------


@pytest.fixture
def editable(source: Source) -> Source:
    """A checkout that a test may edit: of the real one a clone, which shares its objects."""
    if source.root.is_relative_to(source.folder):
        return source
    commit = source.find().revision.commit
    git(source.folder, "clone", "-q", "--shared", "--no-checkout", str(source.root), "editable")
    root = source.folder / "editable"
    git(root, "checkout", "-q", commit)
    found = source.find().parts
    return Source(root, {name: found[name].folder for name in found}, source.folder)


def test_one_edited_kernel_is_one_object(editable: Source) -> None:
    first = built(editable)
    assert len(compiled(editable)) > 50
    mark(editable.root / KERNEL, "edited")
    second = built(editable)
    assert compiled(editable) == [KERNEL.name]
    assert marked(second, "<edited>")
    assert not marked(first, "<edited>")
    assert second.key != first.key
    assert second.checkout is not None
    assert second.checkout.dirty
    git(editable.root, "checkout", "-q", "--", str(KERNEL))
    told: list[str] = []
    assert built(editable, progress=told.append) == first
    assert told == [], "it is found by its content, nothing is built"


def test_an_edit_that_keeps_the_files_time(editable: Source) -> None:
    """ninja does not see it: the second program must not be the first one's."""
    kernel = editable.root / KERNEL
    mark(kernel, "first")
    os.utime(kernel, (1, 1))
    built(editable)
    replaced(kernel, "<first>", "<third>")
    second = built(editable)
    assert marked(second, "<third>")
    assert not marked(second, "<first>")


def test_an_old_file_is_moved_over_a_new_one(small: Source) -> None:
    """As an editor's backup is brought back: the content is older than the objects."""
    kernel = small.root / KERNEL
    mark(kernel, "old")
    backup = small.folder / "backup"
    shutil.copy2(kernel, backup)
    edit(kernel, "<old>", "<new>")
    assert marked(built(small), "<new>")
    (small.root / "runtime" / "core" / "more.h").write_text("")  # another key, to be built
    shutil.move(backup, kernel)
    assert marked(built(small), "<old>")


def test_an_edited_part(small: Source) -> None:
    header = small.parts["cmsis-nn"] / "Include" / "kernels" / "requantize.h"
    before = built(small)
    edit(header, "uint64_t{1} << 30", "uint64_t{1} << 29")
    after = built(small)
    assert after.key != before.key
    assert after.elf_sha256 != before.elf_sha256
    assert KERNEL.with_suffix(".cpp").name in compiled(small)


def test_an_edited_flatcc(small: Source) -> None:
    """It is built in a copy, which follows."""
    before = built(small)
    edit(small.parts["flatcc"] / "src" / "runtime.c", "return 1", "return 77")
    assert built(small).elf_sha256 != before.elf_sha256


def test_a_linker_script_is_heeded(small: Source) -> None:
    """The checkout's CMake reads it once, and no rule names it."""
    before = built(small)
    script = small.root / "examples/arm/executor_runner/Corstone-300.ld"
    edit(script, "#define STACK_SIZE 0x8000", "#define STACK_SIZE 0x7000")
    assert stack_limit(built(small)) == stack_limit(before) + 0x1000


def test_kernels_come_and_go(small: Source) -> None:
    """The portable ones are a glob, which ninja knows nothing of."""
    built(small)
    new = small.root / PORTABLE / "op_new.cpp"
    new.write_text("int new_kernel() { return 1; }\n")
    mark(new, "new")
    kernel = small.root / KERNEL
    edit(kernel, "namespace hil {", "int new_kernel();\nnamespace hil {")
    edit(kernel, "if (!ctx.ok())", "if (new_kernel() != 1) return Error::Ok;\n  if (!ctx.ok())")
    assert marked(built(small), "<new>")
    git(small.root, "checkout", "-q", ".")
    new.unlink()
    (small.root / "runtime" / "core" / "more.h").write_text("")
    assert not marked(built(small), "<new>")


def test_another_branch(small: Source) -> None:
    """There and back: each its own program, and the first is found."""
    first = built(small)
    git(small.root, "checkout", "-q", "-b", "mine")
    mark(small.root / KERNEL, "mine")
    commit(small.root, "mine")
    assert marked(built(small), "<mine>")
    git(small.root, "checkout", "-q", "main")
    assert built(small).elf_sha256 == first.elf_sha256


IDLE = ("backends/cortex_m/passes/p.py", "exir/p.py", "examples/arm/aot.py", "runtime/README.md",
        "backends/xnnpack/CMakeLists.txt", "backends/xnnpack/new.cpp")  # fmt: skip


@pytest.mark.parametrize("idle", IDLE)
def test_what_takes_no_part_is_no_reason_to_begin_again(small: Source, idle: str) -> None:
    """The exporter's Python changes with every commit."""
    built(small)
    (small.root / idle).parent.mkdir(parents=True, exist_ok=True)
    for text in ("x = 1\n", "x = 2\n"):
        (small.root / idle).write_text(text)
        told: list[str] = []
        built(small, progress=told.append)
        assert told, "it is another key"
        assert not any("configuring" in line for line in told)
        assert compiled(small) == []


@pytest.mark.parametrize("name", ["codegen/gen.py", "examples/arm/executor_runner/to_header.py"])
def test_a_script_of_the_build_is_a_reason_to_begin_again(small: Source, name: str) -> None:
    (small.root / name).touch()
    built(small)
    with (small.root / name).open("a") as file:
        file.write("# more\n")
    told: list[str] = []
    built(small, progress=told.append)
    assert any("configuring" in line for line in told)


def test_two_configurations_do_not_disturb_each_other(small: Source) -> None:
    firsts = {name: built(small, name) for name in (M55, U55)}
    assert len({firmware.key for firmware in firsts.values()}) == 2
    mark(small.root / KERNEL, "edited")
    for name in (M55, U55):
        assert marked(built(small, name), "<edited>")
        assert compiled(small, name) == [KERNEL.name]


# --- Edits while it is built -----------------------------------------------------------------


def at(step: str, action: Callable[[], object]) -> Progress:
    """Progress that does something once, when a message has ``step`` in it."""
    done = []

    def progress(message: str) -> None:
        if step in message and not done:
            done.append(action())

    return progress


@pytest.mark.parametrize("step", ["configuring", "building the runner"])
def test_an_edit_during_the_build(small: Source, step: str) -> None:
    """Nobody knows what the ELF holds; the next build does not go on from its objects."""
    kernel = small.root / KERNEL
    action = at(step, lambda: mark(kernel, "meanwhile"))
    with pytest.raises(CheckoutChanged, match="the checkout changed while its runner was") as e:
        built(small, progress=action)
    assert e.value.hint == "run it again"
    assert e.value.verdict == "INFRA"
    assert not any(paths.cache_dir("firmware").glob("*/firmware.json"))
    assert marked(built(small), "<meanwhile>")


def test_an_edit_during_the_build_that_is_taken_back(small: Source) -> None:
    """The content is what it was, but what was compiled may be of the moment between."""
    kernel = small.root / KERNEL
    text = kernel.read_bytes()

    def meddle() -> None:
        mark(kernel, "moment")
        kernel.write_bytes(text)

    with pytest.raises(CheckoutChanged):
        built(small, progress=at("building the runner", meddle))


def test_a_source_removed_during_the_build(small: Source) -> None:
    """It may be in the program already."""
    extra = small.root / PORTABLE / "op_extra.cpp"
    extra.write_text("")
    with pytest.raises(CheckoutChanged):
        built(small, progress=at("building the runner", extra.unlink))
    built(small)
    assert extra.name not in "".join(p.name for p in tree(small).rglob("op_*.obj"))


def test_a_commit_during_the_build(small: Source) -> None:
    """The files are the same, the record would name the wrong commit."""
    action = at("building the runner", lambda: commit(small.root, "meanwhile"))
    with pytest.raises(CheckoutChanged):
        built(small, progress=action)


def test_a_source_edited_while_its_compiler_runs(small: Source) -> None:
    """The compiler has read the old text and its object is newer than the new one: by their times
    it would be up to date for ever."""
    kernel = small.root / KERNEL
    fifo = small.folder / "slow.h"
    os.mkfifo(fifo)
    mark(kernel, "old")
    text = kernel.read_text()
    kernel.write_text(f'{text}\n#include "{fifo}"\n')  # where the compiler waits
    with ThreadPoolExecutor() as pool:
        first = pool.submit(built, small)
        if toolchain.find("ccache") is not None:  # it has the source preprocessed, then compiled
            fifo.open("w").close()
            time.sleep(0.2)  # until the first has closed it
        with fifo.open("w"):  # as soon as the compiler is there
            kernel.write_text(text.replace("<old>", "<new>"))
        with pytest.raises(CheckoutChanged):
            first.result()
    assert marked(built(small), "<new>")


def test_a_compile_error_of_a_moment(small: Source) -> None:
    """A file that was half written when it was compiled is no error of the checkout's."""
    kernel = small.root / KERNEL
    action = at("configuring", lambda: kernel.write_text("int half("))
    with pytest.raises(CheckoutChanged) as caught:
        built(small, progress=action)
    assert isinstance(caught.value.__cause__, StepFailed)
    with pytest.raises(StepFailed):
        built(small)


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


def test_a_build_without_its_products(small: Source) -> None:
    edit(small.root / "examples/arm/executor_runner/CMakeLists.txt",
         "-Xlinker -Map=arm_executor_runner.map", "")  # fmt: skip
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


@pytest.mark.parametrize("seed", range(4))
def test_a_build_killed_at_any_moment(small: Source, home: Home, seed: int) -> None:
    """It is never taken for a whole one, and the next build succeeds."""
    randomness = random.Random(seed)
    print("seed", seed)
    began = time.monotonic()
    wanted = reference(small, home)
    whole = time.monotonic() - began
    for attempt in range(3):
        moment = randomness.uniform(0, whole)
        print("killed after", moment, "of", whole)
        mark(small.root / OPS / "move.cpp", f"x{seed}{attempt}")
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


def test_two_processes_on_one_checkout(small: Source) -> None:
    """One builds, the other waits and takes the result."""
    found = [builder.finish(process) for process in [builder.start(small) for _ in range(2)]]
    assert len({(one["key"], one["sha256"]) for one in found}) == 1
    configured = [one for one in found if any("configuring" in line for line in one["told"])]
    assert len(configured) == 1
    assert sum("waiting" in line for one in found for line in one["told"]) <= 1


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


def test_a_second_harness_in_another_place(small: Source, home: Home) -> None:
    """Two state directories on one checkout at the same time."""
    processes = []
    for name in ("one", "two"):
        home(name)
        processes.append(builder.start(small))
    found = [builder.finish(process) for process in processes]
    assert found[0]["key"] == found[1]["key"]


# --- Other boards ----------------------------------------------------------------------------


QEMU_MEMORY = ((0x10000000, 0x80000), (0x11000000, 0x200000), (0x30000000, 0x80000),
               (0x31000000, 0x400000), (0x70000000, 0x10000000))  # fmt: skip


def segments(firmware: Firmware) -> list[tuple[int, int]]:
    """Address and size of what is loaded."""
    found = read_elf(firmware.elf).segments
    return [(one.load, one.size) for one in found if one.size]


def test_a_320_is_linked_for_qemus_memory(source: Source) -> None:
    firmware = built(source, U85)
    for address, size in segments(firmware):
        assert any(a <= address and address + size <= a + n for a, n in QEMU_MEMORY), hex(address)


@pytest.mark.parametrize("region", ["BROM", "ITCM", "BRAM"])
def test_a_script_without_a_region_to_be_moved(small: Source, region: str) -> None:
    script = small.root / "examples/arm/executor_runner/Corstone-320.ld"
    script.write_text(re.sub(rf"\b{region}\b", f"MY{region}", script.read_text()))
    with pytest.raises(StepFailed, match=f"has no memory region {region} to be moved"):
        built(small, U85)


def test_a_program_without_a_script(small: Source) -> None:
    cmake = small.root / "examples/arm/executor_runner/CMakeLists.txt"
    edit(cmake, 'target_link_options(arm_executor_runner PRIVATE "-T" "${script}")', "")
    with pytest.raises(StepFailed, match="linked without -T: its linker script is not known"):
        built(small, U85)


def test_an_edited_script_of_a_320(small: Source) -> None:
    """It is read when the build is configured, and moved again."""
    before = built(small, U85)
    script = small.root / "examples/arm/executor_runner/Corstone-320.ld"
    edit(script, "#define STACK_SIZE 0x5000", "#define STACK_SIZE 0x4000")
    assert stack_limit(built(small, U85)) == stack_limit(before) + 0x1000


def test_an_fvps_runner_is_started_by_the_sdk(small: Source) -> None:
    """Linked where the checkout says, with the whole of the SDK beside its platform."""
    platform = sdk_platform(small.folder / "sdk")
    target = pick(load_target(U85), "fvp").target
    checkout = find_checkout(small.root, {**small.parts, "core_platform": platform})
    firmware = build_checkout(target, SimulatorName.FVP, checkout)
    assert firmware.checkout is not None
    assert firmware.checkout.platform == "sdk"
    assert any(address == 0x12000000 for address, _ in segments(firmware))
    edit(platform / "targets" / "common" / "fault.cpp", "Hard fault.", "Fault.     ")
    again = find_checkout(small.root, {**small.parts, "core_platform": platform})
    assert marked(build_checkout(target, SimulatorName.FVP, again), "Fault.     ")


def test_parts_of_the_checkout_itself(small: Source) -> None:
    """Nothing given: submodules and the SDK are where ExecuTorch's scripts put them."""
    for name, place in small.parts.items():
        where = small.root / SPECS[name].places[0]
        if where.is_dir():
            where.rmdir()
        git(small.folder, "clone", "-q", str(place), str(where))
    inside = Source(small.root, {}, small.folder)
    assert built(inside).elf.name == "executor_runner"
    assert RUNNER == checkout_firmware.RUNNER
