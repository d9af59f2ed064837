"""Does a loop of a stream ever end? Not when it comes back to a branch with nothing changed.

Everything that an NPU's next step depends on is registers, memory and what it keeps between
operations. It is looked at the second, third, fifth, ninth ... time that a branch goes back, so
that looking costs little however long the loop is; what counts for ever is not noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from harness.ethosu.common import Context
from harness.ethosu.errors import StreamError
from harness.ethosu.memory import WEIGHTS


class Loops:
    def __init__(self) -> None:
        self._turns: dict[int, int] = {}  # by the place of the branch
        self._seen: dict[int, bytes] = {}

    def back(self, place: int, values: Mapping[str, int], context: Context) -> None:
        """A branch goes back. Raises StreamError when it did so in the same state before."""
        turns = self._turns[place] = self._turns.get(place, 0) + 1
        if turns & (turns - 1) == 0:
            self._seen[place] = _state(values, context)
        elif (turns - 1) & (turns - 2) == 0 and self._seen[place] == _state(values, context):
            raise StreamError(f"a loop changes nothing and never ends, after {turns} turns", place)


def _state(values: Mapping[str, int], context: Context) -> bytes:
    digest = hashlib.blake2b(repr((sorted(values.items()), context.condition)).encode())
    memory = context.memory
    for number, region in sorted(memory.regions.items()):
        if number != WEIGHTS:
            digest.update(region.tobytes())
    digest.update(memory.internal.tobytes())
    for number, kept in sorted(context.chained.items()):
        digest.update(repr((number, kept.shape)).encode() + kept.tobytes())
    if context.accumulators is not None:
        digest.update(context.accumulators.tobytes())
    return digest.digest()
