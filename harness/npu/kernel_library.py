"""Builds the arithmetic in ``kernel/`` for this machine, caches it by content and loads it.

Results do not depend on the compiler or the processor: all arithmetic is in integers. Structures
and enumerations are read from the headers. A field of a C++ structure gets the value of the
attribute with its name, so a new field is one line there and one in a dataclass here.
"""

from __future__ import annotations

import ctypes
import errno
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.core.errors import InfraError
from harness.core.tables import read_table
from harness.npu.errors import AccessError, check_limit
from harness.system import artifact_cache, paths, toolchain
from harness.system.artifact_cache import processor
from harness.system.call import CallFailed, call
from harness.system.files import DISK_FULL, content_digest, disk_errors

SOURCES = Path(__file__).with_name("kernel")
_HEADERS = ("jobs.h", "reorder.h")
_CONSTANT = re.compile(r"constexpr int (\w+) = (\d+);")
_ENUM = re.compile(r"enum class (\w+) : int64_t \{([^}]*)\}")
_STRUCT = re.compile(r"struct (\w+) \{([^}]*)\};")
_FIELD = re.compile(r"(?:(?:mutable|const|class) )*(\w+)(\*?) (.+)", re.DOTALL)
_NAME = re.compile(r"(\w+)(?:\[(\w+)\])?")
_AXES = {"_y": 0, "_x": 1, "_c": 2}


@dataclass(frozen=True)
class Layouts:
    """``enumerations``: numbers of enumerators, by name. ``structures``: ctypes classes."""

    enumerations: dict[str, dict[str, int]]
    structures: dict[str, Any]
    types: dict[str, dict[str, str]]  # C++ types of the fields of each structure

    def fill(self, kind: str, target: Any, value: object) -> None:
        """Write ``value`` to a zeroed structure; None stays 0."""
        for name, field in self.types[kind].items():
            content = _content(value, name)
            if content is None:
                continue
            if field in self.structures and isinstance(content, tuple):
                for place, item in zip(getattr(target, name), content, strict=False):
                    self.fill(field, place, item)
            elif field in self.structures:
                self.fill(field, getattr(target, name), content)
            elif isinstance(content, tuple):
                getattr(target, name)[:] = content
            elif isinstance(content, str):
                setattr(target, name, self.enumerations[field][content])
            else:
                setattr(target, name, int(content))

    def filled(self, kind: str, value: object) -> Any:
        """Return a pointer to a new structure with the values of ``value``."""
        structure = self.structures[kind]()
        self.fill(kind, structure, value)
        return ctypes.byref(structure)

    def name_of(self, enumeration: str, number: int) -> str:
        return list(self.enumerations[enumeration])[number]


def _content(value: object, name: str) -> Any:
    if hasattr(value, name):
        return getattr(value, name)
    attribute, element = read_table(__file__).get(name) or (name[:-2], _AXES.get(name[-2:], 0))
    whole = getattr(value, attribute, None)
    if isinstance(element, str):
        return getattr(whole, element, None)
    return whole[element] if isinstance(whole, tuple) else None


