"""The runner built for bare metal with almost no kernels, which is quick."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.firmware.step import launchers
from harness.system.paths import executorch_package
from tests.link.test_own_builds import LISTS, forgetful_kernels
from tools.clone import project_root

ELF = "ports/cortex_m/executor_runner"


def built(root: Path, *options: str, planted: tuple[Path, Path] | None = None) -> Path:
    """The build directory. ``planted``: a file, and the source in whose place it is mounted for
    this build, so that all paths are as usual and the compiler's cache has the rest."""
    walls = []
    if planted is not None:
        walls = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
        walls += ["--ro-bind", *map(str, planted), "--"]
    kernels = forgetful_kernels(
        root, LISTS.replace("registry.cpp", "registry.cpp op_forgotten.cpp")
    )
    sources, build = project_root() / "targets" / "runner", root / "build"
    toolchain = project_root() / "cmake" / "toolchains" / "cortex-m.cmake"
    configure = [
        "cmake",
        "-S",
        str(sources),
        "-B",
        str(build),
        "-G",
        "Ninja",
        "-DHIL_PORT=cortex_m",
        f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
        f"-DHIL_KERNELS_DIR={kernels}",
        f"-DHIL_SCHEMA_DIR={executorch_package() / 'schema'}",
        *options,
        *(f"-D{name}={value}" for name, value in launchers("CXX").items()),
    ]
    for argv in (configure, ["ninja", "-C", str(build), "-j2", "executor_runner"]):
        done = subprocess.run([*walls, *argv], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build
