"""A real fault of Vela is found, and the operator, tensor and element are named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.config.models import ModelSource
from harness.export.child.tosa_graph import computed, read_graph, run_graph, with_outputs
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.judge.blame import first_disagreement, name_operator

Get = Callable[..., Program]
Write = Callable[..., ModelSource]

# Vela 5.1.0 drops a top padding that is no multiple of the dilation, when the stride is not 1.
DILATED = """
import torch
torch.manual_seed(1)
ModelUnderTest = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(8, 8, 3, stride=3, dilation=3, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(8, 4, 1))
ModelInputs = (torch.rand(1, 3, 16, 16),)
"""


def test_the_second_convolution_is_named(
    exported: Get, user_model: Write, hil_export_process: ExportProcess
) -> None:
    program = exported(user_model(DILATED), "ethos-u85-256")
    wrong = first_disagreement(program)
    assert wrong is not None
    found = name_operator(program, wrong, hil_export_process)
    assert (found.delegate, found.set) == (0, 0)
    assert found.operator == "CONV2D and RESCALE"
    assert found.tensor == "tosa_rescale_default_1"
    assert len(found.element) == 4
    assert found.expected != found.actual
    assert "CONV2D and RESCALE (tosa_rescale_default_1), element [0, " in str(found)


def test_more_outputs_do_not_change_the_graph(exported: Get) -> None:
    """The last of all computed values is the output that the graph had before."""
    program = exported("ds_cnn", "ethos-u85-256")
    (delegate,) = program.delegates
    tosa = (program.directory / delegate.tosa).read_bytes()
    graph = read_graph(tosa)
    inputs = [
        spec.decode((program.directory / name).read_bytes())
        for spec, name in zip(delegate.inputs, delegate.sets[0].inputs, strict=True)
    ]
    values = computed(graph)
    assert len(values) > 20
    all_of_them = run_graph(with_outputs(tosa, [t.name for t in values]), inputs)
    assert [v.shape for v in all_of_them] == [t.shape for t in values]
    assert graph.outputs == (values[-1],)
    assert np.array_equal(all_of_them[-1], run_graph(tosa, inputs)[0])