@lru_cache(maxsize=1)
def layouts() -> Layouts:
    headers = "".join((SOURCES / name).read_text("utf-8") for name in _HEADERS)
    text = re.sub(r"//[^\n]*", "", headers)
    constants = {name: int(value) for name, value in _CONSTANT.findall(text)}
    enumerations = {
        name: {word: number for number, word in enumerate(re.findall(r"\w+", body))}
        for name, body in _ENUM.findall(text)
    }
    structures: dict[str, Any] = {}
    types: dict[str, dict[str, str]] = {}
    for name, body in _STRUCT.findall(text):
        fields, types[name] = [], {}
        for line in body.split(";"):
            if not line.strip():
                continue
            found = _FIELD.fullmatch(line.strip())
            assert found is not None, f"not a field of a structure: {line}"
            kind, pointer, names = found.groups()
            plain = ctypes.c_void_p if pointer else structures.get(kind, ctypes.c_int64)
            for field, size in _NAME.findall(names):
                count = constants.get(size) or int(size or 0)
                fields.append((field, plain * count if count else plain))
                types[name][field] = "pointer" if pointer else kind
        structures[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return Layouts(enumerations, structures, types)


def enumerator(name: str) -> str:
    """Return the C++ name: CMP_EQ of the registers is kCmpEq."""
    return "k" + "".join(word.capitalize() for word in name.split("_"))


Weights = NDArray[np.int16]
FAST_HEADER = 32
# The most weights that are read of one stream, padding included: 256 MiB, half of workload.KEPT.
# kMostRunQuotient of kernel/mlw.cpp is as much.
ENCODED = 1 << 27
_PADDING = "a weight in a padding position is not 0"
_DISORDERS = (
    "",
    "the weight stream has too few weights",
    _PADDING,
    "the order of the weights does not give each place one weight",
)


@dataclass(frozen=True)
class WeightLayout:
    """Decides the order of a convolution's weights, with the names of ``kernel/reorder.h``.

    ``ifm_depth``: input channels that have weights of their own."""

    ofm_depth: int
    kernel: tuple[int, int]
    ifm_depth: int
    ofm_block: int
    ofm_unit: int
    part_kernel: bool
    depthwise: bool
    dilation: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int, int]:
        return (*self.kernel, self.ofm_depth)

    @property
    def step(self) -> tuple[int, int]:
        """Rows and columns of a sub-kernel."""
        return 8 // self.dilation[0], 8 // self.dilation[1]

    def read(self, ifm_unit: int, rounding: int, padding: int = 0) -> int:
        """Return how many weights the operation reads, with those between and after its own.

        They are what the loops of ``kernel/reorder_u55.cpp`` and ``reorder_u85.cpp`` take."""
        (height, width), (rows, columns) = self.kernel, self.step
        groups = sum(
            up(min(rows, height - y) * min(columns, width - x), rounding) // rounding
            for y in range(0, height, rows)
            for x in range(0, width, columns)
        )
        starts = range(0, self.ofm_depth, self.ofm_block)
        outputs = (up(min(self.ofm_block, self.ofm_depth - o), self.ofm_unit) for o in starts)
        return sum(outputs) * groups * (rounding + padding) * up(self.ifm_depth, ifm_unit)


