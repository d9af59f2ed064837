"""The runner, built for this machine with sanitizers and for several cores on QEMU."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.firmware.source import Arithmetic, build_options
from harness.firmware.sources.bundled import build
from tools.cpp import sanitized

LIMIT_SECONDS = 120


@dataclass(frozen=True)
class RunResult:
    """How a run ended, what it said, and its outputs if it wrote them all."""

    status: int
    log: str
    outputs: tuple[bytes, ...]


Run = Callable[[bytes, Sequence[bytes], int, Path], RunResult]


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


def on_host(**options: str) -> Run:
    """With AddressSanitizer and UndefinedBehaviorSanitizer."""
    runner = str(build(load_target("host"), options={**sanitized(), **options}).elf)

    def run(pte: bytes, inputs: Sequence[bytes], outputs: int, work: Path) -> RunResult:
        return run_in(work, [runner, *lay_out(pte, inputs, work)], outputs)

    return run


ALL_OPERATORS = {"HIL_PORTABLE_KERNELS": "ON", "HIL_VALUE_DIGESTS": "ON"}


@pytest.fixture(scope="session")
def run_on_host() -> Run:
    """Runs a program on the host runner."""
    return on_host(**ALL_OPERATORS)


@pytest.fixture(scope="session")
def run_python_on_host() -> Run:
    """On the host runner that follows Python's definitions."""
    return on_host(**build_options(Arithmetic.PYTHON))


@pytest.fixture(scope="session")
def run_python_on_qemu() -> Run:
    """On the Cortex-M55 runner that follows Python's definitions."""
    return run_on_board("corstone-300-m55", **build_options(Arithmetic.PYTHON))


def run_on_board(name: str, **options: str) -> Run:
    """Builds the runner for a target's core and board and runs programs there on QEMU, without
    counting instructions as the target does."""
    target = load_target(name)
    runner = str(build(target, options=options).elf)
    qemu = target.simulators.qemu
    assert qemu is not None, f"{name} does not run on QEMU"

    def run(pte: bytes, inputs: Sequence[bytes], outputs: int, work: Path) -> RunResult:
        words = ",".join(f"arg={a}" for a in ["runner", *lay_out(pte, inputs, work)])
        command = [
            qemu.executable,
            "-M",
            qemu.machine,
            "-nographic",
            "-monitor",
            "none",
            "-serial",
            "none",
            "-semihosting-config",
            f"enable=on,target=native,{words}",
            "-kernel",
            runner,
        ]
        return run_in(work, command, outputs)

    return run


@pytest.fixture(scope="session")
def run_on_qemu() -> Run:
    """Runs a program on the Cortex-M55 runner (Helium kernels)."""
    return run_on_board("corstone-300-m55", **ALL_OPERATORS)


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
    return run_on_board("corstone-300-m55", HIL_RUNTIME_CHECKS="OFF")
