"""A captured model made int8: what its observers see of the calibration decides the scales."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from harness.export.samples import Sample


def quantise_with(
    graph_module: torch.fx.GraphModule, quantizer: Quantizer, calibration: Iterable[Sample]
) -> torch.fx.GraphModule:
    prepared = prepare_pt2e(graph_module, quantizer)
    with torch.no_grad():
        for sample in calibration:
            prepared(*sample)
    converted: torch.fx.GraphModule = convert_pt2e(prepared)
    return converted
