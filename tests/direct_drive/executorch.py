"""ExecuTorch's own Ethos-U backend for Linux, of a checkout, run as a native program: over our
driver library, a driver in the program, and the NPU's model.

``EXECUTORCH_ROOT=DIR python -m tests.direct_drive.executorch`` says what it does with programs that
our own backend runs exactly. The runtime around it is the installed wheel's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.core.errors import UsageError
from harness.system import toolchain
from harness.system.paths import executorch_package
from tests.direct_drive.cases import DirectCase, Ran, make, run
from tools.clone import project_root

_BACKEND = ("EthosUBackend", "EthosUBackend_Cortex_A", "EthosUBackend_IoMemcpy", "VelaBinStream")
_DRIVER = ("linux/doorbell_npu", "linux/user_driver", "cop2", "driver", "payload")
_CORE = ("log", "format")
_CASES = 60


def checkout() -> Path | None:
    """What $EXECUTORCH_ROOT names, if it has the backend."""
    root = os.environ.get("EXECUTORCH_ROOT")
    runtime = None if root is None else Path(root) / "backends" / "arm" / "runtime"
    has_it = runtime is not None and (runtime / f"{_BACKEND[1]}.cpp").is_file()
    return Path(str(root)) if has_it else None


def build(root: Path, folder: Path) -> Path:
    """With AddressSanitizer; nothing of the checkout is changed."""
    include = folder / "include" / "executorch"
    include.mkdir(parents=True)
    (include / "backends").symlink_to(root.absolute() / "backends")
    package, ours = executorch_package(), project_root() / "targets"
    headers = package / "include"
    backend, stack = root / "backends" / "arm" / "runtime", ours / "linux" / "ethosu"
    made = folder / "executorch"
    sources = [
        Path(__file__).with_suffix(".cpp"),
        *(backend / f"{name}.cpp" for name in _BACKEND),
        stack / "driver_library" / "src" / "ethosu.cpp",
        *(ours / "runner" / "ethosu" / f"{name}.cpp" for name in _DRIVER),
        *(ours / "runner" / "core" / f"{name}.cpp" for name in _CORE),
    ]
    directories = [
        folder / "include",
        headers,
        headers / "executorch/runtime/core/portable_type/c10",
        ours / "runner",
        stack / "driver_library" / "include",
        stack / "kernel" / "include",
    ]
    done = subprocess.run(
        [
            str(toolchain.locate("g++")),
            "-std=c++17",
            "-O1",
            "-g",
            "-w",
            "-fsanitize=address",
            "-fno-omit-frame-pointer",
            "-DC10_USING_CUSTOM_GENERATED_MACROS",
            *(f"-I{directory}" for directory in directories),
            "-o",
            made,
            *sources,
            f"-L{package / 'lib'}",
            "-lexecutorch",
            f"-Wl,-rpath,{package / 'lib'}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise UsageError(f"the backend of {root} does not build: {done.stderr[-800:]}")
    return made


def told(case: DirectCase, ran: Ran) -> str:
    if "AddressSanitizer" in ran.log:
        where = [line.split(" in ", 1)[-1] for line in ran.log.splitlines() if " in arm_" in line]
        return f"heap-buffer-overflow in {where[0] if where else '?'}"
    if ran.status != 0:
        return f"ends with {ran.status}: {ran.log[-300:]}"
    same = ran.outputs == tuple(value.tobytes() for value in case.outputs)
    return "equal" if same else "DIFFERENT"


def chosen() -> Iterator[tuple[str, DirectCase]]:
    """One program for each thing to see, of those that test_random.py runs."""
    wanted = {
        "one input, which fits into scratch": _fits(several=False),
        "several inputs in another order than their places": _fits(several=True),
        "scratch 0": lambda case: case.read.scratch_size == 0,
    }
    for number in range(_CASES):
        case = make(number)
        for name in [name for name, fits in wanted.items() if fits(case)]:
            del wanted[name]
            yield name, case


def _fits(*, several: bool) -> Callable[[DirectCase], bool]:
    def fits(case: DirectCase) -> bool:
        blob = case.read
        offsets = [tensor.offset for tensor in blob.inputs]
        end = max(tensor.offset + tensor.size for tensor in blob.inputs)
        shuffled = offsets != sorted(offsets)
        return end <= blob.scratch_size and (shuffled if several else len(offsets) == 1)

    return fits


def main() -> int:
    root = checkout()
    if root is None:
        raise UsageError("$EXECUTORCH_ROOT names no checkout with the backend for Linux")
    with tempfile.TemporaryDirectory() as folder:
        program = build(root, Path(folder))
        for number, (name, case) in enumerate(chosen()):
            work = Path(folder) / str(number)
            work.mkdir()
            print(f"{name}: {told(case, run(case, program, work, by_runner=False))}\n  {case}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
