"""Does a loop of a stream ever end? Not when it comes back to a branch with nothing changed.

Everything that an NPU's next step depends on is registers, memory and what it keeps between
operations. It is looked at the second, third, fifth, ninth ... time that a branch goes back, so
that looking costs little however long the loop is; what counts for ever is not noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from harness.npu.errors import StreamError
from harness.npu.executor import Executor
from harness.npu.memory import WEIGHTS, Memory


class Loops:
    def __init__(self) -> None:
        self._turns: dict[int, int] = {}  # by the place of the branch
        self._seen: dict[int, bytes] = {}

    def back(
        self,
        place: int,
        values: Mapping[str, int],
        condition: bool | None,
        memory: Memory,
        executor: Executor,
    ) -> None:
        """A branch goes back. Raises StreamError when it did so in the same state before."""
        turns = self._turns[place] = self._turns.get(place, 0) + 1
        looks = turns & (turns - 1) == 0
        if not looks and (turns - 1) & (turns - 2):
            return
        state = _state(values, condition, memory, executor)
        if looks:
            self._seen[place] = state
        elif self._seen[place] == state:
            raise StreamError(f"a loop changes nothing and never ends, after {turns} turns", place)


def _state(
    values: Mapping[str, int], condition: bool | None, memory: Memory, executor: Executor
) -> bytes:
    digest = hashlib.blake2b(repr((sorted(values.items()), condition)).encode())
    for number, region in sorted(memory.regions.items()):
        if number != WEIGHTS:
            digest.update(region.tobytes())
    digest.update(memory.internal.tobytes())
    for number, chain in sorted(executor.chains.items()):
        digest.update(repr((number, len(chain))).encode() + chain.tobytes())
    digest.update(executor.kept.tobytes())
    return digest.digest()
