"""What the anatomy of program files protects: every byte is counted once, under the right name."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import flatbuffers
import pytest

from harness.core.errors import MalformedFile, UsageError
from harness.size.anatomy import Anatomy
from harness.size.measure import measure_file
from tests.size.samples import (
    CONSTANTS,
    flatc,
    make_pte,
    program,
    sample_pte,
    tensor,
    vela_blob,
)


def measured(tmp_path: Path, data: bytes) -> Anatomy:
    file = tmp_path / "file.bin"
    file.write_bytes(data)
    anatomy = measure_file(file)
    assert anatomy.total == len(data) == sum(p.bytes for p in anatomy.parts)
    assert min(p.bytes for p in anatomy.parts) > 0
    return anatomy


def sizes(anatomy: Anatomy) -> dict[tuple[str, ...], int]:
    return {p.path: p.bytes for p in anatomy.parts}


def test_every_byte_has_an_owner(tmp_path: Path) -> None:
    """Nothing of a plain program is unknown or unreferenced."""
    anatomy = measured(tmp_path, sample_pte())
    assert anatomy.unknown == 0
    assert anatomy.under("unreferenced") == 0


def test_constants_have_the_names_and_sizes_of_their_tensors(tmp_path: Path) -> None:
    """Names come from the tensors, padding between constants is not data."""
    found = sizes(measured(tmp_path, sample_pte()))
    assert found["constants", "fc.weight"] == 64
    assert found["constants", "int32[3] (no instruction uses it)"] == 12
    assert found["padding", "between constants"] == 16


def test_kinds_of_the_program_table(tmp_path: Path) -> None:
    """Operators, strings, names, debug data and instructions are told apart."""
    found = sizes(measured(tmp_path, sample_pte()))
    forward = ("program", "forward")
    for path in [
        (*forward, "operators", "my::linear.out"),
        (*forward, "strings", "hello"),
        (*forward, "names", "fc.weight"),
        (*forward, "debug", "container metadata"),
        (*forward, "instructions", "my::linear.out"),
        (*forward, "values", "Int"),
    ]:
        assert found.get(path, 0) > 0, path


def test_planned_memory_adds_up_to_the_buffer(tmp_path: Path) -> None:
    """The memory view names the tensor and its operator, and sums to the buffer's size."""
    anatomy = measured(tmp_path, sample_pte())
    assert sum(p.bytes for p in anatomy.memory) == 64
    names = {p.path[-1] for p in anatomy.memory}
    assert names == {"int8[4,8] of my::linear.out"}


def test_overlapping_planned_tensors_count_once(tmp_path: Path) -> None:
    """Two tensors in the same place: the larger one is why the buffer has its size."""
    values = [tensor([50], planned=0), tensor([20], planned=10)]
    anatomy = measured(tmp_path, sample_pte(values=values, chains=[], inputs=[], outputs=[]))
    assert {p.path[-1]: p.bytes for p in anatomy.memory} == {"int8[50]": 50, "gap": 14}


def test_unreferenced_segment_is_named(tmp_path: Path) -> None:
    """Bytes that no field refers to are found, not hidden in padding."""
    data = program()
    data["segments"].append({"offset": 128, "size": 40})
    anatomy = measured(tmp_path, make_pte(data, CONSTANTS.ljust(128, b"\0") + b"x" * 40))
    assert sizes(anatomy)["unreferenced", "segment 1"] == 40


def test_trailing_bytes_are_unreferenced(tmp_path: Path) -> None:
    """Something glued to the end of a file is no padding."""
    anatomy = measured(tmp_path, sample_pte() + b"secret")
    assert sizes(anatomy)["unreferenced", "end of file"] == 6


def test_named_data(tmp_path: Path) -> None:
    """Named data is counted by its key."""
    data = program()
    data["segments"].append({"offset": 128, "size": 40})
    data["named_data"] = [{"key": "weights-of-x", "segment_index": 1}]
    anatomy = measured(tmp_path, make_pte(data, CONSTANTS.ljust(128, b"\0") + b"x" * 40))
    assert sizes(anatomy)["named data", "weights-of-x"] == 40
    assert ("program", "named data keys", "weights-of-x") in sizes(anatomy)


