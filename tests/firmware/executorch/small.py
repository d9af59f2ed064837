"""A small checkout in the shape of ExecuTorch, and its parts: what CI builds for the real one.

Its CMake files, its runner's program and its parts are those beside this file; its engine, backend
and a few kernels are copies of ``targets/runner``, so that real programs run on it and a bug
planted in a kernel shows. Two things that this project only installs are taken from where they
are: the schemas of ExecuTorch's wheel, and FlatBuffers' headers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.run.version_skew import declared
from harness.system.paths import executorch_package
from tools.clone import project_root

HERE = Path(__file__).parent
OPS = Path("backends/cortex_m/ops")
PORTABLE = Path("kernels/portable/cpu")
STAGE = Path("backends/arm/runtime/stage.cpp")  # of inputs, under Linux
BATCH = Path("backends/arm/runtime/ethosu/linux/batch.cpp")  # their places
PLATFORM = Path("ethosu/linux/platform_cortex_a.cpp")
KERNEL = OPS / "op_quantized_add.cpp"  # one that tests plant bugs in
CHECKS = OPS / "checks.cpp"  # in every program, and compiled in no time: one that tests mark
# What the programs need that tests run (qadd, deep_autoencoder, resnet8), and one portable kernel:
# every build of a test's own compiles all of it.
KERNELS = (
    *("broadcast", "checks", "conv", "conv_arguments", "elements", "layout", "matmul", "move"),
    *("pooling", "window", "op_add", "op_et_view", "op_transpose", "op_quantized_add"),
    *("op_dequantize_per_tensor", "op_quantize_per_tensor", "op_quantized_avg_pool2d"),
    *("op_quantized_conv2d", "op_quantized_linear"),
)
SUBMODULES = ("flatbuffers", "flatcc", "gflags", "json")
PARTS = (*SUBMODULES, "core_driver", "cmsis_6", "cmsis-nn")
_OPERATOR = re.compile(r'^HIL_OPERATOR\("([\w:.]+)", (\w+)\)', re.MULTILINE)
_IN_NN = ("requantize.h", "requantize_helium.h")  # these are CMSIS-NN's here


def small_checkout(folder: Path) -> tuple[Path, Mapping[str, Path]]:
    """A checkout below ``folder``, committed on branch main, and its parts by name.

    None of the parts is inside it; each is a repository in ``folder/parts``. The checkout's index
    names the commits of those that are submodules, and its .gitmodules where they are.
    """
    parts = {name: _part(name, folder / "parts" / name) for name in PARTS}
    root = folder / "checkout"
    shutil.copytree(HERE / "tree", root)
    _engine(root)
    _kernels(root)
    pin = root / "backends" / "cortex_m" / "CMakeLists.txt"
    nn = head(parts["cmsis-nn"])
    pin.write_text(pin.read_text().replace("@CMSIS_NN_COMMIT@", nn))
    repository(root, {name: parts[name] for name in SUBMODULES})
    return root, parts


def copied_checkout(made: Path, folder: Path) -> tuple[Path, Mapping[str, Path]]:
    """What ``small_checkout(made)`` made, in another folder; its .gitmodules names the parts in the
    first one."""
    subprocess.run(["cp", "-a", str(made), str(folder)], check=True)  # half of what copytree takes
    root, parts = folder / "checkout", {name: folder / "parts" / name for name in PARTS}
    for copy in (root, *parts.values()):
        git(copy, "update-index", "-q", "--refresh")  # the files' inodes are others
    return root, parts


def sdk_platform(folder: Path) -> Path:
    """A core_platform like the SDK's: its boards include what they share. It is what the harness
    brings for QEMU, so that a program built with it runs there."""
    root = folder / "core_platform"
    ours = project_root() / "targets" / "executorch" / "platform"
    shutil.copytree(ours, root / "targets" / "common")
    sources = ("startup.cpp", "fault.cpp", "npu.cpp", "console.cpp", "memory.cpp")
    common = root / "targets" / "common" / "CMakeLists.txt"
    common.rename(common.with_name("board.cmake"))
    edit(
        common.with_name("board.cmake"),
        f" {' '.join(sources)}",
        "".join(f"\n  ${{CMAKE_CURRENT_LIST_DIR}}/{name}" for name in sources),
    )
    for board in ("corstone-300", "corstone-320"):
        (root / "targets" / board).mkdir()
        (root / "targets" / board / "CMakeLists.txt").write_text(
            "set(HIL_CORE_DRIVER ${CMAKE_CURRENT_SOURCE_DIR}/../../../core_software/core_driver)\n"
            "set(HIL_CMSIS_6 ${CMAKE_CURRENT_SOURCE_DIR}/../../../core_software/cmsis_6)\n"
            "include(${CMAKE_CURRENT_SOURCE_DIR}/../common/board.cmake)\n"
        )
    return root


def git(folder: Path, *arguments: str) -> str:
    """What git prints; as somebody, and as on any machine."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environment |= {
        f"GIT_{who}_{what}": "t@example.invalid"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip()


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path, submodules: Mapping[str, Path] | None = None) -> None:
    """Make all of a folder the first commit of a repository."""
    git(folder, "init", "-q", "-b", "main", "--template=")
    modules = ""
    for name, source in (submodules or {}).items():
        place = f"third-party/{name}"
        modules += f'[submodule "{place}"]\n\tpath = {place}\n\turl = {source}\n'
        (folder / place).mkdir()
        git(folder, "update-index", "--add", "--cacheinfo", f"160000,{head(source)},{place}")
    if modules:
        (folder / ".gitmodules").write_text(modules)
    commit(folder, "all of it")


