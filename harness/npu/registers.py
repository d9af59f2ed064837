"""Register names by opcode, the registers wider than 32 bits, and the modes of operations.

Opcodes of U55 and U65: ``ethosu/vela/ethos_u55_regs/ethos_u55_regs.py``; fields and the
U85's opcodes: regor's ``ethos_u65_interface.hpp`` and ``ethos_u85_interface.hpp`` (Vela 5.1.0).
The bit fields inside a register are in ``fields.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OPERATIONS = {
    0x000: "STOP",
    0x001: "IRQ",
    0x002: "CONV",
    0x003: "DEPTHWISE",
    0x005: "POOL",
    0x006: "ELEMENTWISE",
    0x007: "RESIZE",  # U85
    0x010: "DMA_START",
    0x011: "DMA_WAIT",
    0x012: "KERNEL_WAIT",
    0x013: "PMU_MASK",
}
BRANCH = 0x100  # U85's only operation with a 64-bit word

_CMD0_COMMON = {
    0x100: "IFM_PAD_TOP",
    0x101: "IFM_PAD_LEFT",
    0x102: "IFM_PAD_RIGHT",
    0x103: "IFM_PAD_BOTTOM",
    0x104: "IFM_DEPTH_M1",
    0x105: "IFM_PRECISION",
    0x107: "IFM_UPSCALE",
    0x109: "IFM_ZERO_POINT",
    0x10A: "IFM_WIDTH0_M1",
    0x10B: "IFM_HEIGHT0_M1",
    0x10C: "IFM_HEIGHT1_M1",
    0x10F: "IFM_REGION",
    0x111: "OFM_WIDTH_M1",
    0x112: "OFM_HEIGHT_M1",
    0x113: "OFM_DEPTH_M1",
    0x114: "OFM_PRECISION",
    0x115: "OFM_BLK_WIDTH_M1",
    0x116: "OFM_BLK_HEIGHT_M1",
    0x117: "OFM_BLK_DEPTH_M1",
    0x118: "OFM_ZERO_POINT",
    0x11A: "OFM_WIDTH0_M1",
    0x11B: "OFM_HEIGHT0_M1",
    0x11C: "OFM_HEIGHT1_M1",
    0x11F: "OFM_REGION",
    0x120: "KERNEL_WIDTH_M1",
    0x121: "KERNEL_HEIGHT_M1",
    0x122: "KERNEL_STRIDE",
    0x124: "ACC_FORMAT",
    0x125: "ACTIVATION",
    0x126: "ACTIVATION_MIN",
    0x127: "ACTIVATION_MAX",
    0x128: "WEIGHT_REGION",
    0x129: "SCALE_REGION",
    0x12F: "BLOCKDEP",
    0x130: "DMA0_SRC_REGION",
    0x131: "DMA0_DST_REGION",
    0x132: "DMA0_SIZE0",
    0x133: "DMA0_SIZE1",
    0x180: "IFM2_BROADCAST",
    0x185: "IFM2_PRECISION",
    0x189: "IFM2_ZERO_POINT",
    0x18A: "IFM2_WIDTH0_M1",
    0x18B: "IFM2_HEIGHT0_M1",
    0x18C: "IFM2_HEIGHT1_M1",
    0x18F: "IFM2_REGION",
}
_CMD0_U55 = {
    0x10D: "IFM_IB_END",
    0x123: "PARALLEL_MODE",
    0x12D: "AB_START",
    0x181: "IFM2_SCALAR",
    0x18D: "IFM2_IB_START",
}
_CMD0_U85 = {
    0x108: "IFM_BROADCAST",
    0x12A: "RESIZE_X_SCALE_N_M1",
    0x12B: "RESIZE_Y_SCALE_N_M1",
    0x12C: "RESIZE_X_OFFSET",
    0x12D: "RESIZE_Y_OFFSET",
    0x12E: "WEIGHT_FORMAT",
    0x134: "DMA0_IDX_REGION",
}
_MAPS = {0x00: "IFM", 0x10: "OFM", 0x80: "IFM2"}
_MAP_PARTS = ("BASE0", "BASE1", "BASE2", "BASE3", "STRIDE_X", "STRIDE_Y", "STRIDE_C")
_CMD1_COMMON = {
    **{start + n: f"{m}_{p}" for start, m in _MAPS.items() for n, p in enumerate(_MAP_PARTS)},
    0x20: "WEIGHT_BASE",
    0x21: "WEIGHT_LENGTH",
    0x22: "SCALE_BASE",
    0x23: "SCALE_LENGTH",
    0x24: "OFM_SCALE",
    0x30: "DMA0_SRC",
    0x31: "DMA0_DST",
    0x32: "DMA0_LEN",
    0x90: "WEIGHT1_BASE",
    0x91: "WEIGHT1_LENGTH",
}
_CMD1_U55 = {
    0x25: "OPA_SCALE",
    0x26: "OPB_SCALE",
    0x33: "DMA0_SKIP0",
    0x34: "DMA0_SKIP1",
    0x92: "SCALE1_BASE",
    0x93: "SCALE1_LENGTH",
}
_CMD1_U85 = {
    0x25: "IFM_SCALE",
    0x26: "IFM2_SCALE",
    0x27: "OP_SCALAR",
    0x33: "DMA0_SRC_STRIDE0",
    0x34: "DMA0_SRC_STRIDE1",
    0x35: "DMA0_DST_STRIDE0",
    0x36: "DMA0_DST_STRIDE1",
    0x37: "DMA0_IDX",
    0x38: "DMA0_IDX_MAX",
    0x39: "DMA0_IDX_SKIP1",
    0x92: "WEIGHT2_BASE",
    0x93: "WEIGHT2_LENGTH",
    0x94: "WEIGHT3_BASE",
    0x95: "WEIGHT3_LENGTH",
    0x96: "RESIZE_X",
    0x97: "RESIZE_Y",
}
SIGNED_40 = (
    frozenset(f"{m}_{p}" for m in _MAPS.values() for p in ("STRIDE_X", "STRIDE_Y", "STRIDE_C"))
    | {"DMA0_SKIP0", "DMA0_SKIP1", "DMA0_SRC_STRIDE0", "DMA0_SRC_STRIDE1", "DMA0_DST_STRIDE0"}
    | {"DMA0_DST_STRIDE1", "DMA0_IDX_SKIP1"}
)
# Operations that differ only in these addresses share a job (``model.Operations``).
RELOCATABLE_ADDRESSES = frozenset({"IFM_BASE0", "IFM2_BASE0", "OFM_BASE0", "DMA0_SRC", "DMA0_DST"})
SCALES = frozenset({"OFM_SCALE", "OPA_SCALE", "OPB_SCALE", "IFM_SCALE", "IFM2_SCALE"})
# The parameter holds bits 32 to 47 of the value.
FULL_WIDTH = frozenset({"OP_SCALAR", "DMA0_IDX_MAX", "RESIZE_X", "RESIZE_Y"})


# modes of operations
POOLING_U55 = {0: "MAX", 1: "AVERAGE", 2: "REDUCE_SUM"}
ELEMENTWISE_U55 = dict(
    enumerate(("MUL", "ADD", "SUB", "MIN", "MAX", "LRELU", "ABS", "CLZ", "SHR", "SHL"))
)
POOLING_U85 = dict(
    enumerate(("MAX", "AVERAGE", "REDUCE_SUM", "SUM", "NONE", "MIN", "ARGMAX_X", "ARGMAX_Y"))
)
ELEMENTWISE_U85 = {
    0: "MUL",
    1: "ADD",
    2: "SUB",
    3: "MIN",
    4: "MAX",
    6: "ABS",
    7: "CLZ",
    8: "SHR",
    9: "SHL",
    10: "LSR",
    11: "DIV",
    16: "CMP_EQ",
    17: "CMP_NE",
    18: "CMP_GE",
    19: "CMP_GT",
    33: "AND",
    34: "OR",
    35: "XOR",
    36: "NOT",
    42: "AND_NOT",
}


@dataclass(frozen=True)
class RegisterSet:
    """The opcodes and the modes of operations of one generation of the NPU."""

    cmd0: Mapping[int, str]
    cmd1: Mapping[int, str]
    operations: Mapping[int, str]
    has_branch: bool
    pooling: Mapping[int, str]
    elementwise: Mapping[int, str]


_U55 = RegisterSet(
    cmd0=_CMD0_COMMON | _CMD0_U55,
    cmd1=_CMD1_COMMON | _CMD1_U55,
    operations={code: name for code, name in OPERATIONS.items() if name != "RESIZE"},
    has_branch=False,
    pooling=POOLING_U55,
    elementwise=ELEMENTWISE_U55,
)
_U85 = RegisterSet(
    cmd0=_CMD0_COMMON | _CMD0_U85,
    cmd1=_CMD1_COMMON | _CMD1_U85,
    operations=OPERATIONS,
    has_branch=True,
    pooling=POOLING_U85,
    elementwise=ELEMENTWISE_U85,
)


def register_set(product: str) -> RegisterSet:
    """The registers of a product; the U65's are the U55's."""
    return _U85 if product == "u85" else _U55
