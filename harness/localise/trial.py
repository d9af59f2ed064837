"""Does the NPU compute what a TOSA graph means? Compiled by Vela, run on the model of the NPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.errors import ExportError
from harness.ethosu.codec import Codec
from harness.ethosu.errors import AccessError, EthosUError, Unwritten
from harness.ethosu.model import Network
from harness.export.tosa_graph import Array, run_graph
from harness.localise.reduce import Trial, Trouble

Compile = Callable[[bytes], bytes]  # of a graph to a blob; ExportError when it is refused


def trial(compiled: Compile) -> Trial:
    """What cannot be told, because Vela, TOSA or the model refuses the graph, is no trouble."""
    codec = Codec()

    def run(tosa: bytes, inputs: Sequence[Array]) -> Trouble | None:
        try:
            expected = run_graph(tosa, inputs)
            network = Network(compiled(tosa), codec=codec)
        except (ExportError, EthosUError):
            return None
        if len(network.blob.inputs) != len(inputs):
            return None  # Vela leaves out what no operator reads
        return compare(network, inputs, expected)

    return run


def compare(network: Network, inputs: Sequence[Array], expected: Sequence[Array]) -> Trouble | None:
    if len(network.blob.outputs) != len(expected):
        return Trouble.MISSING
    try:
        outputs, _ = network.run([value.tobytes() for value in inputs])
    except Unwritten:
        return Trouble.UNWRITTEN
    except AccessError:
        return Trouble.OUTSIDE
    except EthosUError:
        return None
    same = all(a == b.tobytes() for a, b in zip(outputs, expected, strict=True))
    return None if same else Trouble.VALUES
