"""Protects a build tree that is gone on with: the program must be that of the sources as they are,
after any kind of edit, and of one made while they are compiled."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from harness.firmware.build_tree import SourcesChanged
from harness.firmware.step import StepFailed
from harness.system import paths, toolchain
from harness.system.progress import Progress
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.products import (
    M55,
    U55,
    built,
    compiled,
    mark,
    marked,
    replaced,
    stack_limit,
    tree,
)
from tests.firmware.executorch.small import CHECKS, KERNEL, PORTABLE, commit, edit, git
from tests.thorough import cases

pytestmark = pytest.mark.usefixtures("home")


# --- Edits -----------------------------------------------------------------------------------


@pytest.fixture
def editable(source: Source) -> Source:
    """A checkout that a test may edit: a clone, which shares its objects."""
    commit = source.find().revision.commit
    git(source.folder, "clone", "-q", "--shared", "--no-checkout", str(source.root), "editable")
    root = source.folder / "editable"
    git(root, "checkout", "-q", commit)
    found = source.find().parts
    return Source(root, {name: found[name].folder for name in found}, source.folder)


def test_one_edited_kernel_is_one_object(editable: Source) -> None:
    first = built(editable)
    assert len(compiled(editable)) > 30
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


@pytest.mark.thorough  # a push has it of a workspace of Zephyr's, in the same kind of tree
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


@pytest.mark.thorough
def test_an_old_file_is_moved_over_a_new_one(small: Source) -> None:
    """As an editor's backup is brought back: the content is older than the objects."""
    kernel = small.root / CHECKS
    mark(kernel, "old")
    backup = small.folder / "backup"
    shutil.copy2(kernel, backup)
    edit(kernel, "<old>", "<new>")
    assert marked(built(small), "<new>")
    (small.root / "runtime" / "core" / "more.h").write_text("")  # another key, to be built
    shutil.move(backup, kernel)
    assert marked(built(small), "<old>")


def test_edited_parts(small: Source) -> None:
    """One is compiled where it is; flatcc is built in a copy, which follows."""
    header = small.parts["cmsis-nn"] / "Include" / "kernels" / "requantize.h"
    before = built(small)
    edit(header, "namespace hil {", "namespace hil {  // ccache has what includes it")
    mark(small.parts["flatcc"] / "src" / "runtime.c", "flatcc")
    after = built(small)
    assert after.key != before.key
    assert KERNEL.name in compiled(small)
    assert "log.cpp" not in compiled(small), "of the engine, which includes neither"
    assert marked(after, "<flatcc>")


def test_a_new_kernel(small: Source) -> None:
    """The portable ones are a glob, which ninja knows nothing of. One of an operator that is not
    registered is not compiled, however its file defines it."""
    for name, text in (("call", "void idle_out() { no; }\n"), ("macro", "DEFINE(idle_out, no)\n")):
        (small.root / PORTABLE / f"op_idle_{name}.cpp").write_text(text)
    built(small)
    new = small.root / PORTABLE / "op_new.cpp"
    new.write_text("int new_kernel() { return 1; }\n")
    mark(new, "new")
    checks = small.root / CHECKS
    edit(checks, "namespace hil {", "int new_kernel();\nnamespace hil {")
    edit(checks, "if (t.numel == expected)", "if (t.numel == expected && new_kernel() == 1)")
    assert marked(built(small), "<new>")


@pytest.mark.thorough
def test_another_branch(small: Source) -> None:
    """There and back: each its own program, and the first is found."""
    first = built(small)
    git(small.root, "checkout", "-q", "-b", "mine")
    mark(small.root / CHECKS, "mine")
    commit(small.root, "mine")
    assert marked(built(small), "<mine>")
    git(small.root, "checkout", "-q", "main")
    assert built(small).elf_sha256 == first.elf_sha256


IDLE = (
    "backends/cortex_m/passes/p.py",
    "exir/p.py",
    "examples/arm/aot.py",
    "runtime/README.md",
    "backends/xnnpack/CMakeLists.txt",
)


def test_what_takes_no_part_is_not_a_reason_to_begin_again(small: Source) -> None:
    """The exporter's Python changes with every commit."""
    keys = {built(small).key}
    for text in ("x = 1\n", "x = 2\n"):
        for idle in IDLE:
            (small.root / idle).parent.mkdir(parents=True, exist_ok=True)
            (small.root / idle).write_text(text)
            keys.add(small.plan().key())
        told: list[str] = []
        built(small, progress=told.append)
        assert told
        assert not any("configuring" in line for line in told)
        assert compiled(small) == []
    assert len(keys) == 1 + 2 * len(IDLE), "each is another key"


