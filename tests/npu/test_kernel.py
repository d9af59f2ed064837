"""Operations of the kernel compared with plain Python, where TOSA's graphs do not go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from harness.npu.errors import AccessError, Unsupported
from harness.npu.kernel_library import WeightDecoder, load
from harness.npu.model import Network
from harness.npu.stream import register_set
from tests.npu.assembling import U55_128, U85_256, blob, cop1, pool, tensors, words

SEED = 83
OUT = 1 << 15
LENGTH = 1 << 17


@pytest.mark.parametrize(("byte", "held"), [(0x7F, False), (0x80, False), (0x00, True)])
def test_a_sum_beyond_its_accumulator_is_an_error_and_no_number(byte: int, held: bool) -> None:
    """Of four 32-bit channels, whose sums the compiled arithmetic has in 64 bits."""
    sizes = {"IFM_DEPTH_M1": 3, "OFM_DEPTH_M1": 0, "OFM_STRIDE_X": 4, "OFM_STRIDE_Y": 16}
    types = {"IFM_PRECISION": 1 | 2 << 2, "OFM_PRECISION": 0x8101 | 2 << 1, "ACTIVATION": 0}
    stream = words("u55", *pool(**sizes, **types)[:-2], ("POOL", 2), ("STOP", 0xFFFF))
    data = blob(cop1(U55_128, stream), outputs=tensors(((1, 1, 1, 1, 4, 16), 1, 1024, 1)))
    given = bytes(255) + bytes([byte]) if held else bytes([byte]) * 256
    network = Network(data)
    if held:
        assert network.run([given])[0] == [bytes(64)]
        return
    with pytest.raises(AccessError, match="an accumulator needs more than its 32 bits"):
        network.run([given])


@pytest.mark.parametrize("value", [32767, -32768])
@pytest.mark.parametrize("depth", [1024, 1 << 16])
def test_a_convolution_of_16_bits_whose_sums_need_more_than_32(value: int, depth: int) -> None:
    """``depth`` times the largest input and weights of 255, the last quarter 254, in the fast
    format, divided by 2**26. Of 65536 not even the sums of the input's halves fit 32 bits. 32
    channels are more than one vector."""
    channels = 32
    header = (1 | 0x80 << 8 * 13).to_bytes(32, "little")  # 128 is added to each byte
    larger = depth * 3 // 4
    weights = header + bytes([127]) * larger * channels + bytes([126]) * (depth - larger) * channels
    scales = (bytes(6) + (1).to_bytes(2, "little") + bytes([26, 0])) * channels
    sizes = {f"OFM_{name}": 0 for name in ("HEIGHT_M1", "WIDTH_M1", "HEIGHT0_M1", "WIDTH0_M1")}
    changes = {
        **sizes,
        "IFM_DEPTH_M1": depth - 1,
        "OFM_DEPTH_M1": channels - 1,
        "IFM_STRIDE_X": 2 * depth,
        "IFM_PRECISION": 1 | 4,
        "OFM_PRECISION": 1 | 2,
        "OFM_BASE0": 2 * depth,
        "ACTIVATION": 1 << 12,
        "OFM_SCALE": 1 << 45,
        "ACC_FORMAT": 1 | 1 << 8,
        "WEIGHT_FORMAT": 1,
        "OFM_BLK_DEPTH_M1": channels - 1,
        "WEIGHT_REGION": 0,
        "WEIGHT_BASE": 0,
        "WEIGHT_LENGTH": len(weights),
        "SCALE_REGION": 0,
        "SCALE_BASE": len(weights),
        "SCALE_LENGTH": len(scales),
    }
    stream = words("u85", *pool(**changes)[:-2], ("CONV", 0), ("STOP", 0xFFFF))
    given = tensors(((1, 1, 1, 1, 1, depth), 2, 0, 1))
    results = tensors(((1, 1, 1, 1, 1, channels), 2, 2 * depth, 1))
    data = blob(
        cop1(U85_256, stream),
        weights=weights + scales,
        scratch=4 * depth,
        inputs=given,
        outputs=results,
    )
    content = np.full(depth, value, np.int16).tobytes()
    expected = value * (255 * larger + 254 * (depth - larger)) + (1 << 25) >> 26
    assert Network(data).run([content])[0] == [np.full(channels, expected, np.int16).tobytes()]


MAP = {
    f"IFM2_{name}": value
    for name, value in (
        *(("REGION", 1), ("HEIGHT0_M1", 3), ("HEIGHT1_M1", 3), ("WIDTH0_M1", 3)),
        *(("STRIDE_X", 16), ("STRIDE_Y", 64), ("STRIDE_C", 1)),
    )
}


def truncated(value: int, bits: int) -> int:
    """With the sign of the highest of so many bits."""
    low = value & (1 << bits) - 1
    return low - (low >> bits - 1 << bits)


COMBINE: dict[str, Callable[[int, int], int]] = {
    "MUL": lambda a, b: a * b,
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MIN": min,
    "MAX": max,
    "ABS": lambda a, _: abs(a),
    "CLZ": lambda a, _: 32 - (a & 0xFFFFFFFF).bit_length(),
    "SHR": lambda a, b: a + (1 << b >> 1) >> b,
    "SHL": lambda a, b: truncated(a << b, 8),
    "LSR": lambda a, b: (a & 0xFF) >> b,
    "DIV": lambda a, b: int(a / b),
    "CMP_EQ": lambda a, b: -(a == b),
    "CMP_NE": lambda a, b: -(a != b),
    "CMP_GE": lambda a, b: -(a >= b),
    "CMP_GT": lambda a, b: -(a > b),
    "AND": lambda a, b: a & b,
    "OR": lambda a, b: a | b,
    "XOR": lambda a, b: a ^ b,
    "NOT": lambda a, _: ~a,
    "AND_NOT": lambda a, b: a & ~b,
}


@pytest.mark.parametrize(("code", "mode"), register_set("u85").elementwise.items())
def test_a_combination_of_two_operands(code: int, mode: str) -> None:
    """4 x 4 x 16 small numbers, many of them equal, with themselves moved, a part or a scalar."""
    generator = np.random.default_rng([SEED, code])
    low = 0 if mode in ("SHR", "SHL", "LSR") else 1 if mode == "DIV" else -3
    high = 9 if mode == "SHL" else 4  # SHL drops the bits above the type's: some must get there
    for number in range(24):
        zero_point, scalar = int(generator.integers(-1, 2)), int(generator.integers(low, 3)) or 1
        broadcast = int(generator.choice([0, 0, 1, 2, 3, 4, 7, 8]))
        changes = {
            **MAP,
            "OFM_PRECISION": 1 | 1 << 8,
            "OFM_SCALE": 1 << 45 | 1,
            **dict.fromkeys(("IFM_SCALE", "IFM2_SCALE"), 1),
            "IFM_BROADCAST": 0,
            "IFM2_BROADCAST": broadcast,
            "IFM2_ZERO_POINT": 0,
            "IFM2_PRECISION": 1 | 3 << 14 if broadcast == 8 else 1,
            "IFM2_BASE0": 256,
            "OP_SCALAR": scalar & 0xFFFFFFFF,
            "IFM_ZERO_POINT": zero_point,
        }
        stream = words("u85", *pool(**changes)[:-2], ("ELEMENTWISE", code), ("STOP", 0xFFFF))
        data = blob(cop1(U85_256, stream), inputs=tensors(((1, 1, 1, 1, 1, 512), 1, 0, 1)))
        first = generator.integers(-3, 4, (4, 4, 16)).astype(np.int8)
        second = generator.integers(low, high, (4, 4, 16)).astype(np.int8)
        (found,), _ = Network(data).run([first.tobytes() + second.tobytes()])
        read = tuple(slice(1) if broadcast >> axis & 1 else slice(None) for axis in range(3))
        right = np.full((1, 1, 1), scalar) if broadcast == 8 else second[read].astype(int)
        pairs = np.broadcast_arrays(first.astype(int) - zero_point, right)
        combined = [
            COMBINE[mode](int(a), int(b)) for a, b in zip(*map(np.ravel, pairs), strict=True)
        ]
        expected = np.clip(combined, -128, 127).astype(np.int8)
        assert found == expected.tobytes(), f"seed {SEED}, number {number}"


def test_a_division_by_zero_is_refused() -> None:
    scalar = {"IFM2_BROADCAST": 8, "IFM2_PRECISION": 1 | 3 << 14, "OP_SCALAR": 0}
    scales = {"IFM_SCALE": 1, "IFM2_SCALE": 1, "IFM_BROADCAST": 0, "IFM2_ZERO_POINT": 0}
    changes = {**scalar, **scales, "OFM_PRECISION": 1 | 1 << 8}
    stream = words("u85", *pool(**changes)[:-2], ("ELEMENTWISE", 11), ("STOP", 0xFFFF))
    with pytest.raises(Unsupported, match="IFM2 = 0 is not verified: as a divisor"):
        Network(blob(cop1(U85_256, stream))).run([bytes(256)])


OPERANDS = {
    "IFM": {"IFM_PRECISION": 1 | 2 << 2, "IFM_STRIDE_X": 64, "IFM_STRIDE_Y": 256},
    "IFM2": {**MAP, "IFM2_PRECISION": 1 | 2 << 2, "IFM2_STRIDE_X": 64, "IFM2_STRIDE_Y": 256},
}
SCALAR = {"IFM2_BROADCAST": 8, "IFM2_PRECISION": 1 | 3 << 14}


@pytest.mark.parametrize("halves", [True, False])
@pytest.mark.parametrize("scalar", [-3, 5, (1 << 31) - 1, -(1 << 31)])
@pytest.mark.parametrize("bits", [8, 32])
def test_an_operand_is_scaled_and_rounded(bits: int, scalar: int, halves: bool) -> None:
    """A map and a scalar, each by a scale of its own; the sum's low 32 bits. NATURAL rounds a half
    up. Of 32 bits times a scale of 31 not even 64 bits hold every product and its half."""
    generator = np.random.default_rng([SEED, bits])
    limits = np.iinfo(np.int8 if bits == 8 else np.int32)
    size, scales = bits // 8, ((3, 1), (0x7FFFFFFF, 33))
    values = generator.integers(
        limits.min, limits.max, (4, 4, 16), endpoint=True, dtype=limits.dtype
    )
    values[0, 0, :2] = limits.min, limits.max
    if not halves:  # only NATURAL and 1 are confirmed
        scales = ((1 << 30, 30), (1, 0))
    registers = [scale | shift << 32 | halves << 45 for scale, shift in scales]
    changes = {
        **(OPERANDS["IFM"] if bits == 32 else {}),
        **SCALAR,
        "OP_SCALAR": scalar & 0xFFFFFFFF,
        **dict(zip(("IFM_SCALE", "IFM2_SCALE"), registers, strict=True)),
        "IFM_BROADCAST": 0,
        "IFM2_ZERO_POINT": 0,
        "OFM_PRECISION": 1 | 2 << 1 | 1 << 8,
        "OFM_STRIDE_X": 64,
        "OFM_STRIDE_Y": 256,
        "OFM_BASE0": 4096,
        "OFM_SCALE": 1 << 45 | 1,
        "ACTIVATION": 1 << 12,
    }
    stream = words("u85", *pool(**changes)[:-2], ("ELEMENTWISE", 1), ("STOP", 0xFFFF))
    given = tensors(((1, 1, 1, 1, 1, 256 * size), 1, 0, 1))
    results = tensors(((1, 1, 1, 4, 4, 16), 4, 4096, 1))
    data = blob(cop1(U85_256, stream), scratch=8192, inputs=given, outputs=results)
    (found,), _ = Network(data).run([values.tobytes()])

    def scaled(value: int, which: int) -> int:
        scale, shift = scales[which]
        return value * scale + (1 << shift >> 1) >> shift

    sums = [scaled(int(value), 0) + scaled(scalar, 1) for value in values.ravel()]
    assert np.frombuffer(found, "<i4").tolist() == [truncated(value, 32) for value in sums]


@pytest.mark.parametrize(("rounding", "half"), [(1, 1), (5, 0)])
def test_a_shift_rounds_as_its_mode_says(rounding: int, half: int) -> None:
    """NATURAL rounds a half up, TRUNCATE_TO_LOWER drops it."""
    changes = {
        **SCALAR,
        "OP_SCALAR": 2,
        **dict.fromkeys(("IFM_SCALE", "IFM2_SCALE"), 1),
        "IFM_BROADCAST": 0,
        "IFM2_ZERO_POINT": 0,
        "OFM_PRECISION": 1 | 1 << 8,
        "OFM_SCALE": rounding << 45 | 1,
    }
    (shr,) = (code for code, mode in register_set("u85").elementwise.items() if mode == "SHR")
    stream = words("u85", *pool(**changes)[:-2], ("ELEMENTWISE", shr), ("STOP", 0xFFFF))
    values = np.arange(-128, 128, dtype=np.int8)
    (found,), _ = Network(blob(cop1(U85_256, stream))).run([values.tobytes()])
    assert np.frombuffer(found, np.int8).tolist() == ((values.astype(int) + 2 * half >> 2).tolist())


@pytest.mark.parametrize("depth", [1, 2, 16])
def test_a_product_of_matrices_of_16_bits(depth: int) -> None:
    """Of the smallest numbers: a single product fits 32 bits, two do not."""
    rows, columns = 16, 4
    changes = {
        "IFM_DEPTH_M1": depth - 1,
        "IFM_PRECISION": 1 | 1 << 2,
        "IFM_STRIDE_X": 2 * depth,
        "IFM_STRIDE_Y": 8 * depth,
        **MAP,
        "IFM2_HEIGHT0_M1": 0,
        "IFM2_HEIGHT1_M1": 0,
        "IFM2_WIDTH0_M1": columns - 1,
        "IFM2_STRIDE_X": 2 * depth,
        "IFM2_STRIDE_Y": 8 * depth,
        "IFM2_PRECISION": 1 | 1 << 2,
        "IFM2_BASE0": 2 * rows * depth,
        "IFM2_BROADCAST": 0,
        "IFM2_ZERO_POINT": 0,
        "OFM_DEPTH_M1": columns - 1,
        "OFM_PRECISION": 1 | 1 << 1 | 1 << 8,
        "OFM_STRIDE_X": 2 * columns,
        "OFM_STRIDE_Y": 8 * columns,
        "OFM_BASE0": 1024,
        "OFM_SCALE": 1 << 45 | 20 << 32 | 1,
        "ACC_FORMAT": 1,
        "ACTIVATION": 1 << 12,
    }
    stream = words("u85", *pool(**changes)[:-2], ("CONV", 1), ("STOP", 0xFFFF))
    given = tensors(((1, 1, 1, 1, rows + columns, depth), 2, 0, 1))
    results = tensors(((1, 1, 1, 4, 4, columns), 2, 1024, 1))
    data = blob(cop1(U85_256, stream), inputs=given, outputs=results)
    content = np.full((rows + columns) * depth, -32768, np.int16).tobytes()
    (found,), _ = Network(data).run([content])
    assert set(np.frombuffer(found, "<i2").tolist()) == {depth << 30 >> 20}


@pytest.mark.parametrize("depthwise", [False, True])
def test_the_bound_of_sums_follows_from_the_weights(depthwise: bool) -> None:
    """The largest sum of absolute weights of an output channel decides how wide the sums are."""
    generator = np.random.default_rng(SEED)
    shape = (37, 3, 5, 1 if depthwise else 9)
    for _ in range(20):
        weights = generator.integers(-255, 256, shape).astype(np.int16)
        _, largest = WeightDecoder(load()).pack(weights, depthwise)
        assert largest == np.abs(weights.astype(int)).sum((1, 2, 3)).max()


@dataclass(frozen=True)
class Resized:
    """A RESIZE of 32-bit results that are shifted, and its values."""

    bilinear: bool
    axes: tuple[tuple[int, int, int], tuple[int, int, int]]  # n, step, offset
    values: np.ndarray
    shape: tuple[int, int]
    zero_point: int
    shift: int = 0

    def blob(self) -> bytes:
        height, width, depth = self.values.shape
        size, (rows, columns) = self.values.dtype.itemsize, self.shape
        changes = {
            **{f"IFM_{name}": height - 1 for name in ("HEIGHT0_M1", "HEIGHT1_M1")},
            "IFM_WIDTH0_M1": width - 1,
            "IFM_DEPTH_M1": depth - 1,
            "IFM_STRIDE_Y": width * depth * size,
            "IFM_STRIDE_X": depth * size,
            "IFM_PRECISION": 1 | {1: 0, 2: 1, 4: 2}[size] << 2,
            "IFM_ZERO_POINT": self.zero_point,
            "KERNEL_HEIGHT_M1": height - 1,
            "KERNEL_WIDTH_M1": width - 1,
            "OFM_HEIGHT_M1": rows - 1,
            "OFM_WIDTH_M1": columns - 1,
            "OFM_DEPTH_M1": depth - 1,
            **{f"OFM_{name}": rows - 1 for name in ("HEIGHT0_M1", "HEIGHT1_M1")},
            "OFM_WIDTH0_M1": columns - 1,
            "OFM_BASE0": OUT,
            "OFM_STRIDE_Y": columns * depth * 4,
            "OFM_STRIDE_X": depth * 4,
            "OFM_PRECISION": 1 | 2 << 1 | 1 << 8,
            "ACTIVATION": 1 << 12,
            "OFM_SCALE": 1 << 45 | (16 + self.shift) << 32 | 1,
        }
        for axis, (n, step, offset) in zip("YX", self.axes, strict=True):
            changes[f"RESIZE_{axis}_SCALE_N_M1"] = n - 1
            changes[f"RESIZE_{axis}"] = step // n << 32 | step % n
            changes[f"RESIZE_{axis}_OFFSET"] = offset & 0xFFF
        operation = ("RESIZE", 0 if self.bilinear else 2)
        stream = words("u85", *pool(**changes)[:-2], operation, ("STOP", 0xFFFF))
        given = tensors(((1, 1, 1, 1, 1, self.values.nbytes), 1, 0, 1))
        results = tensors(((1, 1, 1, 1, 1, rows * columns * depth * 4), 1, OUT, 1))
        return blob(cop1(U85_256, stream), scratch=LENGTH, inputs=given, outputs=results)

    def expected(self) -> bytes:
        values = self.values.astype(object) - self.zero_point
        for axis, (n, step, offset) in enumerate(self.axes):
            last = values.shape[axis] - 1
            parts = []
            for number in range(self.shape[axis]):
                index, part = divmod(number * step + offset, n)
                if not self.bilinear:
                    chosen = min(max(index + (2 * part >= n), 0), last)
                    parts.append(values.take(chosen, axis))
                    continue
                near, far = (values.take(min(max(i, 0), last), axis) for i in (index, index + 1))
                parts.append(near * (n - part) + far * part)
            values = np.stack(parts, axis)
        half = 1 << self.shift >> 1
        flat = (int(value) + half >> self.shift & 0xFFFFFFFF for value in values.ravel())
        return b"".join(value.to_bytes(4, "little") for value in flat)


def drawn_resize(generator: np.random.Generator) -> Resized:
    dtype = generator.choice([np.int8, np.int16, np.int32])
    limits, size = np.iinfo(dtype), generator.integers(1, 10, 3)

    def axis() -> tuple[int, int, int]:
        n = int(generator.integers(1, 12))
        return n, int(generator.integers(0, 16 * n)), int(generator.integers(-20, 20))

    return Resized(
        bilinear=bool(generator.integers(2)),
        axes=(axis(), axis()),
        values=generator.integers(limits.min, limits.max, size, endpoint=True).astype(dtype),
        shape=(int(generator.integers(1, 24)), int(generator.integers(1, 24))),
        zero_point=int(generator.integers(-128, 128)),
        shift=int(generator.integers(0, 9)),
    )


def test_a_resize_of_any_step_offset_size_and_type() -> None:
    """Beyond what TOSA can ask for; values of all sizes, so that sums need 64 bits too."""
    generator = np.random.default_rng(SEED)
    for number in range(150):
        case = drawn_resize(generator)
        (found,), _ = Network(case.blob()).run([case.values.tobytes()])
        assert found == case.expected(), f"seed {SEED}, number {number}"


@pytest.mark.parametrize("n", [181, 182, 255, 256, 2048])
def test_a_resize_whose_ratio_needs_more_than_32_bits(n: int) -> None:
    """Values of 16 bits times the ratio of both axes, which the shift takes off in part."""
    values = np.full((3, 3, 2), -32768, np.int16)
    values[1, 1] = 32767
    case = Resized(True, ((n, 7, 5), (n, 11, -3)), values, (9, 9), 0, shift=8)
    (found,), _ = Network(case.blob()).run([case.values.tobytes()])
    assert found == case.expected()


def summed(mode: int, values: np.ndarray, **changes: int) -> np.ndarray:
    """A pool of the U85 with 32-bit results."""
    fields = {"OFM_PRECISION": 1 | 2 << 1 | 1 << 8, "ACTIVATION": 1 << 12, "OFM_BASE0": 4096}
    fields |= {"OFM_STRIDE_X": 64, "OFM_STRIDE_Y": 256, **changes}
    stream = words("u85", *pool(**fields)[:-2], ("POOL", mode), ("STOP", 0xFFFF))
    results = tensors(((1, 1, 1, 4, 4, 16), 4, 4096, 1))
    data = blob(cop1(U85_256, stream), scratch=8192, outputs=results)
    (found,), _ = Network(data).run([values.tobytes()])
    return np.frombuffer(found, "<i4").reshape(4, 4, 16)


@pytest.mark.parametrize(
    ("mode", "reduce", "fill"), [(0, np.max, -999), (3, np.sum, 0), (5, np.min, 999)]
)
def test_a_window_with_padding_and_dilation(
    mode: int, reduce: Callable[..., np.ndarray], fill: int
) -> None:
    """2 x 2 elements, two apart, of a row and a column of padding on each side."""
    generator = np.random.default_rng(SEED)
    values = generator.integers(-128, 128, (4, 4, 16)).astype(np.int8)
    pads = {f"IFM_PAD_{side}": 1 for side in ("TOP", "LEFT", "BOTTOM", "RIGHT")}
    sizes = {"KERNEL_HEIGHT_M1": 2, "KERNEL_WIDTH_M1": 2, "KERNEL_STRIDE": 1 << 3 | 1 << 4}
    found = summed(mode, values, **pads, **sizes)
    padded = np.pad(values.astype(int), ((1, 1), (1, 1), (0, 0)), constant_values=fill)
    taps = [padded[y : y + 4, x : x + 4] for y in (0, 2) for x in (0, 2)]
    assert (found == reduce(np.stack(taps), axis=0)).all()


@pytest.mark.parametrize(("mode", "extreme"), [(0, -128), (5, 127)])
def test_an_extreme_of_padding_alone_is_clamped(mode: int, extreme: int) -> None:
    fields = {"IFM_PAD_TOP": 2, "KERNEL_HEIGHT_M1": 1, "IFM_HEIGHT0_M1": 2, "OFM_ZERO_POINT": -9}
    stream = words(
        "u85", *pool(**fields, OFM_PRECISION=1 | 1 << 8)[:-2], ("POOL", mode), ("STOP", 0xFFFF)
    )
    (found,), _ = Network(blob(cop1(U85_256, stream))).run([bytes(range(50)) * 5 + bytes(6)])
    assert set(np.frombuffer(found, np.int8)[:64].tolist()) == {extreme}
    assert set(np.frombuffer(found, np.int8)[64:].tolist()) != {extreme}


def test_what_is_not_an_operand_of_a_convolution_is_refused() -> None:
    """A zero point of 16-bit numbers: TOSA has none, and the sums would need more bits."""
    fields = {"IFM_PRECISION": 1 | 1 << 2, "IFM_ZERO_POINT": 1}
    stream = words("u85", *pool(**fields)[:-2], ("CONV", 0), ("STOP", 0xFFFF))
    with pytest.raises(Unsupported, match="IFM_ZERO_POINT = 1 is not verified: of int16"):
        Network(blob(cop1(U85_256, stream)))
