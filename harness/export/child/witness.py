"""The witness of a lowering: the quantised model in PyTorch, operator by operator.

The expected outputs of a program are computed from the lowered program itself, so they share the
faults of the lowering. The quantised model (after ``convert_pt2e``) has not been lowered. It is run
on the input sets, and each value that it quantises must be one that the program computes, in any
order of its dimensions, within the bound of the operators that made it (``bounds``). The next
operator is then computed from the program's value, so that roundings do not add up.

A value may have no partner because the lowering fused it away. Then the values computed from it
decide. The witness continues with its own value and with four copies that differ from it by a step
here and there; the next value may differ by as much as these copies make of it. If the next value
has a partner only when it is computed from another value of the program that no other operator
computes, the operator before it is wrong. If nothing up to an output has one, the output decides.

A partner may be another operator's value, such as a second ReLU's. If the program's own value for
the operator differs, it is tried in the same way if a later value has no partner.

A difference is explained, and the explanation is tested: the stages of the lowering are run one
after the other to name the first whose result differs, and a setting is advised if the model
lowered with it agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
import torch
from executorch.exir import EdgeProgramManager
from torch.fx import Node
from torch.utils import _pytree as pytree

from harness.export.child.bounds import Quantiser, QuantizedRegion, bound
from harness.export.child.by_design import Kernels
from harness.export.child.expected_outputs import ProgramRun, run_program
from harness.export.child.partition import layer_of, place
from harness.export.child.program_values import Candidates, Claim
from harness.export.child.samples import Sample
from harness.export.child.tosa_graph import Array
from harness.export.failures import LoweringDiffers
from harness.export.program import Witnessed
from harness.export.request import ExportRequest
from harness.firmware.source import Arithmetic

_NOISY = 4  # copies of a value without a partner
_CHOICES = 64  # of claims for several inputs of one operator
_FLOAT = 1e-5  # of the largest element: float operators that add in another order
_WHOLE = 1e-2  # of a step: dequantising rounds to float32
_QUANTISE = torch.ops.quantized_decomposed.quantize_per_tensor.default
_DEQUANTISE = torch.ops.quantized_decomposed.dequantize_per_tensor.default
_PAIRED = (torch.int8, torch.int16)

# For the nodes of an operator in the quantised model: the name of each stage that the operator goes
# through, and its program where that can be run.
Stages = Callable[[frozenset[str]], Iterator[tuple[str, EdgeProgramManager | None]]]
# The model lowered with another setting, and the setting's text.
Other = Callable[[], tuple[str, torch.fx.GraphModule, EdgeProgramManager, Sequence[Sample]]]


@dataclass(frozen=True)
class _Open:
    """A value without a partner, or with another operator's as one (``borrowed``).

    It has noisy copies, and claims. ``named``: these are values that the program makes with the
    same operators."""

    noisy: list[torch.Tensor]
    claims: list[Claim]
    named: bool
    borrowed: bool = False


class Differs(Exception):
    """The program does not compute what the quantised model does.

    ``regions``: the one that differs, or those of which one does, first to last; ``lsb``: the worst
    difference."""

    def __init__(
        self, regions: Sequence[QuantizedRegion], steps: Array, within: float, input_set: int
    ) -> None:
        index = int(steps.argmax())
        self.worst = steps, within, input_set
        self.regions = tuple(regions)
        self.element = tuple(int(i) for i in np.unravel_index(index, steps.shape))
        self.lsb, self.within = round(float(steps[self.element]), 2), round(within, 2)
        self.input_set = input_set
        super().__init__(self.regions[0].main.name)


@dataclass(frozen=True)
class Agreement:
    """``layers``: of the model, by the name of the program's value that it computes."""

    witnessed: Witnessed
    layers: Mapping[str, str]


def require_witness(
    request: ExportRequest,
    quantised: torch.fx.GraphModule,
    sets: Sequence[Sample],
    runs: Sequence[ProgramRun],
    stages: Stages,
    other: Other | None = None,
) -> Agreement:
    """Compare the lowered program (``runs``) with the model. Raises LoweringDiffers."""
    try:
        return _agreement(quantised, sets, runs)
    except Differs as differs:
        main = differs.regions[0].main
        raise LoweringDiffers(
            request,
            [" and ".join(region.titles) for region in differs.regions],
            layer_of(main),
            place(main, request.home),
            (differs.lsb, differs.within, differs.element, differs.input_set),
            _made_by(quantised, sets, stages(differs.regions[0].node_names)),
            _what_helps(other),
        ) from differs


def _agrees(
    quantised: torch.fx.GraphModule, edge: EdgeProgramManager, sets: Sequence[Sample]
) -> bool:
    kernels = Kernels("", Arithmetic.PYTHON)
    try:
        _agreement(quantised, sets, run_program(edge, sets, kernels, {}, quantised))
    except Differs:
        return False
    return True


def _made_by(
    quantised: torch.fx.GraphModule,
    sets: Sequence[Sample],
    stages: Iterator[tuple[str, EdgeProgramManager | None]],
) -> str:
    """Return the first stage whose program differs, or the last, whose cannot be run."""
    names = []
    for name, edge in stages:
        names.append(name)
        if edge is not None and not _agrees(quantised, edge, sets):
            break
    return names[-1]


