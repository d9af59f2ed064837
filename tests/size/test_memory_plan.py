"""Protects programs from tensors that share memory: each planted fault is found and named, and no
sound plan is refused.

Every fault is one place that is moved in a program that is sound.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import MalformedFile
from harness.core.verdict import Verdict
from harness.size.memory_plan import MemoryPlanError, memory_plans, require_sound_plan
from tests.size.mutations import mutations
from tests.size.plan_samples import (
    NOTHING,
    Value,
    delegate,
    jump_unless,
    kernel,
    method,
    move,
    planned,
    program,
)
from tests.size.samples import flatc, tensor

ADD, CONV, COPY, COPY_INDEX, VIEW, TOPK = range(6)
TRUE: Value = {"val_type": "Bool", "val": {"bool_val": True}}


@dataclass(frozen=True)
class Plant:
    """A sound method, and the offset that makes it wrong: of value ``moved``. ``text``: what is
    said then."""

    sound: Value
    moved: int
    offset: int
    text: str


def plants() -> dict[str, Plant]:
    # x and y stay needed: the third instruction adds what the first made to what the second made
    residual = [
        kernel(ADD, 0, 0, 1, 1),
        kernel(ADD, 1, 1, 2, 2),
        kernel(ADD, 1, 2, 3, 3),
    ]
    four = [planned(0), planned(16), planned(32), planned(0)]
    three = [planned(0), planned(16), planned(32)]
    listed = {"val_type": "TensorList", "val": {"items": [1, 2]}}
    branches = [
        jump_unless(1, 3),
        kernel(ADD, 0, 0, 2, 2),
        jump_unless(5, 4),
        kernel(ADD, 0, 0, 3, 3),
    ]
    loop = [
        kernel(ADD, 0, 0, 2, 2),
        kernel(ADD, 2, 2, 3, 3),
        kernel(COPY_INDEX, 1, 3, 4),
        kernel(ADD, 4, 4, 5),
        jump_unless(5, 0),
    ]
    flag = {"val_type": "Bool", "val": {"bool_val": False}}
    return {
        "a tensor that is read later": Plant(
            method(four, residual, outputs=[3]),
            2,
            16,
            r"^value 1 \[0x10, 0x20\) of buffer 1 is overwritten by instruction 1 "
            r"\(aten::add.out\), which reads it; that writes value 2 \[0x10, 0x20\) of buffer 1$",
        ),
        "an input that is read later": Plant(
            method(
                [planned(0), planned(16), planned(32)],
                [kernel(ADD, 1, 1, 2, 2), kernel(ADD, 0, 1, 2, 2)],
                inputs=[0, 1],
                outputs=[2],
            ),
            2,
            8,
            r"value 0 \[0x0, 0x10\) of buffer 1 is overwritten by instruction 0 \(aten::add.out\) "
            r"while instruction 1 \(aten::add.out\) still reads it; that writes value 2",
        ),
        "one input over another": Plant(
            method([planned(0), planned(16), planned(32)], [kernel(ADD, 0, 1, 2, 2)], [0, 1], [2]),
            1,
            15,
            r"value 1 .* is overwritten by the method's inputs while instruction 0 .* still reads",
        ),
        "an output of the method": Plant(
            method(three, [kernel(ADD, 0, 0, 1, 1), kernel(ADD, 0, 0, 2, 2)], outputs=[1, 2]),
            2,
            16,
            "value 1 .* overwritten by instruction 1 .*, although it is an output of the method; "
            "that writes value 2",
        ),
        "scratch over an operand": Plant(
            method(
                [planned(0), planned(16, scalar_type="BYTE"), planned(32)],
                [kernel(CONV, 0, 1, 2, 2)],
                outputs=[2],
            ),
            1,
            0,
            r"value 0 .* overwritten by instruction 0 \(cortex_m::quantized_conv2d.out\)"
            ", which reads it; that writes value 1",
        ),
        "scratch over the result": Plant(
            method(
                [planned(0), planned(16, scalar_type="BYTE"), planned(32)],
                [kernel(CONV, 0, 1, 2, 2)],
                outputs=[2],
            ),
            1,
            40,
            "value 2 .* overwritten by instruction 0 .* it is an output of the method; "
            "that writes value 1",
        ),
        "two results of one operator": Plant(
            method([*three, listed], [kernel(TOPK, 0, 1, 2, 3)], outputs=[1, 2]),
            2,
            24,
            "value 2 .* overwritten by instruction 0 .* although it is an output",
        ),
        "a result that nothing reads": Plant(
            method([*three, listed], [kernel(TOPK, 0, 1, 2, 3)], outputs=[1]),
            2,
            24,
            "value 1 .* overwritten by instruction 0 .* although it is an output",
        ),
        "a delegate's output over its input": Plant(
            method(three, [delegate(0, 1, 2)], outputs=[1, 2]),
            1,
            0,
            r"value 0 .* overwritten by instruction 0 \(delegate NpuBackend\), which reads it",
        ),
        "a delegate's output over a tensor beside it": Plant(
            method(
                [planned(0), planned(16), planned(32), planned(48)],
                [kernel(ADD, 0, 0, 1, 1), delegate(0, 2), kernel(ADD, 1, 2, 3, 3)],
                outputs=[3],
            ),
            2,
            20,
            r"value 1 .* overwritten by instruction 1 \(delegate NpuBackend\) while instruction 2",
        ),
        "two outputs of a delegate": Plant(
            method(three, [delegate(0, 1, 2)], outputs=[1, 2]), 2, 16, "value 2 .* instruction 0"
        ),
        "what a delegate reads": Plant(
            method(
                four,
                [kernel(ADD, 0, 0, 1, 1), kernel(ADD, 0, 0, 2, 2), delegate(1, 2, 3)],
                outputs=[3],
            ),
            2,
            31,
            r"value 1 .* instruction 1 .* while instruction 2 \(delegate NpuBackend\) still reads",
        ),
        "a mutable buffer": Plant(
            method(
                [planned(0), planned(16), planned(32)],
                [kernel(ADD, 0, 1, 2, 2), kernel(COPY, 0, 2, 5, 0)],
                inputs=[1],
                outputs=[2],
            )
            | {"values": [planned(0), planned(16), planned(32), NOTHING, NOTHING, NOTHING]},
            2,
            8,
            "value 0 .* overwritten by instruction 0 .* which reads it",
        ),
        "a mutable buffer that the next run needs": Plant(
            method(
                [planned(0), planned(16), planned(32), planned(48)],
                [kernel(ADD, 1, 1, 2, 2), kernel(COPY, 0, 2, 1, 0), kernel(ADD, 2, 2, 3, 3)],
                inputs=[1],
                outputs=[3],
            ),
            3,
            0,
            "value 0 .* overwritten by instruction 2 .* although it is a mutable buffer, which the "
            "next run needs",
        ),
        "what a view shows": Plant(
            # 3 is a view of 1, and read when 2 is there
            method(
                [planned(0), planned(16), planned(32), planned(32), planned(48)],
                [kernel(ADD, 0, 0, 2, 2), kernel(ADD, 0, 0, 4, 4), kernel(ADD, 3, 4, 1, 1)],
                outputs=[1],
            ),
            4,
            40,
            "value 2 .* overwritten by instruction 1 .* while instruction 2 .* still reads it",
        ),
        "a view of nothing": Plant(
            method(
                [planned(0), planned(16), planned(32), planned(32)],
                [kernel(ADD, 0, 0, 2, 2), kernel(ADD, 3, 3, 1, 1)],
                outputs=[1],
            ),
            3,
            40,
            r"value 3 \[0x28, 0x38\) .* is read by instruction 1 .*, and nothing writes it",
        ),
        "a view made at run time": Plant(
            method(
                [planned(0), planned(16), tensor([16]), planned(32), planned(48)],
                [
                    kernel(ADD, 0, 0, 1, 1),
                    kernel(VIEW, 1, 0, 2),
                    kernel(ADD, 0, 0, 3, 3),
                    kernel(ADD, 2, 3, 4, 4),
                ],
                outputs=[4],
            ),
            3,
            16,
            "value 1 .* overwritten by instruction 2 .* while instruction 3 .* still reads it",
        ),
        "a tensor that both branches need": Plant(
            method(
                [planned(0), planned(16), planned(32), planned(32), planned(48), flag],
                [kernel(ADD, 0, 0, 4, 4), *_moved(branches, 1)],
                inputs=[0, 1],
                outputs=[4],
            ),
            3,
            48,
            "value 4 .* overwritten by instruction 4 .* although it is an output",
        ),
        "what a branch hands on": Plant(
            # 6 stands for 2 or 3, which may share bytes
            method(
                [
                    planned(0),
                    planned(16),
                    planned(32),
                    planned(32),
                    planned(48),
                    flag,
                    tensor([16]),
                ],
                [
                    jump_unless(1, 4),
                    kernel(ADD, 0, 0, 2, 2),
                    move(2, 6),
                    jump_unless(5, 6),
                    kernel(ADD, 0, 0, 3, 3),
                    move(3, 6),
                    kernel(ADD, 0, 0, 4, 4),
                    kernel(ADD, 4, 6, 1, 1),
                ],
                inputs=[0, 1],
                outputs=[1],
            ),
            4,
            44,
            "value 6 .* overwritten by instruction 6 .* while instruction 7 .* still reads it",
        ),
        "what the next round of a loop reads": Plant(
            method(
                [planned(0), planned(16), planned(32), planned(48), NOTHING, flag],
                loop,
                outputs=[1],
            ),
            3,
            0,
            "value 0 .* overwritten by instruction 1 .* while instruction 0 .* still reads it",
        ),
        "what a loop gathers": Plant(
            method(
                [planned(0), planned(16), planned(32), planned(48), NOTHING, flag],
                loop,
                outputs=[1],
            ),
            2,
            16,
            "value 1 .* overwritten by instruction 0 .* while instruction 2",
        ),
        "the end of its buffer": Plant(
            method(four, residual, outputs=[3]),
            2,
            49,
            r"value 2 \[0x31, 0x41\) of buffer 1 ends outside its buffer, which has 0x40 bytes",
        ),
        "the bytes of wide elements": Plant(
            method(
                [planned(0), planned(16, 4, scalar_type="INT"), planned(32)],
                [kernel(ADD, 0, 0, 1, 1), kernel(ADD, 0, 0, 2, 2)],
                outputs=[1, 2],
            ),
            2,
            28,
            "value 1 .* overwritten by instruction 1 .*, although it is an output",
        ),
        "its alignment": Plant(
            method(
                [planned(0), planned(16, 4, scalar_type="INT")],
                [kernel(ADD, 0, 0, 1, 1)],
                outputs=[1],
            ),
            1,
            18,
            "value 1 .* is not aligned to 4 bytes",
        ),
    }


def _moved(instructions: list[Value], by: int) -> list[Value]:
    """With the destinations of jumps for ``by`` more instructions before them."""
    moved = deepcopy(instructions)
    for each in moved:
        if each["instr_args_type"] == "JumpFalseCall":
            each["instr_args"]["destination_instruction"] += by
    return moved


def shared() -> dict[str, Value]:
    """Sound methods in which tensors share bytes at different times, or share none."""
    flag = {"val_type": "Bool", "val": {"bool_val": False}}
    return {
        "what only the other branch reads": method(
            [planned(0), planned(16), planned(0), planned(32), flag, planned(48)],
            [
                jump_unless(1, 3),
                kernel(ADD, 1, 1, 2, 2),  # over value 0
                jump_unless(4, 4),
                kernel(ADD, 0, 0, 3, 3),
                kernel(ADD, 1, 1, 5, 5),
            ],
            inputs=[0, 1],
            outputs=[5],
        ),
        "what a copy writes anew": method(
            [planned(0), planned(16), planned(16), planned(32)],
            [
                kernel(ADD, 0, 0, 1, 1),
                kernel(ADD, 1, 1, 3, 3),
                kernel(ADD, 3, 3, 2, 2),  # over value 1
                kernel(ADD, 2, 2, 3, 3),
                kernel(COPY, 1, 3, 0, 1),
            ],
            outputs=[1],
        ),
        "a view of the last value at its place": method(
            [planned(0), planned(16), planned(32), planned(16), planned(16), planned(48)],
            [
                kernel(ADD, 0, 0, 1, 1),
                kernel(ADD, 1, 1, 2, 2),
                kernel(ADD, 2, 2, 3, 3),
                kernel(ADD, 4, 4, 5, 5),
            ],
            outputs=[5],
        ),
        "a view that a delegate reads": method(
            [planned(0), planned(16), planned(16), planned(32), planned(48)],
            [kernel(ADD, 0, 0, 1, 1), delegate(2, 3), kernel(ADD, 1, 3, 4, 4)],
            outputs=[4],
        ),
        "an output of a delegate at the place of an input that nothing reads": method(
            [planned(0), planned(16), planned(32), planned(0), planned(48)],
            [delegate(1, 2, 3, 4)],
            inputs=[0, 1],
            outputs=[2, 3, 4],
        ),
        "two buffers": method(
            [planned(0), planned(0, buffer=2)],
            [kernel(ADD, 0, 0, 1, 1)],
            outputs=[1],
            sizes=[0, 16, 16],
        ),
        "inputs that nothing reads": method(
            [planned(0), planned(16), planned(32)], [kernel(ADD, 1, 1, 2, 2)], [0, 1], [1, 2]
        ),
    }


PLANTS, SHARED = plants(), shared()


def written(folder: Path, *methods: Value) -> Path:
    file = folder / "program.pte"
    file.write_bytes(program(*methods))
    return file


def faults(file: Path, **how: Any) -> list[str]:
    return [fault.text for plan in memory_plans(file, **how) for fault in plan.faults]


def placed(sound: Value, value: int, offset: int, high: int = 0, buffer: int = 1) -> Value:
    changed = deepcopy(sound)
    place = changed["values"][value]["val"]["allocation_info"]
    place |= {"memory_offset_low": offset, "memory_offset_high": high, "memory_id": buffer}
    return changed


@pytest.mark.parametrize("name", PLANTS)
def test_a_tensor_over_another_is_found(tmp_path: Path, name: str) -> None:
    plant = PLANTS[name]
    assert faults(written(tmp_path, plant.sound)) == []
    texts = faults(written(tmp_path, placed(plant.sound, plant.moved, plant.offset)))
    assert any(re.search(plant.text, text) for text in texts), texts


@pytest.mark.parametrize("name", SHARED)
def test_bytes_that_are_shared_in_turn_are_no_fault(tmp_path: Path, name: str) -> None:
    assert faults(written(tmp_path, SHARED[name])) == []


SOUND = PLANTS["a tensor that is read later"].sound


def test_the_high_word_of_an_offset_counts(tmp_path: Path) -> None:
    (text,) = faults(written(tmp_path, placed(SOUND, 2, 32, high=1)))
    place = "[0x100000020, 0x100000030) of buffer 1"
    assert text == f"value 2 {place} ends outside its buffer, which has 0x40 bytes"


@pytest.mark.parametrize("buffer", [0, 2])
def test_a_buffer_that_is_not_there_has_no_place(tmp_path: Path, buffer: int) -> None:
    (text,) = faults(written(tmp_path, placed(SOUND, 2, 32, buffer=buffer)))
    assert f"of buffer {buffer} ends outside its buffer, which has 0x0 bytes" in text


def test_the_alignment_of_a_planner_that_is_known_holds(tmp_path: Path) -> None:
    file = written(tmp_path, placed(SOUND, 2, 40))
    assert faults(file) == []
    assert faults(file, alignment=16) == [
        "value 2 [0x28, 0x38) of buffer 1 is not aligned to 16 bytes"
    ]


def test_each_method_is_checked(tmp_path: Path) -> None:
    other = {**placed(SOUND, 2, 16), "name": "other"}
    first, second = memory_plans(written(tmp_path, SOUND, other))
    assert (first.method, first.faults) == ("forward", ())
    assert (second.method, len(second.faults)) == ("other", 1)


def test_the_program_in_a_bundle_is_checked(tmp_path: Path) -> None:
    bundle = tmp_path / "program.bpte"
    for offset, count in ((32, 0), (16, 1)):
        inner = [*program(placed(SOUND, 2, offset))]
        bundle.write_bytes(
            flatc("devtools/bundled_program/schema/bundled_program_schema.fbs", {"program": inner})
        )
        assert len(faults(bundle)) == count


def test_the_error_says_who_and_where_as_data(tmp_path: Path) -> None:
    file = written(tmp_path, placed(SOUND, 1, 32))
    with pytest.raises(MemoryPlanError) as raised:
        require_sound_plan(file, ["first", "second", "third"])
    error = raised.value
    assert (error.kind, error.verdict) == ("memory_plan", Verdict.EXPORT_ERROR)
    assert error.message == (
        "the memory plan is wrong: value 1 [0x20, 0x30) of buffer 1 is overwritten by instruction "
        "1 (aten::add.out, second), which reads it; that writes value 2 [0x20, 0x30) of buffer 1"
    )
    facts = {name: error.facts[name] for name in ("value", "instruction", "reader", "layer")}
    assert facts == {"value": 1, "instruction": 1, "reader": 1, "layer": "second"}
    assert f"hil size {file} --html" in str(error.hint)


def test_a_damaged_program_is_left_to_its_runner(tmp_path: Path) -> None:
    sound = deepcopy(SOUND)
    sound["chains"][0]["instructions"][0]["instr_args"]["args"] = [0, 99]
    file = written(tmp_path, sound)
    with pytest.raises(MalformedFile, match="contradicts itself"):
        memory_plans(file)
    require_sound_plan(file)
    (tmp_path / "x.elf").write_bytes(b"\x7fELF" + bytes(60))
    assert memory_plans(tmp_path / "x.elf") == ()


def test_random_damage_is_survived(tmp_path: Path) -> None:
    """Whatever the bytes are, a plan or MalformedFile (seed 7)."""
    file, sound, damaged = tmp_path / "x.pte", 0, 0
    whole = program(
        *(PLANTS[name].sound for name in ("what a loop gathers", "what a branch hands on"))
    )
    for _, content in mutations(whole, 400, seed=7):
        file.write_bytes(content)
        try:
            sound += bool(memory_plans(file))
        except MalformedFile:
            damaged += 1
    assert min(sound, damaged) > 20


def test_values_that_view_each_other_end(tmp_path: Path) -> None:
    """A hostile file must not keep the reader for ever."""
    values = [planned(0), tensor([16]), tensor([16])]
    views = [kernel(VIEW, 1, 0, 2), kernel(VIEW, 2, 0, 1), kernel(ADD, 1, 2, 0, 0)]
    moves = [move(1, 2), move(2, 1), kernel(ADD, 1, 2, 0, 0)]
    for instructions in (views, moves):
        assert faults(written(tmp_path, method(values, instructions, outputs=[1]))) == []


def test_the_peak_names_who_makes_it(tmp_path: Path) -> None:
    (plan,) = memory_plans(written(tmp_path, SOUND), ["first"])
    (buffer,) = plan.buffers
    assert plan.instructions == ("aten::add.out, first", "aten::add.out", "aten::add.out")
    assert buffer.needed == (16, 32, 32, 48, 16)
    assert (buffer.bytes, buffer.instruction, buffer.values) == (64, 2, (1, 2, 3))
    made = {life.value: (life.maker, life.first, life.last) for life in plan.tensors}
    assert made[0] == ("input 0", -1, 0)
    assert made[1] == ("aten::add.out, first", 0, 2)
    assert made[3] == ("aten::add.out", 2, 3)