def test_a_script_of_the_build_is_a_reason_to_begin_again(small: Source) -> None:
    """The linker script is read once by the checkout's CMake, and no rule names it."""
    runner = small.root / "examples/arm/executor_runner"
    (runner / "to_header.py").touch()
    before = built(small)
    edit(runner / "Corstone-300.ld", "#define STACK_SIZE 0x8000", "#define STACK_SIZE 0x7000")
    assert stack_limit(built(small)) == stack_limit(before) + 0x1000
    edit(small.root / "codegen/gen.py", "import re", "import re  # more")
    told: list[str] = []
    built(small, progress=told.append)
    assert any("configuring" in line for line in told)
    (runner / "to_header.py").write_text("# more\n")
    with pytest.raises(KeyboardInterrupt):  # nobody needs what it would build
        built(small, progress=at("configuring", interrupted))


@pytest.mark.thorough
def test_two_configurations_do_not_disturb_each_other(small: Source) -> None:
    firsts = {name: built(small, name) for name in (M55, U55)}
    assert len({firmware.key for firmware in firsts.values()}) == 2
    mark(small.root / CHECKS, "edited")
    for name in (M55, U55):
        assert marked(built(small, name), "<edited>")
        assert compiled(small, name) == [CHECKS.name]


# --- Edits while it is built -----------------------------------------------------------------


def at(step: str, action: Callable[[], object]) -> Progress:
    """Progress that does something once, when a message has ``step`` in it."""
    done = []

    def progress(message: str) -> None:
        if step in message and not done:
            done.append(action())

    return progress


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", cases("building the runner", thorough=["configuring"]))
def test_an_edit_during_the_build(small: Source, step: str) -> None:
    """Nobody knows what the ELF holds; the next build does not go on from its objects."""
    kernel = small.root / CHECKS
    action = at(step, lambda: mark(kernel, "meanwhile"))
    with pytest.raises(SourcesChanged, match="the checkout changed while its runner was") as e:
        built(small, progress=action)
    assert e.value.hint == "run it again"
    assert e.value.verdict == "INFRA"
    assert not any(paths.cache_dir("firmware").glob("*/firmware.json"))
    assert marked(built(small), "<meanwhile>")


def test_an_edit_during_the_build_that_is_taken_back(small: Source) -> None:
    """The content is what it was, but what was compiled may be of the moment between."""
    kernel = small.root / CHECKS
    text = kernel.read_bytes()

    def meddle() -> None:
        mark(kernel, "moment")
        kernel.write_bytes(text)

    with pytest.raises(SourcesChanged):
        built(small, progress=at("building the runner", meddle))


def test_a_source_removed_during_the_build(small: Source) -> None:
    """It may be in the program already."""
    extra = small.root / PORTABLE / "op_extra.cpp"
    extra.write_text("")
    with pytest.raises(SourcesChanged):
        built(small, progress=at("building the runner", extra.unlink))
    built(small)
    assert extra.name not in "".join(p.name for p in tree(small).rglob("op_*.obj"))


def test_a_commit_during_the_build(small: Source) -> None:
    """The files are the same, the record would name the wrong commit."""
    action = at("building the runner", lambda: commit(small.root, "meanwhile"))
    with pytest.raises(SourcesChanged):
        built(small, progress=action)


class BuildEnded(AssertionError):
    """Nobody is going to read."""


def opened_for(fifo: Path, reader: Future[object]) -> int:
    """As soon as somebody reads it, who is not going to when their build has failed."""
    while not reader.done():
        with suppress(OSError):  # ENXIO: nobody yet
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.01)
    raise BuildEnded from reader.exception()


def test_a_source_edited_while_its_compiler_runs(small: Source) -> None:
    """The compiler has read the old text and its object is newer than the new one: by their times
    it would be up to date for ever."""
    kernel = small.root / CHECKS
    fifo = small.folder / "slow.h"
    os.mkfifo(fifo)
    mark(kernel, f"old, {time.time_ns()}")  # or ccache has its object
    text = kernel.read_text()
    kernel.write_text(f'{text}\n#include "{fifo}"\n')  # where the compiler waits
    with ThreadPoolExecutor() as pool:
        first = pool.submit(built, small)
        if toolchain.find("ccache") is not None:  # it has the source preprocessed, then compiled
            os.close(opened_for(fifo, first))
            time.sleep(0.2)  # until the first has closed it
        with os.fdopen(opened_for(fifo, first), "w"):  # as soon as the compiler is there
            kernel.write_text(text.replace("<old, ", "<new, "))
        with suppress(BuildEnded):  # on a busy machine that was still the preprocessor
            while True:
                os.close(opened_for(fifo, first))
        with pytest.raises(SourcesChanged):
            first.result()
    assert marked(built(small), "<new, ")


def test_a_compile_error_of_a_moment(small: Source) -> None:
    """A file that was half written when it was compiled is no error of the checkout's."""
    kernel = small.root / CHECKS
    action = at("configuring", lambda: kernel.write_text("int half("))
    with pytest.raises(SourcesChanged) as caught:
        built(small, progress=action)
    assert isinstance(caught.value.__cause__, StepFailed)
    with pytest.raises(StepFailed):
        built(small)
