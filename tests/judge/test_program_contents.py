"""What differs between two programs is named: the operator, and what of it.

Small programs are planted one difference each; ``tests/regression`` has the exporter's own.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import MalformedFile
from harness.judge.program_contents import (
    ProgramContents,
    difference,
    outline_difference,
    part_names,
)
from harness.judge.pte_contents import contents_of, difference_from
from harness.judge.reference import Reference, from_fields, render
from tests.size.samples import make_pte, tensor

WEIGHTS = bytes(range(64))
QUANTIZE = {"name": "cortex_m::quantize_per_tensor", "overload": "out"}
LINEAR = {"name": "cortex_m::quantized_linear", "overload": "out"}


def value(kind: str, content: Any) -> dict[str, Any]:
    return {"val_type": kind, "val": {f"{kind.lower()}_val": content}}


def call(operator: int, *arguments: int) -> dict[str, Any]:
    return {
        "instr_args_type": "KernelCall",
        "instr_args": {"op_index": operator, "args": list(arguments)},
    }


def fields(*, scale: float = 0.5, zero_point: int = -3, **plan: Any) -> dict[str, Any]:
    """float -> quantize -> linear -> linear, the second with the same weights."""
    values = [
        tensor([1, 8], planned=0, scalar_type="FLOAT"),
        value("Double", scale),
        value("Int", zero_point),
        value("Int", -128),
        value("Int", 127),
        tensor([1, 8], planned=32),
        tensor([8, 8], data=1),
        tensor([1, 8], planned=48),
        tensor([1, 8], planned=32),
        {"val_type": "IntList", "val": {"items": [3, 4]}},
        {"val_type": "Null", "val": {}},
    ]
    instructions = [
        call(0, 0, 1, 2, 3, 4, 3, 5, 5),
        call(1, 5, 6, 10, 9, 7, 7),
        call(1, 7, 6, 10, 9, 8, 8),
    ]
    forward = {
        "name": "forward",
        "container_meta_type": {"encoded_inp_str": "in", "encoded_out_str": "out"},
        "values": values,
        "inputs": [0],
        "outputs": [8],
        "operators": [QUANTIZE, LINEAR],
        "chains": [{"inputs": [0], "outputs": [8], "instructions": instructions}],
        "delegates": [],
        "non_const_buffer_sizes": [0, 64],
        **plan,
    }
    return {
        "version": 0,
        "execution_plan": [forward],
        "segments": [{"offset": 0, "size": 64}],
        "constant_segment": {"segment_index": 0, "offsets": [0, 0]},
    }


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """``made(fields, weights)``: the contents of such a program."""

    def make(program: Any = None, weights: bytes = WEIGHTS) -> ProgramContents:
        file = tmp_path / "program.pte"
        file.write_bytes(make_pte(program or fields(), weights))
        return contents_of(file)

    return make


def test_a_program_is_what_it_executes(made: Any) -> None:
    contents = made()
    assert [one[0] for one in contents.operators] == [
        "cortex_m::quantize_per_tensor.out",
        "cortex_m::quantized_linear.out",
        "cortex_m::quantized_linear.out",
    ]
    assert contents.operators[0][1:] == ("float32[1,8]", 0.5, -3, -128, 127, -128, "int8[1,8]")
    first, weight, bias, listed, out = contents.operators[1][1:]
    assert (first, bias, listed, out) == ("int8[1,8]", None, "[-128, 127]", "int8[1,8]")
    assert str(weight).startswith("int8[8,8] ")
    assert contents.memory == (0, 64)


def test_it_survives_the_accepted_file(made: Any) -> None:
    contents = made(fields(scale=float("1e-7")))
    accepted = Reference("aa", (), {}, {}, (), contents=contents)
    assert from_fields(json.loads(render(accepted))) == accepted


def changed_instructions(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"inputs": [0], "outputs": [8], "instructions": list(calls)}]


FIRST, SECOND, THIRD = fields()["execution_plan"][0]["chains"][0]["instructions"]
PLANTED: dict[str, tuple[dict[str, Any], bytes, str]] = {
    "a scale": (
        fields(scale=0.25),
        WEIGHTS,
        "cortex_m::quantize_per_tensor.out: scale is 0.25, was 0.5",
    ),
    "a zero point": (
        fields(zero_point=4),
        WEIGHTS,
        "cortex_m::quantize_per_tensor.out: zero_point is 4, was -3",
    ),
    "a weight's bytes": (
        fields(),
        b"\x01" + WEIGHTS[1:],
        "cortex_m::quantized_linear.out #1: weights int8[8,8] has other values; "
        "cortex_m::quantized_linear.out #2: weights int8[8,8] has other values",
    ),
    "an operator less": (
        fields(chains=changed_instructions(FIRST, call(1, 5, 6, 10, 9, 8, 8))),
        WEIGHTS,
        "cortex_m::quantized_linear.out #2 removed",
    ),
    "an operator more": (
        fields(chains=changed_instructions(FIRST, SECOND, THIRD, call(0, 0, 1, 2, 3, 4, 3, 5))),
        WEIGHTS,
        "cortex_m::quantize_per_tensor.out #2 added",
    ),
    "its inputs in another order": (
        fields(chains=changed_instructions(FIRST, SECOND, call(1, 5, 6, 10, 9, 8, 8))),
        WEIGHTS,
        "the same operators are connected in another way",
    ),
    "more memory": (
        fields(non_const_buffer_sizes=[0, 96]),
        WEIGHTS,
        "planned memory is 96 bytes, was 64 bytes",
    ),
    "debug text": (
        fields(container_meta_type={"encoded_inp_str": "a", "encoded_out_str": "longer"}),
        WEIGHTS,
        "only debug text or the layout of the file",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_difference_is_named(made: Any, name: str) -> None:
    program, weights, said = PLANTED[name]
    assert str(difference(made(), made(program, weights))) == said


def test_another_place_in_memory_is_said_when_nothing_else_differs(made: Any) -> None:
    before = made()
    assert (
        str(difference(before, replace(before, placement="other")))
        == "tensors have other places in the planned memory"
    )
    named = difference(before, replace(before, named_data="other"))
    assert str(named) == "the data that delegates share differs"


def test_many_changes_are_counted(made: Any) -> None:
    before = made()
    many = replace(before, operators=before.operators * 60)
    after = replace(many, operators=tuple((*one[:-1], "int8[9]") for one in many.operators))
    found = difference(many, after)
    assert found.changed == 180
    assert len(found.operators) == 40
    assert str(found).endswith("; 176 operators more")


def test_a_long_stretch_is_paired_in_order(made: Any) -> None:
    """Aligning by name takes a time that grows with the square of its length."""
    before = replace(made(), operators=tuple(("a", n) for n in range(500)))
    after = replace(before, operators=tuple(("b", n) for n in range(501)))
    assert difference(before, after).changed == 501


def test_outlines_name_the_operators(made: Any) -> None:
    """As a history keeps them: a few characters each."""
    before, after = made(), made(fields(scale=0.25))
    assert before.outline[0].startswith("cortex_m::quantize_per_tensor.out ")
    found = outline_difference(before.outline, after.outline)
    assert str(found) == "cortex_m::quantize_per_tensor.out changed"
    same = outline_difference(before.outline, before.outline)
    assert str(same) == "not its operators: memory plan, wiring or layout of the file"


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    said = str(difference_from(None, tmp_path / "any.pte"))
    assert said == "the accepted run kept nothing of its program to compare"


def test_a_damaged_program_is_said(made: Any, tmp_path: Path) -> None:
    before, damaged = made(), tmp_path / "damaged.pte"
    damaged.write_bytes(make_pte(fields(chains=changed_instructions(call(1, 77))), WEIGHTS))
    with pytest.raises(MalformedFile, match="contradicts itself"):
        contents_of(damaged)
    assert "contradicts itself" in str(difference_from(before, damaged))


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        ("cortex_m::quantize_per_tensor.out", ("input", "scale", "zero_point")),
        ("aten::avg_pool2d.out", ("self", "kernel_size", "stride")),
        ("my::own.out", ()),
    ],
)
def test_arguments_are_called_as_their_schema_has_them(
    operator: str, names: tuple[str, ...]
) -> None:
    assert part_names(operator)[:3] == names


# ---- the command stream of an Ethos-U

CONFIG_U55_128 = 0x00001807


def npu_stream(
    *, scale: int = 77, weights: bytes = bytes(32), base: int = 0, ends: bool = True
) -> bytes:
    """A pool that is scaled, and a convolution with 16 bytes of weights and 16 of scales."""
    stop = [0x0000] if ends else []
    words = [
        *(0x4024, scale),  # OFM_SCALE
        *(0x4000, base),  # IFM_BASE0
        0x0005,  # POOL
        *(0x4020, 0, 0x4021, 16, 0x0128),  # WEIGHT_BASE, WEIGHT_LENGTH, WEIGHT_REGION
        *(0x4022, 16, 0x4023, 16, 0x0129),  # SCALE_BASE, SCALE_LENGTH, SCALE_REGION
        0x0002,  # CONV
        *stop,
    ]
    # the optimiser's configuration with CONFIG and ID, then the commands at a multiple of 16
    commands = struct.pack("<4sIII", b"COP1", 1 | 2 << 28, CONFIG_U55_128, 0x10066001)
    commands += struct.pack("<III", 5, 5, 5) + struct.pack("<I", 2 | len(words) << 16)
    commands += struct.pack(f"<{len(words)}I", *words)

    def block(name: bytes, data: bytes) -> bytes:
        header = struct.pack("<16sIB11s", name, len(data), 0, bytes(11))
        return header + data + bytes(-len(data) % 16)

    io = struct.pack("<i9i", 1, 1, 1, 1, 1, 1, 8, 1, 0, 1)
    return b"".join(
        block(name, data)
        for name, data in (
            (b"vela_bin_stream", b""),
            (b"cmd_data", commands),
            (b"weight_data", weights),
            (b"scratch_size", struct.pack("<I", 128)),
            (b"inputs", io),
            (b"outputs", io),
            (b"vela_end_stream", b""),
        )
    )


def delegated(stream: bytes, backend: str = "EthosUBackend") -> dict[str, Any]:
    instruction = {
        "instr_args_type": "DelegateCall",
        "instr_args": {"delegate_index": 0, "args": [5, 7]},
    }
    program = fields(
        chains=changed_instructions(FIRST, instruction),
        delegates=[
            {
                "id": backend,
                "processed": {"location": "INLINE", "index": 0},
                "compile_specs": [{"key": "flags", "value": list(b"--x")}],
            }
        ],
    )
    return {**program, "backend_delegate_data": [{"data": list(stream)}]}


def test_the_operations_of_an_npu_are_a_programs_operators(made: Any) -> None:
    contents = made(delegated(npu_stream()))
    names = [one[0] for one in contents.operators]
    assert names[1:] == ["delegate EthosUBackend", "Ethos-U POOL", "Ethos-U CONV"]


STREAMS = {
    "a scale": (npu_stream(scale=78), "scale of the output is 78, was 77"),
    "weights": (npu_stream(weights=b"\1" + bytes(31)), "Ethos-U CONV: weights has other values"),
    "scales of channels": (
        npu_stream(weights=bytes(31) + b"\1"),
        "Ethos-U CONV: scales of the channels has other values",
    ),
    "an address": (npu_stream(base=16), "Ethos-U POOL: places in memory has other values"),
    "a stream that is not understood": (npu_stream(ends=False), "Ethos-U POOL removed"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_planted_difference_of_a_command_stream_is_named(made: Any, name: str) -> None:
    stream, said = STREAMS[name]
    assert said in str(difference(made(delegated(npu_stream())), made(delegated(stream))))


def test_another_backends_data_is_compared_as_a_whole(made: Any) -> None:
    before = made(delegated(b"one", "XnnpackBackend"))
    after = made(delegated(b"two", "XnnpackBackend"))
    assert str(difference(before, after)) == "delegate XnnpackBackend: data has other values"
