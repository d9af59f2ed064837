"""Weight streams by the compiled decoder, in this process: it reads no byte that is not there, and
writes no more than it was asked for. Vela's own codec (``codec.py``) is what it is tested against.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from harness.ethosu.codec import Weights
from harness.ethosu.errors import AccessError
from harness.ethosu.u55.weights import WeightLayout
from harness.ethosu.u85.weights import FAST_HEADER, WeightLayoutU85
from harness.ethosu.work import ENCODED

_USUAL = 16  # weights of one byte; more are asked for again


class _OrderU55(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            *("depth", "height", "width", "ifm_depth"),
            *("ofm_block", "ofm_unit", "ifm_block", "ifm_units", "step_y", "step_x"),
            *("rounding", "form", "channel_stride"),
        )
    ]


class _OrderU85(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            *("depth", "height", "width", "ifm_depth"),
            *("ofm_block", "ofm_unit", "ifm_block", "ifm_unit"),
            *("step_y", "step_x", "phase_y", "phase_x", "rounding", "padding"),
            *("ifm_step", "streams"),
        )
    ]


class KernelCodec:
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

    def fast(self, encoded: bytes) -> Weights | None:
        if len(encoded) < FAST_HEADER:
            return None
        folds = 1 if encoded[0] & 1 else 4 if encoded[0] & 2 else 2
        weights = np.empty(folds * (len(encoded) - FAST_HEADER), np.int16)
        self._library.hil_npu_decode_fast(encoded, len(encoded), weights.ctypes.data)
        return weights

    def reordered(self, streams: Sequence[Weights], layout: object) -> Weights | None:
        """None: something is wrong with them, or nobody has an order for such a layout."""
        if isinstance(layout, WeightLayout):
            return self._reordered_u55(streams, layout)
        if isinstance(layout, WeightLayoutU85):
            return self._reordered_u85(streams, layout)
        return None

    def _reordered_u55(self, streams: Sequence[Weights], layout: WeightLayout) -> Weights | None:
        height, width = layout.kernel
        shape = layout.ofm_depth, height, width, layout.stored_depth
        whole = np.zeros(shape, np.int16)
        channel = height * width * layout.stored_depth
        form = 2 if layout.depthwise else 1 if layout.part_kernel else 0
        for core, stream in enumerate(streams):
            depth, block = layout.of_core(core)
            if not depth:
                continue
            order = _OrderU55(
                *(depth, height, width, layout.stored_depth),
                *(block, layout.ofm_ublock, layout.ifm_block, layout.ifm_block // 8),
                *(8 // layout.dilation[0], 8 // layout.dilation[1]),
                *(layout.rounding, form, layout.cores * channel),
            )
            weights = np.ascontiguousarray(stream)
            place = whole.ctypes.data + 2 * core * channel
            given = ctypes.byref(order), weights.ctypes.data, len(weights), place
            if block < 1 or not self._library.hil_npu_reorder_u55(*given):
                return None
        return whole

    def _reordered_u85(self, streams: Sequence[Weights], layout: WeightLayoutU85) -> Weights | None:
        ifm_depth = 1 if layout.depthwise else layout.ifm_depth
        whole = np.empty((layout.ofm_depth, *layout.kernel, ifm_depth), np.int16)
        order = _OrderU85(
            *(layout.ofm_depth, *layout.kernel, ifm_depth),
            *(layout.ofm_block, layout.ofm_ublock, layout.ifm_block, layout.ifm_ublock),
            *(8 // layout.dilation[0], 8 // layout.dilation[1], *layout.phases),
            *(layout.rounding, layout.depthwise_padding, layout.ifm_step, len(streams)),
        )
        kept = [np.ascontiguousarray(stream) for stream in streams]
        places = (ctypes.c_void_p * len(kept))(*(stream.ctypes.data for stream in kept))
        counts = (ctypes.c_int64 * len(kept))(*map(len, kept))
        given = ctypes.byref(order), places, counts, not layout.fast, whole.ctypes.data
        return whole if self._library.hil_npu_reorder_u85(*given) else None
