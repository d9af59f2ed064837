"""The structures of ``kernel/jobs.h``, in its order: a job, and the memory that jobs work in."""

from __future__ import annotations

import ctypes
from typing import Any

REGIONS, TILES, SPANS, LANES = 16, 4, 8, 16
SCALE_ARRAYS = ("bias", "multiplier", "half", "shift", "addend")
_number, _pointer = ctypes.c_int64, ctypes.c_void_p


def _fields(*names: str) -> list[tuple[str, Any]]:
    return [(name, _number) for name in names]


class TileFields(ctypes.Structure):
    _fields_ = _fields("y", "x", "height", "width", "base")


class MapFields(ctypes.Structure):
    _fields_ = [
        *_fields("region", "bytes", "bricks", "height", "width", "depth"),
        *_fields("stride_y", "stride_x", "stride_c", "tiles"),
        ("tile", TileFields * TILES),
    ]


class OperandFields(ctypes.Structure):
    _fields_ = [
        ("map", MapFields),
        *_fields("scalar", "zero_point", "multiplier", "half", "shift"),
    ]


class WindowFields(ctypes.Structure):
    _fields_ = _fields(
        *("kernel_y", "kernel_x", "stride_y", "stride_x", "dilation_y", "dilation_x"),
        *("top", "left", "bottom", "right", "needed_y", "needed_x", "upscale"),
    )


class ScaleFields(ctypes.Structure):
    _fields_ = [
        *_fields("mode", "scope"),
        *((name, _pointer) for name in SCALE_ARRAYS),
    ]


class OutputFields(ctypes.Structure):
    _fields_ = [
        ("map", MapFields),
        *_fields("height", "width", "depth", "index_bytes"),
        *_fields("zero_point", "clamped", "low", "high"),
        *_fields("table", "table_at", "table_size"),
        ("axis", _number * 3),
        *_fields("reverse"),
    ]


class SpanFields(ctypes.Structure):
    _fields_ = [*_fields("region", "address", "length"), ("expected", _pointer)]


class AxisFields(ctypes.Structure):
    _fields_ = _fields("n", "step", "offset")


class ResizeFields(ctypes.Structure):
    _fields_ = [*_fields("bilinear"), ("y", AxisFields), ("x", AxisFields)]


class JobFields(ctypes.Structure):
    _fields_ = [
        *_fields("kind", "operation"),
        ("first", OperandFields),
        ("second", OperandFields),
        ("window", WindowFields),
        ("output", OutputFields),
        ("scale", ScaleFields),
        *_fields("spans"),
        ("span", SpanFields * SPANS),
        ("weights", _pointer),
        *_fields("wide", "parts"),
        ("source", SpanFields),
        ("target", SpanFields),
        ("resize", ResizeFields),
        *_fields("most"),
    ]


class MemoryFields(ctypes.Structure):
    _fields_ = [
        ("base", _pointer * REGIONS),
        ("size", _number * REGIONS),
        ("marks", _pointer * REGIONS),
        ("internal", _pointer),
        ("internal_size", _number),
        ("pool", _pointer),
    ]


def check_layout(library: ctypes.CDLL) -> None:
    """That the library has the same idea of the structures. AssertionError: it has not."""
    ours = ctypes.sizeof(JobFields), ctypes.sizeof(MemoryFields)
    theirs = library.hil_npu_job_bytes(), library.hil_npu_memory_bytes()
    assert ours == theirs, f"job_fields.py and kernel/jobs.h differ: {ours} and {theirs} bytes"
