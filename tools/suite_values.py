"""Every value of models of ExecuTorch's shared suite, on a Cortex-M55: bit for bit the graph's?

    python -m tools.suite_values test_mobilenet_v2 test_conformer FOLDER

A test of the suite whose output is one value throughout proves nothing: any runner that writes that
value passes. So the model, its inputs and the program are made as ``hil suite models-cortex-m``
makes them, with the suite's own code, but with a fixed seed and without the suite's lists of skips.
The runner is built to log a checksum of what each instruction writes (``HIL_VALUE_DIGESTS``), and
each is compared with the same value of the exported graph, computed operator by operator as ``hil
run`` does. A model passes when all are equal; of those that are one value throughout the report
says how many there are.
"""

from __future__ import annotations

import math
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import torch

from harness.cli.verb import progress_shown
from harness.config.loading import load_target
from harness.core.simulator_name import SimulatorName
from harness.export.child.by_design import Kernels
from harness.export.child.expected_outputs import run_program
from harness.export.child.source import torchvision_schemas
from harness.firmware.names import BUNDLED
from harness.firmware.source import BuildRequest, Firmware, source_named
from harness.formats.pte_cut import CuttableProgram, Instruction
from harness.sim.run_files import CONSOLE
from harness.sim.simulation import simulate
from harness.sim.simulator import Chosen, pick
from harness.suites.suites import SUITES
from harness.system.process import Stop
from harness.system.progress import Progress
from tools.float_definitions import as_the_runner

_SUITE = SUITES["models-cortex-m"]
_DIGESTS = {"HIL_VALUE_DIGESTS": "ON"}
_LINE = re.compile(rb"value_crc32: (\d+) (\d+) (\d+) ([0-9a-f]{8})")
_LIMIT_FACTOR = 10.0
_SEED = 0
# What a program calls otherwise than the graph that it was made of.
_RENAMED = {"executorch_prim::et_view": "aten::view_copy"}


@dataclass(frozen=True)
class Value:
    """A result of an operator of the graph."""

    operator: str
    tensors: tuple[torch.Tensor, ...]

    @property
    def varies(self) -> bool:
        return any(_varies(t.flatten()) for t in self.tensors if t.numel() > 1)


def _varies(values: torch.Tensor) -> bool:
    """A NaN differs from itself, but one throughout is as constant as a number."""
    first = values[0]
    return not bool(((values == first) | (values.isnan() & first.isnan())).all())


class _Recording(Kernels):
    """Keeps what the operators compute, in the graph's order."""

    def __init__(self, compile_target: str) -> None:
        super().__init__(compile_target)
        self.values: list[Value] = []

    def __call__(
        self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], python: Any
    ) -> Any:
        result = super().__call__(target, args, kwargs, python)
        schema = getattr(target, "_schema", None)
        if schema is not None:
            result = as_the_runner(schema.name, result, *args, **kwargs)
        results = result if isinstance(result, list | tuple) else (result,)
        if schema is not None and all(isinstance(r, torch.Tensor) for r in results):
            self.values.append(Value(schema.name, tuple(r.clone() for r in results)))
        return result


@dataclass(frozen=True)
class Exported:
    """A program, its inputs in memory order, and the values of its graph."""

    pte: bytes
    inputs: tuple[bytes, ...]
    values: Sequence[Value]


@dataclass(frozen=True)
class Compared:
    """``wrong``: the instructions whose value is another than the graph's. ``constant``: those that
    write one value throughout. ``missing``: those that the graph has no value for. ``last``: of the
    last instruction, which writes the output, whether it is right and varies."""

    instructions: int
    wrong: tuple[str, ...]
    constant: int
    missing: tuple[str, ...]
    last: tuple[bool, bool] = (False, False)
    trouble: str = ""

    @property
    def exact(self) -> bool:
        equal = not (self.trouble or self.wrong or self.missing)
        return equal and self.constant < self.instructions

    def __str__(self) -> str:
        if self.trouble:
            return self.trouble
        equal = self.instructions - len(self.wrong) - len(self.missing)
        right, varies = self.last
        last = f"{'exact' if right else 'not exact'}, {'varies' if varies else 'constant'}"
        parts = [
            f"{equal} of {self.instructions} values exact, {self.constant} constant",
            f"the last is {last}",
        ]
        for what, names in (("not exact", self.wrong), ("not in the graph", self.missing)):
            if names:
                parts.append(f"{what}: {', '.join(names[:5])}")
        return "; ".join(parts)


def export(test: str) -> Exported:
    """The model of a test of the suite, as its flow for a Cortex-M makes it."""
    from executorch.backends.cortex_m.test import tester as stages
    from executorch.backends.test.suite.flows.cortex_m import CORTEX_M_TEST_FLOW

    torch.manual_seed(_SEED)
    drawn = _Drawn()
    getattr(_tests_with(test), test)(drawn, torch.float32, False)
    tester = CORTEX_M_TEST_FLOW.tester_factory(drawn.model, drawn.inputs)
    tester.quantize(stages.CortexMQuantize())
    tester.export()
    tester.to_edge_transform_and_lower()
    recording = _Recording("cortex-m55")
    inputs = next(tester.generate_random_inputs())
    run_program(tester.get_artifact(), [inputs], recording)
    tester.to_executorch()
    raw = tuple(in_memory(tensor, tensor.dim_order()) for tensor in inputs)
    return Exported(bytes(tester.get_artifact().buffer), raw, recording.values)


