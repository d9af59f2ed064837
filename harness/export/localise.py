"""Asks the export process which operator of a delegate is wrong, and for the smallest part of its
graph that still is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.config.schema import checked
from harness.export.process import ExportProcess
from harness.export.program import Program


@dataclass(frozen=True)
class WrongValue:
    """The first tensor with a wrong element. ``operator``: what computed it, as TOSA calls it."""

    operator: str
    tensor: str
    element: tuple[int, ...]
    expected: int
    actual: int


@dataclass(frozen=True)
class SmallestPart:
    """``operators``: what is left, in order, of ``whole``; ``listing``: a line for each, with the
    tensors. ``tries``: how many graphs were compiled. ``defect``: the name of a known one, or "".
    ``files``: what was written."""

    operators: tuple[str, ...]
    whole: int
    tries: int
    trouble: str
    defect: str = ""
    listing: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def first_wrong_value(
    process: ExportProcess, program: Program, delegate: int, input_set: int
) -> WrongValue | None:
    """None when the fault disappears with every other set of outputs. Raises HarnessError."""
    answer = process.call(
        "localise:first_wrong_value", program, delegate, input_set, task=_task(program, delegate)
    )
    return None if answer is None else checked(WrongValue, answer)


def smallest_part(
    process: ExportProcess,
    program: Program,
    delegate: int,
    input_set: int,
    *,
    tries: int,
    base: Path | None = None,
) -> SmallestPart | None:
    """None when the graph, compiled anew, is right for these inputs. Writes ``base``.tosa, its
    inputs and Vela's stream of it. Raises HarnessError, OSError."""
    answer = process.call(
        "localise:smallest_part",
        program,
        delegate,
        input_set,
        tries,
        None if base is None else str(base),
        task=_task(program, delegate),
    )
    return None if answer is None else checked(SmallestPart, answer)


def _task(program: Program, delegate: int) -> str:
    return f"the search in delegate {delegate} of {program.model}"
