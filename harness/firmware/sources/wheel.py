"""Builds a runner for Linux targets from ExecuTorch's own runtime, from its wheel for AArch64.

The program is ``targets/executorch/wheel``: command line, log and port are the bundled runner's,
everything between a program's bytes and its outputs is the wheel's. pip downloads the wheel of the
exporter's version once, without installing it, from its usual index ($PIP_INDEX_URL; from a folder:
$PIP_FIND_LINKS with $PIP_NO_INDEX=1). Only what a C++ program needs is kept.

The wheel's libraries are shared, so the firmware has a folder ``root`` next to the ELF, with files
that the root file system needs: a guest has no libraries, and this machine's are for another CPU.
XNNPACK also reads the CPU from /proc and /sys. A guest's kernel mounts its own over those in
``root``; in QEMU's user mode they would be this machine's, or missing for a confined process.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness.config.target import Target
from harness.core.errors import BuildError, InfraError, UsageError
from harness.firmware.cache import described, obtain
from harness.firmware.memory import pool_options
from harness.firmware.source import ROOT, RUNNER, BuildRequest, Firmware, FirmwareSource
from harness.firmware.step import build_with_cmake, launchers, own_digest, toolchain_file
from harness.formats.elf import read_elf
from harness.system import artifact_cache, paths, toolchain
from harness.system.call import CallFailed, call
from harness.system.files import disk_errors, sha256_of
from harness.system.paths import install_command
from harness.system.progress import Progress, silent

_LAYOUT = 3  # raise it when what a directory of the cache holds changes
_COMPILER = "aarch64-linux-gnu-g++"
DISTRIBUTION = "executorch"
PLATFORM = "manylinux_2_28_aarch64"
# Linked, or opened by what is linked: the runtime, the operators' kernels and a backend.
LIBRARIES = tuple(
    f"lib{DISTRIBUTION}{name}.so"
    for name in ("", "_threadpool", "_kernels_optimized", "_kernels_quantized", "_backend_xnnpack")
)
_FOLDERS = ("include", "share/cmake")
_PIP_SECONDS = 900
_COMPILER_SECONDS = 60
FILE_POOL = "HIL_FILE_POOL_BYTES"  # its only pool
_LIB = "lib"  # the run path that the program is linked with
# The part numbers of Arm's cores (Linux, arch/arm64/include/asm/cputype.h).
_PARTS = {
    "cortex-a35": 0xD04,
    "cortex-a53": 0xD03,
    "cortex-a55": 0xD05,
    "cortex-a57": 0xD07,
    "cortex-a72": 0xD08,
    "cortex-a76": 0xD0B,
}
_ARM = 0x41


@dataclass(frozen=True)
class RuntimeWheel:
    """``root``: the package's folder, with the C++ part of it; ``sha256``: of the wheel's file."""

    version: str
    file: str
    sha256: str
    root: Path

    @property
    def note(self) -> str:
        """For a record."""
        return (
            f"the runtime and the kernels are those of {self.file} ({self.sha256[:12]}), started "
            "by a program of the harness's own"
        )


def runtime_wheel() -> RuntimeWheel:
    """That of the exporter's version. Raises InfraError (pip has none; not whole; disk full)."""
    version = metadata.version(DISTRIBUTION).partition("+")[0]
    name = f"{DISTRIBUTION}-{version}-{PLATFORM}"
    place = paths.cache_dir("wheels") / name
    with disk_errors("keeping ExecuTorch's wheel"):
        facts = artifact_cache.cached(place, name, lambda empty: _fetch(version, empty)).facts
    return RuntimeWheel(version, facts["file"], facts["sha256"], place / DISTRIBUTION)


def _fetch(version: str, folder: Path) -> dict[str, str]:
    _download(version, folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, _wanted(archive, wheel.name))
    facts = {"file": wheel.name, "sha256": sha256_of(wheel)}
    wheel.unlink()
    return facts


def _wanted(archive: zipfile.ZipFile, wheel: str) -> list[str]:
    """The members to unpack. Raises InfraError if one that a program needs is missing."""
    folders = tuple(f"{DISTRIBUTION}/{folder}/" for folder in _FOLDERS)
    libraries = [f"{DISTRIBUTION}/lib/{name}" for name in LIBRARIES]
    members = archive.namelist()
    for wanted in (*folders, *libraries):
        if not any(name.startswith(wanted) for name in members):
            raise InfraError(
                f"{wheel} has no {wanted}, and no program can be linked with it",
                hint=f"the pinned version has it: {install_command('export')}",
                kind="wheel_lacks",
                wheel=wheel,
                missing=wanted,
            )
    return [name for name in members if name.startswith(folders) or name in libraries]


def _download(version: str, folder: Path) -> None:
    words = (
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"),
        *("download", f"{DISTRIBUTION}=={version}", "--no-deps", "--only-binary=:all:"),
        *("--platform", PLATFORM, "--retries", "2", "--dest", str(folder), "--quiet"),
    )
    try:
        call(words, _PIP_SECONDS, cwd=folder)
    except CallFailed as error:
        raise InfraError(
            f"pip has no ExecuTorch {version}, which exports here, for Linux on AArch64: {error}",
            hint="pip fetches it once, from where it takes everything else; without a network, put "
            f"{DISTRIBUTION}-{version}-*-{PLATFORM}.whl into a folder and say PIP_NO_INDEX=1 "
            "PIP_FIND_LINKS=FOLDER",
            kind="no_wheel",
            version=version,
        ) from error


