"""Operations that differ only in addresses share a job; each has its own addresses and faults."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from harness.npu import model
from harness.npu.errors import AccessError, EthosUError, StreamError, Unsupported
from harness.npu.model import Network, Stats
from tests.npu.assembling import INPUT, U55_128, U85_256, Item, blob, cop1, pool, tensors, words
from tests.thorough import amount, cases

SEED = 131
ROOM = 4096  # bytes of the scratch
PRODUCTS = ("u55", "u85")
CONFIGS = {"u55": U55_128, "u85": U85_256}
COPY: list[Item] = [
    *(("DMA0_SRC_REGION", 1), ("DMA0_DST_REGION", 1), ("DMA0_LEN", 48)),
    *(("DMA0_SRC", 0), ("DMA0_DST", 1024)),
]


def registers(product: str, **changes: int) -> list[Item]:
    """Of pools and sums of 4 x 4 x 16 bytes."""
    ifm = {name: value for name, value in pool()[:-2] if "IFM_" in name}
    of_first = ("PAD", "UPSCALE", "DEPTH")
    second = {
        name.replace("IFM", "IFM2"): value
        for name, value in ifm.items()
        if not any(word in name for word in of_first)
    }
    precision = {"OFM_PRECISION": 0x101 if product == "u85" else 0x8101}
    scales = {"OPA_SCALE": 1, "OPB_SCALE": 1, "IFM2_BROADCAST": 0}
    if product == "u85":
        scales = {"IFM_SCALE": 1, "IFM2_SCALE": 1, "IFM_BROADCAST": 0, "IFM2_BROADCAST": 0}
    given = {**dict(pool()[:-2]), **precision, **second, **scales, **changes}
    return [*given.items(), *COPY]


def network(product: str, items: list[Item], **sizes: bytes) -> Network:
    stream = words(product, *items, ("STOP", 0xFFFF))
    whole = tensors(((1, 1, 1, 1, 1, ROOM), 1, 0, 1))
    data = blob(cop1(CONFIGS[product], stream), io=whole, scratch=ROOM, **sizes)
    return Network(data)


def kinds(network: Network) -> tuple[int, int]:
    """Operations of the network, and how many of them are the first of their kind."""
    found = network.program._operations
    return len(found), len(found.jobs)


@pytest.fixture
def each_by_itself(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(model, "address_registers", lambda job: None)


def at_random(product: str, draw: random.Random) -> Iterator[Item]:
    """Pools, sums and copies over one another, with other addresses each time, and now and then
    with another zero point, activation or order of the operands."""
    for _ in range(120):
        for name in ("IFM_BASE0", "IFM2_BASE0", "OFM_BASE0"):
            if draw.random() < 0.6:
                yield name, 16 * draw.randrange((ROOM - 256) // 16)
        for name in ("DMA0_SRC", "DMA0_DST"):
            if draw.random() < 0.6:
                yield name, draw.randrange(ROOM - 48)
        if draw.random() < 0.2:
            yield "OFM_ZERO_POINT", draw.randrange(3)
        if draw.random() < 0.1:
            yield "ACTIVATION_MAX", draw.choice((100, 127))
        if draw.random() < 0.1 and product == "u55":
            yield "IFM2_BROADCAST", draw.choice((0, 64))
        yield draw.choice((("POOL", 0), ("POOL", 1), ("ELEMENTWISE", 1), ("DMA_START", 0)))


@pytest.mark.parametrize("product", PRODUCTS)
def test_each_is_computed_with_its_own_addresses(
    product: str, each_by_itself: Callable[[], None]
) -> None:
    """As when each has a job by itself: content, counts and bytes moved."""
    print(f"seed {SEED}")
    draw = random.Random(f"{SEED} {product}")
    items = [[*registers(product), *at_random(product, draw)] for _ in range(8)]
    given = draw.randbytes(ROOM)
    networks = [network(product, one) for one in items]
    for one in networks:
        every, first = kinds(one)
        assert every == 120
        assert first < 60
    results = [told(one, given) for one in networks]
    each_by_itself()
    for one, result in zip(items, results, strict=True):
        alone = network(product, one)
        assert kinds(alone) == (120, 120)
        assert result == told(alone, given)


def told(network: Network, given: bytes) -> tuple[list[bytes], dict[str, int], object]:
    outputs, stats = network.run([given], strict=False)
    assert isinstance(stats, Stats)
    return outputs, dict(stats.operations), stats.moved


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("name", ["IFM_BASE0", "OFM_BASE0", "DMA0_SRC", "DMA0_DST"])
def test_one_that_leaves_its_region_is_named_with_its_own_place(product: str, name: str) -> None:
    operation = ("DMA_START", 0) if name.startswith("DMA") else ("POOL", 1)
    good = [*registers(product), operation, ("OFM_BASE0", 2048), ("DMA0_DST", 2048), operation]
    items = [*good, (name, ROOM - 16), operation, ("OFM_BASE0", 0), ("DMA0_DST", 0), operation]
    place = 4 * len(words(product, *good, (name, 0)))
    one = network(product, items)
    assert kinds(one) == (4, 1)
    with pytest.raises(AccessError, match=f"{ROOM:#x}") as error:
        one.run([bytes(ROOM)])
    assert error.value.offset == place


@pytest.mark.parametrize("product", PRODUCTS)
def test_an_address_that_was_never_set_is_said(product: str) -> None:
    items = [item for item in registers(product) if item[0] != "IFM2_BASE0"]
    with pytest.raises(StreamError, match="IFM2_BASE0 is used before it is set"):
        network(product, [*items, ("POOL", 1), ("POOL", 1), ("ELEMENTWISE", 1)])


def test_a_map_of_two_tiles_has_its_own_job() -> None:
    """Its other tiles have addresses of their own."""
    sizes = {"IFM_HEIGHT0_M1": 1, "IFM_HEIGHT1_M1": 1, "IFM_BASE2": 128}
    moved: list[Item] = [("POOL", 1), ("IFM_BASE0", 256), ("OFM_BASE0", 2048), ("POOL", 1)]
    two = network("u55", [*registers("u55", **sizes), *moved])
    assert kinds(two) == (2, 2)
    given = bytes(range(256)) * (ROOM // 256)
    (output,), _ = two.run([given], strict=False)
    assert output[2048 : 2048 + 256] == given[256:384] + given[128:256]


def test_each_convolution_has_its_own_job() -> None:
    """Its weights may be others the next time, at the same place."""
    changes = {"WEIGHT_REGION": 0, "WEIGHT_BASE": 0, "WEIGHT_LENGTH": 16, "SCALE_REGION": 0}
    scales = {"SCALE_BASE": 16, "SCALE_LENGTH": 160, "OFM_BLK_DEPTH_M1": 15}
    items = registers("u55", **{**changes, **scales, "OFM_PRECISION": 0x8001})
    again = [("CONV", 0), ("OFM_BASE0", 2048), ("CONV", 0)]
    assert kinds(network("u55", [*items, *again], weights=bytes(256))) == (2, 2)


CHAINED = 2 << 14  # activation storage of a precision register
WRITE: list[Item] = [("OFM_PRECISION", 0x101 | CHAINED), ("OFM_REGION", 0), ("POOL", 1)]
READ: list[Item] = [
    *(("OFM_PRECISION", 0x101), ("OFM_REGION", 1), ("IFM_REGION", 0)),
    *(("IFM_PRECISION", 1 | CHAINED), ("ELEMENTWISE", 1)),
]


def test_a_reader_of_a_chaining_buffer_has_its_own_job() -> None:
    """What it holds is known from the operations before it, and not from registers."""
    back: list[Item] = [("IFM_PRECISION", 1), ("IFM_REGION", 1)]
    turns = [*WRITE, *READ, *back, ("IFM_BASE0", 64), ("OFM_BASE0", 2048), *WRITE, *READ]
    given = random.Random(SEED).randbytes(ROOM)
    one = network("u85", [*registers("u85"), *turns])
    assert kinds(one) == (4, 4)
    (output,), _, _ = told(one, given)
    assert output[1024:1280] != output[2048:2304]


def test_a_chaining_buffer_is_read_as_it_was_written() -> None:
    """Another shape of it is none that anybody has verified."""
    smaller = ("OFM_HEIGHT_M1", 1), ("OFM_HEIGHT0_M1", 1)
    with pytest.raises(Unsupported, match=r"a buffer of \(4, 4, 16\) for \(2, 4, 16\)"):
        network("u85", [*registers("u85"), *WRITE, *smaller, *READ])


@pytest.mark.parametrize("product", cases("u85", thorough=["u55"]))
def test_a_hundred_thousand_of_them_are_done(product: str) -> None:
    """In a thorough run as many as a pixel shuffle of
    ``backends/arm/test/ops/test_pixel_shuffling.py`` asks for."""
    count = amount(100_000, 564_000)
    sizes = {"OFM_WIDTH_M1": 0, "OFM_HEIGHT_M1": 0, "OFM_DEPTH_M1": 0}
    pattern = [("IFM_BASE0", 100), ("OFM_BASE0", 1024), ("POOL", 1)]
    pattern += [("IFM_BASE0", 200), ("OFM_BASE0", 1025), ("POOL", 1)]
    body = words(product, *pattern) * (count // 2)
    start = words(product, *registers(product, **sizes, IFM_DEPTH_M1=0))
    stop = words(product, ("STOP", 0xFFFF))
    outputs = tensors(((1, 1, 1, 1, 1, 2), 1, 1024, 1))
    one = Network(blob(cop1(CONFIGS[product], [*start, *body, *stop]), outputs=outputs))
    assert kinds(one) == (count, 1)
    (output,), stats = one.run([INPUT])
    assert output == bytes([100, 200])
    assert stats.operations == {"POOL": count}


def test_the_work_of_all_of_them_is_counted() -> None:
    """Each by itself is allowed."""
    items = [*registers("u55"), *[("POOL", 1)] * 1000]
    stream = cop1(U55_128, words("u55", *items, ("STOP", 0xFFFF)))
    assert kinds(Network(blob(stream), work_limit=1 << 23)) == (1000, 1)
    with pytest.raises(EthosUError, match="units of work"):
        Network(blob(stream), work_limit=1 << 22)
