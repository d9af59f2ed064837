"""The runner, built twice: for this machine with sanitizers, and for a Cortex-M55 on QEMU."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from harness.paths import state_dir
from harness.target import load_target

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "targets" / "runner"
LIMIT_SECONDS = 120


@dataclass(frozen=True)
class RunResult:
    """How a run ended, what it said, and its outputs if it wrote them all."""

    status: int
    log: str
    outputs: tuple[bytes, ...]


Run = Callable[[bytes, Sequence[bytes], int, Path], RunResult]


def schema_dir() -> Path:
    """The FlatBuffers schemas in ExecuTorch's wheel; found without importing it."""
    spec = importlib.util.find_spec("executorch")
    assert spec is not None, "executorch is not installed"
    assert spec.submodule_search_locations is not None, "executorch is not a package"
    return Path(next(iter(spec.submodule_search_locations))) / "schema"


def build_runner(name: str, *options: str) -> Path:
    """Configures and builds one runner below the state directory; only what changed is rebuilt."""
    folder = Path(state_dir()) / "kernel-tests" / name
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        for command in (
            ["cmake", "-S", str(RUNNER), "-B", str(folder), "-G", "Ninja",
             f"-DHIL_SCHEMA_DIR={schema_dir()}", "-DBUILD_TESTING=OFF", *options],
            ["cmake", "--build", str(folder), "--parallel", "2"],
        ):  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return folder


def run_in(folder: Path, command: Sequence[str], outputs: int) -> RunResult:
    """Runs a command line in a folder and collects the outputs out-<i>.bin."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    paths = [folder / f"out-{i}.bin" for i in range(outputs)]
    found = tuple(p.read_bytes() for p in paths) if all(p.is_file() for p in paths) else ()
    return RunResult(done.returncode, done.stdout + done.stderr, found)


def lay_out(pte: bytes, inputs: Sequence[bytes], folder: Path) -> list[str]:
    """Writes program and inputs into the folder; returns the runner's arguments."""
    (folder / "model.pte").write_bytes(pte)
    arguments = ["-m", "model.pte", "-o", "out"]
    for i, data in enumerate(inputs):
        (folder / f"i{i}.bin").write_bytes(data)
        arguments += ["-i", f"i{i}.bin"]
    return arguments


@pytest.fixture(scope="session")
def run_on_host() -> Run:
    """Runs a program on the host runner with AddressSanitizer and UndefinedBehaviorSanitizer."""
    folder = build_runner("host", "-DHIL_PORT=host", "-DHIL_SANITIZE=ON")
    runner = str(folder / "ports" / "host" / "executor_runner")

    def run(pte: bytes, inputs: Sequence[bytes], outputs: int, work: Path) -> RunResult:
        return run_in(work, [runner, *lay_out(pte, inputs, work)], outputs)

    return run


def run_on_board(target: str, *options: str) -> Run:
    """Builds the runner for a target's core and board and runs programs there on QEMU."""
    board = load_target(target)
    qemu = board.settings.qemu
    assert qemu is not None, f"{target} does not run on QEMU"
    toolchain = ROOT / "cmake" / "toolchains" / "cortex-m.cmake"
    regions = [f"-DHIL_REGION_{r.name}=0x{r.origin:x}:0x{r.size:x}" for r in board.memory]
    pools = [f"-DHIL_{name.upper()}_POOL_BYTES={size}" for name, size in board.pools.items()]
    settings = [f"-D{name}={value}" for name, value in board.cmake.items()]
    folder = build_runner(
        "-".join([target, *(o.strip("-D").lower().replace("=", "-") for o in options)]),
        "-DHIL_PORT=cortex_m", f"-DHIL_CPU={board.cpu}", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
        *regions, *pools, *settings, *options,
    )  # fmt: skip
    runner = str(folder / "ports" / "cortex_m" / "executor_runner")

    def run(pte: bytes, inputs: Sequence[bytes], outputs: int, work: Path) -> RunResult:
        words = ",".join(f"arg={a}" for a in ["runner", *lay_out(pte, inputs, work)])
        command = [
            qemu.executable, "-M", qemu.machine, "-nographic", "-monitor", "none",
            "-serial", "none", "-semihosting-config", f"enable=on,target=native,{words}",
            "-kernel", runner,
        ]  # fmt: skip
        return run_in(work, command, outputs)

    return run


@pytest.fixture(scope="session")
def run_on_qemu() -> Run:
    """Runs a program on the Cortex-M55 runner (Helium kernels)."""
    return run_on_board("corstone-300-m55")


@pytest.fixture(scope="session")
def run_on_m33() -> Run:
    """Runs a program on the Cortex-M33 runner (kernels with DSP instructions)."""
    return run_on_board("mps2-m33")


@pytest.fixture(scope="session")
def run_on_m0plus() -> Run:
    """Runs a program on the runner for Cortex-M0+ (scalar kernels, Armv6-M)."""
    return run_on_board("mps2-m0plus")


@pytest.fixture(scope="session")
def run_unchecked() -> Run:
    """The Cortex-M55 runner that does not compare scratch sizes with the exporter's."""
    return run_on_board("corstone-300-m55", "-DHIL_RUNTIME_CHECKS=OFF")