def _what_helps(other: Other | None) -> str:
    if other is None:
        return ""
    try:
        setting, quantised, edge, sets = other()
        return setting if _agrees(quantised, edge, sets) else ""
    except Exception:  # foreign code: any exception is possible, and then it does not help
        return ""


def _agreement(
    quantised: torch.fx.GraphModule, samples: Sequence[Sample], runs: Sequence[ProgramRun]
) -> Agreement:
    """Raise Differs. ``runs``: the program's, one for each sample."""
    given = enumerate(zip(samples, runs, strict=True))
    seen = [_check(quantised, number, sample, run) for number, (sample, run) in given]
    counts = [each.witnessed for each in seen]
    witnessed = Witnessed(
        max((s.values for s in counts), default=0),
        min((s.paired for s in counts), default=0),
        max((s.worst for s in counts), default=0),
    )
    return Agreement(witnessed, seen[0].layers if seen else {})


def _check(
    quantised: torch.fx.GraphModule, number: int, sample: Sample, run: ProgramRun
) -> Agreement:
    """Once more without the claims that turn out to be other operators' values."""
    others: set[int] = set()
    while True:
        witness = _Witness(quantised, number, Candidates(run.computed, others))
        differs = None
        try:
            witnessed = witness.check(sample, run.outputs)
        except Differs as found:
            differs = found
        mistaken = witness.accused.keys() & witness.paired
        others |= mistaken
        if mistaken:
            continue
        if differs is not None or witness.accused:
            raise differs or next(iter(witness.accused.values()))
        return Agreement(witnessed, witness.layers)


