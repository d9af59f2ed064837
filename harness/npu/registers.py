"""Register names by opcode and modes of operations (``registers.yaml``); registers over 32 bits.

Opcodes of U55 and U65: ``ethosu/vela/ethos_u55_regs/ethos_u55_regs.py``; fields and the
U85's opcodes: regor's ``ethos_u65_interface.hpp`` and ``ethos_u85_interface.hpp`` (Vela 5.1.0).
The bit fields inside a register are in ``fields.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from harness.core.tables import read_table

BRANCH = 0x100  # U85's only operation with a 64-bit word

_STRIDES = ("STRIDE_X", "STRIDE_Y", "STRIDE_C")
SIGNED_40 = (
    frozenset(f"{m}_{p}" for m in ("IFM", "OFM", "IFM2") for p in _STRIDES)
    | {"DMA0_SKIP0", "DMA0_SKIP1", "DMA0_SRC_STRIDE0", "DMA0_SRC_STRIDE1", "DMA0_DST_STRIDE0"}
    | {"DMA0_DST_STRIDE1", "DMA0_IDX_SKIP1"}
)
# Operations that differ only in these addresses share a job (``model.Operations``).
RELOCATABLE_ADDRESSES = frozenset({"IFM_BASE0", "IFM2_BASE0", "OFM_BASE0", "DMA0_SRC", "DMA0_DST"})
SCALES = frozenset({"OFM_SCALE", "OPA_SCALE", "OPB_SCALE", "IFM_SCALE", "IFM2_SCALE"})
# The parameter holds bits 32 to 47 of the value.
FULL_WIDTH = frozenset({"OP_SCALAR", "DMA0_IDX_MAX", "RESIZE_X", "RESIZE_Y"})


@dataclass(frozen=True)
class RegisterSet:
    """The opcodes and the modes of operations of one generation of the NPU."""

    cmd0: Mapping[int, str]
    cmd1: Mapping[int, str]
    operations: Mapping[int, str]
    has_branch: bool
    pooling: Mapping[int, str]
    elementwise: Mapping[int, str]


@cache
def register_set(product: str) -> RegisterSet:
    """Return the registers of a product; the U65's are the U55's."""
    generation = "u85" if product == "u85" else "u55"
    common, own = read_table(__file__)["common"], read_table(__file__)[generation]
    shared = {name: {**common.get(name, {}), **own[name]} for name in own}
    return RegisterSet(**shared, has_branch=generation == "u85")
