"""Which tests of a pair take over what the other prepared, and which may not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.conformance import prepared
from harness.conformance.prepared import Prepared, content_of, patches
from tests.late import Late

torch = Late("torch")
STAGES = SimpleNamespace(QUANTIZE="quantize", EXPORT="export", TO_EDGE="edge", RUN_PASSES="passes")


class Scale:
    """A model by which programs can be told apart."""

    def __init__(self, factor: float = 2.0) -> None:
        self.factor = torch.tensor([factor])


class Stage:
    def __init__(self, made: str = "", mutated: tuple[str, ...] = ()) -> None:
        self.made = made
        self._program = SimpleNamespace(graph_signature=SimpleNamespace(buffers_to_mutate=mutated))

    @property
    def artifact(self) -> Any:
        return SimpleNamespace(exported_program=lambda: self._program)


class Node:
    def __init__(self, target: str) -> None:
        self.target = target


class Passes:
    def __init__(self, target: str) -> None:
        self.target = target


class Tester:
    """As ExecuTorch's, as far as ``Prepared`` knows it."""

    __test__ = False  # for pytest

    def __init__(self, model: Any, inputs: Any, target: str = "m55", keeps: bool = False) -> None:
        self.original_module, self.example_inputs = model, inputs
        self.stage_classes = {"passes": lambda: Passes(target)}
        self.stages: dict[str, Any] = {}
        self.cur: str | None = None
        self.mutated = ("state",) if keeps else ()
        self.did: list[str] = []
        self.compare: Callable[[], str] | None = None

    def prepare(self) -> None:
        self.did.append("prepare")
        for one in vars(STAGES).values():
            self.stages[one] = Stage("by " + type(self).__name__, self.mutated)
        self.cur = "passes"

    def test_dialect(self, before: Any, after: Any, calibration_samples: Any = None) -> None:
        self.prepare()
        assert before == after
        if self.compare is not None:
            self.did.append(self.compare())

    def test_implementation(self, qtol: int, atol: float, calibration_samples: Any) -> None:
        self.prepare()
        self.to_executorch()
        self.serialize()
        self.run_method_and_compare_outputs(inputs=self.example_inputs, qtol=qtol, atol=atol)

    def to_executorch(self) -> None:
        self.did.append(f"program {self.stages['passes'].made}")

    def serialize(self) -> None:
        self.did.append("serialise")

    def run_method_and_compare_outputs(self, inputs: Any, qtol: int, atol: float) -> None:
        self.did.append(f"compare {len(inputs)} {qtol} {atol}")


@pytest.fixture
def both() -> tuple[Any, Any]:
    one = Prepared(STAGES)
    return one.by(Tester.test_dialect), one.used_by(Tester.test_implementation)


def inputs(value: float = 1.0) -> Any:
    return (torch.full((1, 3), value),)


def test_the_second_of_a_pair_prepares_nothing_and_does_the_rest(both: tuple[Any, Any]) -> None:
    dialect, implementation = both
    first, second = Tester(Scale(), inputs()), Tester(Scale(), inputs())
    dialect(first, {}, {})
    implementation(second, qtol=1)
    assert second.did == ["program by Tester", "serialise", "compare 1 1 0.001"]
    assert second.cur == "passes"
    third = Tester(Scale(), inputs())
    implementation(third)
    assert third.did[0] == "prepare", "handed over once: what follows may change a program"


def other(name: str) -> Tester:
    made = {
        "model": lambda: Tester(Scale(3.0), inputs()),
        "inputs": lambda: Tester(Scale(), inputs(2.0)),
        "shape": lambda: Tester(Scale(), (torch.ones(3, 1),)),
        "layout": lambda: Tester(Scale(), (torch.ones(3, 1).t(),)),
        "type": lambda: Tester(Scale(), (torch.ones(1, 3, dtype=torch.float64),)),
        "target": lambda: Tester(Scale(), inputs(), "m33"),
        "subclass": lambda: type("Tester2", (Tester,), {})(Scale(), inputs()),
        "unreadable": lambda: Tester(lambda x: x, inputs()),
    }
    tester: Tester = made[name]()
    return tester


