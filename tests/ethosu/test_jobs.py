"""What the compiled arithmetic does by itself, and that it does the same as numpy."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu.compiled import NUMPY, Compiled, compiled_arithmetic
from harness.ethosu.errors import AccessError
from harness.ethosu.model import Network
from harness.ethosu.plan import ElementwisePlan
from harness.ethosu.u85.elementwise import MODES
from tests.ethosu.assembling import U55_128, U85_256, blob, cop1, pool, tensors, words
from tests.ethosu.recorded import recorded_cases

SEED = 83
SIDE, DEPTH = 9, 20  # of the input at most: 9 x 9 x 32 bytes as bricks, four bytes each
ROOM = SIDE * SIDE * 32 * 4
OUT = 1 << 15
LENGTH = 1 << 17
NUMPYS = ("DIV", "SHL", "SHR", "LSR")


def never(self: Compiled, index: int, context: object) -> None:
    raise AssertionError("it has no job")


def test_what_is_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that is recorded: an operation that lost its job would only be slower."""
    left: set[str] = set()
    step = Compiled._step

    def noted(self: Compiled, index: int, context: object) -> None:
        one = self._operations.of(index)
        plan = one.prepared.plan
        mode = plan.mode if isinstance(plan, ElementwisePlan) else "" if plan is None else "planned"
        left.add(f"{one.operation.name} {mode}".strip())
        step(self, index, context)  # type: ignore[arg-type]

    monkeypatch.setattr(Compiled, "_step", noted)
    for case in recorded_cases():
        Network(case.blob).run(case.inputs)
    assert left == {
        *("DMA_START", "POOL", "CONV planned"),  # in two dimensions; NONE; 16 bits by many weights
        *(f"ELEMENTWISE {mode}" for mode in ("DIV", "SHL", "SHR")),
    }


@pytest.mark.parametrize(("byte", "held"), [(0x7F, False), (0x80, False), (0x00, True)])
def test_a_sum_beyond_its_accumulator_is_an_error_and_no_number(byte: int, held: bool) -> None:
    """Of four 32-bit channels, whose sums the compiled arithmetic has in 64 bits."""
    sizes = {"IFM_DEPTH_M1": 3, "OFM_DEPTH_M1": 0, "OFM_STRIDE_X": 4, "OFM_STRIDE_Y": 16}
    types = {"IFM_PRECISION": 1 | 2 << 2, "OFM_PRECISION": 0x8101 | 2 << 1, "ACTIVATION": 0}
    stream = words("u55", *pool(**sizes, **types)[:-2], ("POOL", 2), ("STOP", 0xFFFF))
    data = blob(cop1(U55_128, stream), outputs=tensors(((1, 1, 1, 1, 4, 16), 1, 1024, 1)))
    given = bytes(255) + bytes([byte]) if held else bytes([byte]) * 256
    for arithmetic in (compiled_arithmetic(), NUMPY):
        network = Network(data, arithmetic=arithmetic)
        if held:
            assert network.run([given])[0] == [bytes(64)]
            continue
        with pytest.raises(AccessError, match="an accumulator needs more than its 32 bits"):
            network.run([given])


