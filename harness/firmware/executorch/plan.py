"""How a checkout's runner is built for a target: the CMake options, and what of it is ours.

The options are those of ``backends/arm/scripts/build_executor_runner.sh`` of ExecuTorch. On an
FVP the SDK's own ``core_platform`` starts the board; QEMU gets ``targets/executorch/platform``,
and a Corstone-320's program is linked for the memory map that QEMU has. A Linux target has another
runner of ExecuTorch's (``linux``).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness.config import strict_yaml
from harness.config.loading import Target
from harness.config.model import SimulatorName
from harness.core.errors import UsageError
from harness.firmware.executorch import linux
from harness.firmware.executorch.checkout import LINUX_PRESET, Checkout, RevisionUnsupported
from harness.firmware.executorch.overlay import Overlay
from harness.firmware.executorch.parts import SPECS, PartMissing, places
from harness.firmware.executorch.zephyr_sample import refuse
from harness.firmware.step import launchers
from harness.system import paths, toolchain

_LAYOUT = 1  # raise it when what a build tree holds changes
_PREFIXES = ("corstone-300-", "corstone-320-")
_FUNCTION = re.compile(r"^- (?:op|func): ([\w:.]+)", re.MULTILINE)
# Beside the data of portable kernels in a DTCM (ExecuTorch's setup_testing.sh).
_HEAP = {product: {"HEAP_SIZE": "0x7000"} for product in ("u55", "u65")}
_SOFTWARE = ("core_driver", "cmsis_6")  # what the program of a board without Linux is made of
_CPU_ONLY = ("ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram")


class NoRunnerFor(UsageError):
    """ExecuTorch's runner is not made for the board of this target."""

    def __init__(self, target: Target, simulator: SimulatorName) -> None:
        self.target = target.name
        super().__init__(
            f"ExecuTorch's arm_executor_runner is linked for Corstone-300 and Corstone-320, its "
            f"executor_runner for Linux, and {target.name} on {simulator} is neither",
            hint="a target whose name begins with corstone-300-, corstone-320- or corstone-1000-; "
            "or --firmware bundled",
        )


@dataclass(frozen=True)
class Flatc:
    """An installed FlatBuffers compiler."""

    path: Path
    version: str


@dataclass(frozen=True)
class CheckoutPlan:
    """Everything that decides what is built. ``platform``: ours, or None for the SDK's own."""

    checkout: Checkout
    platform: Path | None
    relinked: bool  # for QEMU's memory map
    toolchain_id: str
    flatc: Flatc | None
    torchgen: str  # version of torch, whose generators write the kernels' registration
    options: Mapping[str, str]  # without paths, which say nothing of the content
    runner: str = "arm_executor_runner"  # ExecuTorch's name for it

    def key(self) -> str:
        """Equal for equal firmware, wherever the checkout lies."""
        return _hash([self.checkout.identity(), *self._facts()])

    def tree(self) -> str:
        """Names the build tree: one for each checkout with its parts where they are, and each
        configuration, whatever their revisions."""
        there = [self.checkout.root, *(part.folder for part in self.checkout.parts.values())]
        there += [self.flatc.path] if self.flatc is not None else []
        return _hash([[str(path) for path in there], *self._facts()])

    def _facts(self) -> list[object]:
        ours = [] if self.platform is None else [_content(self.platform, self._own_files())]
        flatc = "" if self.flatc is None else self.flatc.version
        tools = [self.toolchain_id, flatc, self.torchgen]
        return [_LAYOUT, *tools, dict(self.options), self.relinked, ours]

    def _own_files(self) -> Iterator[Path]:
        return linux.own_files() if self.is_linux else _files(_ours())

    @property
    def is_linux(self) -> bool:
        return self.runner == linux.RUNNER

    @property
    def products(self) -> Mapping[str, str]:
        """What the build leaves, by what it is called behind the name of a Firmware's ELF."""
        made = {"": self.runner, ".map": f"{self.runner}.map"}
        return {**made, ".stripped": f"{self.runner}.stripped"} if self.is_linux else made

    @property
    def notes(self) -> tuple[str, ...]:
        notes = list(self.checkout.notes)
        if self.is_linux:
            notes.append("temporary memory ends at a page that nobody may touch")
            if self.options["EXECUTORCH_BUILD_ARM_ETHOSU_LINUX"] == "ON":
                notes.append("linked with the harness's own driver library, not Arm's")
        elif self.platform is not None:
            notes.append("started by the harness's own platform code, not ethos-u-core-platform's")
        if self.relinked:
            notes.append("linked for QEMU's memory map, not Corstone-320's")
        return tuple(notes)


