"""The parts of an Ethos-U blob: every byte is in one of them, however damaged the blob is."""

from __future__ import annotations

import struct

from harness.size.anatomy import Tally
from harness.size.pte import constant_uses, split
from tests.npu.assembling import U55_128, U85_256, blob, cop1, cop2, tensors
from tests.size.samples import vela_blob

PLACE = ("delegates", "x")


def parts(blob: bytes) -> dict[str, int]:
    """Size by the last name of a part."""
    tally = Tally()
    split(memoryview(blob), PLACE, tally)
    return {part.path[-1]: part.bytes for part in tally.parts()}


def test_every_truncation_is_one_opaque_part() -> None:
    blob = vela_blob()
    for size in range(1, len(blob)):
        assert parts(blob[:size]) == {"opaque": size}
    assert "opaque" not in parts(blob)


def test_what_follows_a_stream_counts() -> None:
    assert parts(vela_blob() + b"more")["after the stream"] == 4


def test_what_a_driver_of_linux_provides() -> None:
    """Regions of inputs and outputs, and on-chip memory: of COP2, and of no damaged table."""
    one = tensors(((1, 1, 1, 1, 2, 5), 2, 16, 3))
    out = tensors(((1, 1, 1, 1, 1, 9), 1, 0, 4))
    made = blob(cop2(U85_256, [0], cache=64), inputs=one, outputs=out)
    needs = split(memoryview(made), PLACE, Tally()).memory
    assert needs == {"inputs": 36, "outputs": 9, "on-chip cache": 64}
    cut = blob(cop2(U85_256, [0], cache=64), inputs=one[:-1], outputs=out + b"x")
    assert split(memoryview(cut), PLACE, Tally()).memory == {}
    assert split(memoryview(blob(cop1(U85_256, [0]))), PLACE, Tally()).memory == {}


def test_constants_stay_whole_when_the_commands_are_damaged() -> None:
    """An action that nobody knows: it may hide what uses the constants."""
    blob = vela_blob(weights=64)
    damaged = blob.replace(b"COP1\x01", b"COP1\x09")
    assert sum(parts(damaged).values()) == sum(parts(blob).values()) == len(blob)
    assert parts(blob)["weights"] == 32
    assert parts(damaged)["constants"] == 64


def test_every_truncation_of_the_commands_is_survived() -> None:
    stream = [0x128, 0x4020, 0, 0x4021, 32, 0x129, 0x4022, 32, 0x4023, 16, 0x002]
    commands = cop1(U55_128, stream)
    assert constant_uses(memoryview(commands)) == {(0, 32): 0, (32, 48): 1}
    for size in range(len(commands)):
        found = constant_uses(memoryview(commands[:size]))
        assert not found
    assert constant_uses(memoryview(struct.pack("<I", 1))) is None
