"""ExecuTorch's own runtime as a runner for a target with Linux, from its wheel for AArch64.

``targets/executorch/wheel`` has the program: the bundled runner's command line, log and port, and
everything between a program's bytes and its outputs is the wheel's. Its libraries are shared ones,
so the firmware has a folder ``root`` beside the ELF with all that a root file system has to have.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.build import compiler_cache
from harness.build.firmware import (
    ROOT,
    RUNNER,
    Firmware,
    build_id,
    load_firmware,
    write_stamp,
)
from harness.build.source import FirmwareSource
from harness.build.step import acquire, clear, run_step
from harness.build.wheel.package import LIBRARIES, RuntimeWheel, runtime_wheel
from harness.build.wheel.root import describe_cpu, lay_out
from harness.errors import UsageError
from harness.system import paths, toolchain
from harness.system.files import disk_errors, sha256_of
from harness.system.progress import Progress, silent
from harness.target.loading import Target

_LAYOUT = 1  # raise it when what a directory of the cache holds changes
_COMPILER = "aarch64-linux-gnu-g++"


class NoWheelFor(UsageError):
    """ExecuTorch's runtime is in no wheel for what this target is."""

    def __init__(self, target: Target) -> None:
        self.target = target.name
        super().__init__(
            f"ExecuTorch's wheel has its runtime for Linux on AArch64, and {target.name} is none",
            hint="a target whose name begins with corstone-1000-; or another --firmware",
        )


@dataclass(frozen=True)
class WheelPlan:
    """Everything that decides what is built."""

    wheel: RuntimeWheel
    toolchain_id: str
    options: dict[str, str]

    def key(self) -> str:
        facts = [_LAYOUT, self.wheel.sha256, self.toolchain_id, self.options]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        for path in _own_files():
            digest.update(f"{path.relative_to(paths.data_root())}\0".encode() + path.read_bytes())
        return digest.hexdigest()[:32]


def make_plan(target: Target) -> WheelPlan:
    """Raises NoWheelFor, ToolMissing, and what ``runtime_wheel`` does."""
    if target.port != "linux":
        raise NoWheelFor(target)
    identity = toolchain.toolchain_id(target.toolchain)
    options = {
        "HIL_CPU": target.cpu,
        "HIL_FILE_POOL_BYTES": str(target.pools["file"]),
        "CMAKE_BUILD_TYPE": "Release",
    }
    return WheelPlan(runtime_wheel(), identity, options)


def build_wheel(target: Target, *, progress: Progress = silent) -> Firmware:
    """From the cache or built now; one process builds, others wait.

    Raises NoWheelFor, NoWheel, WheelLacks, BuildError, ToolMissing, InfraError.
    """
    plan = make_plan(target)
    key = plan.key()
    cache = paths.cache_dir("firmware")
    if (ready := load_firmware(cache / key)) is not None:
        return replace(ready, target=target.name, variant=target.default_variant)
    with disk_errors("preparing the firmware cache"):
        cache.mkdir(parents=True, exist_ok=True)
        lock = acquire(cache / f"{key}.lock", lambda: progress(f"{target.name}: waiting"))
    try:
        if (ready := load_firmware(cache / key)) is not None:
            return replace(ready, target=target.name, variant=target.default_variant)
        with disk_errors("building ExecuTorch's runtime"):
            return _build(plan, cache / key, target, progress)
    finally:
        lock.release()


def _build(plan: WheelPlan, directory: Path, target: Target, progress: Progress) -> Firmware:
    started = time.monotonic()
    clear(directory)
    tree = directory / "build"
    tree.mkdir(parents=True)
    environment = compiler_cache.environment(tree)
    name = f"{target.name} (ExecuTorch {plan.wheel.version})"
    progress(f"{name}: configuring the runner")
    run_step("configure", _configure(plan, tree), directory, name, progress, environment)
    ninja = str(toolchain.require("ninja").path)
    jobs = str(len(os.sched_getaffinity(0)))
    run_step("build", (ninja, "-C", str(tree), "-j", jobs), directory, name, progress, environment)
    for product in (RUNNER, f"{RUNNER}.map"):
        (tree / product).replace(directory / product)
    given = [plan.wheel.root / "lib" / library for library in LIBRARIES]
    compiler = toolchain.require(_COMPILER).path
    lay_out(directory / RUNNER, given, compiler, directory / ROOT)
    describe_cpu(target.cpu, directory / ROOT)
    firmware = Firmware(
        directory=directory,
        target=target.name,
        variant=target.default_variant,
        key=directory.name,
        toolchain_id=plan.toolchain_id,
        build_id=build_id(directory / RUNNER),
        elf_sha256=sha256_of(directory / RUNNER),
        seconds=round(time.monotonic() - started, 3),
        options={"HIL_PORT": target.port, **plan.options},
        source=FirmwareSource.WHEEL,
        notes=(plan.wheel.note,),
    )
    write_stamp(firmware)
    shutil.rmtree(tree)
    return firmware


def _configure(plan: WheelPlan, tree: Path) -> Sequence[str]:
    toolchain.require("ninja")
    toolchain.require(_COMPILER)
    options = {
        **plan.options,
        "HIL_WHEEL": str(plan.wheel.root),
        "CMAKE_TOOLCHAIN_FILE": str(_toolchain_file()),
        **compiler_cache.launchers("CXX"),
    }
    return (
        str(toolchain.require("cmake").path),
        *("-S", str(_sources())),
        *("-B", str(tree)),
        *("-G", "Ninja"),
        *(f"-D{name}={value}" for name, value in options.items()),
    )


def _sources() -> Path:
    return paths.data_root() / "targets" / "executorch" / "wheel"


def _toolchain_file() -> Path:
    return paths.data_root() / "cmake" / "toolchains" / "aarch64-linux.cmake"


def _own_files() -> list[Path]:
    """All of ours that the build reads."""
    runner = paths.data_root() / "targets" / "runner"
    return [
        _toolchain_file(),
        *sorted(path for path in _sources().iterdir() if path.is_file()),
        *sorted(runner.glob("*.h")),
        runner / "arguments.cpp",
        *sorted((runner / "core").glob("*.h")),
        *(runner / "core" / f"{name}.cpp" for name in ("arena", "format", "log")),
        *sorted(path for path in (runner / "ports").iterdir() if path.is_file()),
        *sorted((runner / "ports" / "linux").iterdir()),
    ]