def make_plan(target: Target, simulator: SimulatorName, checkout: Checkout) -> CheckoutPlan:
    """Raises NoRunnerFor, PartMissing (a board without Linux wants the SDK's ``core_driver`` and
    ``cmsis_6``, an FVP also its ``core_platform``), ToolMissing; for Zephyr what ``refuse`` gives.
    """
    if target.zephyr is not None:
        raise refuse(target, checkout)
    if target.port == "linux":
        return _linux_plan(target, checkout)
    if not target.name.startswith(_PREFIXES) or target.port != "cortex_m":
        raise NoRunnerFor(target, simulator)
    ours = simulator is SimulatorName.QEMU
    wanted = _SOFTWARE if ours else (*_SOFTWARE, "core_platform")
    if missing := [name for name in wanted if name not in checkout.parts]:
        raise PartMissing(
            checkout.root, {SPECS[name]: places(name, checkout.root) for name in missing}
        )
    board = target.npu.product if target.npu is not None else "u55"
    config, system, mode = _CPU_ONLY
    if target.npu is not None:
        config = f"ethos-{target.npu.product}-{target.npu.macs}"
        system, mode = target.npu.system_config, target.npu.memory_mode
    return CheckoutPlan(
        checkout=checkout,
        platform=_ours() / "platform" if ours else None,
        relinked=ours and board == "u85",
        toolchain_id=toolchain.toolchain_id(target.toolchain),
        flatc=_flatc(checkout),
        torchgen=_version("torch"),
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
            "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE": "83886080",
            "CORTEX_M_ENABLE_RUNTIME_CHECKS": "ON",
            "CMAKE_BUILD_TYPE": "Release",
            "FETCH_ETHOS_U_CONTENT": "OFF",
            # Nothing of these is in a bare-metal program, and their submodules may be absent.
            "EXECUTORCH_BUILD_PTHREADPOOL": "OFF",
            "EXECUTORCH_BUILD_CPUINFO": "OFF",
            "FXDIV_SOURCE_DIR": "unused",
            **_HEAP.get(board, {}),
        },
    )


def _linux_plan(target: Target, checkout: Checkout) -> CheckoutPlan:
    """One program for every simulator."""
    if not (checkout.root / LINUX_PRESET).is_file():
        raise RevisionUnsupported(checkout.root, checkout.revision, LINUX_PRESET)
    return CheckoutPlan(
        checkout=checkout,
        platform=linux.platform(),
        relinked=False,
        toolchain_id=toolchain.toolchain_id(target.toolchain),
        flatc=_flatc(checkout),
        torchgen=_version("torch"),
        options=linux.options(target),
        runner=linux.RUNNER,
    )


def configure(plan: CheckoutPlan, overlay: Overlay, tree: Path, python: Path) -> tuple[str, ...]:
    """CMake's command line. ``python`` runs the checkout's code generators."""
    places = linux.places(overlay) if plan.is_linux else _places(plan, overlay)
    options = {
        **plan.options,
        **places,
        "PYTHON_EXECUTABLE": str(python),
        **({"FLATC_EXECUTABLE": str(plan.flatc.path)} if plan.flatc else {}),
    }
    options |= launchers("C", "CXX")
    root = overlay.checkout
    entry = root if plan.is_linux else root / "examples/arm/executor_runner/standalone"
    return (
        str(toolchain.locate("cmake")),
        *("-S", str(entry)),
        *("-B", str(tree)),
        *("-G", "Ninja"),
        *(f"-D{name}={value}" for name, value in options.items()),
    )


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
        **(
            {"CMAKE_PROJECT_arm_executor_runner_INCLUDE": str(_ours() / "qemu_map.cmake")}
            if plan.relinked
            else {}
        ),
    }


def operators(checkout: Checkout, *, npu: bool) -> tuple[str, ...]:
    """What the runner registers: the ``cortex_m`` list of the checkout, and more that we name."""
    wanted = strict_yaml.read(_ours() / "operators.yaml").data
    own = _listed(checkout, "backends/cortex_m/ops/operators.yaml")
    portable = {
        name if "::" in name else f"aten::{name}"
        for name in _listed(checkout, "kernels/portable/functions.yaml")
    }
    quantized = set(_listed(checkout, "kernels/quantized/quantized.yaml"))
    return (
        *own,
        *(name for name in wanted["npu" if npu else "cpu"] if name in portable),
        *(name for name in wanted["quantized"] if name in quantized),
        *wanted["primitive"],
    )


def _ours() -> Path:
    return paths.data_root() / "targets" / "executorch"


def _listed(checkout: Checkout, name: str) -> Sequence[str]:
    return _FUNCTION.findall((checkout.root / name).read_text("utf-8"))


def _flatc(checkout: Checkout) -> Flatc | None:
    """One that fits the checkout's FlatBuffers. Without it its build makes one, which takes a
    minute."""
    from harness.system.paths import executorch_package

    header = checkout.parts["flatbuffers"].folder / "include/flatbuffers/base.h"
    said = re.findall(r"#define FLATBUFFERS_VERSION_\w+ (\d+)", header.read_text("utf-8"))
    found = executorch_package() / "data" / "bin" / "flatc"
    if not found.is_file() or (version := toolchain.version_of(found)) != ".".join(said[:3]):
        return None
    return Flatc(found, version)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _content(folder: Path, files: Iterable[Path]) -> str:
    """``folder`` is where they are looked at from."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{os.path.relpath(path, folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _hash(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
