"""Lets the export process find the wrong operator of a delegate, and reduce its graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.config.schema import Data, checked
from harness.export.newest_vela import NewestVela
from harness.export.process import ExportProcess
from harness.export.program import Program

MOST_TRIES = 300  # compilations by Vela in one reduction, unless the user sets it
_Found = TypeVar("_Found", bound=Data)


@dataclass(frozen=True)
class WrongValue(Data):
    """The first tensor with a wrong element. ``operator``: TOSA's name of what computed it."""

    operator: str
    tensor: str
    element: tuple[int, ...]
    expected: int
    actual: int


@dataclass(frozen=True)
class SmallestPart(Data):
    """The smallest part of a graph that is still wrong.

    ``operators``: those left of ``whole``, in order. ``listing``: a line for each, with the
    tensors. ``tries``: number of compiled graphs. ``defect``: the name of a known one, or "".
    ``files``: the written files. ``newest``: what the newest Vela makes of it, "" if not tried."""

    operators: tuple[str, ...]
    whole: int
    tries: int
    trouble: str
    defect: str = ""
    listing: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    newest: str = ""


def first_wrong_value(
    process: ExportProcess, program: Program, delegate: int, input_set: int
) -> WrongValue | None:
    """Return None when no choice of outputs shows the fault again. Raises HarnessError."""
    return _search(process, WrongValue, "first_wrong_value", program, delegate, input_set)


def smallest_part(
    process: ExportProcess,
    program: Program,
    delegate: int,
    input_set: int,
    *,
    tries: int,
    base: Path | None = None,
    newest: NewestVela | None = None,
) -> SmallestPart | None:
    """Write ``base``.tosa, its inputs and Vela's stream of it.

    Returns None when the recompiled graph is right for these inputs. Raises HarnessError."""
    given = program, delegate, input_set, tries, base, newest
    return _search(process, SmallestPart, "smallest_part", *given)


def _search(
    process: ExportProcess,
    kind: type[_Found],
    function: str,
    program: Program,
    delegate: int,
    *arguments: object,
) -> _Found | None:
    task = f"the search in delegate {delegate} of {program.model}"
    answer = process.call(f"localise:{function}", program, delegate, *arguments, task=task)
    return None if answer is None else checked(kind, answer)
