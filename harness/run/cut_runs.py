"""Runs a program cut after an instruction, for the values that it computes on its way."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.core.errors import HarnessError
from harness.export.program import Program, TensorSpec
from harness.firmware.source import Firmware
from harness.formats.pte import CuttableProgram, Instruction, element_of
from harness.sim.run_files import WORK, output_base, output_name, read_output
from harness.sim.simulation import simulate
from harness.sim.simulator import Chosen
from harness.system.files import read_regular
from harness.system.paths import cache_dir
from harness.system.process import Stop


@dataclass(frozen=True)
class CutRuns:
    """Runs ``pte`` up to an instruction. ``cuttable`` raises MalformedFile, OSError."""

    chosen: Chosen
    firmware: Firmware
    program: Program
    pte: Path
    input_set: int

    @cached_property
    def cuttable(self) -> CuttableProgram:
        outputs = [len(delegate.outputs) for delegate in self.program.delegates]
        return CuttableProgram(self.pte, outputs)

    @cached_property
    def of_delegates(self) -> dict[int, tuple[int, bytes]]:
        """Each argument of a delegate, by value: until which instruction, and the oracle's bytes.

        Leaves out arguments whose layout the runner adjusts."""
        steps = self.cuttable.instructions()
        calls, found = [step for step in steps if step.is_delegate], {}
        if len(calls) != len(self.program.delegates):
            return {}
        for call, delegate in zip(calls, self.program.delegates, strict=True):
            files, tensors = delegate.sets[self.input_set], self.cuttable.tensors(call.arguments)
            names = (*files.inputs, *files.expected)
            for value, name in zip(call.arguments, names, strict=False):
                raw = read_regular(self.program.directory / name)
                if value in tensors and self.spec(value).nbytes == len(raw):
                    last = len(steps) if value in call.values else call.number
                    found[value] = last, raw
        return found

    def results(self, step: Instruction) -> tuple[bytes, ...] | None:
        """All that an instruction writes; None when the program does not come to it."""
        return self.values(step, step.values)

    def delegate(self, number: int) -> tuple[bytes, ...] | None:
        """Return the outputs of one for an NPU."""
        return self.results([s for s in self.cuttable.instructions() if s.is_delegate][number])

    def values(self, after: Instruction, numbers: Sequence[int]) -> tuple[bytes, ...] | None:
        found = [self._value(after, number) for number in numbers]
        whole = tuple(raw for raw in found if raw is not None)
        return whole if len(whole) == len(found) else None

    def _value(self, after: Instruction, value: int) -> bytes | None:
        scratch = cache_dir("scratch")
        scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=scratch, prefix="cut-") as folder:
            file, run_dir = Path(folder) / "program.pte", Path(folder) / "run"
            file.write_bytes(self.cuttable.cut(after, value))
            run_dir.mkdir()
            names = self.program.sets[self.input_set].inputs
            sets = [[self.program.directory / name for name in names]]
            try:
                run = simulate(self.chosen, self.firmware, program=file, sets=sets, run_dir=run_dir)
            except HarnessError:
                return None
            if (run.ending.stop, run.ending.exit_status) != (Stop.EXITED, 0):
                return None
            size = self.spec(value).nbytes
            output = read_output(run_dir / WORK / output_name(output_base(0), 0), size)
            return None if output is None or output[1] != size else output[0]

    def spec(self, value: int) -> TensorSpec:
        tensor = self.cuttable.tensors([value])[value]
        sizes, order = (tuple(tensor.items(name)) for name in ("sizes", "dim_order"))
        return TensorSpec(str(value), element_of(tensor)[1], sizes, order)
