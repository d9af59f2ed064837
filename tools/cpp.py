"""Checks of the project's C and C++: layout, clang-tidy, unit tests under sanitizers, fuzzing.

Each check takes the stream that its output goes to and returns whether it passed. clang-format and
clang-tidy come from PyPI in one version (``pyproject.toml``, extra ``dev``): another one lays out
differently and finds other things.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import numpy as np

from harness.config.models import find_model
from harness.core.errors import ToolMissing
from harness.export.batch import export
from harness.export.request import ExportRequest
from harness.firmware.step import ccache as compiler_cache
from harness.firmware.step import launchers
from harness.npu import kernel_library
from harness.npu.blob import find_blobs
from harness.run.subjects import program_of
from harness.system import toolchain
from harness.system.paths import cache_dir, executorch_package
from harness.system.progress import silent
from tools.clone import project_root

FUZZ_SEED = 20260101
SEED_MODELS = ("add", "softmax", "linear", "qadd2", "ds_cnn")
SEED_BUNDLE = "targets/runner/ports/zephyr/sample/qlinear.bpte"
FUZZERS = ("fuzz_program", "fuzz_vela")
# How far the analyser follows one function: so many states, and each loop so many times round. With
# its defaults (225,000 and 4) nearly every function with a loop uses all states up for the same
# loop again. Reads of uninitialised variables that were planted before 210 returns: found as often
# as with three times the states and four times round, in half the time.
ANALYZER_NODES = 25_000
ANALYZER_LOOPS = 2
FILES_PER_TIDY = 4  # small batches keep both cores busy to the end


def check_format(output: IO[str]) -> bool:
    """Every C and C++ file has the layout of .clang-format."""
    files = map(str, formatted_files())
    return _run([str(environment_tool("clang-format")), "--dry-run", "-Werror", *files], output)


def check_tidy(output: IO[str]) -> bool:
    """clang-tidy finds nothing in the runner's and the NPU model's sources."""
    runner, kernel = _runner_tree(), _kernel_tree()
    configured = _configure_runner(runner, output)
    if not (configured and _build(runner, output, "hil_schema_headers")):
        return False
    if not _configure_kernel(kernel, output):
        return False
    commands = [command for tree in (runner, kernel) for command in _tidy_commands(tree)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return all([*pool.map(lambda command: run_quietly(command, output), commands)])


def environment_tool(name: str) -> Path:
    """A program of the Python environment's own ``bin``. Raises ToolMissing."""
    path = Path(sysconfig.get_path("scripts")) / name
    if not path.is_file():
        raise ToolMissing(
            f"{name} is not in {path.parent}",
            tool=name,
            package=name,
            hint="it is in the extra `dev` of pyproject.toml; ./hil test installs it",
        )
    return path


def tidy_command() -> list[str]:
    """clang-tidy with the headers of an installed clang: PyPI's package comes without stddef.h."""
    clang = str(toolchain.locate("clang++"))
    headers = subprocess.check_output([clang, "-print-resource-dir"], text=True).strip()
    arguments = [
        f"-resource-dir={headers}",
        "-Wno-unknown-warning-option",  # the build's options are GCC's
        *("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={ANALYZER_NODES}"),
        *("-Xclang", "-analyzer-max-loop", "-Xclang", str(ANALYZER_LOOPS)),
    ]
    return [str(environment_tool("clang-tidy")), *(f"--extra-arg={a}" for a in arguments)]


def _tidy_commands(tree: Path) -> list[list[str]]:
    command = [*tidy_command(), "-p", str(tree), "--quiet"]
    files = tidy_files(json.loads((tree / "compile_commands.json").read_text()))
    starts = range(0, len(files), FILES_PER_TIDY)
    return [[*command, *files[start : start + FILES_PER_TIDY]] for start in starts]


