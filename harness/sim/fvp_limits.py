"""Limits of an FVP's run that follow from its program, estimated from above.

A large network must not meet a limit that a small one never does. Only a program that hangs waits
for it."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

from harness.config.target import Limits
from harness.core.errors import MalformedFile
from harness.formats.pte import CuttableProgram

_DELEGATED = 500  # products of a delegate for a byte of the file: weights are used again
_INSTRUCTIONS = 16  # for a product: portable kernels; CMSIS-NN needs less than one
_CLOCK_HZ = 25e6  # the models' default (core_clk.mul)
_HOST_HZ = 5e6  # instructions that a model simulates in a second of a busy host


def products_of(path: Path) -> int:
    """Multiplications of one inference, at least about; 0 for a file that cannot be read."""
    try:
        program = CuttableProgram(path)
        found = 0
        for step in program.instructions():
            if step.is_delegate:
                found += _DELEGATED * path.stat().st_size
            tensors = program.tensors(step.arguments)
            sizes = {index: [*tensor.items("sizes")] for index, tensor in tensors.items()}
            constants = [prod(sizes[i]) for i, t in tensors.items() if not t.get("allocation_info")]
            for written in (sizes[value] for value in step.values if value in sizes):
                channels = written[1] if len(written) == 4 else (written or [1])[-1]
                found += prod(written) * max(1, max(constants, default=1) // max(channels, 1))
        return found
    except (OSError, MalformedFile):
        return 0


def fitting(limits: Limits, program: Path, sets: int) -> Limits:
    """Return the target's limits, or longer ones for ``sets`` inferences of a large program.

    The harness's own limit stays as far above the model's as it was."""
    instructions = products_of(program) * sets * _INSTRUCTIONS
    wall, simulated = instructions / _HOST_HZ, instructions / _CLOCK_HZ
    more = max(0.0, wall - (limits.model or wall))
    return replace(
        limits,
        host=limits.host + more,
        model=limits.model and limits.model + more,
        simulated=limits.simulated and max(limits.simulated, simulated),
    )
