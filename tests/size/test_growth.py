"""Growth planted in real programs is found, and named by what grew."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.formats.ethosu import walk
from harness.size import pte
from harness.size.anatomy import Difference, difference, sentences
from harness.size.measure import measure_file
from tests.size.samples import make_pte, segment_bytes, to_json

Edit = Callable[[dict[str, Any], bytearray], None]


def planted(pte: Path, tmp_path: Path, edit: Edit) -> Difference:
    """The program rebuilt without and with the edit, compared."""
    data, segments = to_json(pte.read_bytes()), bytearray(segment_bytes(pte.read_bytes()))
    old, new = tmp_path / "old.pte", tmp_path / "new.pte"
    old.write_bytes(make_pte(data, bytes(segments)))
    changed = copy.deepcopy(data)
    edit(changed, segments)
    new.write_bytes(make_pte(changed, bytes(segments)))
    before, after = measure_file(old), measure_file(new)
    assert before.unknown == after.unknown == 0
    return difference(before, after)


def told(found: Difference) -> list[str]:
    return sentences(found.parts)


@pytest.fixture
def ds_cnn(programs: dict[str, Path]) -> Path:
    return programs["cortex-m55/ds_cnn"]


def test_longer_operator_name(ds_cnn: Path, tmp_path: Path) -> None:
    def edit(data: dict[str, Any], _: bytearray) -> None:
        operator = data["execution_plan"][0]["operators"][0]
        operator["name"] += "_with_a_longer_name"

    found = planted(ds_cnn, tmp_path, edit)
    assert any("operator name" in s and "with_a_longer_name" in s for s in told(found)[:2])


def test_one_more_constant(ds_cnn: Path, tmp_path: Path) -> None:
    def edit(data: dict[str, Any], segments: bytearray) -> None:
        segment = data["segments"][data["constant_segment"].get("segment_index", 0)]
        offset = -(-segment["size"] // 16) * 16
        segments[segment["size"] :] = bytes(offset - segment["size"]) + b"\7" * 480
        segment["size"] = offset + 480
        offsets = data["constant_segment"]["offsets"]
        offsets.append(offset)
        data["execution_plan"][0]["values"].append(
            {
                "val_type": "Tensor",
                "val": {
                    "scalar_type": "CHAR",
                    "sizes": [480],
                    "dim_order": [0],
                    "data_buffer_idx": len(offsets) - 1,
                },
            }
        )

    first = told(planted(ds_cnn, tmp_path, edit))[0]
    assert first == "+480 B: added the constant tensor int8[480] (no instruction uses it)."


def test_bigger_scratch_buffer(ds_cnn: Path, tmp_path: Path) -> None:
    """The scratch tensor of a convolution, which is no part of the file."""

    def edit(data: dict[str, Any], _: bytearray) -> None:
        plan = data["execution_plan"][0]
        tensors = [v["val"] for v in plan["values"] if v["val_type"] == "Tensor"]
        bytes_ = [t for t in tensors if t.get("scalar_type", "BYTE") == "BYTE"]
        scratch = max(bytes_, key=lambda t: int(t["sizes"][0]))
        where = scratch["allocation_info"].get("memory_offset_low", 0)
        size = plan["non_const_buffer_sizes"][1] - where + 5000
        scratch["sizes"] = [size]
        plan["non_const_buffer_sizes"][1] = where + size

    found = planted(ds_cnn, tmp_path, edit)
    first = sentences(found.memory, 1)[0]
    assert "uint8[" in first
    assert "conv2d" in first
    assert "planned buffer 1" in first


def test_bigger_npu_scratch(programs: dict[str, Path], tmp_path: Path) -> None:
    def edit(data: dict[str, Any], _: bytearray) -> None:
        blob = bytearray(data["backend_delegate_data"][0]["data"])
        block = next(b for b in walk(blob) if b.name == "scratch_size")
        (size,) = struct.unpack_from("<I", blob, block.data)
        struct.pack_into("<I", blob, block.data, size + 4096)
        data["backend_delegate_data"][0]["data"] = list(blob)

    found = planted(programs["ethos-u85-256/resnet8"], tmp_path, edit)
    assert found.delta == 0
    assert sentences(found.memory, 1)[0].startswith("+4096 B: working memory in NPU scratch")


def test_debug_handles_left_in(ds_cnn: Path, tmp_path: Path) -> None:
    def edit(data: dict[str, Any], _: bytearray) -> None:
        chain = data["execution_plan"][0]["chains"][0]
        frame = {"filename": "model.py", "lineno": 7, "name": "forward", "context": "x + y"}
        chain["stacktrace"] = [{"items": [frame]} for _ in chain["instructions"]]

    first = told(planted(ds_cnn, tmp_path, edit))[0]
    assert "debug information (stack traces)" in first


def test_re_encoded_weights(programs: dict[str, Path], tmp_path: Path) -> None:
    """The last weights of the stream get 512 bytes longer, as a worse encoding would."""

    def edit(data: dict[str, Any], _: bytearray) -> None:
        blob = bytes(data["backend_delegate_data"][0]["data"])
        found = list(walk(blob))
        commands = next(b for b in found if b.name == "cmd_data")
        weights = next(b for b in found if b.name == "weight_data")
        stream = bytearray(blob[commands.data : commands.data + commands.length])
        spans = pte.constant_uses(memoryview(stream))
        assert spans is not None
        (start, end) = max(s for s, name in spans.items() if name == 0)
        at = stream.rindex(struct.pack("<II", 0x4021, end - start)) + 4
        struct.pack_into("<I", stream, at, end - start + 512)
        length = struct.pack("<I", weights.length + 512)
        longer = blob[weights.data : weights.data + weights.length] + b"\1" * 512
        longer += bytes(-len(longer) % 16)
        data["backend_delegate_data"][0]["data"] = list(
            blob[: commands.data]
            + stream
            + blob[commands.data + commands.length : weights.start]
            + blob[weights.start : weights.start + 16]
            + length
            + blob[weights.start + 20 : weights.data]
            + longer
            + blob[weights.end :]
        )

    first = told(planted(programs["ethos-u85-256/resnet8"], tmp_path, edit))[0]
    assert first.startswith("+512 B: the encoded weights of EthosUBackend grew")
