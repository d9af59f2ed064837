"""Driver actions: both containers, what is damaged in them, and the words that name an NPU."""

from __future__ import annotations

import re
import struct

import pytest

from harness.core.errors import MalformedFile
from harness.formats import ethosu
from harness.formats.ethosu import CommandStream, UnknownNpu, command_streams
from tests.npu.assembling import U55_128, U85_256, cop1, cop2
from tools.clone import project_root

WORDS = [0x0001_0002, 0xFFFF_0000]
CONTENT = struct.pack("<2I", *WORDS)
TWO = cop1(U55_128, WORDS) + cop1(U85_256, WORDS)[4:]


def first(payload: bytes) -> CommandStream:
    return next(command_streams(payload))


@pytest.mark.parametrize("container", [cop1, cop2])
@pytest.mark.parametrize("config", [U55_128, U85_256])
def test_the_commands_and_their_npu(container: object, config: int) -> None:
    payload = container(config, WORDS)  # type: ignore[operator]
    (found,) = command_streams(payload)
    assert payload[found.start : found.start + found.size] == CONTENT
    assert found.npu == (config, 0)
    assert struct.unpack_from("<I", payload, found.npu_at)[0] == config


def test_every_stream_of_cop1_has_the_npu_named_before_it() -> None:
    found = list(command_streams(TWO))
    assert [TWO[f.start : f.start + f.size] for f in found] == [CONTENT, CONTENT]
    assert [f.npu for f in found] == [(U55_128, 0), (U85_256, 0)]
    assert first(b"COP1" + struct.pack("<2I", 2 | 1 << 16, 7)).npu is None


def test_a_length_has_24_bits() -> None:
    payload = b"COP1" + struct.pack("<I", 2 | 1 << 8 | 1 << 16) + bytes(4 * 0x10001)
    assert first(payload).size == 4 * 0x10001


@pytest.mark.parametrize("payload", [cop1(U55_128, WORDS), cop2(U55_128, WORDS), TWO])
def test_every_truncation_is_named(payload: bytes) -> None:
    """Nothing past the end is yielded; COP1 may end between two actions, COP2 nowhere."""
    between = set()
    for size in range(len(payload)):
        offset = -1
        try:
            found = list(command_streams(payload[:size]))
        except MalformedFile as error:
            offset, found = error.offset, []
        else:
            between.add(size)
        assert offset <= size
        assert all(f.start + f.size <= size for f in found)
    if payload.startswith(ethosu.COP2):
        assert not between
    else:
        assert {4, 16, 20, 24, 28} <= between
        assert all(size % 4 == 0 for size in between)


def test_what_cop2_asks_of_the_driver() -> None:
    """Features and on-chip memory, of which COP1 says nothing."""
    assert first(cop2(U85_256, WORDS, cache=3440)).requires == ethosu.Requirements(2, 3440)
    assert first(cop1(U85_256, WORDS)).requires is None


def cop2_with(at: int, value: int) -> bytes:
    payload = bytearray(cop2(U55_128, WORDS))
    struct.pack_into("<I", payload, at, value)
    return bytes(payload)


@pytest.mark.parametrize(
    ("payload", "says", "offset"),
    [
        (b"", "starts with b''", 0),
        (b"COP9" + bytes(60), "not COP1 or COP2", 0),
        (b"COP1\x01\0\0\0\0\0\0\0", "end inside a word", 4),
        (b"COP1\x05\0\0\0\x05\0", "end inside a word", 8),
        (b"COP1\x02\0\x02\0" + bytes(4), "says 2 words, 1 remain", 4),
        (b"COP2" + bytes(50), "header is cut short", 54),
        (cop2_with(8, 1), "COP2 says 1 bytes of actions", 8),
        (cop2_with(12, 1), "COP2 says", 8),
        (cop2_with(16, 7), "unknown COP2 entry type 7", 16),
        (cop2_with(20, 3), "COP2 entry of 3 bytes", 20),
        (cop2_with(24, 31), "with 31 of metadata", 20),
        (cop2_with(24, 45), "with 45 of metadata", 20),
        (cop2_with(24, 37), "not a whole number of words", 65),
        (cop2_with(24, 32), "not aligned to 16 bytes", 60),
        (cop2_with(4, 2), "COP2 of version 2.0", 4),
        (cop2_with(28, 0), "is not VEUM 1.0", 28),
        (cop2_with(32, 2), "is not VEUM 1.0", 28),
        (cop2_with(36, 19), "VEUM of 19 bytes in 36 of metadata", 36),
        (cop2_with(36, 25), "VEUM of 25 bytes in 36 of metadata", 36),
        (cop2(U55_128, [0] * ((16 << 18) + 1)), "is longer than 16 MiB", 64),
    ],
)
def test_what_is_damaged_is_named(payload: bytes, says: str, offset: int) -> None:
    with pytest.raises(MalformedFile) as caught:
        list(command_streams(payload))
    assert says in caught.value.what
    assert caught.value.offset == offset