@pytest.mark.parametrize(
    "name", ["model", "inputs", "shape", "layout", "type", "target", "subclass", "unreadable"]
)
def test_what_differs_in_anything_prepares_itself(name: str, both: tuple[Any, Any]) -> None:
    dialect, implementation = both
    dialect(Tester(Scale(), inputs()), {}, {})
    tester = other(name)
    implementation(tester)
    assert tester.did[0] == "prepare"


def test_other_calibration_samples_are_another_preparation(both: tuple[Any, Any]) -> None:
    dialect, implementation = both
    dialect(Tester(Scale(), inputs()), {}, {}, calibration_samples=[inputs()])
    for samples in (None, [inputs(), inputs()], [inputs(2.0)]):
        tester = Tester(Scale(), inputs())
        implementation(tester, calibration_samples=samples)
        assert tester.did[0] == "prepare"
    tester = Tester(Scale(), inputs())
    implementation(tester, calibration_samples=[inputs()])
    assert tester.did[0] != "prepare"


def test_nothing_is_taken_from_a_test_that_failed_or_whose_program_keeps_state(
    both: tuple[Any, Any],
) -> None:
    dialect, implementation = both
    with pytest.raises(AssertionError):
        dialect(Tester(Scale(), inputs()), {"add": 1}, {"add": 2})
    dialect(Tester(Scale(3.0), inputs(), keeps=True), {}, {})
    for model in (Scale(), Scale(3.0)):
        tester = Tester(model, inputs())
        implementation(tester)
        assert tester.did[0] == "prepare"


def test_what_the_comparison_replaced_in_a_program_is_put_back() -> None:
    """ExecuTorch's puts a function of its own in place of the last operator, to learn the scale."""
    one = Prepared(STAGES)
    program = SimpleNamespace(graph=SimpleNamespace(nodes=[Node("dequantize")]))
    (node,) = program.graph.nodes

    def reference(program: Any, inputs: Any) -> str:
        assert node.target == "dequantize"
        node.target = "shim"
        return f"output of {inputs}"

    calculate = one.noting(reference)

    tester = Tester(Scale(), inputs())
    tester.compare = lambda: calculate(program, "x")
    one.by(Tester.test_dialect)(tester, {}, {})
    assert tester.did == ["prepare", "output of x"]
    assert node.target == "dequantize"


def test_only_the_last_few_are_kept(both: tuple[Any, Any]) -> None:
    dialect, implementation = both
    for factor in range(6):
        dialect(Tester(Scale(factor), inputs()), {}, {})
    taken = []
    for factor in range(6):
        tester = Tester(Scale(factor), inputs())
        implementation(tester)
        taken.append(tester.did[0] != "prepare")
    assert taken == [False, False, True, True, True, True]


def test_a_tensor_that_is_more_than_its_values_is_not_compared() -> None:
    model = Scale()
    assert content_of(Tester(model, inputs()), "passes", None)
    model.factor._dynamo_static_input_type = "unguarded"  # what torch leaves on parameters
    assert content_of(Tester(model, inputs()), "passes", None)
    model.factor.note = "mine"
    assert content_of(Tester(model, inputs()), "passes", None) is None


def test_a_suite_that_was_not_looked_at_is_left_as_it_is() -> None:
    assert not list(patches(None))
    assert not list(patches(SimpleNamespace(CortexMTester=Tester, StageType=STAGES)))


def test_the_installed_wheel_is_the_one_that_was_looked_at() -> None:
    """Else its suite takes half as long again, and nobody would notice."""
    import importlib

    names = [patch.name for patch in patches(importlib.import_module(prepared.TESTER))]
    assert names == ["test_dialect", "test_implementation", "_calculate_reference_output"]
