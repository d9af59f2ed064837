"""Protects exported programs from being refused, and what the check finds sound from being wrong:
the wheel's own runtime computes programs whose tensors were moved at random.

HIL_PLAN_SEED asks for other places.
"""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from harness.formats.pte import plans_of
from harness.size.memory_plan import memory_plans
from tests.late import Late
from tests.size.plan_samples import offsets_in
from tests.thorough import amount

plan_runtime = Late("tests.size.plan_runtime")
SEED = int(os.environ.get("HIL_PLAN_SEED", "20261127"))
MOVES = amount(12, 100)


def faults(file: Path, alignment: int = 1) -> list[str]:
    return [fault.text for plan in memory_plans(file, (), alignment) for fault in plan.faults]


def test_the_plans_of_exported_programs_are_sound(programs: dict[str, Path]) -> None:
    for name, file in programs.items():
        assert faults(file, alignment=16) == [], name


NETWORKS = ("residual", "state", "branches", "loop", "views", "delegated")


@pytest.mark.parametrize("network", NETWORKS)
def test_what_is_sound_computes_the_same_wherever_its_tensors_are(
    network: str, tmp_path: Path
) -> None:
    """Random places for tensors that move together: views with what they show. A plan that is found
    sound gives what the exported one gives, in the wheel's own runtime."""
    seed = random.Random(SEED + NETWORKS.index(network))
    print("seed", SEED)
    original = plan_runtime.exported(network)
    file = tmp_path / "program.pte"
    file.write_bytes(original)
    assert faults(file, alignment=16) == []
    expected = plan_runtime.outputs(original)
    found = 0
    for _ in range(MOVES):
        moved = _with_another_place(original, seed)
        file.write_bytes(moved)
        wrong = faults(file)
        found += bool(wrong)
        if not wrong:
            assert plan_runtime.outputs(moved) == expected
    assert found


def _with_another_place(content: bytes, seed: random.Random) -> bytes:
    """One offset, and all that are equal to it, becomes that of another tensor, or any."""
    offsets: dict[int, list[int]] = {}
    for at in offsets_in(content).values():
        offsets.setdefault(struct.unpack_from("<I", content, at)[0], []).append(at)
    (plan,) = plans_of(content)
    *_, size = plan.items("non_const_buffer_sizes")
    moved, new = bytearray(content), seed.choice([0, *offsets, seed.randrange(0, size, 16)])
    for at in offsets[seed.choice([*offsets])]:
        struct.pack_into("<I", moved, at, new)
    return bytes(moved)
