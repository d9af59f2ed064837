"""The runner's own tests on this machine: doctest under sanitizers, and libFuzzer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.build.firmware import executorch_package
from harness.case.models import find_model
from harness.export.batch import export
from harness.export.bundle import bundle
from harness.export.request import ExportRequest
from harness.system import toolchain
from harness.system.paths import cache_dir, project_root

FUZZ_SEED = 20260101
SEED_MODELS = ("add", "softmax", "linear", "qadd2", "ds_cnn")
FUZZERS = ("fuzz_program", "fuzz_vela")


def unit_tests() -> bool:
    """Build and run the runner's unit tests with ASan and UBSan."""
    tree = cache_dir("cpp") / "sanitized"
    return _configure(tree, {"HIL_SANITIZE": "ON"}) and _ninja(tree) and _run(
        [str(toolchain.require("ctest").path), "--test-dir", str(tree), "--output-on-failure"]
    )  # fmt: skip


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
    collect = {"fuzz_program": _collect_programs, "fuzz_vela": _collect_streams}
    held = [_fuzz_one(tree, name, collect[name], seconds) for name in FUZZERS]
    return all(held)


def _fuzz_one(tree: Path, name: str, collect: Callable[[Path], None], seconds: int) -> bool:
    corpus, seeds = tree / f"{name}-corpus", tree / f"{name}-seeds"
    for directory in (corpus, seeds):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
    collect(seeds)
    print(f"{name}: seed {FUZZ_SEED}, {seconds} s", file=sys.stderr)
    return _run(
        [str(tree / "fuzz" / name), f"-max_total_time={seconds}", f"-seed={FUZZ_SEED}",
         "-timeout=10", "-print_final_stats=1", "-verbosity=0",
         f"-artifact_prefix={tree}/{name}-finding-", str(corpus), str(seeds)]
    )  # fmt: skip


def _collect_programs(directory: Path) -> None:
    """Real programs, plain and bundled, small ones first in the fuzzer's eyes."""
    for result in export([ExportRequest(find_model(name)) for name in SEED_MODELS]):
        program = result.unwrap()
        shutil.copyfile(program.pte_path, directory / f"{program.model}.pte")
        shutil.copyfile(bundle(program), directory / f"{program.model}.bpte")


def _collect_streams(directory: Path) -> None:
    """What Vela made of the cases that the functional model's tests keep."""
    with np.load(project_root() / "tests" / "ethosu" / "data" / "cases.npz") as cases:
        for key in cases.files:
            if key.endswith("/blob"):
                name = key.removesuffix("/blob").replace("/", "-")
                (directory / name).write_bytes(cases[key].tobytes())


def _configure(tree: Path, options: Mapping[str, str]) -> bool:
    tree.mkdir(parents=True, exist_ok=True)
    settings = {
        "HIL_PORT": "host",
        "HIL_SCHEMA_DIR": str(executorch_package() / "schema"),
        **options,
    }
    return _run(
        [str(toolchain.require("cmake").path), "-S", str(project_root() / "targets" / "runner"),
         "-B", str(tree), "-G", "Ninja", "-Wno-dev", "--log-level=WARNING",
         *(f"-D{name}={value}" for name, value in settings.items())]
    )  # fmt: skip


def _ninja(tree: Path, *goals: str) -> bool:
    jobs = str(os.cpu_count() or 1)
    return _run([str(toolchain.require("ninja").path), "-C", str(tree), "-j", jobs, *goals])


def _run(argv: Sequence[str]) -> bool:
    return subprocess.run(argv, stdout=sys.stderr).returncode == 0
