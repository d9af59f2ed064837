"""Is a model worth running? Its outputs must depend on its inputs. Imports no torch.

ds_cnn and mobilenet_v1_025 as the ExecuTorch 1.5.1 wheel ships them give one output for every
input: whatever a target computes for such a model, a PASS says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import DeadModelError


@dataclass(frozen=True)
class RawSet:
    """One input set and what the oracle made of it, as bytes in method layout."""

    inputs: tuple[bytes, ...]
    expected: tuple[bytes, ...]


def require_life(model: str, sets: Sequence[RawSet]) -> None:
    """Raise DeadModelError when no two sets with different inputs differ in an output."""
    different_inputs = len({s.inputs for s in sets})
    different_outputs = len({s.expected for s in sets})
    if different_outputs > 1:
        return
    first = sets[0].expected[0][:16].hex() if sets and sets[0].expected else ""
    if different_inputs < 2:
        message = f"model '{model}' cannot be given two different inputs"
        hint = "a case needs at least two, or it cannot show that an output depends on its input"
    else:
        message = (
            f"model '{model}' is dead: {different_inputs} different inputs give the same "
            f"quantised outputs (first bytes {first})"
        )
        hint = "check its weights, and that the calibration inputs span what the model sees"
    raise DeadModelError(
        message,
        hint=hint,
        model=model,
        different_inputs=different_inputs,
        different_outputs=different_outputs,
        first_output_bytes=first,
    )
