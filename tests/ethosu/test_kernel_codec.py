"""The compiled decoder beside Vela's codec, and the compiled orders beside numpy's."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from harness.ethosu import kernel_library
from harness.ethosu.codec import Codec, Weights
from harness.ethosu.errors import AccessError
from harness.ethosu.kernel_codec import KernelCodec
from harness.ethosu.u55.weights import WeightLayout, reorder
from harness.ethosu.u85.weights import UBLOCK_DEPTH, WeightLayoutU85, decode_fast, reorder_u85

SEED = 31


@pytest.fixture(scope="module")
def compiled() -> KernelCodec:
    library = kernel_library.load().library
    assert library is not None
    return KernelCodec(library)


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


def test_what_vela_encodes_is_decoded_as_vela_decodes_it(compiled: KernelCodec) -> None:
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    generator = np.random.default_rng(SEED)
    for number in range(140):
        weights = drawn(generator, number)
        encoded = bytes(mlw_codec.encode(weights))
        found = compiled.decode(encoded, 0)
        assert len(found) >= len(weights), f"seed {SEED}, number {number}"
        assert found[: len(weights)].tolist() == weights, f"seed {SEED}, number {number}"
        assert not found[len(weights) :].any()


def test_streams_follow_one_another(compiled: KernelCodec) -> None:
    """Each begins at a multiple of 16 bytes, with a palette of its own."""
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    generator = np.random.default_rng(SEED)
    parts = [bytes(mlw_codec.encode(drawn(generator, kind))) for kind in range(4)]
    whole = np.concatenate([compiled.decode(part, 0) for part in parts])
    assert (compiled.decode(b"".join(parts), 0) == whole).all()


def test_a_malformed_stream_is_an_error_or_weights(compiled: KernelCodec) -> None:
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
            compiled.decode(bytes(encoded), 7)
        except AccessError:
            refused += 1
    assert refused > 50, f"seed {SEED}"


def test_a_few_bytes_cannot_ask_for_more_weights_than_the_limit(
    compiled: KernelCodec, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlw_codec = pytest.importorskip("ethosu.mlw_codec", reason="needs Vela")
    encoded = bytes(mlw_codec.encode([0] * 100_000))
    assert len(compiled.decode(encoded, 0)) >= 100_000
    monkeypatch.setattr("harness.ethosu.kernel_codec.ENCODED", 99_999)
    with pytest.raises(AccessError, match="bytes of weights cannot be decoded"):
        compiled.decode(encoded, 0)


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_the_fast_format_is_the_one_of_numpy(kind: int, compiled: KernelCodec) -> None:
    """Raw, by a table, by a small one, and what says that it is both: any header, any items."""
    generator = np.random.default_rng(SEED)
    for number in range(50):
        header = bytearray(generator.bytes(32))
        header[0] = header[0] & ~3 | kind
        encoded = bytes(header) + generator.bytes(int(generator.integers(0, 300)))
        found = compiled.fast(encoded)
        assert found is not None
        expected = decode_fast(encoded, 0)
        assert found.tolist() == expected.tolist(), f"seed {SEED}, number {number}"


def test_a_fast_format_without_its_header_is_numpys(compiled: KernelCodec) -> None:
    assert compiled.fast(bytes(31)) is None
    assert Codec().fast(bytes(32)) is None


def layouts_u55(generator: np.random.Generator) -> WeightLayout:
    depthwise = bool(generator.integers(2))
    return WeightLayout(
        ofm_depth=int(generator.integers(1, 40)),
        kernel=(int(generator.integers(1, 11)), int(generator.integers(1, 11))),
        ifm_depth=int(generator.integers(1, 70)),
        ofm_block=8 * int(generator.integers(1, 4)),
        ofm_ublock=int(generator.choice([4, 8])),
        ifm_16bit=bool(generator.integers(2)),
        part_kernel=not depthwise and bool(generator.integers(2)),
        depthwise=depthwise,
        dilation=(int(generator.integers(1, 3)), int(generator.integers(1, 3))),
        cores=int(generator.integers(1, 3)),
    )


def layouts_u85(generator: np.random.Generator) -> WeightLayoutU85:
    depthwise = bool(generator.integers(2))
    macs, _ = choice = sorted(UBLOCK_DEPTH)[int(generator.integers(len(UBLOCK_DEPTH)))]
    return WeightLayoutU85(
        macs=macs,
        ofm_depth=int(generator.integers(1, 90)),
        kernel=(int(generator.integers(1, 10)), int(generator.integers(1, 10))),
        ifm_depth=int(generator.integers(1, 90)),
        ofm_block=int(generator.integers(1, 5)) * 16,
        ofm_ublock=UBLOCK_DEPTH[choice],
        ifm_bits=int(generator.choice([8, 16])),
        part_kernel=not depthwise and bool(generator.integers(2)),
        depthwise=depthwise,
        sparse=bool(generator.integers(2)),
        fast=bool(generator.integers(2)),
        dilation=(int(generator.integers(1, 3)), int(generator.integers(1, 3))),
        stride=(int(generator.integers(1, 4)), int(generator.integers(1, 4))),
    )


def needed(layout: WeightLayout | WeightLayoutU85, count: int) -> list[Weights]:
    """Streams of zeros that are as long as the layout needs: what it takes, it says."""
    length = 1 << 12
    order = reorder if isinstance(layout, WeightLayout) else reorder_u85
    while True:
        streams = [np.zeros(length, np.int16)] * count
        try:
            order(streams, layout, 0)  # type: ignore[operator]
            return streams
        except AccessError:
            length *= 2


@pytest.mark.parametrize("product", ["u55", "u85"])
def test_an_order_is_the_one_of_numpy(product: str, compiled: KernelCodec) -> None:
    """Weights all over the streams; what is no padding in numpy has to be the same, and where it
    finds a weight in the padding, or too few, the compiled order does not hold either."""
    generator, held = np.random.default_rng(SEED), 0
    for number in range(60):
        layout: WeightLayout | WeightLayoutU85
        if product == "u55":
            layout = layouts_u55(generator)
            count = layout.cores
        else:
            layout = layouts_u85(generator)
            count = layout.streams
        streams = [stream.copy() for stream in needed(layout, count)]
        whole = dataclasses.asdict(layout)
        for stream in streams:
            places = generator.integers(len(stream), size=int(generator.integers(0, 6)))
            stream[places] = generator.integers(-255, 256, len(places))
        order = reorder if product == "u55" else reorder_u85
        try:
            expected = order(streams, layout, 0)  # type: ignore[operator]
        except AccessError:
            assert compiled.reordered(streams, layout) is None, (SEED, number, whole)
            continue
        found = compiled.reordered(streams, layout)
        assert found is not None, (SEED, number, whole)
        assert (found == expected).all(), (SEED, number, whole)
        held += 1
        short = [stream[: len(stream) // 3] for stream in streams]
        if layout.ofm_depth > 3:
            try:
                order(short, layout, 0)  # type: ignore[operator]
            except AccessError:
                assert compiled.reordered(short, layout) is None
    assert held > 5, f"seed {SEED}"


def test_the_worker_has_no_order_of_its_own() -> None:
    assert Codec().reordered([], object()) is None


def test_nobody_has_an_order_for_another_layout(compiled: KernelCodec) -> None:
    assert compiled.reordered([], object()) is None