def commit(folder: Path, message: str) -> str:
    """Everything that is there; the commit's name."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return head(folder)


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text that must be there."""
    text = path.read_text()
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new, 1))


def _part(name: str, to: Path) -> Path:
    if name == "flatbuffers":
        _flatbuffers(to)
    else:
        shutil.copytree(HERE / "parts" / name, to)
    if name == "cmsis-nn":
        (to / "Include" / "kernels").mkdir(exist_ok=True)
        for header in _IN_NN:
            shutil.copy(_runner() / "kernels" / header, to / "Include" / "kernels" / header)
    repository(to)
    return to


def _flatbuffers(to: Path) -> None:
    """The installed headers, and the flatc that was installed with them."""
    for place in (Path("/usr"), Path("/usr/local")):
        if (place / "include" / "flatbuffers" / "base.h").is_file():
            shutil.copytree(place / "include" / "flatbuffers", to / "include" / "flatbuffers")
            (to / "bin").mkdir()
            (to / "bin" / "flatc").symlink_to(place / "bin" / "flatc")
            return
    raise FileNotFoundError("flatbuffers/base.h: the runner's build needs it, too")


def _engine(root: Path) -> None:
    core = root / "runtime" / "core"
    nothing = shutil.ignore_patterns("CMakeLists.txt")
    shutil.copytree(_runner() / "core", core, ignore=nothing, dirs_exist_ok=True)
    (core / "program.cpp").rename(root / "runtime" / "executor" / "program.cpp")
    backend = root / "backends" / "arm" / "runtime" / "ethosu"
    backend.mkdir()
    for name in ("backend", "cop2", "hooks", "in_scratch", "io_layout", "io_memcpy", "vela_stream"):
        shutil.copy(_runner() / "ethosu" / f"{name}.cpp", backend)
    for header in (_runner() / "ethosu").glob("*.h"):
        shutil.copy(header, backend)
    _linux_backend(backend)
    for schemas in ("schema", "devtools/bundled_program/schema"):
        (root / schemas).mkdir(parents=True, exist_ok=True)
        for schema in (executorch_package() / schemas).glob("*.fbs"):
            shutil.copy(schema, root / schemas)


def _linux_backend(backend: Path) -> None:
    """It stages inputs in temporary memory, as ExecuTorch's does."""
    (backend / "linux").mkdir()
    for name in ("batch", "options"):
        for suffix in ("cpp", "h"):
            shutil.copy(_runner() / "ethosu/linux" / f"{name}.{suffix}", backend / "linux")
    platform = backend / "linux" / PLATFORM.name
    shutil.copy(_runner() / PLATFORM, platform)
    edit(
        platform,
        '#include "ethosu/platform.h"',
        '#include "ethosu/platform.h"\n#include "../../stage.h"',
    )
    edit(
        platform,
        "  const size_t inputs = stream.inputs.size();\n",
        "  const size_t inputs = stream.inputs.size();\n"
        "  if (!stage_inputs(stream, args)) return Error::MemoryAllocationFailed;\n",
    )


def _kernels(root: Path) -> None:
    """Each where ExecuTorch has it, and in the list of its folder."""
    lists: dict[str, list[tuple[str, str]]] = {}
    for folder in (PORTABLE, OPS, Path("kernels/quantized")):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for source in sorted((_runner() / "kernels").iterdir()):
        wanted = source.suffix == ".h" or (source.suffix == ".cpp" and source.stem in KERNELS)
        if not wanted or source.name in _IN_NN:
            continue
        entries = _OPERATOR.findall(source.read_text())
        spaces = {name.partition("::")[0] for name, _ in entries}
        portable = spaces == {"aten"}
        shutil.copy(source, root / (PORTABLE if portable else OPS))
        for name, kernel in entries:
            lists.setdefault(name.partition("::")[0], []).append((name, kernel))
    _write(root / "kernels" / "portable" / "functions.yaml", lists["aten"])
    _write(root / "kernels" / "quantized" / "quantized.yaml", lists["quantized_decomposed"])
    _write(root / OPS / "operators.yaml", lists["cortex_m"])
    _write(root / "runtime" / "primitive.yaml", lists["executorch_prim"])


def _write(path: Path, entries: Iterable[tuple[str, str]]) -> None:
    """Operators that are not torch's with the arguments that the wheel declares."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text, known = "", declared(executorch_package())
    for name, kernel in entries:
        aten = name.startswith("aten::")
        arguments = ", ".join(f"{kind} a{n}" for n, kind in enumerate(known.get(name, ())))
        schema = f"- func: {name}({arguments}) -> Tensor"
        text += (f"- op: {name.removeprefix('aten::')}" if aten else schema) + "\n"
        text += f"  kernels:\n    - arg_meta: null\n      kernel_name: {kernel}\n\n"
    path.write_text(text, "utf-8")


def _runner() -> Path:
    return project_root() / "targets" / "runner"
