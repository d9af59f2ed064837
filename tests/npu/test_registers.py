"""Names, opcodes and signs of the registers: a table that everything else believes."""

from __future__ import annotations

import pytest

from harness.npu.stream import Write, decode_at, register_set

# Steps may go backwards (reversed outputs); addresses may not. All have 40 bits.
STEPS = {
    "u55": [
        *(f"{m}_STRIDE_{d}" for m in ("IFM", "OFM", "IFM2") for d in "XYC"),
        "DMA0_SKIP0",
        "DMA0_SKIP1",
    ],
    "u85": [
        *(f"{m}_STRIDE_{d}" for m in ("IFM", "OFM", "IFM2") for d in "XYC"),
        *(f"DMA0_{end}_STRIDE{n}" for end in ("SRC", "DST") for n in (0, 1)),
        "DMA0_IDX_SKIP1",
    ],
}
RELOCATABLE_ADDRESSES = [
    "IFM_BASE0",
    "OFM_BASE3",
    "IFM2_BASE1",
    "WEIGHT_BASE",
    "SCALE_BASE",
    "DMA0_SRC",
]


def decoded(product: str, register: str, high: int, low: int) -> int:
    names = register_set(product)
    code = next(code for code, name in names.cmd1.items() if name == register)
    item, after = decode_at([code | 1 << 14 | high << 16, low], 0, names)
    assert isinstance(item, Write)
    assert (item.name, after) == (register, 2)
    return item.value


@pytest.mark.parametrize(("product", "register"), [(p, r) for p, rs in STEPS.items() for r in rs])
def test_steps_are_signed_numbers_of_40_bits(product: str, register: str) -> None:
    assert decoded(product, register, 0xFF, 0xFFFFFFF0) == -16
    assert decoded(product, register, 0x7F, 0xFFFFFFF0) == (0x7F << 32) + 0xFFFFFFF0
    assert decoded(product, register, 0x80, 0) == -(1 << 39)


@pytest.mark.parametrize("register", RELOCATABLE_ADDRESSES)
@pytest.mark.parametrize("product", ["u55", "u85"])
def test_addresses_have_40_bits_and_no_sign(product: str, register: str) -> None:
    assert decoded(product, register, 0xFF, 0xFFFFFFF0) == 0xFFFFFFFFF0


@pytest.mark.parametrize("product", ["u55", "u85"])
def test_the_three_heights_and_widths_of_tiles(product: str) -> None:
    """HEIGHT0 is left, HEIGHT1 right, in this order for every feature map."""
    names = register_set(product).cmd0
    for start, prefix in ((0x10A, "IFM"), (0x11A, "OFM"), (0x18A, "IFM2")):
        found = [names[start + n] for n in range(3)]
        assert found == [f"{prefix}_{part}_M1" for part in ("WIDTH0", "HEIGHT0", "HEIGHT1")]


def test_every_opcode_of_the_u55_is_vela_s() -> None:
    regs = pytest.importorskip("ethosu.vela.ethos_u55_regs.ethos_u55_regs", reason="needs Vela")
    names = register_set("u55")
    for kind, ours in ((regs.cmd0, names.cmd0), (regs.cmd1, names.cmd1)):
        assert {kind(code).name for code in ours} == {f"NPU_SET_{n}" for n in ours.values()}
        for code, name in ours.items():
            assert kind(code).name == f"NPU_SET_{name}"
    for code, name in names.operations.items():
        assert regs.cmd0(code).name == f"NPU_OP_{name}"
    assert set(register_set("u85").operations.values()) - set(names.operations.values()) == {
        "RESIZE"
    }
