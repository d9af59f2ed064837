"""What a run with two runners found (``--firmware both``), as a record keeps it. One is the bundled
runner; the other, "the checkout" below, may also be ExecuTorch's wheel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness.judge.compare import TensorDiff
from harness.judge.first_operator import FirstDifference

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
