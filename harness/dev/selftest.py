"""``hil test``: every check the project has, in one order, each with its result.

The runner's own are doctest under sanitizers, clang-format, clang-tidy and libFuzzer.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from harness.build.compiler_cache import environment as compiler_cache
from harness.build.compiler_cache import launchers
from harness.build.firmware import executorch_package
from harness.case.models import find_model
from harness.dev.systems import systems
from harness.errors import HarnessError, Unknown
from harness.errors.verdict import ExitCode
from harness.ethosu import kernel_library
from harness.ethosu.blob import find_blobs
from harness.export.batch import export
from harness.export.bundle import bundle
from harness.export.request import ExportRequest
from harness.run.exports import program_of
from harness.system import toolchain
from harness.system.confine import REQUIRE, required, what_lacks
from harness.system.paths import cache_dir, project_root
from harness.system.progress import silent

FUZZ_SEED = 20260101
SEED_MODELS = ("add", "softmax", "linear", "qadd2", "ds_cnn")
FUZZERS = ("fuzz_program", "fuzz_vela")
# The LLVM of Debian 12. Others lay out a little differently and find other things.
LLVM = 14
# In batches, so that all cores have work to the end.
_FILES_AT_A_TIME = 4


def layout() -> bool:
    """Every C++ and C file is laid out as .clang-format says."""
    tool = _of_debian_12("clang-format")
    return tool is None or _run([tool, "--dry-run", "-Werror", *map(str, _laid_out())])


def lint() -> bool:
    """clang-tidy finds nothing in the runner's sources, as the sanitized build compiles them."""
    tool = _of_debian_12("clang-tidy")
    if tool is None:
        return True
    runner, kernel = cache_dir("cpp") / "sanitized", _kernel_tree()
    prepared = _configure(runner, {"HIL_SANITIZE": "ON"}) and _ninja(runner, "hil_schema_headers")
    if not (prepared and _configure_kernel(kernel)):
        return False
    jobs = []
    for tree in (runner, kernel):
        # GCC's options, some of which clang does not know.
        options = ["-p", str(tree), "--quiet", "--extra-arg=-Wno-unknown-warning-option"]
        files = linted(json.loads((tree / "compile_commands.json").read_text()))
        for at in range(0, len(files), _FILES_AT_A_TIME):
            jobs.append([tool, *options, *files[at : at + _FILES_AT_A_TIME]])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return all([*pool.map(_clean, jobs)])


def linted(commands: Sequence[Mapping[str, str]]) -> list[str]:
    """Of a compile_commands.json the runner's sources and those of the NPU model's kernel, without
    tests and what the build made."""
    runner, kernel = project_root() / "targets" / "runner", _kernel_sources()
    found = sorted({command["file"] for command in commands})
    return [
        file for file in found
        if (Path(file).is_relative_to(runner) or Path(file).is_relative_to(kernel))
        and not Path(file).is_relative_to(runner / "tests")
    ]  # fmt: skip


def _kernel_sources() -> Path:
    return project_root() / "harness" / "ethosu" / "kernel"


def _kernel_tree() -> Path:
    return cache_dir("cpp") / "npu-kernel"


def _configure_kernel(tree: Path) -> bool:
    """The NPU model's kernel, sanitized, as any machine of this architecture can run it."""
    cmake = str(toolchain.require("cmake").path)
    tree.mkdir(parents=True, exist_ok=True)
    return _run(
        [
            *(cmake, "-S", str(_kernel_sources()), "-B", str(tree), "-G", "Ninja"),
            *("-DHIL_SANITIZE=ON", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "--log-level=WARNING"),
        ]
    )


def _laid_out() -> list[Path]:
    root = project_root()
    runner = (root / "targets" / "runner").rglob("*")
    driver = (root / "targets" / "linux").rglob("*")
    kernel = (root / "harness" / "ethosu" / "kernel").rglob("*")
    theirs = (root / "targets" / "executorch").rglob("*")
    files = [*runner, *driver, *kernel, *theirs, *(root / "tests" / "kernels").glob("*.cpp")]
    return sorted(file for file in files if file.suffix in (".c", ".cpp", ".h", ".hpp"))


def _of_debian_12(name: str) -> str | None:
    """The tool's path; None, after saying so, when it is of another version."""
    tool = toolchain.require(name)
    if tool.version.split(".")[0] == str(LLVM):
        return str(tool.path)
    print(f"not checked: {tool} is not of LLVM {LLVM} (Debian 12), to which the code is held",
          file=sys.stderr)  # fmt: skip
    return None


def _clean(argv: Sequence[str]) -> bool:
    """Prints what a linter or fuzzer found, and not what it counted."""
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
    return done.returncode == 0


