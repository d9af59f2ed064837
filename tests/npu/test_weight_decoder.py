"""The decoder of weights compared with Vela's codec."""

from __future__ import annotations

import numpy as np
import pytest

from harness.npu import kernel_library
from harness.npu.errors import AccessError, WorkLimit
from harness.npu.kernel_library import ENCODED, WeightDecoder
from harness.npu.model import Network

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
        found = decoder.decode(encoded, len(weights), 0)
        assert found.tolist() == weights, f"seed {SEED}, number {number}"
        first, rest = decoder.decode(encoded, len(weights) + 99, 0), len(weights)
        assert first[:rest].tolist() == weights, f"seed {SEED}, number {number}"
        assert not first[rest:].any()


@pytest.mark.parametrize("zeros", [65_535, 65_536, 65_537, 71_680, 1 << 20])
def test_a_run_of_zeros_may_be_as_long_as_the_weights(decoder: WeightDecoder, zeros: int) -> None:
    """As Vela's decoder reads it: alone, and before, between and after other weights."""
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    run = [0] * zeros
    for weights in (run, [*run, 5], [5, *run], [-3, *run, 7, *run[:99_999]]):
        encoded = bytes(mlw_codec.encode(weights))
        assert mlw_codec.decode(bytearray(encoded))[: len(weights)] == weights
        assert decoder.decode(encoded, len(weights), 0).tolist() == weights


def test_streams_follow_one_another(decoder: WeightDecoder) -> None:
    """Each begins at a multiple of 16 bytes, with a palette of its own."""
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    generator = np.random.default_rng(SEED)
    drawings = [drawn(generator, kind) for kind in range(4)]
    parts = [bytes(mlw_codec.encode(weights)) for weights in drawings]
    whole = np.concatenate(
        [decoder.decode(p, len(w), 0) for p, w in zip(parts, drawings, strict=True)]
    )
    assert (decoder.decode(b"".join(parts), len(whole), 0) == whole).all()


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
            decoder.decode(bytes(encoded), 100_000, 7)
        except AccessError:
            refused += 1
    assert refused > 50, f"seed {SEED}"


def test_what_follows_the_weights_of_an_operation_is_zero(decoder: WeightDecoder) -> None:
    """As many zeros as there are; they take no memory."""
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    encoded = bytes(mlw_codec.encode([1, 2, 3, *[0] * 100_000]))
    assert decoder.decode(encoded, 3, 0).tolist() == [1, 2, 3]
    for weights in ([*[0] * 9, 1], [1, 2, 3]):
        encoded = bytes(mlw_codec.encode(weights))
        with pytest.raises(AccessError, match="padding position is not 0"):
            decoder.decode(encoded, len(weights) - 1, 0)


def test_an_operation_with_more_weights_than_the_limit_is_not_read(decoder: WeightDecoder) -> None:
    """The model's limit: the stream may be right."""
    with pytest.raises(WorkLimit, match="asks for 134217729 weights with their padding"):
        decoder.decode(b"", ENCODED + 1, 0)


def bits(*fields: tuple[int, int]) -> bytes:
    """Numbers of so many bits each, and an end of 16 bytes."""
    value = place = 0
    for number, width in fields:
        value |= number << place
        place += width
    size = -(-place // 128) * 16
    return (value | (1 << 8 * size) - (1 << place)).to_bytes(size, "little")


def one_weight(index: int) -> bytes:
    """A slice without runs of zeros or a palette, remainders of 5 bits."""
    ones, twos, unary = index // 32 % 2, index // 64, []
    codes = [2] * twos + [1] * ones
    for at in range(0, len(codes) + 1, 12):
        chunk = codes[at : at + 12]
        unary += [((1 << len(chunk)) - 1, 12)]
        unary += [(sum((code - 1) << n for n, code in enumerate(chunk)), len(chunk))]
    return bits(
        (6, 3), (0, 15), (5, 3), (0, 1), (1, 1), (0, 5), (0, 5), (7, 3), *unary, (index % 32, 5)
    )


@pytest.mark.parametrize(("index", "weight"), [(7, -3), (510, 255), (511, -255)])
def test_an_index_of_nine_bits_is_a_weight(decoder: WeightDecoder, index: int, weight: int) -> None:
    assert decoder.decode(one_weight(index), 1, 0).tolist() == [weight]


@pytest.mark.parametrize("index", [512, 513, 5000])
def test_an_index_beyond_nine_bits_is_malformed(decoder: WeightDecoder, index: int) -> None:
    with pytest.raises(AccessError, match="cannot be decoded"):
        decoder.decode(one_weight(index), 1, 0)


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


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"])
def test_a_convolution_of_zeros_gives_its_bias(target: str) -> None:
    """71,680 of them: how the last convolution of a residual branch is often initialised."""
    pytest.importorskip("ethosu.vela", reason="needs Vela")
    tosa_graph = pytest.importorskip("tests.npu.tosa_graph", reason="needs tosa-tools")
    graph, int8, int32 = tosa_graph.Graph(), tosa_graph.INT8, tosa_graph.INT32
    bias = np.arange(-32, 32)
    parts = (
        graph.input((1, 9, 7, 32), int8),
        graph.const(np.zeros((64, 7, 5, 32), int), int8),
        graph.const(bias, int32),
        *(graph.const([0], int8) for _ in range(2)),
    )
    facts = {"pad": [3, 3, 2, 2], "stride": [1, 1], "dilation": [1, 1]}
    attr = tosa_graph.attributes("Conv2d", local_bound=False, acc_type=int32, **facts)
    sums = graph.op("CONV2D", parts, (1, 9, 7, 64), int32, attr)
    graph.output(graph.rescale(sums, int8, [(1 << 30, 30)]))
    blob = tosa_graph.compile_tosa(graph.serialise(), target, ())
    (output,), _ = Network(blob).run([bytes(9 * 7 * 32)])
    assert (np.frombuffer(output, np.int8).reshape(63, 64) == bias).all()
