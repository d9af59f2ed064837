"""A runner with the doorbell driver on QEMU, the functional model as its NPU."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.npu.doorbell import NpuIdentity, SharedMemory, serving
from harness.npu.model import npu
from harness.sim.qemu_command import semihosting

_SECONDS = 120
_RAM = "ddr"


@dataclass(frozen=True)
class GuestRun:
    status: int
    console: str
    outputs: tuple[tuple[bytes, ...], ...]  # by set of inputs


def run_guest(
    elf: Path, pte: bytes, sets: Sequence[Sequence[bytes]], work: Path, product: str, macs: int
) -> GuestRun:
    """Run the program once on every set of inputs, in ``work``, which is made."""
    work.mkdir(parents=True)
    (work / "m.pte").write_bytes(pte)
    arguments = ["runner", "-m", "m.pte"]
    for k, inputs in enumerate(sets):
        arguments += ["-o", f"s{k}"]
        for i, content in enumerate(inputs):
            (work / f"s{k}i{i}").write_bytes(content)
            arguments += ["-i", f"s{k}i{i}"]
    with SharedMemory(2 << 30) as memory:
        done = _run(elf, arguments, work, memory, product, macs)
    outputs = tuple(
        tuple(path.read_bytes() for path in sorted(work.glob(f"s{k}-*.bin")))
        for k in range(len(sets))
    )
    return GuestRun(done.returncode, done.stdout.decode("utf-8", "replace"), outputs)


def _run(
    elf: Path, arguments: Sequence[str], work: Path, memory: SharedMemory, product: str, macs: int
) -> subprocess.CompletedProcess[bytes]:
    argv = [
        "qemu-system-arm",
        "-M",
        f"mps3-an547,memory-backend={_RAM}",
        "-m",
        "2G",
        "-nographic",
        "-monitor",
        "none",
        "-serial",
        "none",
        "-object",
        f"memory-backend-file,id={_RAM},size=2G,mem-path={memory.path},share=on",
        "-semihosting-config",
        semihosting(arguments),
        "-kernel",
        str(elf),
    ]
    with serving(work, memory, NpuIdentity.of(product, macs), npu(product, macs)):
        return subprocess.run(
            argv,
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(memory.descriptor,),
            timeout=_SECONDS,
            check=False,
        )