@pytest.mark.parametrize("value", [32767, -32768])
def test_a_convolution_of_16_bits_whose_sums_need_more_than_32(
    value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,024 times the largest input and weight, in the fast format, divided by 2**20."""
    depth, channels = 1024, 16
    weights = (1).to_bytes(32, "little") + bytes([127]) * depth * channels
    scales = (bytes(6) + (1).to_bytes(2, "little") + bytes([20, 0])) * channels
    sizes = {f"OFM_{name}": 0 for name in ("HEIGHT_M1", "WIDTH_M1", "HEIGHT0_M1", "WIDTH0_M1")}
    changes = {
        **sizes,
        "IFM_DEPTH_M1": depth - 1,
        "IFM_STRIDE_X": 2 * depth,
        "IFM_PRECISION": 1 | 4,
        "OFM_PRECISION": 1 | 2,
        "OFM_BASE0": 4096,
        "ACTIVATION": 1 << 12,
        "OFM_SCALE": 1 << 45,
        "ACC_FORMAT": 1 | 1 << 8,
        "WEIGHT_FORMAT": 1,
        "OFM_BLK_DEPTH_M1": 15,
        "WEIGHT_REGION": 0,
        "WEIGHT_BASE": 0,
        "WEIGHT_LENGTH": len(weights),
        "SCALE_REGION": 0,
        "SCALE_BASE": len(weights),
        "SCALE_LENGTH": len(scales),
    }
    stream = words("u85", *pool(**changes)[:-2], ("CONV", 0), ("STOP", 0xFFFF))
    given = tensors(((1, 1, 1, 1, 1, depth), 2, 0, 1))
    results = tensors(((1, 1, 1, 1, 1, channels), 2, 4096, 1))
    data = blob(
        cop1(U85_256, stream), weights=weights + scales, scratch=8192, inputs=given, outputs=results
    )
    content = np.full(depth, value, np.int16).tobytes()
    expected = value * 127 * depth + (1 << 19) >> 20
    assert Network(data, arithmetic=NUMPY).run([content])[0] == [
        np.full(channels, expected, np.int16).tobytes()
    ]
    monkeypatch.setattr(Compiled, "_step", never)
    assert Network(data).run([content])[0] == [np.full(channels, expected, np.int16).tobytes()]


def combination(generator: np.random.Generator, mode: int) -> bytes:
    """A blob with one ELEMENTWISE of 4 x 4 x 16 bytes with themselves moved, a part or a scalar."""
    changes = {
        "OFM_PRECISION": 1 | 1 << 8,
        "OFM_SCALE": 1 << 45 | 1,
        "IFM_SCALE": 1,
        "IFM2_SCALE": 1,
        "IFM_BROADCAST": 0,
        "IFM2_BROADCAST": 0,
        "IFM2_ZERO_POINT": 0,
        "IFM2_PRECISION": 1,
        **{name: value for name, value in pool() if name.startswith("IFM_STRIDE")},
        "OP_SCALAR": int(generator.integers(-2, 3)) & 0xFFFFFFFF,
        "IFM_ZERO_POINT": int(generator.integers(-1, 2)),
    }
    copied = ("REGION", "HEIGHT0_M1", "HEIGHT1_M1", "WIDTH0_M1", "STRIDE_X", "STRIDE_Y", "STRIDE_C")
    changes.update({f"IFM2_{name}": dict(pool())[f"IFM_{name}"] for name in copied})
    changes["IFM2_BASE0"] = int(generator.integers(0, 3)) * 16
    broadcast = int(generator.choice([0, 0, 1, 2, 3, 4, 7, 8]))
    changes["IFM2_BROADCAST"] = broadcast
    if broadcast == 8:
        changes["IFM2_PRECISION"] = 1 | 3 << 14
    stream = words("u85", *pool(**changes)[:-2], ("ELEMENTWISE", mode), ("STOP", 0xFFFF))
    return blob(cop1(U85_256, stream))


@pytest.mark.parametrize("mode", [code for code, name in MODES.items() if name not in NUMPYS])
def test_a_combination_is_the_one_of_numpy(mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few values, so that many are equal."""
    generator = np.random.default_rng([SEED, mode])
    blobs = [
        (combination(generator, mode), generator.integers(-3, 4, 256).astype(np.int8).tobytes())
        for _ in range(24)
    ]
    expected = [Network(data, arithmetic=NUMPY).run([given])[0] for data, given in blobs]
    assert len(set(map(tuple, expected))) > 3
    monkeypatch.setattr(Compiled, "_step", never)
    for number, (data, given) in enumerate(blobs):
        assert Network(data).run([given])[0] == expected[number], f"seed {SEED}, number {number}"


def resize(generator: np.random.Generator) -> bytes:
    """A blob with one RESIZE: any step, offset, size, type and layout of the input."""
    height, width = (int(n) for n in generator.integers(1, SIDE + 1, 2))
    depth, bricks = int(generator.integers(1, DEPTH + 1)), int(generator.integers(2))
    size = int(generator.choice([1, 1, 2, 4]))
    rows, columns = (int(n) for n in generator.integers(1, 24, 2))
    brick = -(-depth // 16) * 16 if bricks else depth
    changes = {
        "IFM_HEIGHT0_M1": height - 1,
        "IFM_HEIGHT1_M1": height - 1,
        "IFM_WIDTH0_M1": width - 1,
        "IFM_DEPTH_M1": depth - 1,
        "IFM_STRIDE_Y": width * brick * size,
        "IFM_STRIDE_X": depth * size,
        "IFM_STRIDE_C": 16 * width * size,
        "IFM_PRECISION": 1 | {1: 0, 2: 1, 4: 2}[size] << 2 | bricks << 6,
        "IFM_ZERO_POINT": int(generator.integers(-128, 128)) if size == 1 else 0,
        "KERNEL_HEIGHT_M1": height - 1,
        "KERNEL_WIDTH_M1": width - 1,
        "OFM_HEIGHT_M1": rows - 1,
        "OFM_WIDTH_M1": columns - 1,
        "OFM_DEPTH_M1": depth - 1,
        "OFM_HEIGHT0_M1": rows - 1,
        "OFM_HEIGHT1_M1": rows - 1,
        "OFM_WIDTH0_M1": columns - 1,
        "OFM_BASE0": OUT,
        "OFM_STRIDE_Y": columns * depth * 4,
        "OFM_STRIDE_X": depth * 4,
        "OFM_PRECISION": 1 | 2 << 1 | 1 << 8,
        "ACTIVATION": 1 << 12,
        "OFM_SCALE": 1 << 45 | int(generator.integers(16, 20)) << 32 | 1,
    }
    for axis in "YX":
        n = int(generator.integers(1, 12))
        whole, rest = int(generator.integers(0, 3)), int(generator.integers(0, n))
        changes[f"RESIZE_{axis}_SCALE_N_M1"] = n - 1
        changes[f"RESIZE_{axis}"] = whole << 32 | rest
        changes[f"RESIZE_{axis}_OFFSET"] = int(generator.integers(-20, 20)) & 0xFFF
    operation = ("RESIZE", int(generator.choice([0, 2])))
    stream = words("u85", *pool(**changes)[:-2], operation, ("STOP", 0xFFFF))
    given = tensors(((1, 1, 1, 1, 1, ROOM), 1, 0, 1))
    all_of_it = tensors(((1, 1, 1, 1, 1, rows * columns * depth * 4), 1, OUT, 1))
    return blob(cop1(U85_256, stream), scratch=LENGTH, inputs=given, outputs=all_of_it)


def test_a_resize_is_the_one_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what TOSA can ask for; values of all sizes, so that sums need 64 bits too."""
    generator = np.random.default_rng(SEED)
    blobs = [(resize(generator), generator.bytes(ROOM)) for _ in range(300)]
    expected = [Network(data, arithmetic=NUMPY).run([given])[0] for data, given in blobs]

    monkeypatch.setattr(Compiled, "_step", never)
    for number, (data, given) in enumerate(blobs):
        assert Network(data).run([given])[0] == expected[number], f"seed {SEED}, number {number}"