def up(count: int, unit: int) -> int:
    """Round up to a multiple of ``unit``."""
    return -(-count // unit) * unit


class WeightDecoder:
    """Every function raises AccessError with the ``offset`` of the operation."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def decode(self, encoded: bytes, read: int, offset: int) -> Weights:
        """Return at most the ``read`` weights: others may only be 0. Raises WorkLimit."""
        check_limit("the convolution", read, ENCODED, "weights with their padding", offset)
        weights = np.empty(read, np.int16)
        data = weights.ctypes.data
        count = self._library.hil_npu_decode(encoded, len(encoded), data, read)
        if count == -1:
            raise AccessError(f"the {len(encoded)} bytes of weights cannot be decoded", offset)
        if count < 0:
            raise AccessError(_PADDING, offset)
        return weights[: min(count, read)]

    def decode_fast(self, encoded: bytes, offset: int) -> Weights:
        """Return the U85's fast format, of ``mlw_encode_fwd.cpp`` (Vela 5.1.0)."""
        if len(encoded) < FAST_HEADER:
            raise AccessError("the fast weight header is cut short", offset)
        folds = 1 if encoded[0] & 1 else 4 if encoded[0] & 2 else 2
        weights = np.empty(folds * (len(encoded) - FAST_HEADER), np.int16)
        self._library.hil_npu_decode_fast(encoded, len(encoded), weights.ctypes.data)
        return weights

    def order_u55(
        self, stream: Weights, layout: WeightLayout, whole: Weights, core: int, offset: int
    ) -> None:
        """Put the weights of one core to their places in ``whole``: (ofm, y, x, ifm)."""
        weights = np.ascontiguousarray(stream)
        place = whole.ctypes.data + core * whole.strides[0]
        given = layouts().filled("OrderU55", layout), weights.ctypes.data, len(weights), place
        _require_order(self._library.hil_npu_reorder_u55(*given), offset)

    def order_u85(self, streams: Sequence[Weights], layout: WeightLayout, offset: int) -> Weights:
        """Return the weights as (ofm, y, x, ifm)."""
        whole = np.empty((layout.ofm_depth, *layout.kernel, layout.ifm_depth), np.int16)
        kept = [np.ascontiguousarray(stream) for stream in streams]
        places = (ctypes.c_void_p * len(kept))(*(stream.ctypes.data for stream in kept))
        counts = (ctypes.c_int64 * len(kept))(*map(len, kept))
        order = layouts().filled("OrderU85", layout)
        given = order, places, counts, whole.ctypes.data
        _require_order(self._library.hil_npu_reorder_u85(*given), offset)
        return whole

    def pack(self, weights: Weights, depthwise: bool) -> tuple[Weights, int]:
        """Return weights in the kernel's order, and a channel's largest absolute sum."""
        dense = np.ascontiguousarray(weights)
        ofm, height, width, ifm = dense.shape
        shape = int(depthwise), ofm, height * width, ifm
        packed = np.empty(self._library.hil_npu_packed(*shape), np.int16)
        given = shape[0], dense.ctypes.data, ifm, *shape[1:], packed.ctypes.data
        return packed, self._library.hil_npu_pack(*given)


def _require_order(disorder: int, offset: int) -> None:
    if disorder:
        raise AccessError(_DISORDERS[disorder], offset)


NAME = "libhil_npu.so"
_LOG = "build.log"
_SECONDS = 300


@lru_cache(maxsize=1)
def load() -> ctypes.CDLL:
    """Return the library, built if it is not cached; one process builds, others wait.

    Raises ToolMissing, InfraError where it cannot be built, and DiskError when there is no room."""
    tools = [toolchain.require(name) for name in ("cmake", "ninja", "g++")]
    own = content_digest(sources(), SOURCES)
    key = artifact_cache.key_of([*map(str, tools), *processor(), own])
    directory = paths.cache_dir("npu-kernel") / key
    with disk_errors("building the NPU model's arithmetic"):
        artifact_cache.cached(directory, key, _build)
    library = declared(ctypes.CDLL(str(directory / NAME)))
    check_layout(library)
    return library


def check_layout(library: ctypes.CDLL) -> None:
    """Raise AssertionError if the structures read from jobs.h are not the library's."""
    structures = layouts().structures
    ours = tuple(ctypes.sizeof(structures[name]) for name in ("Job", "Memory"))
    theirs = library.hil_npu_job_bytes(), library.hil_npu_memory_bytes()
    assert ours == theirs, f"kernel_library.py misreads kernel/jobs.h: {ours} and {theirs} bytes"


def sources() -> list[Path]:
    return sorted(path for path in SOURCES.iterdir() if path.is_file())


def _build(directory: Path) -> None:
    """Compile the library. Raises InfraError, OSError."""
    tree, log = directory / "build", directory / _LOG
    tree.mkdir()
    cmake, ninja = (str(toolchain.locate(name)) for name in ("cmake", "ninja"))
    compiler = toolchain.locate("g++")
    configure = [cmake, "-S", str(SOURCES), "-B", str(tree), "-G", "Ninja", "-DHIL_NATIVE=ON"]
    configure += [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    for argv in (configure, [ninja, "-C", str(tree), "hil_npu"]):
        try:
            call(argv, _SECONDS)
        except CallFailed as error:
            log.write_text(said := error.output or str(error))
            if full := DISK_FULL.search(said):
                raise OSError(errno.ENOSPC, full[0], str(tree)) from error
            raise InfraError(
                f"the NPU model's arithmetic cannot be built: {log}",
                hint="the log has the compiler's errors",
                path=log,
            ) from error
    (tree / NAME).replace(directory / NAME)
    shutil.rmtree(tree)


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """Return the library with the types of its functions."""
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    signatures: dict[str, tuple[list[Any], Any]] = {
        "hil_npu_run": ([pointer, pointer, number, number, pointer], number),
        "hil_npu_open": ([], pointer),
        "hil_npu_close": ([pointer], None),
        "hil_npu_job_bytes": ([], number),
        "hil_npu_memory_bytes": ([], number),
        "hil_npu_decode": ([ctypes.c_char_p, number, pointer, number], number),
        "hil_npu_decode_fast": ([ctypes.c_char_p, number, pointer], None),
        "hil_npu_reorder_u55": ([pointer, pointer, number, pointer], number),
        "hil_npu_reorder_u85": ([pointer] * 4, number),
        "hil_npu_packed": ([number] * 4, number),
        "hil_npu_pack": ([number, pointer, *[number] * 4, pointer], number),
    }
    for name, (arguments, result) in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library
