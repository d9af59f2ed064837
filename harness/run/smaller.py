"""``hil npu reduce``: from a program to the smallest part of it that the NPU computes wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.export import quiet
from harness.export.program import Program
from harness.localise.first_difference import localise
from harness.localise.reduce import Smallest


@dataclass(frozen=True)
class Reduced:
    """``text``: the operators that are left, a line each. ``files``: what was written."""

    delegate: int
    input_set: int
    smallest: Smallest
    text: tuple[str, ...]
    defect: str
    files: tuple[str, ...]


def reduce_program(program: Program, base: Path, tries: int) -> Reduced | None:
    """None when every delegate computes what TOSA means, or the graph, compiled anew, does.

    Writes BASE.tosa, its inputs and Vela's stream of it.
    """
    if not program.delegates:
        raise UsageError(f"nothing of {program.model} runs on an Ethos-U")
    found = localise(program)
    if found is None:
        return None
    with quiet.captured():  # torch has much to say of itself
        from harness.localise.smaller import known_of, listed, smallest_of, stream_of

    smallest = smallest_of(program, found.delegate, found.set, tries=tries)
    if smallest is None:
        return None
    contents = {f"{base}.tosa": smallest.tosa, f"{base}.vela": stream_of(program, smallest)}
    for index, value in enumerate(smallest.inputs):
        contents[f"{base}-in{index}.bin"] = value.tobytes()
    for name, content in contents.items():
        Path(name).write_bytes(content)
    defect = known_of(smallest, program.compile_target)
    return Reduced(found.delegate, found.set, smallest, listed(smallest), defect, tuple(contents))
