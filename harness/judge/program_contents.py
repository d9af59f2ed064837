"""What a program contains, operator by operator, small enough to be kept with an accepted run.

Two programs with equal contents compute the same: what may differ is debug text, and how the file
is laid out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.judge.npu_contents import Operator, digest_of

DELEGATE_PARTS: Final = ("compile specs", "data")


@dataclass(frozen=True)
class ProgramContents:
    """``operators`` in the order of execution, each a name and its parts: a tensor as type, shape
    and, of a constant, a digest of its bytes; other arguments as they are. After a delegate for an
    Ethos-U come the operations of its command stream. ``memory``: bytes of the planned buffers.
    ``wiring``: digest of which result goes where; ``placement``: of where in memory each tensor
    is; ``named_data``: of the data that delegates share."""

    operators: tuple[Operator, ...]
    memory: tuple[int, ...]
    wiring: str
    placement: str
    named_data: str = ""

    def to_fields(self) -> dict[str, Any]:
        return {
            "memory": list(self.memory),
            "wiring": self.wiring,
            "placement": self.placement,
            "named_data": self.named_data,
            "operators": [list(one) for one in self.operators],
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> ProgramContents:
        return cls(
            tuple(tuple(one) for one in fields["operators"]),
            tuple(int(size) for size in fields["memory"]),
            str(fields["wiring"]),
            str(fields["placement"]),
            str(fields["named_data"]),
        )

    @property
    def outline(self) -> tuple[str, ...]:
        """Each operator in a few characters: its name, and a digest of its parts."""
        return tuple(f"{one[0]} {digest_of(one[1:])[:8]}" for one in self.operators)
