"""``hil npu reduce``: from a program to the smallest part of it that the NPU computes wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.case.case import Case
from harness.case.models import find_model
from harness.errors import HarnessError, UsageError
from harness.export import cache, quiet
from harness.export.checkout.exporter import CheckoutExporter
from harness.export.program import Program
from harness.localise.first_difference import localise
from harness.localise.reduce import Smallest
from harness.run.exports import export_cases
from harness.system.files import sha256_of
from harness.system.progress import Progress
from harness.target.loading import load_target


@dataclass(frozen=True)
class Reduced:
    """``text``: the operators that are left, a line each. ``files``: what was written."""

    delegate: int
    input_set: int
    smallest: Smallest
    text: tuple[str, ...]
    defect: str
    files: tuple[str, ...]


def program_of(subject: Path, target: str | None, progress: Progress) -> Program:
    """An exported ``.pte``, or a model that is exported for ``target``.

    Raises UsageError for a ``.pte`` whose TOSA graphs are not known, and without a target for a
    model.
    """
    if subject.suffix == ".pte":
        found = cache.by_pte(sha256_of(subject)) if subject.is_file() else None
        if found is None:
            raise UsageError(
                f"{subject} is not a program that hil exported here, and a .pte does not hold the "
                "graphs that its streams were compiled from",
                hint="name the model instead: hil npu reduce MODEL --target TARGET",
                path=subject,
            )
        return found
    if target is None:
        raise UsageError(
            f"{subject} is no .pte, and a model is reduced for a target",
            hint="--target TARGET; `hil targets` lists them",
        )
    return _exported(str(subject), target, progress)


def _exported(model: str, target: str, progress: Progress) -> Program:
    find_model(model)  # says at once when there is none
    exporter: CheckoutExporter | None = None
    (result,) = export_cases(
        [Case(target, model)], {target: load_target(target)}, progress, exporter
    )
    if isinstance(result, HarnessError):
        raise result
    return result


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
