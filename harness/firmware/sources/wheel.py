"""ExecuTorch's own runtime as a runner for a target with Linux, from its wheel for AArch64.

``targets/executorch/wheel`` is the program: command line, log and port are the bundled runner's,
everything between a program's bytes and its outputs is the wheel's. The wheel's libraries are
shared, so the firmware has a folder ``root`` beside the ELF with what the root file system needs.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.config.loading import Target
from harness.core.errors import UsageError
from harness.firmware import step
from harness.firmware.firmware import ROOT, RUNNER, Firmware, build_id, obtain
from harness.firmware.source import BuildRequest, FirmwareSource
from harness.firmware.step import run_step
from harness.firmware.wheel.package import LIBRARIES, RuntimeWheel, runtime_wheel
from harness.firmware.wheel.root import describe_cpu, lay_out
from harness.system import paths, toolchain
from harness.system.files import sha256_of
from harness.system.progress import Progress, silent

_LAYOUT = 2  # raise it when what a directory of the cache holds changes
_COMPILER = "aarch64-linux-gnu-g++"


class NoWheelFor(UsageError):
    """There is no wheel with ExecuTorch's runtime for the target."""

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


class Wheel(FirmwareSource):
    """The runtime and kernels of ExecuTorch's wheel, for a target with Linux."""

    name = "wheel"
    kernel_hint = (
        "ExecuTorch's wheel has the operators of its portable and optimised kernels and "
        "quantized_decomposed ones; a target's lowerings (`hil targets`) make programs of these: "
        "TARGET@portable-fp32"
    )
    backend_hint = "ExecuTorch's wheel has XNNPACK's alone"
    extra_backends = ("XnnpackBackend",)
    offer = "ExecuTorch's own runtime for targets with Linux has XNNPACK"

    def key(self, request: BuildRequest) -> str:
        return make_plan(request.target).key()

    def tree(self, request: BuildRequest) -> Path:
        return paths.cache_dir("firmware") / self.key(request) / "build"

    def build(self, request: BuildRequest, progress: Progress = silent) -> Firmware:
        """Also raises NoWheelFor, NoWheel and WheelLacks."""
        target, plan = request.target, make_plan(request.target)
        return obtain(plan.key(), target, lambda d: _build(plan, d, target, progress), progress)


SOURCE = Wheel()


def _build(plan: WheelPlan, directory: Path, target: Target, progress: Progress) -> Firmware:
    tree = directory / "build"
    tree.mkdir()
    environment = step.environment(tree)
    name = f"{target.name} (ExecuTorch {plan.wheel.version})"
    progress(f"{name}: configuring the runner")
    run_step("configure", _configure(plan, tree), directory, name, progress, environment)
    ninja = str(toolchain.locate("ninja"))
    jobs = str(len(os.sched_getaffinity(0)))
    run_step("build", (ninja, "-C", str(tree), "-j", jobs), directory, name, progress, environment)
    for product in (RUNNER, f"{RUNNER}.map"):
        (tree / product).replace(directory / product)
    shutil.rmtree(tree)
    given = [plan.wheel.root / "lib" / library for library in LIBRARIES]
    compiler = toolchain.require(_COMPILER).path
    lay_out(directory / RUNNER, given, compiler, directory / ROOT)
    describe_cpu(target.cpu, directory / ROOT)
    return Firmware(
        directory=directory,
        target=target.name,
        variant="",
        key=directory.name,
        toolchain_id=plan.toolchain_id,
        build_id=build_id(directory / RUNNER),
        elf_sha256=sha256_of(directory / RUNNER),
        seconds=0.0,
        options={"HIL_PORT": target.port, **plan.options},
        source=SOURCE,
        notes=(plan.wheel.note,),
    )


def _configure(plan: WheelPlan, tree: Path) -> Sequence[str]:
    toolchain.require("ninja")
    toolchain.require(_COMPILER)
    options = {
        **plan.options,
        "HIL_WHEEL": str(plan.wheel.root),
        "CMAKE_TOOLCHAIN_FILE": str(_toolchain_file()),
        **step.launchers("CXX"),
    }
    return (
        str(toolchain.locate("cmake")),
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
