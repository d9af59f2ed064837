"""Requires that what is quantised computes what the user's model does.

The model is captured as a graph. A quantiser first replaces operators of the graph by others
(``transform_for_annotation``), and torchao folds batch norms into convolutions. The witness of the
lowering begins after that. All of them compute floats, so only the last bits of a value may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree
from torchao.quantization.pt2e import ObserverBase
from torchao.quantization.pt2e.fake_quantize import FakeQuantizeBase
from torchao.quantization.pt2e.quantizer import Quantizer

from harness.export.child.partition import located
from harness.export.child.samples import Sample
from harness.export.failures import CaptureDiffers, PreparationDiffers
from harness.export.request import ExportRequest

# Of the largest element. Another order of sums gives about 1e-6; a mask's -inf becomes -255.
_WITHIN = 1e-3


def require_capture(
    request: ExportRequest,
    module: torch.nn.Module,
    captured: GraphModule,
    sets: Sequence[Sample],
    tried: Sequence[Sample],
    outputs: Sequence[Sample],
) -> None:
    """Compare the captured model's ``outputs`` with ``tried``, the user's before it was captured.

    ``module`` is the user's, to be tried again. Raises CaptureDiffers."""
    if _writes(captured):
        return
    for number, (sample, meant, found) in enumerate(zip(sets, tried, outputs, strict=False)):
        worst = _worst(found, meant)
        if worst > _WITHIN:
            with torch.no_grad():
                again = pytree.tree_leaves(module(*(value.clone() for value in sample)))
            repeats = _worst(again, meant) <= _WITHIN
            raise CaptureDiffers(request, worst, number, repeats=repeats)


def _writes(graph: GraphModule) -> bool:
    """Tell whether it changes a buffer in place, so that each run starts from another one."""
    return any(
        str(getattr(node.target, "_schema", "")).partition("(")[0].partition(".")[0].endswith("_")
        and isinstance(node.args[0], Node)
        and node.args[0].op == "get_attr"
        for node in graph.graph.nodes
    )


def require_preparation(
    request: ExportRequest,
    capture: Callable[[], GraphModule],
    quantizer: Quantizer,
    sets: Sequence[Sample],
    outputs: Sequence[Sample],
    prepared: GraphModule,
) -> None:
    """Compare ``prepared``, whose observers see nothing, with the captured model.

    ``outputs``: the captured model's, for each input set; ``capture`` makes that model again.
    Raises PreparationDiffers."""
    if _writes(prepared):
        return
    for number, (sample, meant) in enumerate(zip(sets, outputs, strict=False)):
        run = _Unobserved(prepared)
        found = pytree.tree_leaves(run.values(sample))
        worst = _worst(found, meant)
        if worst > _WITHIN:
            again = _Unobserved(capture())
            if _worst(pytree.tree_leaves(again.values(sample)), meant) > _WITHIN:
                raise CaptureDiffers(request, worst, number, repeats=False)
            first = located(_first(again, run), request.home)
            made_by = _made_by(quantizer.transform_for_annotation(capture()), sample, meant)
            raise PreparationDiffers(request, first, worst, number, made_by)


def _made_by(rewritten: GraphModule, sample: Sample, meant: Sample) -> str:
    found = pytree.tree_leaves(_Unobserved(rewritten).values(sample))
    if _worst(found, meant) > _WITHIN:
        return "ExecuTorch's quantiser (transform_for_annotation)"
    return "torchao's prepare_pt2e, which folds batch norms,"


class _Unobserved(Interpreter):  # type: ignore[misc]
    """Runs a graph past its observers. ``computed``: what each node gave."""

    def __init__(self, graph: GraphModule) -> None:
        super().__init__(graph)
        self.computed: dict[Node, list[torch.Tensor]] = {}

    def values(self, sample: Sample) -> Any:
        with torch.no_grad():
            return self.run(*sample)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if n.op in ("call_function", "output"):
            leaves = pytree.tree_leaves(result)
            self.computed[n] = [each for each in leaves if isinstance(each, torch.Tensor)]
        return result

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(self.fetch_attr(target), (ObserverBase, FakeQuantizeBase)):
            return args[0]
        return super().call_module(target, args, kwargs)


def _first(captured: _Unobserved, prepared: _Unobserved) -> Node:
    """Find the first operator whose results ``prepared`` lacks although it has what they read.

    The output if there is none. One that is only fused away has users that the graph has."""
    theirs = [value for values in prepared.computed.values() for value in values]
    there = {
        node: all(any(_distance(v, t) <= _WITHIN for t in theirs) for v in values)
        for node, values in captured.computed.items()
    }
    for node, is_there in there.items():
        fused = bool(node.users) and all(there.get(user, False) for user in node.users)
        if not is_there and not fused and all(there.get(n, True) for n in node.all_input_nodes):
            return node
    return next(reversed(there))


def _worst(found: Sequence[torch.Tensor], meant: Sequence[torch.Tensor]) -> float:
    """Return the largest distance of two outputs; infinite if one is missing."""
    if len(found) != len(meant):
        return math.inf
    return max(map(_distance, found, meant), default=0.0)


def _distance(value: torch.Tensor, other: torch.Tensor) -> float:
    """As a share of the largest element; infinite if they cannot be compared."""
    if value.shape != other.shape:
        return math.inf
    if not value.numel():
        return 0.0
    value, other = value.double(), other.double()
    largest = float(value.nan_to_num(posinf=0, neginf=0).abs().max())
    apart = torch.where(
        (value == other) | (value.isnan() & other.isnan()), 0, (value - other).abs()
    )
    share: float = apart.nan_to_num(nan=torch.inf).max().item() / (largest or 1.0)
    return share