def delegated(blob: bytes, **spec: Any) -> dict[str, Any]:
    data = program(
        delegates=[
            {
                "id": "EthosUBackend",
                "processed": {"location": "INLINE", "index": 0},
                "compile_specs": [{"key": "target", "value": list(b"ethos-u55-128")}],
            }
        ]
    )
    return {**data, "backend_delegate_data": [{"data": list(blob)}], **spec}


def test_vela_stream_is_split(tmp_path: Path) -> None:
    """Weights and scales are told apart by what the command stream uses them for."""
    anatomy = measured(tmp_path, make_pte(delegated(vela_blob()), CONSTANTS))
    found = sizes(anatomy)
    ours = ("delegates", "EthosUBackend")
    assert found[(*ours, "weights")] == 32
    assert found[(*ours, "scales")] == 16
    assert found[(*ours, "other constants")] == 16
    assert found[(*ours, "inputs")] == found[(*ours, "outputs")] == 40
    assert found[(*ours, "block headers")] == 7 * 32
    assert ("program", "forward", "compile specs", "EthosUBackend", "target") in found
    assert anatomy.memory[-1].bytes == 128


def test_a_broken_vela_stream_is_one_opaque_part(tmp_path: Path) -> None:
    """A blob that is no Vela stream still counts."""
    anatomy = measured(tmp_path, make_pte(delegated(b"not vela at all"), CONSTANTS))
    assert sizes(anatomy)["delegates", "EthosUBackend", "opaque"] == 15


def test_delegate_in_a_segment(tmp_path: Path) -> None:
    """The same split when the blob is a segment of its own."""
    blob = vela_blob()
    data = delegated(b"", backend_delegate_data=[])
    data["execution_plan"][0]["delegates"][0]["processed"] = {"location": "SEGMENT", "index": 1}
    data["segments"].append({"offset": 128, "size": len(blob)})
    anatomy = measured(tmp_path, make_pte(data, CONSTANTS.ljust(128, b"\0") + blob))
    assert sizes(anatomy)["delegates", "EthosUBackend", "weights"] == 32


def test_a_constant_names_the_layer_that_its_export_recorded(tmp_path: Path) -> None:
    """Beside a program of the cache, and in the directory of its run; of another program never."""
    data = sample_pte()
    file = tmp_path / "work" / "program.pte"
    (tmp_path / "expected").mkdir()
    file.parent.mkdir()
    file.write_bytes(data)
    record = {"pte_sha256": hashlib.sha256(data).hexdigest(), "layers": ["body.fc"]}
    other = json.dumps({**record, "pte_sha256": "0" * 64})
    user = ("constants", "fc.weight")
    assert measure_file(file).users[user] == "linear.out"
    for place in (file.with_name("program.json"), tmp_path / "expected" / "program.json"):
        for text, name in (
            (json.dumps(record), "linear.out (body.fc)"),
            (other, "linear.out"),
            ("{", "linear.out"),
        ):
            place.write_text(text)
            assert measure_file(file).users[user] == name


def test_old_inline_constants(tmp_path: Path) -> None:
    """Programs of 2023 keep constants inside the FlatBuffer."""
    data = program()
    del data["constant_segment"], data["segments"]
    data["constant_buffer"] = [{"storage": []}, {"storage": [1] * 64}, {"storage": [2] * 12}]
    anatomy = measured(tmp_path, make_pte(data))
    assert sizes(anatomy)["constants", "fc.weight"] == 64


