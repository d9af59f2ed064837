"""The values that a program computes, and which of them may be a value of the quantised model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch

from harness.export.child.bounds import QuantizedRegion
from harness.export.child.tosa_graph import Array

_MOST_CLAIMS = 8  # for a value whose operators have no names in the program


@dataclass(frozen=True)
class ProgramValue:
    """A value that the program computes.

    ``source``: the last node of the quantised model that its operator was made from, by name; ""
    for values of a TOSA graph, whose ``name`` is that of the delegate and the tensor
    (``tensor_name``)."""

    value: Array
    source: str = ""
    name: str = ""

    @property
    def kind(self) -> tuple[str, int]:
        return str(self.value.dtype), self.value.size


def tensor_name(delegate: int, tensor: str) -> str:
    return f"{delegate}:{tensor}"


@dataclass(frozen=True)
class Claim:
    """What the program may have instead of a value; ``number``: of the program's value."""

    value: torch.Tensor
    number: int


class Candidates:
    """The values of a program, by type and size. ``others``: those that cannot be claimed."""

    def __init__(self, values: Sequence[ProgramValue], others: Collection[int]) -> None:
        self._values = values
        self._others = others
        self._by_kind: dict[tuple[str, int], list[int]] = {}
        for number, value in enumerate(values):
            self._by_kind.setdefault(value.kind, []).append(number)
        self._ordered: dict[int, Array] = {}
        self._orders: dict[int, dict[tuple[int, ...], None]] = {}

    def name(self, number: int) -> str:
        return self._values[number].name

    def partner(
        self, region: QuantizedRegion, value: torch.Tensor, within: torch.Tensor | int
    ) -> Claim | None:
        """Return the most similar value within the bound, laid out like ``value``.

        One that was made from the region's own operators comes before any other."""
        wanted = value.contiguous().numpy()
        limit = np.asarray(within)
        for group in self._groups(region, wanted):
            best: tuple[int, int, Array] | None = None
            for number in group:
                for arranged in self._arranged(number, wanted, int(limit.max(initial=0))):
                    difference = np.abs(arranged.astype(np.int32) - wanted)
                    if (difference <= limit).all():
                        total = int(difference.max(initial=0))
                        if best is None or total < best[0]:
                            best = total, number, arranged
                        break
                if best is not None and best[0] == 0:
                    break
            if best is not None:
                return Claim(_like(value, best[2]), best[1])
        return None

    def is_own(self, region: QuantizedRegion, claim: Claim) -> bool:
        """Whether the value was made from the region's own operators."""
        return self._values[claim.number].source in region.node_names

    def claims(self, region: QuantizedRegion, value: torch.Tensor) -> tuple[list[Claim], bool]:
        """Values that the program may have computed instead, and whether their sources say so."""
        wanted = value.contiguous().numpy()
        own, rest = (
            [number for number in group if number not in self._others]
            for group in self._groups(region, wanted)
        )
        ordered = np.sort(wanted, axis=None).astype(np.int64)
        if not own:
            rest.sort(key=lambda number: float(np.abs(self._sorted(number) - ordered).sum()))
        claims = [
            Claim(_like(value, each), number)
            for number in (own or rest[:_MOST_CLAIMS])
            for each in self._known_orders(number, wanted)
        ]
        return claims, bool(own)

    def _groups(self, region: QuantizedRegion, wanted: Array) -> tuple[list[int], list[int]]:
        of_kind = self._by_kind.get((str(wanted.dtype), wanted.size), [])
        own = [n for n in of_kind if self._values[n].source in region.node_names]
        return own[::-1], [n for n in of_kind if n not in own]

    def _arranged(self, number: int, wanted: Array, limit: int) -> Iterator[Array]:
        """Yield a value in each order of its dimensions; in those that have fitted before first."""
        yield from self._known_orders(number, wanted)
        ordered = np.sort(wanted, axis=None).astype(np.int64)
        if np.abs(self._sorted(number) - ordered).max(initial=0) > limit:
            return  # no order helps
        tried = set()
        for order in permutations(range(wanted.ndim)):
            key = tuple(d for d in order if wanted.shape[d] > 1)
            if key not in tried:
                tried.add(key)
                arranged = _in_order(self._values[number].value, wanted, order)
                if np.abs(arranged.astype(np.int32) - wanted).max(initial=0) <= limit:
                    self._orders.setdefault(wanted.ndim, {})[order] = None
                yield arranged

    def _known_orders(self, number: int, wanted: Array) -> Iterator[Array]:
        plain = tuple(range(wanted.ndim))
        channels_last = (*plain[:1], *plain[2:], *plain[1:2])
        for order in dict.fromkeys([plain, channels_last, *self._orders.get(wanted.ndim, {})]):
            yield _in_order(self._values[number].value, wanted, order)

    def _sorted(self, number: int) -> Array:
        if number not in self._ordered:
            ordered = np.sort(self._values[number].value, axis=None)
            self._ordered[number] = ordered.astype(np.int64)
        return self._ordered[number]


def _like(value: torch.Tensor, array: Array) -> torch.Tensor:
    return torch.empty_like(value).copy_(torch.from_numpy(np.ascontiguousarray(array)))


def _in_order(candidate: Array, wanted: Array, order: Sequence[int]) -> Array:
    back = tuple(np.argsort(order).tolist())
    return candidate.reshape([wanted.shape[d] for d in order]).transpose(back)