def test_an_unknown_action_is_reported_as_a_number() -> None:
    with pytest.raises(ethosu.UnknownAction, match="unknown driver action 9") as caught:
        list(command_streams(b"COP1\x05\0\0\0\x09\0\0\0"))
    assert (caught.value.action, caught.value.offset) == (9, 8)


@pytest.mark.parametrize(("product", "macs"), ethosu.CONFIG_WORDS)
def test_a_config_word_says_its_npu(product: str, macs: int) -> None:
    found = ethosu.read_config(ethosu.CONFIG_WORDS[product, macs])
    assert (found.product, found.macs) == (product, macs)
    assert found.name == f"ethos-{product}-{macs}"
    assert found.cores == (2 if found.name == "ethos-u65-512" else 1)
    assert (found.shram_bytes > 0) == (product != "u85")


def test_an_npu_that_does_not_exist_is_named() -> None:
    with pytest.raises(UnknownNpu, match="no u55 has that many MACs") as caught:
        ethosu.read_config(0 << 28 | 9)
    assert (caught.value.field, caught.value.value) == ("macs_per_cc", 512)
    with pytest.raises(UnknownNpu) as caught:
        ethosu.read_config(7 << 28 | 8)
    assert (caught.value.field, caught.value.value) == ("product", 7)
    assert ethosu.product(7 << 28) is None


def test_npus_are_those_of_vela() -> None:
    """Products, MAC counts, cores and shared RAM, which is in banks of 1 KiB for each core."""
    features = pytest.importorskip("ethosu.vela.architecture_features")
    ours = {f"ethos-{product}-{macs}" for product, counts in ethosu.MACS.items() for macs in counts}
    assert ours == {accelerator.value for accelerator in features.Accelerator}
    for npu, config in features.ArchitectureFeatures.accelerator_configs.items():
        _, product, macs = npu.value.split("-")
        found = ethosu.read_config(ethosu.CONFIG_WORDS[product, int(macs)])
        assert found.cores == config.cores
        assert found.shram_bytes == 1024 * config.shram_banks * config.cores


def test_architecture_of_an_id_word() -> None:
    assert ethosu.architecture(ethosu.ID_WORDS["u55"]) == (1, 0, 6)
    assert ethosu.architecture(ethosu.ID_WORDS["u85"]) == (2, 0, 0)
    assert ethosu.architecture(0x3AB7_FFFF) == (3, 0xAB, 7)


def test_the_runner_knows_the_same_actions() -> None:
    """Protects the two readers of one format from growing apart."""
    source = (project_root() / "targets/runner/ethosu/payload.cpp").read_text()
    found = dict(re.findall(r"constexpr uint32_t k(\w+) = (\w+);", source))
    assert {name: int(value, 0) for name, value in found.items()} == {
        "Cop1": int.from_bytes(ethosu.COP1, "little"),
        "OptimizerConfig": ethosu.OPTIMIZER_CONFIG,
        "CommandStream": ethosu.COMMAND_STREAM,
        "Nop": ethosu.NOP,
    }


def test_the_runner_reads_the_same_container() -> None:
    source = (project_root() / "targets/runner/ethosu/cop2.cpp").read_text()
    assert "kDescription = 12;" in source
    assert "kShortestDescription = 20;" in source
    assert "kMostStream = size_t{16} << 20;" in source
    assert ethosu.MOST_STREAM == 16 << 20
