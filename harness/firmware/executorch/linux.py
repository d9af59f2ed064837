"""ExecuTorch's ``executor_runner`` for a Linux target: the options of its build, and what is ours.

They are those of its preset ``arm-ethosu-linux``, whose toolchain, a musl from elsewhere, and whose
driver stack, which it would download, are ours instead: the compiler of the bundled runner, and the
library that speaks to the guest's NPU driver (``targets/linux/ethosu``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.config.loading import Target
from harness.firmware.executorch.checkout import LINUX_PRESET
from harness.firmware.executorch.overlay import Overlay
from harness.system import paths

RUNNER = "executor_runner"
_FLAGS = "-O2 -g1 -ffunction-sections -fdata-sections"  # without NDEBUG, as the preset has it


def options(target: Target) -> Mapping[str, str]:
    """What is built, and how; without paths."""
    return {
        "HIL_PORT": target.port,
        "HIL_CPU": target.cpu,
        "EXECUTORCH_BUILD_ARM_ETHOSU_LINUX": "OFF" if target.npu is None else "ON",
        # Programs without an NPU are lowered to these operators, on every CPU.
        "EXECUTORCH_BUILD_CORTEX_M": "ON",
        "CORTEX_M_ENABLE_RUNTIME_CHECKS": "ON",
        "EXECUTORCH_ENABLE_LOGGING": "ON",
        # Release is stripped, and the place of a fault would have no name.
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        "CMAKE_C_FLAGS_RELWITHDEBINFO": _FLAGS,
        "CMAKE_CXX_FLAGS_RELWITHDEBINFO": _FLAGS,
        # Nothing of these is in this program, and their submodules may be absent.
        "EXECUTORCH_BUILD_PTHREADPOOL": "OFF",
        "EXECUTORCH_BUILD_CPUINFO": "OFF",
        "FXDIV_SOURCE_DIR": "unused",
    }


def places(overlay: Overlay) -> Mapping[str, str]:
    """Where the build finds things."""
    targets = paths.data_root() / "targets"
    return {
        "CMAKE_TOOLCHAIN_FILE": str(_toolchain_file()),
        "EXECUTORCH_BUILD_PRESET_FILE": str(overlay.checkout / LINUX_PRESET),
        "ETHOSU_LINUX_DRIVER_SOURCE_DIR": str(targets / "linux" / "ethosu"),
        "CMSIS_NN_LOCAL_PATH": str(overlay.sdk / "core_software" / "cmsis-nn"),
        "CMAKE_PROJECT_executorch_INCLUDE": str(platform() / "runner.cmake"),
    }


def platform() -> Path:
    return paths.data_root() / "targets" / "executorch" / "linux"


def own_files() -> Iterator[Path]:
    """All of ours that the build reads."""
    targets = paths.data_root() / "targets"
    driver, runner = targets / "linux" / "ethosu", targets / "runner"
    yield _toolchain_file()
    for folder in (platform(), driver / "driver_library", driver / "kernel"):
        yield from sorted(path for path in folder.rglob("*") if path.is_file())
    yield driver / "uapi.h"
    yield from sorted((runner / "core").glob("*.h"))
    for name in ("core/format.cpp", "ports/platform.h"):
        yield runner / name
    yield from sorted((runner / "ports" / "linux").glob("signals.*"))


def _toolchain_file() -> Path:
    return paths.data_root() / "cmake" / "toolchains" / "aarch64-linux.cmake"
