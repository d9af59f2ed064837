"""Making a graph smaller: only what is needed for the trouble is left, with the same values.

What is wrong is said here by a function, so that the search is tested alone;
``tests/npu/test_vela_defects.py`` has the defects of Vela itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs tosa-tools")

from harness.export.child.tosa_graph import part, read_graph, run_graph
from tests.late import Late
from tests.npu import tosa_layers, tosa_networks
from tests.npu.tosa_graph import INT16, Graph

localise = Late("harness.export.child.localise")
Array = np.ndarray
SEED = 31


def network() -> tosa_networks.Network:
    """A graph with more than one SLICE, so that one is left out and one stays."""
    for number in range(SEED, 400):
        made = tosa_networks.make(number, "ethos-u85-256")
        names = [o.name for o in read_graph(made.tosa).operators]
        if names.count("SLICE") > 1 and "RESCALE" in names:
            print(f"network {number}")
            return made
    raise AssertionError("no such network")


def smaller(wrong: Callable[[Sequence[str]], Any], tries: int = 200) -> Any:
    made = network()

    def trial(tosa: bytes, inputs: Sequence[Array]) -> Any:
        run_graph(tosa, inputs)  # the part is a graph that TOSA runs
        return wrong([o.name for o in read_graph(tosa).operators])

    return localise.reduce(made.tosa, made.inputs, trial, tries=tries)


def test_one_operator_is_left_when_one_is_at_fault() -> None:
    found = smaller(lambda names: localise.WrongResult.VALUES if "SLICE" in names else None)
    assert found is not None
    assert found.operators == ("SLICE",)
    assert found.trouble is localise.WrongResult.VALUES
    assert found.whole > 2
    names = [o.name for o in read_graph(found.tosa).operators]
    assert names.count("CONST_SHAPE") == 2, "its constants come along, and no others"
    assert len(names) == 3


def test_both_are_left_when_it_takes_two() -> None:
    found = smaller(
        lambda names: (
            localise.WrongResult.OUTSIDE
            if names.count("SLICE") > 1 and "RESCALE" in names
            else None
        )
    )
    assert found is not None
    assert sorted(found.operators) == ["RESCALE", "SLICE", "SLICE"]


def test_what_nobody_can_give_keeps_its_operators_together() -> None:
    """The sums of a 16-bit convolution have 48 bits: alone, it would have an output that the
    reference model writes no bytes of, and be to blame for anything."""
    generator, graph = np.random.default_rng(SEED), Graph()
    tosa_layers._sliced(generator, graph, (1, 1), (3, 3), INT16)
    tried: list[list[str]] = []

    def trial(tosa: bytes, inputs: Sequence[Array]) -> Any:
        assert all(output.nbytes for output in run_graph(tosa, inputs))
        tried.append([o.name for o in read_graph(tosa).operators if not o.name.startswith("CONST")])
        return localise.WrongResult.VALUES if "CONV2D" in tried[-1] else None

    found = localise.reduce(graph.serialise(), graph.sample(generator), trial)
    assert found is not None
    assert found.operators == ("CONV2D", "RESCALE")
    assert all(("CONV2D" in names) == ("RESCALE" in names) for names in tried)


def test_another_trouble_is_not_the_same_trouble() -> None:
    """What shows when half of the graph is gone must be what was looked for."""
    whole = len(read_graph(network().tosa).operators)

    def wrong(names: Sequence[str]) -> Any:
        return localise.WrongResult.VALUES if len(names) == whole else localise.WrongResult.OUTSIDE

    found = smaller(wrong)
    assert found is not None
    assert len(found.operators) == found.whole


def test_tries_are_bounded() -> None:
    found = smaller(
        lambda names: localise.WrongResult.VALUES if "SLICE" in names else None, tries=1
    )
    assert found is not None
    assert found.tries == 1


def test_nothing_wrong() -> None:
    assert smaller(lambda _: None) is None


def test_the_inputs_of_a_part_have_the_values_that_the_whole_computes() -> None:
    made = network()
    kept: list[tuple[bytes, tuple[Array, ...]]] = []

    def trial(tosa: bytes, inputs: Sequence[Array]) -> Any:
        kept.append((tosa, tuple(inputs)))
        return (
            localise.WrongResult.VALUES
            if "SLICE" in [o.name for o in read_graph(tosa).operators]
            else None
        )

    found = localise.reduce(made.tosa, made.inputs, trial)
    assert found is not None
    (result,) = run_graph(found.tosa, found.inputs)
    graph = read_graph(found.tosa)
    (whole,) = run_graph(_only(made.tosa, graph.outputs[0].name), made.inputs)
    assert result.tobytes() == whole.tobytes()


def _only(tosa: bytes, name: str) -> bytes:
    graph = read_graph(tosa)
    return part(tosa, range(len(graph.operators)), [t.name for t in graph.inputs], [name])
