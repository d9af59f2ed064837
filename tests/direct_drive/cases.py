"""Random direct-drive cases: several operators in one graph, so with several inputs and outputs.

``python -m tests.direct_drive.cases NUMBER`` runs one case again and says what it was.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.config.loading import load_target, target_directories
from harness.firmware.sources.bundled import build
from harness.formats.ethosu import MACS
from harness.npu.blob import Blob, read_blob
from harness.npu.doorbell import MEMORY_FILE, NpuIdentity, SharedMemory, serving
from harness.npu.model import npu
from tests.direct_drive.programs import Array, program_of
from tests.npu.tosa_cases import APART, COP2, FAMILIES, TosaCase, results
from tests.npu.tosa_graph import Graph, compile_tosa
from tools.cpp import sanitized

SEED = 15
_BASE, _SIZE = 0x40000000, 64 << 20
# Vela 5.1.0 copies up to 15 bytes beyond the end of a scatter's output; in a region of its own that
# is another's memory.
# Branches and loops are a graph of their own.
_LEFT_OUT = {"scatter", "choice", "loop"}
_FAMILIES = sorted(name for name in FAMILIES if name not in _LEFT_OUT)
_SECONDS = 120


@dataclass(frozen=True)
class DirectCase:
    number: int
    families: tuple[str, ...]
    macs: int
    tosa: TosaCase
    blob: bytes
    outputs: tuple[Array, ...]  # as the TOSA reference model has them

    @property
    def read(self) -> Blob:
        return read_blob(self.blob)

    def __str__(self) -> str:
        sizes = f"{len(self.read.inputs)} inputs, {len(self.read.outputs)} outputs"
        return (
            f"direct-drive case {self.number} (seed {SEED}): {', '.join(self.families)} for "
            f"ethos-u85-{self.macs}, {sizes}, scratch {self.read.scratch_size}"
        )


def make(number: int) -> DirectCase:
    """One operator to three, side by side, for each size of the NPU in turn."""
    generator = np.random.default_rng([SEED, number])
    macs = MACS["u85"][number % len(MACS["u85"])]
    target, graph = f"ethos-u85-{macs}", Graph()
    chosen = tuple(generator.choice(_FAMILIES, size=1 + number % 3, replace=False))
    for family in chosen:
        FAMILIES[family](generator, graph, target)
    inputs = tuple(graph.sample(generator))
    tosa = TosaCase("+".join(chosen), number, target, graph.serialise(), inputs)
    blob = compile_tosa(tosa.tosa, target, (COP2, APART))
    return DirectCase(number, chosen, macs, tosa, blob, tuple(results(tosa)))


@dataclass(frozen=True)
class Ran:
    status: int
    log: str
    outputs: tuple[bytes, ...]


def runner() -> Path:
    """With AddressSanitizer and UndefinedBehaviorSanitizer."""
    target = load_target("host-u85-256", target_directories({}))
    return build(target, options=sanitized()).elf


def run(case: DirectCase, elf: Path, folder: Path, *, by_runner: bool = True) -> Ran:
    """All but the kernel: a backend, the driver library, a driver in the program, the NPU's
    model behind the doorbell. ``by_runner``: the program takes our runner's command line."""
    arguments = ["-m", "program.pte", "-o", "out"] if by_runner else ["program.pte", "out"]
    (folder / "program.pte").write_bytes(program_of(case.blob, case.tosa.inputs, case.outputs))
    for index, value in enumerate(case.tosa.inputs):
        (folder / f"i{index}.bin").write_bytes(value.tobytes())
        arguments += [*(["-i"] if by_runner else []), f"i{index}.bin"]
    with SharedMemory(_SIZE, _BASE) as memory:
        (folder / MEMORY_FILE).symlink_to(memory.path)
        with serving(folder, memory, NpuIdentity.of("u85", case.macs), npu("u85", case.macs)):
            done = subprocess.run(
                [elf, *arguments],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                pass_fds=(memory.descriptor,),
                timeout=_SECONDS,
            )
    files = [folder / f"out-{index}.bin" for index in range(len(case.outputs))]
    found = tuple(file.read_bytes() for file in files if file.is_file())
    return Ran(done.returncode, done.stdout + done.stderr, found)


def agrees(case: DirectCase, elf: Path) -> bool:
    """Raises AssertionError for a run that did not end well."""
    with tempfile.TemporaryDirectory() as folder:
        ran = run(case, elf, Path(folder))
    assert ran.status == 0, ran.log
    return ran.outputs == tuple(value.tobytes() for value in case.outputs)


def main(arguments: list[str]) -> int:
    case = make(int(arguments[0]))
    same = agrees(case, runner())
    print(case, "equal" if same else "DIFFERENT", sep=": ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
