"""The decoder of weights compared with Vela's codec."""

from __future__ import annotations

import numpy as np
import pytest

from harness.npu import kernel_library
from harness.npu.errors import AccessError
from harness.npu.kernel_library import WeightDecoder

SEED = 31


@pytest.fixture(scope="module")
def decoder() -> WeightDecoder:
    return WeightDecoder(kernel_library.load())


def drawn(generator: np.random.Generator, kind: int) -> list[int]:
    """Weights that an encoder treats in its different ways."""
    count = int(generator.integers(1, 3000))
    normal = np.rint(generator.normal(0, 8, count)).clip(-255, 255)
    few = generator.choice(generator.integers(-255, 256, int(generator.integers(1, 40))), count)
    made = (
        generator.integers(-255, 256, count),
        generator.integers(-3, 4, count),
        np.where(generator.random(count) < 0.9, 0, normal * 10),
        normal,
        few,
        np.zeros(count),
        np.concatenate([normal, np.zeros(int(generator.integers(0, 40000))), few]),
    )
    return [int(value) for value in made[kind % len(made)].clip(-255, 255)]


def test_what_vela_encodes_is_decoded_as_vela_decodes_it(decoder: WeightDecoder) -> None:
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    generator = np.random.default_rng(SEED)
    for number in range(140):
        weights = drawn(generator, number)
        encoded = bytes(mlw_codec.encode(weights))
        found = decoder.decode(encoded, 0)
        assert len(found) >= len(weights), f"seed {SEED}, number {number}"
        assert found[: len(weights)].tolist() == weights, f"seed {SEED}, number {number}"
        assert not found[len(weights) :].any()


def test_streams_follow_one_another(decoder: WeightDecoder) -> None:
    """Each begins at a multiple of 16 bytes, with a palette of its own."""
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    generator = np.random.default_rng(SEED)
    parts = [bytes(mlw_codec.encode(drawn(generator, kind))) for kind in range(4)]
    whole = np.concatenate([decoder.decode(part, 0) for part in parts])
    assert (decoder.decode(b"".join(parts), 0) == whole).all()


def test_a_malformed_stream_is_an_error_or_weights(decoder: WeightDecoder) -> None:
    """Cut short: an error, as with Vela's codec. Otherwise damaged: no more than that."""
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    generator, refused = np.random.default_rng(SEED), 0
    for number in range(300):
        encoded = bytearray(mlw_codec.encode(drawn(generator, number)))
        if number % 2:
            encoded[int(generator.integers(len(encoded)))] ^= 1 << int(generator.integers(8))
        else:
            del encoded[int(generator.integers(1, len(encoded))) :]
        try:
            decoder.decode(bytes(encoded), 7)
        except AccessError:
            refused += 1
    assert refused > 50, f"seed {SEED}"


def test_a_few_bytes_cannot_ask_for_more_weights_than_the_limit(
    decoder: WeightDecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    encoded = bytes(mlw_codec.encode([0] * 100_000))
    assert len(decoder.decode(encoded, 0)) >= 100_000
    monkeypatch.setattr("harness.npu.kernel_library.ENCODED", 99_999)
    with pytest.raises(AccessError, match="bytes of weights cannot be decoded"):
        decoder.decode(encoded, 0)


def unfolded(encoded: bytes) -> list[int]:
    """The fast format, item by item."""
    header = int.from_bytes(encoded[:32], "little")
    if header & 1:
        adjust = int.from_bytes(encoded[13:14], "little", signed=True)
        return [
            int.from_bytes(encoded[n : n + 1], "little", signed=True) - adjust
            for n in range(32, len(encoded))
        ]
    bits = 2 if header & 2 else 4
    folded = [header >> 112 + 9 * n & 0x1FF for n in range(16)]
    table = [-(f >> 1) if f & 1 else f >> 1 for f in folded]
    shifts, mask = range(0, 8, bits), (1 << bits) - 1
    items = (byte >> shift & mask for byte in encoded[32:] for shift in shifts)
    return [table[item] for item in items]


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_the_fast_format(kind: int, decoder: WeightDecoder) -> None:
    """Raw, by a table, by a small one, and a header that says both: any header, any items."""
    generator = np.random.default_rng(SEED)
    for number in range(50):
        header = bytearray(generator.bytes(32))
        header[0] = header[0] & ~3 | kind
        encoded = bytes(header) + generator.bytes(int(generator.integers(0, 300)))
        found = decoder.decode_fast(encoded, 0)
        assert found.tolist() == unfolded(encoded), f"seed {SEED}, number {number}"


def test_the_fast_format_needs_its_header(decoder: WeightDecoder) -> None:
    with pytest.raises(AccessError, match="header is cut short"):
        decoder.decode_fast(bytes(31), 0)