def unit_tests() -> bool:
    """Build and run the runner's unit tests with ASan and UBSan, and so the NPU model's kernel."""
    tree, kernel = cache_dir("cpp") / "sanitized", _kernel_tree()
    ctest = [str(toolchain.require("ctest").path), "--test-dir", str(tree), "--output-on-failure"]
    runner = _configure(tree, {"HIL_SANITIZE": "ON"}) and _ninja(tree) and _run(ctest)
    model = _configure_kernel(kernel) and _ninja(kernel) and _sanitized_kernel(kernel)
    return runner and model


def _sanitized_kernel(tree: Path) -> bool:
    """The recorded cases by the sanitized kernel: Python has to load the sanitizers first."""
    compiler = str(toolchain.require("g++").path)
    names = [f"-print-file-name=lib{name}.so" for name in ("asan", "ubsan")]
    found = [subprocess.check_output([compiler, name], text=True).strip() for name in names]
    return subprocess.run(
        [sys.executable, "-m", "tests.ethosu.sanitized", str(tree / kernel_library.NAME)],
        env={**os.environ, "LD_PRELOAD": " ".join(found), "ASAN_OPTIONS": "detect_leaks=0"},
        cwd=project_root(),
        stdout=sys.stderr,
    ).returncode == 0  # fmt: skip


def fuzz(seconds: int) -> bool:
    """Fuzz the program loader and the Ethos-U stream reader, each for ``seconds``.

    They start from real programs and real streams; a finding is kept and named.
    """
    tree = cache_dir("cpp") / "fuzz"
    options = {
        "HIL_SANITIZE": "ON",
        "HIL_FUZZ": "ON",
        "BUILD_TESTING": "OFF",
        "CMAKE_CXX_COMPILER": str(toolchain.require("clang++").path),
    }
    if not (_configure(tree, options) and _ninja(tree, *FUZZERS)):
        return False
    _collect_programs(_emptied(tree, "fuzz_program-seeds"))
    _collect_streams(_emptied(tree, "fuzz_vela-seeds"))
    print(f"{' and '.join(FUZZERS)}, seed {FUZZ_SEED}, {seconds} s side by side", file=sys.stderr)
    with ThreadPoolExecutor(len(FUZZERS)) as pool:
        held = pool.map(lambda name: _clean(_fuzzing(tree, name, seconds)), FUZZERS)
        return all([*held])


def _fuzzing(tree: Path, name: str, seconds: int) -> list[str]:
    return [
        str(tree / "fuzz" / name), f"-max_total_time={seconds}", f"-seed={FUZZ_SEED}",
        "-timeout=10", "-print_final_stats=1", "-verbosity=0",
        f"-artifact_prefix={tree}/{name}-finding-",
        str(_emptied(tree, f"{name}-corpus")), str(tree / f"{name}-seeds"),
    ]  # fmt: skip


def _emptied(tree: Path, name: str) -> Path:
    shutil.rmtree(tree / name, ignore_errors=True)
    (tree / name).mkdir()
    return tree / name


def _collect_programs(directory: Path) -> None:
    """Real programs, plain and bundled, small ones first in the fuzzer's eyes."""
    for result in export([ExportRequest(find_model(name)) for name in SEED_MODELS]):
        program = result.unwrap()
        shutil.copyfile(program.pte_path, directory / f"{program.model}.pte")
        shutil.copyfile(bundle(program), directory / f"{program.model}.bpte")


def _collect_streams(directory: Path) -> None:
    """What Vela made of the cases that the functional model's tests keep, and of two models for
    Linux: those have their inputs and outputs in regions of their own."""
    for name in ("add", "ds_cnn"):
        program = program_of(Path(name), "corstone-1000-u85-256", "hil test", silent)
        (blob,) = find_blobs(program.pte_path.read_bytes())
        (directory / f"{name}-direct-drive").write_bytes(blob)
    with np.load(project_root() / "tests" / "ethosu" / "data" / "cases.npz") as cases:
        for key in cases.files:
            if key.endswith("/blob"):
                name = key.removesuffix("/blob").replace("/", "-")
                (directory / name).write_bytes(cases[key].tobytes())


def _configure(tree: Path, options: Mapping[str, str]) -> bool:
    tree.mkdir(parents=True, exist_ok=True)
    return _run(configuring(project_root() / "targets" / "runner", tree, options))


def configuring(sources: Path, tree: Path, options: Mapping[str, str]) -> list[str]:
    """The command that prepares ``tree`` for building the runner of ``sources`` for this machine,
    with its unit tests."""
    settings = {
        "HIL_PORT": "host",
        "CMAKE_EXPORT_COMPILE_COMMANDS": "ON",
        "HIL_SCHEMA_DIR": str(executorch_package() / "schema"),
        "CMAKE_CXX_COMPILER": str(toolchain.require("g++").path),  # as firmware of this machine
        **launchers("CXX"),
        **options,
    }
    return [
        *(str(toolchain.require("cmake").path), "-S", str(sources), "-B", str(tree)),
        *("-G", "Ninja", "-Wno-dev", "--log-level=WARNING"),
        *(f"-D{name}={value}" for name, value in settings.items()),
    ]