class _Witness(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs the quantised model for one sample."""

    env: dict[Node, Any]

    def __init__(
        self, quantised: torch.fx.GraphModule, number: int, candidates: Candidates
    ) -> None:
        super().__init__(quantised, garbage_collect_values=False)
        self.paired: set[int] = set()  # values of the program
        self.layers: dict[str, str] = {}  # see Agreement
        self.accused: dict[int, Differs] = {}  # by the value that was computed instead
        self._number = number
        self._candidates = candidates
        self._regions: dict[Node, QuantizedRegion] = {}
        self._open: dict[Node, _Open] = {}
        self._generator = torch.Generator().manual_seed(number)
        self._worst = 0

    def check(self, sample: Sample, outputs: Sample) -> Witnessed:
        self._outputs = outputs
        with torch.no_grad():
            self.run(*sample)
        count = len(self._regions)
        alone = sum(not each.borrowed for each in self._open.values())
        return Witnessed(count, count - alone, self._worst)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if n.op == "output":
            nodes, values = pytree.tree_leaves(n.args[0]), pytree.tree_leaves(result)
            for output in zip(nodes, values, self._outputs, strict=True):
                self._check_output(*output)
        elif n.target is _QUANTISE and result.dtype in _PAIRED:
            return self._paired(n, result)
        return result

    def _paired(self, node: Node, value: torch.Tensor) -> torch.Tensor:
        region = self._regions[node] = _region(node)
        within = bound(region, [self.env[node] for node in region.sources])
        noisy = [self._again(region, copies) for copies in self._noisy(region)]
        slack = max((_steps(copy, value) for copy in noisy), default=0)
        if (partner := self._candidates.partner(region, value, within + slack)) is not None:
            self.paired.add(partner.number)
            self.layers.setdefault(self._candidates.name(partner.number), layer_of(region.main))
            self._worst = max(self._worst, 0 if slack else _steps(partner.value, value))
            if region.computes and not self._candidates.is_own(region, partner):
                claims, named = self._candidates.claims(region, value)
                if named:
                    exact = [partner.value] * _NOISY
                    self._open[node] = _Open(exact, claims, named, borrowed=True)
            return partner.value
        for wrong, claim in self._claims(region) if region.computes else ():
            again = self._again(region, {wrong: claim.value})
            if (partner := self._candidates.partner(region, again, within)) is not None:
                suspects = [*self._open_before(self._regions[wrong]), wrong]
                self.accused.setdefault(claim.number, self._differs(suspects))
                return partner.value
        copies = [self._shaken(node, copy) for copy in noisy or [value] * _NOISY]
        self._open[node] = _Open(copies, *self._candidates.claims(region, value))
        return value

    def _check_output(self, node: Node, value: torch.Tensor, computed: torch.Tensor) -> None:
        region = _region(node)
        unit, within = _tolerance(region, value)
        noisy = [self._again(region, copies) for copies in self._noisy(region)]
        difference = _difference(value, computed)
        slack = max((float(_difference(copy, value).max()) for copy in noisy), default=0.0)
        if not difference.size or difference.max() <= within + slack:
            return
        raise self._differs(
            self._open_before(region),
            Differs([region], difference / unit, (within + slack) / unit, self._number),
        )

    def _differs(self, suspects: Sequence[Node], otherwise: Differs | None = None) -> Differs:
        """Return the first of the suspects whose own result does not follow from its inputs.

        If the program's result is not known by name, one that comes later may as well be the cause.
        ``otherwise``: if all follow, or there are none."""
        for number, node in enumerate(suspects):
            region, claims = self._regions[node], self._open[node].claims
            limit = torch.as_tensor(bound(region, [self.env[n] for n in region.sources]))
            within = float(limit.max())
            steps = [_difference(r, claim.value) for r in self._results(region) for claim in claims]
            if not steps and otherwise is not None:
                return Differs(self._of(suspects[number:]), *otherwise.worst)
            nearest = min(steps, key=lambda each: float(each.max(initial=0)))
            if nearest.max(initial=0) > within:
                named = self._open[node].named
                blamed = self._of(suspects[number : number + 1 if named else None])
                return Differs(blamed, nearest, within, self._number)
        return otherwise or Differs(self._of(suspects), np.zeros(1), 0, self._number)

    def _of(self, nodes: Sequence[Node]) -> list[QuantizedRegion]:
        return [self._regions[node] for node in nodes]

    def _results(self, region: QuantizedRegion) -> Iterator[torch.Tensor]:
        """Compute the region from combinations of values that the program may have used."""
        inputs = [node for node in region.sources if node in self._open]
        choices = [
            [claim.value for claim in self._open[node].claims] or [self.env[node]]
            for node in inputs
        ]
        for chosen in islice(product(*choices), _CHOICES):
            yield self._again(region, dict(zip(inputs, chosen, strict=True)))

    def _open_before(self, region: QuantizedRegion) -> list[Node]:
        """Return the values that lead to a region, in order, until one has a partner."""
        found: set[Node] = set()
        pending = [region]
        while pending:
            for node in pending.pop().sources:
                if node in self._open and node not in found:
                    found.add(node)
                    pending.append(self._regions[node])
        return [node for node in self._regions if node in found]

    def _noisy(self, region: QuantizedRegion) -> Iterator[Mapping[Node, torch.Tensor]]:
        inputs = [node for node in region.sources if node in self._open]
        for number in range(_NOISY if inputs else 0):
            yield {node: self._open[node].noisy[number] for node in inputs}

    def _claims(self, region: QuantizedRegion) -> Iterator[tuple[Node, Claim]]:
        for node in region.sources:
            for claim in self._open[node].claims if node in self._open else ():
                yield node, claim

    def _again(self, region: QuantizedRegion, instead: Mapping[Node, torch.Tensor]) -> torch.Tensor:
        """Return the region's output with other values of some of its inputs."""
        before = self.env
        self.env = {**before, **instead}
        for node in (*region.inputs, *region.operators, region.output):
            self.env[node] = super().run_node(node)
        result: torch.Tensor = self.env[region.output]
        self.env = before
        return result

    def _shaken(self, node: Node, value: torch.Tensor) -> torch.Tensor:
        """Change each element by one step up or down, or not at all."""
        noise = torch.randint(-1, 2, value.shape, generator=self._generator)
        limits = Quantiser.of(node)
        return (value + noise).clamp(limits.low, limits.high).to(value.dtype)


def _region(output: Node) -> QuantizedRegion:
    """Walk back from a node to dequantised values. Weights and other constants are not inputs."""
    found: set[Node] = set()
    inputs: dict[Node, None] = {}
    pending = [output] if output.target is not _DEQUANTISE else []
    if not pending and _of_activation(output):
        inputs[output] = None
    while pending:
        for node in pending.pop().all_input_nodes:
            if node.target is _DEQUANTISE:
                if _of_activation(node):
                    inputs[node] = None
            elif node.op == "call_function" and node not in found and not _is_weight(node):
                found.add(node)
                pending.append(node)
    return QuantizedRegion(
        tuple(n for n in output.graph.nodes if n in found), tuple(inputs), output
    )


def _is_weight(node: Node) -> bool:  # which is dequantised for each channel
    return getattr(node.target, "namespace", "") == "quantized_decomposed"


def _of_activation(dequantise: Node) -> bool:
    source = dequantise.args[0]
    return isinstance(source, Node) and source.op != "get_attr"


def _tolerance(region: QuantizedRegion, value: torch.Tensor) -> tuple[float, float]:
    """Return the unit of an output's difference, and what rounding of floats explains."""
    if region.output.target is _DEQUANTISE:
        scale = Quantiser.of(region.output).scale
        return scale, _WHOLE * scale
    if not value.is_floating_point():
        return 1.0, 0.0
    largest = float(value.abs().nan_to_num().max()) if value.numel() else 0.0
    return (_FLOAT * largest or 1.0), _FLOAT * largest


def _difference(a: torch.Tensor, b: torch.Tensor) -> Array:
    a, b = a.double(), b.double().reshape(a.shape)
    same = (a == b) | (a.isnan() & b.isnan())
    difference: Array = torch.where(same, 0.0, (a - b).abs().nan_to_num(nan=torch.inf)).numpy()
    return difference


def _steps(a: torch.Tensor, b: torch.Tensor) -> int:
    return int((a.to(torch.int64) - b.to(torch.int64)).abs().max()) if a.numel() else 0
