"""Finds which threads of a Zephyr guest wait for which object, from the running guest's memory.

Threads, mutexes and other kernel objects are objects of the ELF; the DWARF has the offsets of their
state (Zephyr include/zephyr/kernel/thread.h, kernel_structs.h).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.formats.dwarf import Struct, structs
from harness.formats.elf import STT_OBJECT, ElfFile, Symbol, read_elf
from harness.sim.monitor import Monitor, WaitingThread

_UNITS = ("kernel/sched.c", "kernel/mutex.c")  # which describe threads and mutexes
_THREAD = {"k_thread", "_thread_base", "_callee_saved"}
_PENDING = 1 << 1  # of thread_state, _THREAD_PENDING
_STACK_WORDS = 128
_PREFIXES = ("_k_thread_obj_", "z_")


def waiting_threads(monitor: Monitor, elf: Path) -> tuple[WaitingThread, ...]:
    """Return the waiting threads; ``()`` unless the ELF is Zephyr with debug information."""
    layout = structs(elf, _UNITS, {*_THREAD, "k_mutex"})
    return tuple(_waiting(monitor, read_elf(elf), layout)) if layout.keys() >= _THREAD else ()


def _waiting(
    monitor: Monitor, image: ElfFile, layout: dict[str, Struct]
) -> Iterator[WaitingThread]:
    objects = [s for s in image.symbols if s.type == STT_OBJECT and s.defined and s.size]
    thread, base = layout["k_thread"], layout["_thread_base"]
    saved = thread.offsets["callee_saved"] + layout["_callee_saved"].offsets["psp"]
    for symbol in objects:
        if symbol.size != thread.size:
            continue
        words = monitor.memory(symbol.value, thread.size // 4)
        data = b"".join(word.to_bytes(4, "little") for word in words)
        if len(data) < saved + 4 or not data[base.offsets["thread_state"]] & _PENDING:
            continue
        at = int.from_bytes(data[base.offsets["pended_on"] :][:4], "little")
        stack = monitor.memory(int.from_bytes(data[saved:][:4], "little"), _STACK_WORDS)
        awaited = next((s for s in objects if s.value <= at < s.value + s.size), None)
        mutex, holder = layout.get("k_mutex"), None
        if awaited is not None and mutex is not None and awaited.size == mutex.size:
            owner = monitor.memory(awaited.value + mutex.offsets["owner"], 1)
            holder = next((_name(s) for s in objects if (s.value,) == owner), None)
        what = awaited.name if awaited is not None else f"what is at {at:#010x}"
        yield WaitingThread(_name(symbol), what, holder, stack)


def _name(symbol: Symbol) -> str:
    """Return "main" of z_main_thread, "worker" of _k_thread_obj_worker."""
    name = symbol.name
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.removesuffix("_thread")
