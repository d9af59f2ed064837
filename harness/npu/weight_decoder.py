"""Weight streams, decoded and put in order by ``kernel/``, which reads no byte that is not there
and writes no more than it was asked for."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.npu.errors import AccessError
from harness.npu.work import ENCODED

Weights = NDArray[np.int16]
FAST_HEADER = 32
_USUAL = 16  # weights of one byte; more are asked for again
_DISORDERS = (
    "",
    "the weight stream has too few weights",
    "a weight in a padding position is not 0",
    "the order of the weights does not give each place one weight",
)


def order_fields(*names: str) -> list[tuple[str, Any]]:
    """Of a structure of ``kernel/reorder.h``."""
    return [(name, ctypes.c_int64) for name in names]


class OrderU55(ctypes.Structure):
    _fields_ = order_fields(
        *("depth", "height", "width", "ifm_depth"),
        *("ofm_block", "ofm_unit", "ifm_block", "ifm_units", "step_y", "step_x"),
        *("rounding", "form", "channel_stride"),
    )


class OrderU85(ctypes.Structure):
    _fields_ = order_fields(
        *("depth", "height", "width", "ifm_depth"),
        *("ofm_block", "ofm_unit", "ifm_block", "ifm_unit"),
        *("step_y", "step_x", "phase_y", "phase_x", "rounding", "padding"),
        *("ifm_step", "streams"),
    )


class WeightDecoder:
    """Every function raises AccessError with the ``offset`` of the operation."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def decode(self, encoded: bytes, offset: int) -> Weights:
        room = _USUAL * len(encoded)
        while True:
            weights = np.empty(room, np.int16)
            given = encoded, len(encoded), weights.ctypes.data, room, ENCODED
            count = self._library.hil_npu_decode(*given)
            if count < 0:
                raise AccessError(f"the {len(encoded)} bytes of weights cannot be decoded", offset)
            if count <= room:
                return weights[:count]
            room = count

    def decode_fast(self, encoded: bytes, offset: int) -> Weights:
        """The U85's fast format, of ``mlw_encode_fwd.cpp`` (Vela 5.1.0)."""
        if len(encoded) < FAST_HEADER:
            raise AccessError("the fast weight header is cut short", offset)
        folds = 1 if encoded[0] & 1 else 4 if encoded[0] & 2 else 2
        weights = np.empty(folds * (len(encoded) - FAST_HEADER), np.int16)
        self._library.hil_npu_decode_fast(encoded, len(encoded), weights.ctypes.data)
        return weights

    def order_u55(
        self, stream: Weights, order: OrderU55, whole: Weights, core: int, offset: int
    ) -> None:
        """Puts the weights of one core to their places in ``whole``: (ofm, y, x, ifm)."""
        weights = np.ascontiguousarray(stream)
        place = whole.ctypes.data + core * whole.strides[0]
        given = ctypes.byref(order), weights.ctypes.data, len(weights), place
        _require_order(self._library.hil_npu_reorder_u55(*given), offset)

    def order_u85(
        self, streams: Sequence[Weights], order: OrderU85, to_the_end: bool, offset: int
    ) -> Weights:
        """As (ofm, y, x, ifm). ``to_the_end``: nothing but zeros follows the last weight."""
        whole = np.empty((order.depth, order.height, order.width, order.ifm_depth), np.int16)
        kept = [np.ascontiguousarray(stream) for stream in streams]
        places = (ctypes.c_void_p * len(kept))(*(stream.ctypes.data for stream in kept))
        counts = (ctypes.c_int64 * len(kept))(*map(len, kept))
        given = ctypes.byref(order), places, counts, to_the_end, whole.ctypes.data
        _require_order(self._library.hil_npu_reorder_u85(*given), offset)
        return whole

    def pack(self, weights: Weights, depthwise: bool) -> tuple[Weights, int]:
        """In the order in which they are used, and the largest sum of absolute weights of one
        output channel."""
        dense = np.ascontiguousarray(weights)
        ofm, height, width, ifm = dense.shape
        shape = int(depthwise), ofm, height * width, ifm
        packed = np.empty(self._library.hil_npu_packed(*shape), np.int16)
        given = shape[0], dense.ctypes.data, ifm, *shape[1:], packed.ctypes.data
        return packed, self._library.hil_npu_pack(*given)


def _require_order(disorder: int, offset: int) -> None:
    if disorder:
        raise AccessError(_DISORDERS[disorder], offset)