def tidy_files(commands: Sequence[Mapping[str, str]]) -> list[str]:
    """The project's own sources in a compile_commands.json, without tests and generated files."""
    runner, kernel = project_root() / "targets" / "runner", kernel_library.SOURCES
    files = {Path(command["file"]) for command in commands}
    return sorted(
        str(file)
        for file in files
        if file.is_relative_to(kernel)
        or (file.is_relative_to(runner) and not file.is_relative_to(runner / "tests"))
    )


def formatted_files() -> list[Path]:
    root = project_root()
    folders = [root / "targets" / name for name in ("runner", "linux", "executorch")]
    folders.append(root / "harness" / "npu" / "kernel")
    files = [file for folder in folders for file in folder.rglob("*")]
    files += (root / "tests" / "kernels").glob("*.cpp")
    return sorted(file for file in files if file.suffix in (".c", ".cpp", ".h", ".hpp"))


def run_unit_tests(output: IO[str]) -> bool:
    """Builds and runs the unit tests of the runner and of the NPU model under ASan and UBSan."""
    runner, kernel = _runner_tree(), _kernel_tree()
    ctest = [str(toolchain.locate("ctest")), "--test-dir", str(runner)]
    return (
        _configure_runner(runner, output)
        and _build(runner, output)
        and _run([*ctest, "--output-on-failure"], output)
        and _configure_kernel(kernel, output)
        and _build(kernel, output)
        and _run_sanitized_kernel(kernel, output)
    )


def _run_sanitized_kernel(tree: Path, output: IO[str]) -> bool:
    """The recorded cases with the sanitized NPU kernel; Python has to load the sanitizers first."""
    compiler = str(toolchain.locate("g++"))
    queries = [f"-print-file-name=lib{name}.so" for name in ("asan", "ubsan")]
    libraries = [subprocess.check_output([compiler, q], text=True).strip() for q in queries]
    return _run(
        [sys.executable, "-m", "tests.npu.sanitized", str(tree / kernel_library.NAME)],
        output,
        {**os.environ, "LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"},
    )


def fuzz(seconds: int, output: IO[str]) -> bool:
    """Fuzzes the program loader and the Ethos-U stream reader, each for ``seconds``.

    They start from real programs and real streams. An input that fails is kept, and its file named.
    """
    tree = _runner_tree()
    if not (_configure_runner(tree, output) and _build(tree, output, *FUZZERS)):
        return False
    _collect_programs(_empty_folder(tree, "fuzz_program-seeds"))
    _collect_streams(_empty_folder(tree, "fuzz_vela-seeds"))
    print(f"{' and '.join(FUZZERS)}: seed {FUZZ_SEED}, {seconds} s", file=output, flush=True)
    commands = [_fuzz_command(tree, name, seconds) for name in FUZZERS]
    with ThreadPoolExecutor(len(FUZZERS)) as pool:
        return all([*pool.map(lambda command: run_quietly(command, output), commands)])


def _fuzz_command(tree: Path, name: str, seconds: int) -> list[str]:
    return [
        str(tree / "fuzz" / name),
        f"-max_total_time={seconds}",
        f"-seed={FUZZ_SEED}",
        *("-timeout=10", "-print_final_stats=1", "-verbosity=0"),
        f"-artifact_prefix={tree}/{name}-finding-",
        str(_empty_folder(tree, f"{name}-corpus")),
        str(tree / f"{name}-seeds"),
    ]


def _empty_folder(tree: Path, name: str) -> Path:
    shutil.rmtree(tree / name, ignore_errors=True)
    (tree / name).mkdir()
    return tree / name


def _collect_programs(folder: Path) -> None:
    results = export([ExportRequest(find_model(name)) for name in SEED_MODELS])
    programs = [result.unwrap() for result in results]
    for program in programs:
        shutil.copyfile(program.pte_path, folder / f"{program.model}.pte")
    shutil.copy(project_root() / SEED_BUNDLE, folder)