def _ninja(tree: Path, *goals: str) -> bool:
    """What is compiled here is there for the firmware of this machine, and the other way round."""
    jobs = str(os.cpu_count() or 1)
    argv = [str(toolchain.require("ninja").path), "-C", str(tree), "-j", jobs, *goals]
    # The language of a compiler's messages counts for the cache: the one that firmware is built in.
    plain = {k: v for k, v in os.environ.items() if k != "LANG" and not k.startswith("LC_")}
    return _run(argv, {**plain, "LC_ALL": "C.UTF-8", **compiler_cache(tree)})


def _run(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> bool:
    return subprocess.run(argv, stdout=sys.stderr, env=environment).returncode == 0


@dataclass(frozen=True)
class Step:
    """``run`` takes what the user gave (fuzz seconds, pytest arguments), returns success."""

    name: str
    what: str
    run: Callable[[int, Sequence[str]], bool]
    asked: bool = False  # it is run only where --only names it


def _python(*arguments: str, environment: Mapping[str, str] | None = None) -> bool:
    return _command([sys.executable, "-m", *arguments], environment)


def _command(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> bool:
    # stdout of the whole command belongs to --json, so steps speak on stderr.
    done = subprocess.run(argv, cwd=project_root(), stdout=sys.stderr, env=environment)
    return done.returncode == 0


def _lint() -> bool:
    style = _python("ruff", "check", ".")
    return _python("vulture") and style


def _imports() -> bool:
    return _command([str(Path(sys.executable).with_name("lint-imports"))])


def _pytest(arguments: Sequence[str]) -> bool:
    # Each begins with a part of its own, whose fixtures are then made once, and helps at the end.
    every = ["-n", str(os.cpu_count() or 1), "--dist", "worksteal"]
    workers = [] if any(a.startswith("-n") for a in arguments) else every
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the tests start Python hundreds of times
    if (missing := what_lacks()) and required():
        print(f"guests are not confined here, and tests of that are left out: {missing}",
              file=sys.stderr)  # fmt: skip
        environment[REQUIRE] = "0"
    junit = Path(os.environ.get("HIL_HOME", project_root() / ".hil")) / "junit.xml"
    return _python("pytest", *workers, f"--junitxml={junit}", *arguments, environment=environment)


def steps() -> tuple[Step, ...]:
    return (
        Step("lint", "ruff check; vulture: what nobody calls", lambda _s, _a: _lint()),
        Step("format", "ruff format", lambda _s, _a: _python("ruff", "format", "--check", ".")),
        Step("types", "mypy --strict", lambda _s, _a: _python("mypy")),
        Step("imports", "the rooms: who may import whom", lambda _s, _a: _imports()),
        Step("cpp-format", "clang-format", lambda _s, _a: layout()),
        Step("cpp-lint", "clang-tidy on the runner's sources", lambda _s, _a: lint()),
        Step("cpp", "the runner's unit tests, the NPU model's kernel: under ASan and UBSan",
             lambda _s, _a: unit_tests()),
        Step("pytest", "unit, plugin, export, kernel and regression tests",
             lambda _s, a: _pytest(a)),
        Step("fuzz", "program loader and Vela reader under libFuzzer and sanitizers",
             lambda s, _a: s == 0 or fuzz(s)),
        Step("systems", "README's first command in clean Debians (an hour; only where asked)",
             lambda _s, a: systems(a), asked=True),
    )  # fmt: skip


def run_steps(
    only: Sequence[str], fuzz_seconds: int, pytest_args: Sequence[str], *, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Run the steps, all of them even when one fails. Returns the results and the exit code."""
    project_root()  # there is nothing to run in an installed package
    known = {step.name: step for step in steps()}
    if "list" in only:
        for step in () if as_json else known.values():
            click.echo(f"{step.name:10} {step.what}")
        return {"steps": list(known)}, ExitCode.PASSED
    for name in only:
        if name not in known:
            raise Unknown(f"there is no step {name!r}", name, known, listing="steps: ")
    results: dict[str, dict[str, Any]] = {}
    for name in only or [step.name for step in known.values() if not step.asked]:
        click.secho(f"== {name}: {known[name].what}", err=True, bold=True)
        started = time.monotonic()
        try:
            passed = known[name].run(fuzz_seconds, pytest_args)
        except HarnessError as error:
            click.echo(f"hil: error: {error.message}", err=True)
            passed = False
        results[name] = {"passed": passed, "seconds": round(time.monotonic() - started, 1)}
    return _summary(results, as_json=as_json)


def _summary(
    results: dict[str, dict[str, Any]], *, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    failed = [name for name, result in results.items() if not result["passed"]]
    if not as_json:
        for name, result in results.items():
            state = "passed" if result["passed"] else "FAILED"
            click.echo(f"{name:10} {state} in {result['seconds']} s")
        click.echo(f"steps: {len(results) - len(failed)} passed, {len(failed)} failed")
    return {"steps": results}, ExitCode.FAILED if failed else ExitCode.PASSED
