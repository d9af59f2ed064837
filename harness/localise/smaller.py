"""The smallest wrong part of a delegate of a Program: needs Vela, TOSA and ExecuTorch."""

from __future__ import annotations

from functools import partial

from harness.export import quiet
from harness.export.npu_options import NpuOptions
from harness.export.program import Program
from harness.export.tosa_graph import read_graph
from harness.export.vela import compile_graph
from harness.localise.known import known_defect
from harness.localise.reduce import Smallest, reduce
from harness.localise.trial import trial


def smallest_of(
    program: Program, delegate: int, input_set: int = 0, *, tries: int = 200
) -> Smallest | None:
    """None when the graph, compiled anew, is right for these inputs."""
    one = program.delegates[delegate]
    names = one.sets[input_set].inputs
    inputs = [
        spec.decode((program.directory / name).read_bytes())
        for spec, name in zip(one.inputs, names, strict=True)
    ]
    tosa = (program.directory / one.tosa).read_bytes()
    compiled = partial(compile_graph, options=_options(program))
    with quiet.captured():
        return reduce(tosa, inputs, trial(compiled), tries=tries)


def known_of(smallest: Smallest, compile_target: str) -> str:
    """The name of a known defect, or nothing."""
    _, product, macs = compile_target.split("-")[-3:]
    return known_defect(read_graph(smallest.tosa), product, int(macs), smallest.trouble)


def stream_of(program: Program, smallest: Smallest) -> bytes:
    """What Vela makes of the smallest part."""
    with quiet.captured():
        return compile_graph(smallest.tosa, _options(program))


def listed(smallest: Smallest) -> tuple[str, ...]:
    """A line for each operator: its name, what it reads and what it gives."""
    graph = read_graph(smallest.tosa)

    def shown(name: str) -> str:
        tensor = graph.tensors[name]
        return f"{tensor.dtype or '?'}{list(tensor.shape)}"

    return tuple(
        f"{one.name}: {', '.join(shown(n) for n in one.inputs if n in graph.tensors)} -> "
        f"{', '.join(shown(n) for n in one.outputs)}"
        for one in graph.operators
        if one.name not in ("CONST", "CONST_SHAPE")
    )


def _options(program: Program) -> NpuOptions:
    return NpuOptions(
        program.compile_target, program.system_config, program.memory_mode, program.direct_drive
    )
