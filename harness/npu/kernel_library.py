"""The arithmetic of ``kernel/``: built for this machine once, cached by content, loaded.

Results do not depend on the compiler or the processor: all of it is integers.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from harness.core.errors import InfraError
from harness.npu.descriptor import layouts
from harness.system import paths, toolchain
from harness.system.files import disk_errors

SOURCES = Path(__file__).with_name("kernel")
NAME = "libhil_npu.so"
_LOG, _FAILED = "build.log", "failed"
_SECONDS = 300
_FLAGS = ("flags", "Features")  # of /proc/cpuinfo: what -march=native looks at


@lru_cache(maxsize=1)
def load() -> ctypes.CDLL:
    """The library, built when it is not there yet; one process builds, others wait.

    Raises ToolMissing, InfraError where it cannot be built, and DiskError when there is no room.
    """
    tools = [toolchain.require(name) for name in ("cmake", "ninja", "g++")]
    directory = paths.cache_dir("npu-kernel") / _key(tools)
    with disk_errors("building the NPU model's arithmetic"):
        directory.parent.mkdir(parents=True, exist_ok=True)
        if not _is_decided(directory):
            with FileLock(f"{directory}.lock"):
                if not _is_decided(directory):
                    _build(directory)
    if not (directory / NAME).is_file():
        raise InfraError(
            f"the NPU model's arithmetic cannot be built: {directory / _LOG}",
            hint="the log has the compiler's errors; `hil prune` removes it for another try",
        )
    library = declared(ctypes.CDLL(str(directory / NAME)))
    check_layout(library)
    return library


def _is_decided(directory: Path) -> bool:
    return (directory / NAME).is_file() or (directory / _FAILED).is_file()


def check_layout(library: ctypes.CDLL) -> None:
    """AssertionError: the structures that were read from jobs.h are not the library's."""
    structures = layouts().structures
    ours = tuple(ctypes.sizeof(structures[name]) for name in ("Job", "Memory"))
    theirs = library.hil_npu_job_bytes(), library.hil_npu_memory_bytes()
    assert ours == theirs, f"descriptor.py misreads kernel/jobs.h: {ours} and {theirs} bytes"


def _key(tools: list[toolchain.Tool]) -> str:
    digest = hashlib.sha256("\0".join([*map(str, tools), *_processor()]).encode())
    for file in sources():
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:32]


def sources() -> list[Path]:
    return sorted(path for path in SOURCES.iterdir() if path.is_file())


def _processor() -> Iterator[str]:
    """What it is and can: a cache may be shared by several machines."""
    yield os.uname().machine
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    yield from sorted({line for line in lines if line.startswith(_FLAGS)})


def _build(directory: Path) -> None:
    """The library comes to its place last of all: a build that was killed leaves none."""
    tree, log = directory / "build", directory / _LOG
    shutil.rmtree(directory, ignore_errors=True)
    tree.mkdir(parents=True)
    cmake, ninja = (str(toolchain.locate(name)) for name in ("cmake", "ninja"))
    compiler = toolchain.locate("g++")
    configure = [cmake, "-S", str(SOURCES), "-B", str(tree), "-G", "Ninja", "-DHIL_NATIVE=ON"]
    configure += [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    for argv in (configure, [ninja, "-C", str(tree), "hil_npu"]):
        with log.open("ab") as output:
            try:
                status = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_SECONDS,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                status = -1
        if status != 0:
            (directory / _FAILED).touch()  # with the same compiler it would fail again
            return
    (tree / NAME).replace(directory / NAME)
    shutil.rmtree(tree)


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """With the types of its functions."""
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    signatures: dict[str, tuple[list[Any], Any]] = {
        "hil_npu_run": ([pointer, pointer, number, number, pointer], number),
        "hil_npu_open": ([], pointer),
        "hil_npu_close": ([pointer], None),
        "hil_npu_job_bytes": ([], number),
        "hil_npu_memory_bytes": ([], number),
        "hil_npu_decode": ([ctypes.c_char_p, number, pointer, number, number], number),
        "hil_npu_decode_fast": ([ctypes.c_char_p, number, pointer], None),
        "hil_npu_reorder_u55": ([pointer, pointer, number, pointer], number),
        "hil_npu_reorder_u85": (
            [pointer, pointer, pointer, ctypes.c_bool, pointer],
            number,
        ),
        "hil_npu_packed": ([number] * 4, number),
        "hil_npu_pack": ([number, pointer, *[number] * 4, pointer], number),
    }
    for name, (arguments, result) in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library
