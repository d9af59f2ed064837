"""Finds in a ``.pte`` what ExecuTorch is known to compute wrongly or to refuse.

Our runner does not show it: it follows each tensor's order of dimensions (``dim_order``). A view is
not an instruction but a tensor that is read, was never written, and has the place of another one.
It is wrong where the elements there are not in its own order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.config.known import KnownDefect, known_defects
from harness.core.errors import MalformedFile
from harness.core.judgement import Blame
from harness.formats.flatbuffer import Table
from harness.formats.pte import CuttableProgram, Instruction

CHANNELS_LAST = {(0, 2, 3, 1), (0, 2, 3, 4, 1)}  # of four dimensions, of five
VIEW = "a view"  # as an operator
_CONVOLUTION, _TRANSPOSED = "aten::convolution.out", 6  # the number of its argument


@dataclass(frozen=True)
class ProgramDefect:
    """A known defect that a program meets.

    ``instruction``: its number in the method, from 0. ``seen``: the tensors, each with its sizes
    and the memory order of its dimensions."""

    name: str
    instruction: int
    operator: str
    seen: str

    @property
    def known(self) -> KnownDefect:
        return known_defects().defects[self.name]

    @property
    def facts(self) -> dict[str, Any]:
        return {"culprit": self.known.trouble.culprit, "defect": self.name, **asdict(self)}

    @property
    def place(self) -> str:
        return f"instruction {self.instruction} ({self.operator} of {self.seen})"

    @property
    def blame(self) -> Blame:
        return Blame(self.known.trouble.culprit, str(self), self.facts)

    def __str__(self) -> str:
        known = self.known
        helps = f"; what helps: {known.instead}" if known.instead else ""
        return (
            f"{known.trouble.culprit}, not your model: known defect `{self.name}`: {known.what}"
            f"{helps}"
        )


@dataclass(frozen=True)
class _Tensor:
    sizes: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Table) -> _Tensor:
        return cls(tuple(tensor.items("sizes")), tuple(tensor.items("dim_order")))

    def __str__(self) -> str:
        return f"{list(self.sizes)} in order {list(self.order)}"

    def is_wrong_view_of(self, other: _Tensor) -> bool:
        """Whether n-th elements lie at different places. Both have equally many elements."""
        return self._steps() != other._steps()

    def _steps(self) -> list[tuple[int, int]]:
        """Return extents and strides, innermost first; those that continue one another are one.

        Equal for tensors whose n-th elements are at the same places."""
        strides, step = dict.fromkeys(self.order, 1), 1
        for dim in reversed(self.order):
            strides[dim], step = step, step * self.sizes[dim]
        merged: list[tuple[int, int]] = []
        for dim in reversed(range(len(self.sizes))):
            extent, stride = self.sizes[dim], strides[dim]
            if extent > 1 and merged and stride == math.prod(merged[-1]):
                merged[-1] = extent * merged[-1][0], merged[-1][1]
            elif extent > 1:
                merged.append((extent, stride))
        return merged


def defects_in(pte: Path) -> tuple[ProgramDefect, ...]:
    """Find known defects, in the instructions' order. Raises OSError, MalformedFile."""
    try:
        return tuple(_defects(CuttableProgram(pte)))
    except (LookupError, RecursionError) as error:  # a number of something that it does not have
        raise MalformedFile(f"{pte} contradicts itself: {error}", 0) from error


def _defects(program: CuttableProgram) -> Iterator[ProgramDefect]:
    for step, reads in program.flow():
        tensors = {v: _Tensor.of(tensor) for v, tensor in program.tensors(step.arguments).items()}
        sources = program.tensors([*reads.values()])
        for value, source in reads.items():
            written = _Tensor.of(sources[source])
            if not step.is_delegate and tensors[value].is_wrong_view_of(written):
                yield from _fitting(step.number, VIEW, (written, tensors[value]))
        if not step.is_delegate:
            yield from _fitting(step.number, step.operator, _ordered(program, step, tensors))


def _ordered(
    program: CuttableProgram, step: Instruction, tensors: Mapping[int, _Tensor]
) -> list[_Tensor]:
    """Return the tensors of an instruction whose orders have to agree.

    A convolution's bias need not; nor its weights, which may be plain or channels-last with any
    image, and in any order where it is transposed (ExecuTorch since pull request 21035)."""
    ordered = [*tensors.values()]
    if step.operator != _CONVOLUTION:
        return ordered
    transposed = program.values[step.arguments[_TRANSPOSED]].get("val")
    weights = [] if transposed is not None and transposed.get("bool_val") else [ordered[1]]
    weights = [tensor for tensor in weights if tensor.order not in {(0, 1, 2, 3), *CHANNELS_LAST}]
    return [ordered[0], *weights, ordered[-1]]


def _fitting(number: int, operator: str, tensors: Sequence[_Tensor]) -> Iterator[ProgramDefect]:
    orders = {tensor.order for tensor in tensors}
    layout, plain = "mixed", all(order == tuple(range(len(order))) for order in orders)
    if plain:
        layout = "plain"
    elif orders <= CHANNELS_LAST:
        layout = "channels-last" if _lie_otherwise(tensors) else "plain"
    fits = {"plain-image": _is_plain_image(tensors), "not-plain": not plain}
    layouts = (layout, *(name for name, fit in fits.items() if fit))
    rank = max((len(tensor.sizes) for tensor in tensors), default=0)
    for name, defect in known_defects().defects.items():
        if defect.fits(operator, layouts, rank):
            seen = ", ".join(map(str, dict.fromkeys(tensors)))
            yield ProgramDefect(name, number, operator, seen)
            return


def _is_plain_image(tensors: Sequence[_Tensor]) -> bool:
    """Whether the first tensor has four dimensions in the plain order, where that matters."""
    if not tensors or tensors[0].order != (0, 1, 2, 3):
        return False
    return tensors[0].is_wrong_view_of(replace(tensors[0], order=(0, 2, 3, 1)))


def _lie_otherwise(tensors: Sequence[_Tensor]) -> bool:
    """Return whether it matters that tensors are not in the plain order.

    It does not with one channel, nor where whole tensors are put one after the other along the
    first dimension."""
    whole = len({tensor.sizes[:1] for tensor in tensors}) > 1
    plain = (replace(tensor, order=tuple(range(len(tensor.order)))) for tensor in tensors)
    return not whole and any(map(_Tensor.is_wrong_view_of, tensors, plain))
