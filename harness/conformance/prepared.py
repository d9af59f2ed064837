"""What two tests of one model prepare in the same way is prepared once.

ExecuTorch's Cortex-M tests come in pairs: ``test_dialect`` looks at the lowered program and runs it
in Python, ``test_implementation`` serialises it and runs it on the target. Both first quantise,
export and lower the same model with the same inputs, which is nearly all of what they cost. What
the first one made is handed to the second, once, and only if

* both are ExecuTorch 1.5.1's, so that nothing but these stages is left out,
* model, inputs, calibration samples and target are the same, by content, when they begin,
* the first one passed, and its program keeps no state between runs.

torchao draws random numbers while it quantises, as examples of shapes. A test that takes over what
another made draws none of those; which ones it would have got is a matter of the order of tests.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import OrderedDict
from collections.abc import Iterator
from functools import wraps
from typing import Any

from harness.shortcuts.patch import Patch, is_the_source

TESTER = "executorch.backends.cortex_m.test.tester"
# of CortexMTester.test_dialect and .test_implementation, and of what they begin and end with,
# Tester._run_stage and ._calculate_reference_output (1.5.1)
_DIALECT = "8ebb5e3d7e0161801c1ac43de4bbd75c24e7890ac7f78783543df5202e296715"
_IMPLEMENTATION = "1e15ef2fb9f99f4a2ef3ccaeb50860d68bd2865e41746cae329b873d01763313"
_RUN_STAGE = "fa4380570b384b4f8c576c1d5ef24065a44a22908ceb6024cb82c8ec152416b3"
_LEFT_BY_TORCH = "_dynamo_"  # on the parameters of a model that was exported before
_BEFORE_SAMPLES = 4  # positional parameters of test_dialect before calibration_samples
_REFERENCE = "d4a54a0209b3064a887cdfe6619d3b1b124cc99c5c2cb68891f8062de5a7555c"
_KEPT = 4  # pairs stand together; programs are some MB


def patches(module: Any) -> Iterator[Patch]:
    """``module``: the suite's, or None. Nothing for one that was not looked at."""
    tester: Any = getattr(module, "CortexMTester", None)
    sources = (
        (getattr(tester, "test_dialect", None), _DIALECT),
        (getattr(tester, "test_implementation", None), _IMPLEMENTATION),
        (getattr(tester, "_run_stage", None), _RUN_STAGE),
        (getattr(tester, "_calculate_reference_output", None), _REFERENCE),
    )
    if not all(is_the_source(*one) for one in sources):
        return
    prepared = Prepared(module.StageType)
    yield Patch(tester, "test_dialect", prepared.by(tester.test_dialect))
    yield Patch(tester, "test_implementation", prepared.used_by(tester.test_implementation))
    reference = prepared.noting(tester._calculate_reference_output)
    yield Patch(tester, "_calculate_reference_output", staticmethod(reference))


class Prepared:
    """The stages of tests that may be asked for again, by what they were made of.

    ``stages``: the suite's ``StageType``.
    """

    def __init__(self, stages: Any) -> None:
        self._last = stages.RUN_PASSES
        self._types = (stages.QUANTIZE, stages.EXPORT, stages.TO_EDGE, stages.RUN_PASSES)
        self._kept: OrderedDict[str, dict[Any, Any]] = OrderedDict()
        self._targets: dict[Any, Any] = {}  # by node, as they were before the test compared

    def by(self, dialect: Any) -> Any:
        @wraps(dialect)
        def test_dialect(tester: Any, *arguments: Any, **named: Any) -> None:
            made_of = content_of(tester, self._last, named.get("calibration_samples"))
            self._targets.clear()
            dialect(tester, *arguments, **named)
            if made_of and len(arguments) <= _BEFORE_SAMPLES:
                self._keep(made_of, tester)

        return test_dialect

    def _keep(self, made_of: str, tester: Any) -> None:
        stages = {one: tester.stages[one] for one in self._types}
        program = stages[self._last].artifact.exported_program()
        if program.graph_signature.buffers_to_mutate:
            return
        for node, target in self._targets.items():
            node.target = target
        self._kept[made_of] = stages
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def noting(self, reference: Any) -> Any:
        """The comparison replaces the last operator of the exported program by one that tells the
        scale, and a second comparison would not find it any more."""

        def calculate(program: Any, inputs: Any) -> Any:
            for node in program.graph.nodes:
                self._targets.setdefault(node, node.target)
            return reference(program, inputs)

        return calculate

    def used_by(self, implementation: Any) -> Any:
        @wraps(implementation)
        def test_implementation(
            tester: Any, qtol: int = 0, atol: float = 1e-03, calibration_samples: Any = None
        ) -> None:
            made_of = content_of(tester, self._last, calibration_samples)
            stages = self._kept.pop(made_of or "", None)
            if stages is None or tester.cur is not None:
                implementation(tester, qtol, atol, calibration_samples)
                return
            tester.stages.update(stages)
            tester.cur = self._last
            tester.to_executorch()
            tester.serialize()
            tester.run_method_and_compare_outputs(
                inputs=tester.example_inputs, qtol=qtol, atol=atol
            )

        return test_implementation


def content_of(tester: Any, passes: Any, samples: Any) -> str | None:
    """sha256 of the model, its inputs and the target; None where they cannot be read in full."""
    text = io.BytesIO()
    try:
        target = vars(tester.stage_classes[passes]())
        _Content(text, protocol=5).dump(
            (type(tester), tester.original_module, tester.example_inputs, samples, target)
        )
    except Exception:  # a model of the suite may raise anything when it is pickled
        return None
    return hashlib.sha256(text.getbuffer()).hexdigest()


class _Content(pickle.Pickler):
    """Of what is only hashed: a tensor by its bytes, where pickle would write its address."""

    def reducer_override(self, thing: Any) -> Any:
        import torch

        if not isinstance(thing, torch.Tensor):
            return NotImplemented
        more = [name for name in vars(thing) if not name.startswith(_LEFT_BY_TORCH)]
        if type(thing) not in (torch.Tensor, torch.nn.Parameter) or more:
            raise pickle.PicklingError(f"{type(thing)} may hold more than its values")
        plain = thing.detach().contiguous().view(-1)
        values = plain.view(torch.uint8).numpy().tobytes() if plain.numel() else b""
        kind = (type(thing).__name__, str(thing.dtype), tuple(thing.shape), thing.stride())
        return bytes, (values,), (kind, thing.requires_grad)
