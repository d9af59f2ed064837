"""Small .pte and .bpte files for the tests, made by the flatc of ExecuTorch's wheel."""

from __future__ import annotations

import importlib.util
import json
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

ALIGNMENT = 16
SEGMENT_ALIGNMENT = 128


def wheel() -> Path:
    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def flatc(schema: str, data: Any) -> bytes:
    """A FlatBuffer from JSON."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "data.json"
        source.write_text(json.dumps(data))
        run = [wheel() / "data/bin/flatc", "--binary", "-o", scratch, wheel() / schema, source]
        subprocess.run(run, check=True, capture_output=True, timeout=60)
        (made,) = (p for p in Path(scratch).iterdir() if p != source)
        return made.read_bytes()


def to_json(pte: bytes) -> Any:
    """The FlatBuffer of a .pte as JSON."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "data.pte"
        source.write_bytes(pte)
        run = [
            wheel() / "data/bin/flatc",
            "--json",
            "--strict-json",
            "--raw-binary",
            "-o",
            scratch,
            wheel() / "schema/program.fbs",
            "--",
            source,
        ]
        subprocess.run(run, check=True, capture_output=True, timeout=60)
        return json.loads((Path(scratch) / "data.json").read_text())


def segment_bytes(pte: bytes) -> bytes:
    """What stands behind the FlatBuffer, from the first segment on."""
    if pte[8:12] != b"eh00":
        return b""
    (base,) = struct.unpack_from("<Q", pte, 24)
    return pte[base:] if base else b""


def make_pte(program: Any, segments: bytes = b"") -> bytes:
    """A .pte as ExecuTorch lays it out: extended header, FlatBuffer, aligned segments."""
    plain = flatc("schema/program.fbs", program)
    header = 48  # 8 + 32 bytes and padding, so that nothing behind it loses its alignment
    (root,) = struct.unpack_from("<I", plain, 0)
    inserted = header - 8
    inserted += -inserted % ALIGNMENT
    size = len(plain) + inserted
    base = -(-size // SEGMENT_ALIGNMENT) * SEGMENT_ALIGNMENT if segments else 0
    extended = struct.pack("<4sIQQQ", b"eh00", 32, size, base, len(segments))
    head = struct.pack("<I", root + inserted) + plain[4:8] + extended.ljust(inserted, b"\0")
    whole = head + plain[8:]
    return whole.ljust(base, b"\0") + segments if segments else whole


def tensor(
    sizes: list[int],
    *,
    data: int = 0,
    planned: int | None = None,
    scalar_type: str = "CHAR",
    fqn: str = "",
) -> dict[str, Any]:
    value: dict[str, Any] = {
        "scalar_type": scalar_type,
        "sizes": sizes,
        "dim_order": list(range(len(sizes))),
        "data_buffer_idx": data,
    }
    if planned is not None:
        value["allocation_info"] = {"memory_id": 1, "memory_offset_low": planned}
    if fqn:
        value["extra_tensor_info"] = {"fully_qualified_name": fqn}
    return {"val_type": "Tensor", "val": value}


def program(**changes: Any) -> dict[str, Any]:
    """One operator, two constants (one of them used), two planned tensors, a string."""
    plan = {
        "name": "forward",
        "container_meta_type": {"encoded_inp_str": "in", "encoded_out_str": "out"},
        "values": [
            tensor([4, 8], planned=0),
            tensor([8, 8], data=1, fqn="fc.weight"),
            tensor([3], data=2, scalar_type="INT"),
            tensor([4, 8], planned=32),
            {"val_type": "String", "val": {"string_val": "hello"}},
            {"val_type": "Int", "val": {"int_val": 7}},
        ],
        "inputs": [0],
        "outputs": [3],
        "operators": [{"name": "my::linear", "overload": "out"}],
        "chains": [
            {
                "inputs": [0],
                "outputs": [3],
                "instructions": [
                    {
                        "instr_args_type": "KernelCall",
                        "instr_args": {"op_index": 0, "args": [0, 1, 4, 5, 3]},
                    }
                ],
            }
        ],
        "delegates": [],
        "non_const_buffer_sizes": [0, 64],
    }
    return {
        "version": 0,
        "execution_plan": [{**plan, **changes}],
        "segments": [{"offset": 0, "size": 92}],
        "constant_segment": {"segment_index": 0, "offsets": [0, 0, 80]},
    }


CONSTANTS = bytes(range(1, 65)) + bytes(16) + bytes(range(1, 13))


def sample_pte(**changes: Any) -> bytes:
    return make_pte(program(**changes), CONSTANTS)


def vela_blob(weights: int = 64, scratch: int = 128) -> bytes:
    """A Vela stream with a COP1 command stream that uses its first half as weights."""
    stream = struct.pack(
        "<4sIIIIIIIIIIII",
        b"COP1",
        1,
        7 | 2 << 28,
        0,
        2 | 9 << 16,
        0x128,
        0x4020,
        0,
        0x4021,
        weights // 2,
        0x4022,
        weights // 2,
        0x4023,
    )
    stream += struct.pack("<III", weights // 4, 0x129, 0x002)
    stream = stream[:16] + struct.pack("<I", 2 | (len(stream) - 20) // 4 << 16) + stream[20:]

    def block(name: bytes, data: bytes) -> bytes:
        header = struct.pack("<16sIB11s", name, len(data), 0, bytes(11))
        return header + data + bytes(-len(data) % 16)

    io = struct.pack("<i9i", 1, 1, 1, 1, 1, 1, 8, 1, 0, 1)
    return b"".join(
        block(name, data)
        for name, data in (
            (b"vela_bin_stream", b""),
            (b"cmd_data", stream),
            (b"weight_data", b"\1" * weights),
            (b"scratch_size", struct.pack("<I", scratch)),
            (b"inputs", io),
            (b"outputs", io),
            (b"vela_end_stream", b""),
        )
    )