@dataclass(frozen=True)
class WheelPlan:
    """Everything that decides what is built."""

    wheel: RuntimeWheel
    toolchain_id: str
    options: dict[str, str]

    def key(self) -> str:
        facts = [self.wheel.sha256, self.toolchain_id, self.options]
        return artifact_cache.key_of([_LAYOUT, *facts, own_digest()])


def make_plan(target: Target) -> WheelPlan:
    """Raises UsageError (no Linux), ToolMissing, and what ``runtime_wheel`` does."""
    require_linux(target)
    identity = toolchain.toolchain_id(target.toolchain)
    options = {
        "HIL_CPU": target.cpu,
        FILE_POOL: pool_options(target)[FILE_POOL],
        "CMAKE_BUILD_TYPE": "Release",
    }
    return WheelPlan(runtime_wheel(), identity, options)


def require_linux(target: Target) -> None:
    """Raises UsageError."""
    if target.port != "linux":
        raise UsageError(
            f"ExecuTorch's wheel has its runtime for Linux on AArch64; {target.name} has no Linux",
            hint="a target whose name begins with corstone-1000-; or another --firmware",
            target=target.name,
        )


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

    def check(self, request: BuildRequest) -> None:
        require_linux(request.target)

    def tree(self, request: BuildRequest) -> Path:
        return paths.cache_dir("firmware") / self.key(request) / "build"

    def build(self, request: BuildRequest, progress: Progress = silent) -> Firmware:
        """Also raises what ``make_plan`` does."""
        target, plan = request.target, make_plan(request.target)
        return obtain(plan.key(), target, lambda d: _build(plan, d, target, progress), progress)


SOURCE = Wheel()


def _build(plan: WheelPlan, directory: Path, target: Target, progress: Progress) -> Firmware:
    compiler = toolchain.require(_COMPILER).path
    options = {
        **plan.options,
        "HIL_WHEEL": str(plan.wheel.root),
        "CMAKE_TOOLCHAIN_FILE": str(toolchain_file(target.port)),
        **launchers("CXX"),
    }
    name = f"{target.name} (ExecuTorch {plan.wheel.version})"
    sources = paths.data_root() / "targets" / "executorch" / "wheel"
    build_with_cmake(sources, directory, options, name, progress)
    given = [plan.wheel.root / "lib" / library for library in LIBRARIES]
    lay_out(directory / RUNNER, given, compiler, directory / ROOT)
    describe_cpu(target.cpu, directory / ROOT)
    return described(
        directory,
        target.name,
        plan.toolchain_id,
        {"HIL_PORT": target.port, **plan.options},
        source=SOURCE,
        notes=(plan.wheel.note,),
    )


def lay_out(program: Path, given: Sequence[Path], compiler: Path, root: Path) -> None:
    """Copies every library that ``program`` loads, directly or not, to ``root``/lib. ``given``: the
    wheel's libraries; others are the compiler's. Raises BuildError for a missing one,
    MalformedFile, OSError."""
    folder = root / _LIB
    folder.mkdir(parents=True)
    known = {path.name: path for path in given}
    elf = read_elf(program)
    wanted = [(name, program.name) for name in elf.needed]
    if elf.interpreter is not None:
        wanted.append((Path(elf.interpreter).name, program.name))
    done: set[str] = set()
    while wanted:
        name, by = wanted.pop()
        if name in done:
            continue
        done.add(name)
        # gcc(1): -print-file-name gives the name back when it knows of no such file.
        source = known.get(name) or Path(
            call((compiler, f"-print-file-name={name}"), _COMPILER_SECONDS).strip()
        )
        if not (source.is_absolute() and source.is_file()):
            raise BuildError(
                f"{by} wants {name}, which {compiler.name} does not have either",
                hint="the compiler's C and C++ libraries for AArch64 are not all there: "
                "`hil doctor` says how to get them",
                kind="library_missing",
                library=name,
                wanted_by=by,
            )
        shutil.copyfile(source, folder / name)
        (folder / name).chmod(0o755)
        wanted += [(other, name) for other in read_elf(source).needed]


def describe_cpu(cpu: str, root: Path) -> None:
    """Writes /proc and /sys files that describe one core of ``cpu`` (GCC's name), as Linux does
    (arch/arm64/kernel/cpuinfo.c, Documentation/admin-guide/cputopology.rst)."""
    cores = root / "sys" / "devices" / "system" / "cpu"
    cores.mkdir(parents=True)
    for name in ("possible", "present"):
        (cores / name).write_text("0\n")
    lines = ["processor\t: 0"]
    if cpu in _PARTS:
        lines += [
            f"CPU implementer\t: {_ARM:#04x}",
            "CPU architecture: 8",
            f"CPU part\t: {_PARTS[cpu]:#05x}",
        ]
    (root / "proc").mkdir()
    (root / "proc" / "cpuinfo").write_text("\n".join(lines) + "\n")