class _Drawn:
    """Takes the place of the suite's fixture, for the model and the inputs that a test draws."""

    model: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]

    def lower_and_run_model(
        self, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], **_options: object
    ) -> None:
        self.model, self.inputs = model, inputs


def _tests_with(test: str) -> Any:
    from executorch.backends.test.suite.models import test_torchaudio, test_torchvision

    return test_torchaudio if hasattr(test_torchaudio, test) else test_torchvision


def in_memory(tensor: torch.Tensor, order: Sequence[int]) -> bytes:
    """The bytes in memory order. Every NaN is Arm's default one, whose sign x86's has not (Armv8-M
    Architecture Reference Manual, FPDefaultNaN)."""
    if tensor.is_floating_point():
        tensor = tensor.masked_fill(tensor.isnan(), math.nan)
    raw: bytes = tensor.detach().permute(tuple(order)).contiguous().numpy().tobytes()
    return raw


def compare(program: CuttableProgram, values: Sequence[Value], console: bytes) -> Compared:
    """The checksums on a runner's console with the values of the graph: instructions are in its
    order, and each is paired with the next value of its operator."""
    logged = {
        (int(number), int(place)): int(crc, 16) for number, place, _, crc in _LINE.findall(console)
    }
    wrong: list[str] = []
    missing: list[str] = []
    constant = position = count = 0
    last = (False, False)
    for step in program.instructions():
        if not step.values:
            continue
        count += 1
        name = _base_name(step)
        found = next((n for n in range(position, len(values)) if values[n].operator == name), None)
        if found is None or len(values[found].tensors) < len(step.values):
            missing.append(f"{step.number} ({step.operator})")
            continue
        position, value = found + 1, values[found]
        constant += not value.varies
        last = (True, value.varies)
        tables = program.tensors(step.values)
        for place, (tensor, index) in enumerate(zip(value.tensors, step.values, strict=False)):
            raw = in_memory(tensor, tuple(tables[index].items("dim_order")))
            if logged.get((step.number, place)) != zlib.crc32(raw):
                wrong.append(f"{step.number} ({step.operator})")
                last = (False, value.varies)
                break
    return Compared(count, tuple(wrong), constant, tuple(missing), last)


def _base_name(step: Instruction) -> str:
    name = step.operator.partition(".")[0]
    return _RENAMED.get(name, name)


def measure(exported: Exported, chosen: Chosen, firmware: Firmware, folder: Path) -> Compared:
    """Runs a program on the target, in a new folder, and compares its values. Raises
    HarnessError."""
    folder.mkdir(parents=True)
    pte = folder / "program.pte"
    pte.write_bytes(exported.pte)
    inputs = [folder / f"input{number}.bin" for number in range(len(exported.inputs))]
    for file, raw in zip(inputs, exported.inputs, strict=True):
        file.write_bytes(raw)
    run_dir = folder / "run"
    run = simulate(chosen, firmware, pte, [inputs], run_dir=run_dir, limit_factor=_LIMIT_FACTOR)
    console = (run_dir / CONSOLE).read_bytes()
    if (run.ending.stop, run.ending.exit_status) != (Stop.EXITED, 0):
        last = console.decode("utf-8", "replace").strip().splitlines()[-3:]
        return Compared(0, (), 0, (), trouble=f"did not end well ({run.ending.stop}): {last}")
    return compare(CuttableProgram(pte), exported.values, console)


def prepared(progress: Progress) -> tuple[Chosen, Firmware]:
    """The simulator, and the bundled runner with the suite's pools that logs its values."""
    chosen = pick(load_target(_SUITE.target), SimulatorName.QEMU)
    options = {**_SUITE.options, **_DIGESTS}
    request = BuildRequest(chosen.target, chosen.name, None, options)
    return chosen, source_named(BUNDLED).build(request, progress)


@click.command()
@click.argument("tests", nargs=-1, required=True)
@click.argument("folder", type=click.Path(path_type=Path))
def main(tests: tuple[str, ...], folder: Path) -> None:
    """Compare every value that the models of these TESTS compute on a Cortex-M55. FOLDER, which is
    made, has a folder for each: its program and inputs, for `hil exec`, and the run."""
    torchvision_schemas()
    failed = 0
    with progress_shown() as progress:
        chosen, firmware = prepared(progress)
        for test in tests:
            progress(f"{test}: exporting")
            exported = export(test)
            progress(f"{test}: simulating")
            compared = measure(exported, chosen, firmware, folder / test)
            click.echo(f"{test}: {compared}")
            failed += not compared.exact
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