def test_bundle(tmp_path: Path) -> None:
    """A .bpte counts its test cases and, byte for byte, the program inside."""
    inner = sample_pte()
    value = {"val_type": "Tensor", "val": {"scalar_type": "CHAR", "sizes": [4], "data": [1] * 4}}
    suite = {
        "method_name": "forward",
        "test_cases": [{"inputs": [value], "expected_outputs": [value]}],
    }
    bundle = flatc(
        "devtools/bundled_program/schema/bundled_program_schema.fbs",
        {"version": 0, "method_test_suites": [suite], "program": list(inner)},
    )
    anatomy = measured(tmp_path, bundle)
    assert anatomy.kind == "bpte"
    assert anatomy.unknown == 0
    assert anatomy.under("bundle", "forward", "test case 0", "inputs") > 20
    assert anatomy.under("constants") == 76


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda d: b"", "is empty"),
        (lambda d: d[:10], "bytes are too few"),
        (lambda d: d[:300], "past the end"),
        (lambda d: d[:-20], "the file is truncated"),
        (lambda d: d[:4] + b"ET11" + d[8:], "not an ET12 file"),
        (lambda d: struct.pack("<I", 2**31) + d[4:], "leads out of"),
        (lambda d: struct.pack("<I", 0) + d[4:], "points to itself"),
        (lambda d: d[:12] + struct.pack("<I", 5) + d[16:], "an extended header of 5 bytes"),
    ],
)
def test_damage_is_reported_with_its_offset(tmp_path: Path, damage: Any, says: str) -> None:
    """A damaged file ends in one error that says what is wrong and where."""
    file = tmp_path / "x.pte"
    file.write_bytes(damage(sample_pte()))
    with pytest.raises(MalformedFile, match=says) as caught:
        measure_file(file)
    assert isinstance(caught.value.facts["offset"], int)
    assert "at offset" in caught.value.message


@pytest.mark.parametrize(
    ("vectors", "says"),
    [(1, "a vector of 400,000 elements"), (4, "more than 300,000 tables, vectors and strings")],
)
def test_a_file_of_too_many_parts_is_refused(tmp_path: Path, vectors: int, says: str) -> None:
    """8 MB of empty tables took 350 MB of memory."""
    build, plans = flatbuffers.Builder(1 << 20), []
    for _ in range(vectors):
        tables = []
        for _ in range(400_000 // vectors):
            build.StartObject(2)
            tables.append(build.EndObject())
        build.StartVector(4, len(tables), 4)
        for table in tables:
            build.PrependUOffsetTRelative(table)
        values = build.EndVector()
        build.StartObject(8)
        build.PrependUOffsetTRelativeSlot(2, values, 0)  # ExecutionPlan.values
        plans.append(build.EndObject())
    build.StartVector(4, vectors, 4)
    for plan in plans:
        build.PrependUOffsetTRelative(plan)
    plan_vector = build.EndVector()
    build.StartObject(8)
    build.PrependUOffsetTRelativeSlot(1, plan_vector, 0)  # Program.execution_plan
    build.Finish(build.EndObject(), file_identifier=b"ET12")
    file = tmp_path / "x.pte"
    file.write_bytes(build.Output())
    with pytest.raises(MalformedFile, match=says):
        measure_file(file)


def test_a_file_of_another_kind_is_the_users_mistake(tmp_path: Path) -> None:
    file = tmp_path / "x.pte"
    file.write_bytes(b"GIF89a\0\0" + sample_pte()[8:])
    with pytest.raises(UsageError, match=r"not a \.pte, \.bpte or ELF") as caught:
        measure_file(file)
    assert caught.value.identifier == repr(b"9a\0\0")


def test_cop2_container(tmp_path: Path) -> None:
    """The newer container of command streams: the same split."""
    blob = vela_blob()
    start = blob.index(b"COP1")
    (length,) = struct.unpack_from("<I", blob, start - 16)
    commands = blob[start + 20 : start + length]
    metadata = struct.pack("<I4sIIIIIQ", 36, b"VEUM", 1, 0x14, 2 << 28, 0, 0, 0)
    payload = metadata + b"\xff" * 4 + commands
    stream = struct.pack("<4sIQII", b"COP2", 1, 8 + len(payload), 1, len(payload)) + payload
    stream_block = struct.pack("<16sIB11s", b"cmd_data", len(stream), 0, bytes(11)) + stream
    padded = stream_block + bytes(-len(stream) % 16)
    rest = start + length + -length % 16
    anatomy = measured(
        tmp_path, make_pte(delegated(blob[: start - 32] + padded + blob[rest:]), CONSTANTS)
    )
    assert sizes(anatomy)["delegates", "EthosUBackend", "weights"] == 32
    assert sizes(anatomy)["delegates", "EthosUBackend", "scales"] == 16
