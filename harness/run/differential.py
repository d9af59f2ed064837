"""What a run with two runners found (``--firmware both``), as a record keeps it. One is the bundled
runner; the other, "the checkout" below, may also be ExecuTorch's wheel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness.judge.compare import TensorDiff
from harness.localise.first_operator import FirstDifference

Pairs = Mapping[str, tuple[int | None, int | None]]


@dataclass(frozen=True)
class Differential:
    """``tensors``: each output of each input set, the checkout's against the bundled runner's.

    ``first``: where the first input set that differs begins to. ``figures`` by name, and
    instructions per operator: the bundled runner's and the checkout's, None where one has none.
    """

    tensors: tuple[TensorDiff, ...]
    first: FirstDifference | None
    by_design: tuple[str, ...]
    figures: Pairs
    operators: Pairs

    @property
    def agree(self) -> int:
        return sum(diff.exact for diff in self.tensors)

    def summary(self) -> dict[str, Any]:
        """For ``--json``."""
        return {"agree": self.agree, "of": len(self.tensors), **asdict(self)}


def from_fields(fields: Mapping[str, Any] | None) -> Differential | None:
    """From plain data. Raises TypeError, KeyError for what is none."""
    if fields is None:
        return None
    diffs = ({**d, "worst_index": _place(d["worst_index"])} for d in fields["tensors"])
    first = fields["first"]
    return Differential(
        tensors=tuple(TensorDiff(**d) for d in diffs),
        first=None if first is None else FirstDifference(**first),
        by_design=tuple(fields["by_design"]),
        figures=_pairs(fields["figures"]),
        operators=_pairs(fields["operators"]),
    )


def _place(said: Any) -> tuple[int, ...] | None:
    return None if said is None else tuple(said)


def _pairs(fields: Mapping[str, Any]) -> dict[str, tuple[int | None, int | None]]:
    return {name: (ours, theirs) for name, (ours, theirs) in fields.items()}