def _collect_streams(folder: Path) -> None:
    """The recorded streams of the NPU model's tests, and one of direct drive, whose inputs and
    outputs lie in regions of their own; tests/regression has exported it."""
    program = program_of(Path("ds_cnn"), "corstone-1000-u85-256", "hil test", silent)
    (blob,) = find_blobs(program.pte_path.read_bytes())
    (folder / "ds_cnn-direct-drive").write_bytes(blob)
    with np.load(project_root() / "tests" / "npu" / "data" / "cases.npz") as cases:
        for key in cases.files:
            if key.endswith("/blob"):
                name = key.removesuffix("/blob").replace("/", "-")
                (folder / name).write_bytes(cases[key].tobytes())


def _runner_tree() -> Path:
    """One for the unit tests, the fuzzers and clang-tidy: the runner is compiled once."""
    return cache_dir("cpp") / "sanitized"


def _kernel_tree() -> Path:
    return cache_dir("cpp") / "npu-kernel"


def _configure_kernel(tree: Path, output: IO[str]) -> bool:
    tree.mkdir(parents=True, exist_ok=True)
    return _run(
        [
            *(str(toolchain.locate("cmake")), "-S", str(kernel_library.SOURCES)),
            *("-B", str(tree), "-G", "Ninja", "--log-level=WARNING"),
            *("-DHIL_SANITIZE=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"),
        ],
        output,
    )


def _configure_runner(tree: Path, output: IO[str]) -> bool:
    tree.mkdir(parents=True, exist_ok=True)
    return _run(configure_command(project_root() / "targets" / "runner", tree), output)


def sanitized() -> dict[str, str]:
    """CMake's options of a host runner with ASan, UBSan and what libFuzzer counts. Whoever builds
    one gives these, so that it is compiled once."""
    return {
        "HIL_SANITIZE": "ON",
        "HIL_FUZZ": "ON",
        "HIL_UNITY_BUILD": "OFF",  # each file includes what it needs, and clang-tidy sees each
        "HIL_PORTABLE_KERNELS": "ON",
        "CMAKE_CXX_COMPILER": str(toolchain.locate("clang++")),
    }


def configure_command(sources: Path, tree: Path) -> list[str]:
    """The CMake command that configures ``tree`` for the host runner and its unit tests, with
    sanitizers."""
    settings = {
        "HIL_PORT": "host",
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "HIL_SCHEMA_DIR": str(executorch_package() / "schema"),
        **launchers("CXX"),
        **sanitized(),
    }
    return [
        *(str(toolchain.locate("cmake")), "-S", str(sources), "-B", str(tree)),
        *("-G", "Ninja", "-Wno-dev", "--log-level=WARNING"),
        *(f"-D{name}={value}" for name, value in settings.items()),
    ]


def build_kernel_calls(output: IO[str]) -> Path | None:
    """The program that executes single calls (targets/runner/tests/kernel_calls.cpp) with all of
    the portable library's kernels; None where it cannot be built."""
    tree = cache_dir("cpp") / "portable"
    tree.mkdir(parents=True, exist_ok=True)
    command = configure_command(project_root() / "targets" / "runner", tree)
    built = _run([*command, "-DHIL_PORTABLE_KERNELS=EVERY"], output) and _build(
        tree, output, "kernel_calls"
    )
    return tree / "tests" / "kernel_calls" if built else None


def _build(tree: Path, output: IO[str], *targets: str) -> bool:
    jobs = str(os.cpu_count() or 1)
    command = [str(toolchain.locate("ninja")), "-C", str(tree), "-j", jobs, *targets]
    # ccache hashes the language of the compiler's messages; firmware builds use this one
    plain = {k: v for k, v in os.environ.items() if k != "LANG" and not k.startswith("LC_")}
    return _run(command, output, {**plain, "LC_ALL": "C.UTF-8", **compiler_cache(tree)})


def _run(
    command: Sequence[str], output: IO[str], environment: Mapping[str, str] | None = None
) -> bool:
    done = subprocess.run(
        command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=project_root()
    )
    return done.returncode == 0


def run_quietly(command: Sequence[str], output: IO[str]) -> bool:
    """Prints what the command printed only if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=output, flush=True)
    return done.returncode == 0
