"""The operations of an Ethos-U's command stream, small enough to be compared with another export.

An operation is its name and ``NPU_PARTS``: what a quantiser decides (zero points and scales) as
numbers, weights and the scales of channels as digests of their bytes, and two digests of the other
registers: how it computes, and where in memory. Registers: ``harness.npu.registers``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from harness.formats.damage import DamagedFile
from harness.npu.blob import WEIGHTS, Actions, Blob, read_actions, read_blob
from harness.npu.errors import EthosUError
from harness.npu.registers import register_set
from harness.npu.stream import State, survey, walk

ETHOS_U: Final = "EthosUBackend"
NPU_PARTS: Final = (
    "times",
    "size of the output",
    "zero point of the input",
    "zero point of the second input",
    "zero point of the output",
    "scale of the output",
    "scale of the input",
    "scale of the second input",
    "scalar",
    "weights",
    "scales of the channels",
    "other registers",
    "places in memory",
)
Value = str | int | float | bool | None
Operator = tuple[Value, ...]  # its name, then its parts
_DIGEST = 16  # hex digits; only ever compared with the digest of another export of one model
_MOST_OPERATIONS = 1000  # of a stream; of a longer one only digests are kept
# The registers that an operation does not read, by how their names begin.
_UNREAD = {
    "CONV": ("DMA0", "IFM2", "OPA", "OPB", "OP_SCALAR", "RESIZE"),
    "DEPTHWISE": ("DMA0", "IFM2", "OPA", "OPB", "OP_SCALAR", "RESIZE"),
    "POOL": ("DMA0", "IFM2", "OPA", "OPB", "OP_SCALAR", "RESIZE", "WEIGHT", "SCALE"),
    "RESIZE": ("DMA0", "IFM2", "OPA", "OPB", "OP_SCALAR", "WEIGHT", "SCALE"),
    "ELEMENTWISE": ("DMA0", "RESIZE", "WEIGHT", "SCALE", "KERNEL", "IFM_PAD"),
}
_PLACES = ("_BASE", "_REGION", "_STRIDE_", "DMA0_SRC", "DMA0_DST")
_QUANTISATION = (
    ("IFM_ZERO_POINT",),
    ("IFM2_ZERO_POINT",),
    ("OFM_ZERO_POINT",),
    ("OFM_SCALE",),
    ("IFM_SCALE", "OPA_SCALE"),  # of a U85; of the others
    ("IFM2_SCALE", "OPB_SCALE"),
    ("OP_SCALAR", "IFM2_SCALAR"),
)


def digest_of(value: object) -> str:
    """Of plain values, or of bytes."""
    raw = value if isinstance(value, bytes | memoryview) else repr(value).encode()
    return hashlib.sha256(raw).hexdigest()[:_DIGEST]


def npu_operators(
    stream: bytes, named_data: Mapping[str, bytes]
) -> tuple[str, tuple[Operator, ...]]:
    """A digest of what no operation has, and the operations. Of a stream that is not understood,
    that branches or that is very long: a digest of all of it, and no operations."""
    whole = digest_of(stream), ()
    try:
        blob = read_blob(stream, named_data)
        actions = read_actions(blob.commands)
        names = register_set(actions.config.product)
        if survey(actions.words, names).branches:
            return whole
        operators = _operators(blob, actions)
    except (DamagedFile, EthosUError):
        return whole
    if len(operators) > _MOST_OPERATIONS:
        return whole
    io = (actions.config, blob.scratch_size, blob.inputs, blob.outputs, actions.requires)
    return digest_of(io), operators


def _operators(blob: Blob, actions: Actions) -> tuple[Operator, ...]:
    """Neighbours that differ in addresses alone are one, with how many there are."""
    state, found = State(), []
    times: list[int] = []
    last: tuple[str, int, int] | None = None
    for _, name, parameter in walk(actions.words, register_set(actions.config.product), state):
        if (name, parameter, state.changes) == last:
            times[-1] += 1
            continue
        last = name, parameter, state.changes
        times.append(1)
        found.append(_operator(name, parameter, {**state.others, **state.addresses}, blob))
    return tuple((name, n, *parts) for n, (name, *parts) in zip(times, found, strict=True))


def _operator(name: str, parameter: int, registers: Mapping[str, int], blob: Blob) -> Operator:
    """Without how many times it comes."""
    if name == "DMA_START":
        read = {n: v for n, v in registers.items() if n.startswith("DMA0")}
    else:
        unread = _UNREAD.get(name, ())
        read = {n: v for n, v in registers.items() if not n.startswith(unread)}
    plain = {n for alternatives in _QUANTISATION for n in alternatives}
    places = {n: v for n, v in read.items() if any(part in n for part in _PLACES)}
    other = {n: v for n, v in read.items() if n not in plain and n not in places}
    size = [read.get(f"OFM_{axis}_M1", 0) + 1 for axis in ("HEIGHT", "WIDTH", "DEPTH")]
    return (
        f"Ethos-U {name}",
        "x".join(map(str, size)) if name != "DMA_START" else f"{read.get('DMA0_LEN', 0)} bytes",
        *(next((read[n] for n in each if n in read), None) for each in _QUANTISATION),
        _content(read, "WEIGHT", blob) or _copied(read, blob),
        _content(read, "SCALE", blob),
        digest_of((parameter, sorted(other.items()))),
        digest_of(sorted(places.items())),
    )


def _content(read: Mapping[str, int], what: str, blob: Blob) -> str | None:
    """Of the bytes of the program's own that an operation has as weights, or as scales."""
    if read.get(f"{what}_REGION") != WEIGHTS:
        return None
    spans = [
        (read[f"{what}{core}_BASE"], read[f"{what}{core}_LENGTH"])
        for core in ("", "1", "2", "3")
        if f"{what}{core}_BASE" in read and f"{what}{core}_LENGTH" in read
    ]
    return digest_of(b"".join(blob.weights[at : at + size] for at, size in spans))


def _copied(read: Mapping[str, int], blob: Blob) -> str | None:
    """Of weights that are copied to faster memory before they are used."""
    if read.get("DMA0_SRC_REGION") != WEIGHTS or "DMA0_LEN" not in read:
        return None
    at = read.get("DMA0_SRC", 0)
    return digest_of(blob.weights[at : at + read["DMA0_LEN"]])
