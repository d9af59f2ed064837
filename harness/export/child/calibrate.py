"""CalibrationType in double precision, so that a program is the same bytes on every machine.

The last bits of a float32 sum depend on the CPU's vector units and on the math library's choice of
kernel. Under the observers of a graph they move scales by about 1e-7, and with them the program's
bytes. The same sums in float64 differ in their last bits too, but rounding the scales to
float32 removes that difference.

If a model cannot be computed in float64, the observers see float32, as in ExecuTorch's own tools,
and the program records that it is not reproducible and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torchao.quantization.pt2e import DerivedObserverOrFakeQuantize
from torchao.quantization.pt2e.observer import UniformQuantizationObserverBase

from harness.config.models import CalibrationType
from harness.export.child.samples import Sample

AS_ASKED = "calibrated in float32, as the model's settings ask"


class _NotInDouble(Exception):
    """A step of the graph gives another floating-point type."""


def calibrate(
    prepared: torch.fx.GraphModule, samples: Sequence[Sample], calibration: CalibrationType
) -> str:
    """Show samples to the observers; return why the result depends on the CPU, or ""."""
    why = AS_ASKED
    with torch.no_grad():
        if calibration is CalibrationType.FLOAT64:
            why = _in_double(prepared, samples)
        if why:
            for sample in samples:
                prepared(*sample)
    return why


def _in_double(prepared: torch.fx.GraphModule, samples: Sequence[Sample]) -> str:
    """Return why the graph cannot be computed in float64; the graph is then unchanged."""
    before = [(tensor, tensor.data) for tensor in _tensors(prepared)]
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)  # observers make tensors without naming a type
        for tensor, values in before:
            tensor.data = _widened(values)
        for sample in samples:
            _InDouble(prepared).run(*map(_widened, sample))
        _fix_scales(prepared)
    except Exception as error:  # foreign code: any exception is possible
        for tensor, values in before:
            tensor.data = values
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return f"calibrated in float32, because the model does not run in float64: {reason}"
    finally:
        torch.set_default_dtype(default)
    for tensor, values in before:
        tensor.data = tensor.data.to(values.dtype)
    return ""


class _InDouble(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs a graph in float64, whatever type its steps were written for. Raises _NotInDouble."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        wide = pytree.tree_map(lambda v: torch.float64 if v is torch.float32 else v, (args, kwargs))
        return super().call_function(target, *wide)

    def run_node(self, node: torch.fx.Node) -> Any:
        result = super().run_node(node)
        for value in pytree.tree_leaves(result):
            if isinstance(value, torch.Tensor) and value.dtype in _NARROW:
                raise _NotInDouble(f"{node.target} gives {str(value.dtype).removeprefix('torch.')}")
        return result


_NARROW = (torch.float32, torch.float16, torch.bfloat16)


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy, because its reader may write to it."""
    return tensor.double() if tensor.dtype is torch.float32 else tensor.clone()


def _tensors(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Each parameter, buffer and constant of a module once."""
    tensors: dict[int, torch.Tensor] = {}
    for part in module.modules():
        for owned in (part._parameters, part._buffers, vars(part)):
            tensors |= {id(t): t for t in owned.values() if isinstance(t, torch.Tensor)}
    return iter(tensors.values())


def _fix_scales(prepared: torch.fx.GraphModule) -> None:
    """Replace each observer by a fixed one with its float64 result, rounded once to float32.

    Otherwise the search of a histogram observer would be float32 arithmetic again."""
    observers = [
        (name, module)
        for name, module in prepared.named_modules(remove_duplicate=False)
        if isinstance(module, UniformQuantizationObserverBase)
    ]
    fixed = {id(o): _fixed(o) for o in dict.fromkeys(o for _, o in observers)}
    for module in prepared.modules():
        if isinstance(module, DerivedObserverOrFakeQuantize):  # a bias's, from input and weight
            module.obs_or_fqs = [fixed.get(id(source), source) for source in module.obs_or_fqs]
    for name, observer in observers:
        prepared.set_submodule(name, fixed[id(observer)])


def _fixed(observer: UniformQuantizationObserverBase) -> DerivedObserverOrFakeQuantize:
    scale, zero_point = observer.calculate_qparams()
    return DerivedObserverOrFakeQuantize(
        observer.dtype,
        obs_or_fqs=[],
        derive_qparams_fn=lambda _: (scale.float(), zero_point),
        quant_min=observer.quant_min,
        quant_max=observer.quant_max,
        qscheme=observer.qscheme,
        ch_axis=getattr(observer, "ch_axis", None),
    )
