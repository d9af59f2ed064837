"""What an exported graph computes is kept with a program, and found in what a runner gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.export.graph_values import GraphValues, row_of, write_values
from harness.export.program import Program

FLOATS = np.linspace(-1, 3, 24, dtype=np.float32).reshape(2, 3, 4)
INTEGERS = np.arange(24, dtype=np.int8).reshape(2, 3, 4)
NAN = np.asarray(np.nan, np.float32)


@pytest.fixture
def graph(tmp_path: Path) -> GraphValues:
    name = write_values(tmp_path, [row_of(value) for value in (FLOATS, INTEGERS, NAN)])
    return GraphValues(tmp_path / name)


def test_what_is_there(graph: GraphValues) -> None:
    nearly = FLOATS * np.float32(1 + 2e-7)
    assert graph.have(FLOATS)
    assert graph.have(FLOATS, exactly=True)
    assert graph.have(nearly)
    assert not graph.have(nearly, exactly=True)
    assert graph.have(INTEGERS)
    assert graph.have(NAN)
    strided = np.ascontiguousarray(INTEGERS.transpose(2, 0, 1)).transpose(1, 2, 0)
    assert graph.have(strided, exactly=True)  # only logical order counts


@pytest.mark.parametrize(
    "other",
    [
        FLOATS * np.float32(1.0001),
        FLOATS[::-1],
        FLOATS.reshape(3, 2, 4),
        FLOATS.transpose(0, 2, 1).reshape(2, 3, 4),
        np.where(FLOATS[1, 1, 1] == FLOATS, 0, FLOATS).astype(np.float32),
        np.where(FLOATS[1, 1, 1] == FLOATS, np.nan, FLOATS).astype(np.float32),
        INTEGERS + np.int8(1),
        INTEGERS.astype(np.uint8),
        INTEGERS.transpose(0, 2, 1).reshape(2, 3, 4),
    ],
)
def test_what_is_not_there(graph: GraphValues, other: Any) -> None:
    assert not graph.have(other)
    assert not graph.have(other, exactly=True)


def test_one_wrong_element_of_many_is_not_a_last_bit(tmp_path: Path) -> None:
    many = np.random.default_rng(5).standard_normal(100_000).astype(np.float32)
    graph = GraphValues(tmp_path / write_values(tmp_path, [row_of(many)]))
    noise = many * (1 + 3e-7 * np.random.default_rng(6).standard_normal(many.size))
    assert graph.have(noise.astype(np.float32))
    wrong = many.copy()
    wrong[77_777] += 0.05
    assert not graph.have(wrong)


@pytest.mark.parametrize("target", ["cortex-m55", "ethos-u55-128"])
def test_the_outputs_of_a_program_are_among_its_values(
    exported: Callable[..., Program], target: str
) -> None:
    program = exported("add", target)
    graph = GraphValues(program.directory / program.values)
    assert program.values in program.file_names()
    (spec,) = program.outputs
    for each in program.sets:
        assert graph.have(
            spec.decode((program.directory / each.expected[0]).read_bytes()), exactly=True
        )
