"""Threads of Zephyr that wait: from the memory of a small ELF whose structures have the kernel's
names and other offsets. A real Zephyr: tests/endings/test_planted_zephyr.py."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.formats.elf import read_elf
from harness.judge.symbols import where_spinning
from harness.sim.monitor import CpuState
from harness.sim.zephyr_threads import waiting_threads

pytestmark = pytest.mark.skipif(
    not shutil.which("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc"
)
_SCHED = """\
struct _thread_base { int queue[3]; void* pended_on; char options, thread_state; };
struct _callee_saved { int v1; void* psp; };
struct k_thread { struct _thread_base base; struct _callee_saved callee_saved; int more[9]; };
struct k_mutex { int wait_q[2]; struct k_thread* owner; int lock; };
extern struct k_thread z_main_thread, _k_thread_obj_worker, idle;
struct k_mutex first = {{1}, &z_main_thread}, second = {{1}, &_k_thread_obj_worker};
int queue[7] = {1};
void lock_both(void);
void work(void) { lock_both(); lock_both(); }
void* stack[128] = {&idle, (char*)work + 7};
struct k_thread z_main_thread = {{{0}, &second, 0, 2}, {0, stack}};
struct k_thread _k_thread_obj_worker = {{{0}, &queue[1], 0, 2}, {0, stack}};
struct k_thread idle = {{{0}, &queue[1], 0, 1}};
void lock_both(void) {}
"""


class Memory:
    """What of QEMU's monitor is used: the words of the ELF."""

    def __init__(self, elf: Path) -> None:
        self._elf = read_elf(elf)

    def memory(self, address: int, count: int) -> tuple[int, ...]:
        for section in self._elf.sections:
            if section.address <= address < section.address + section.size and section.address:
                data = self._elf.content(section)[address - section.address :][: 4 * count]
                return tuple(
                    int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)
                )
        return ()


@pytest.fixture
def elf(tmp_path: Path) -> Path:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "sched.c").write_text(_SCHED)
    options = ["-mcpu=cortex-m55", "-mthumb", "-g", "-O0", "-nostdlib", "-Wl,-e,work"]
    argv = ["arm-none-eabi-gcc", *options, "kernel/sched.c", "-o", "zephyr.elf"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    return tmp_path / "zephyr.elf"


def test_threads_objects_and_who_holds_them(elf: Path) -> None:
    memory: Any = Memory(elf)
    threads = waiting_threads(memory, elf)
    assert {(t.name, t.waits_for, t.holder) for t in threads} == {
        ("main", "second", "worker"),
        ("worker", "queue", None),
    }
    facts = where_spinning(CpuState({"pc": 0}, (), threads=threads), elf)
    said = next(text for text in facts["threads"] if "main" in text)
    assert said.startswith("thread main waits for second, which worker holds")


def test_an_elf_that_is_not_a_zephyr(elf: Path) -> None:
    subprocess.run(["arm-none-eabi-strip", "-g", elf.name], cwd=elf.parent, check=True)
    assert waiting_threads(Memory(elf), elf) == ()  # type: ignore[arg-type]
