"""The smallest part of a TOSA graph on which the NPU still does not compute what TOSA means.

Operators are left out as long as the same kind of trouble stays: halves first, then smaller
portions, then one by one (delta debugging). What an operator that was left out had given becomes
an input, with the value that TOSA's reference model computes for it. A try costs a compilation by
Vela, so ``tries`` bounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.core.errors import ExportError
from harness.core.verdict import Word
from harness.export.child.tosa_graph import (
    Array,
    Graph,
    computed,
    part,
    read_graph,
    run_graph,
    with_outputs,
)
from harness.npu.errors import AccessError, EthosUError, Unwritten
from harness.npu.model import Network


class Trouble(Word):
    """What may be wrong with a compiled graph."""

    VALUES = "other values"  # it computes something else than TOSA
    OUTSIDE = "outside its memory"  # it reads or writes where it may not
    UNWRITTEN = "an output is not written"
    MISSING = "an output is missing"


Trial = Callable[[bytes, Sequence[Array]], "Trouble | None"]  # graph, inputs
Compile = Callable[[bytes], bytes]  # of a graph to a blob; ExportError when it is refused


@dataclass(frozen=True)
class Smallest:
    """``operators``: what is left, in order; ``whole``: how many there were. ``tries`` made."""

    tosa: bytes
    inputs: tuple[Array, ...]
    trouble: Trouble
    operators: tuple[str, ...]
    whole: int
    tries: int


class _Enough(Exception):
    pass


def reduce(
    tosa: bytes, inputs: Sequence[Array], trial: Trial, *, tries: int = 200
) -> Smallest | None:
    """None when there is no trouble with the graph as it is."""
    whole = _Whole(tosa, inputs)
    trouble = trial(tosa, inputs)
    if trouble is None:
        return None
    search = _Search(whole, trial, trouble, tries)
    kept = search.shrink()
    graph, values = whole.cut(kept) if len(kept) < len(whole.chosen) else (tosa, tuple(inputs))
    names = tuple(whole.graph.operators[i].name for i in kept)
    return Smallest(graph, values, trouble, names, len(whole.chosen), search.made)


class _Whole:
    """The graph with every value that it computes; ``chosen``: operators that may be left out,
    by index. The others compute constants, and come along with what needs them."""

    def __init__(self, tosa: bytes, inputs: Sequence[Array]) -> None:
        self.tosa = tosa
        self.graph: Graph = read_graph(tosa)
        known = [t.name for t in computed(self.graph) if t.dtype]
        self.values = dict(zip(known, run_graph(with_outputs(tosa, known), inputs), strict=True))
        given = [tensor.name for tensor in self.graph.inputs]
        self.values.update(zip(given, inputs, strict=True))
        reached = {tensor.name for tensor in computed(self.graph)} | set(given)
        self._reached = reached
        self.chosen = [
            i for i, o in enumerate(self.graph.operators) if reached.intersection(o.outputs)
        ]

    def cut(self, kept: Sequence[int]) -> tuple[bytes, tuple[Array, ...]]:
        """KeyError: a value that would be an input has a type that numpy does not know."""
        operators = self.graph.operators
        made = {name for i in kept for name in operators[i].outputs}
        needed = [name for i in kept for name in operators[i].inputs]
        inputs = [n for n in dict.fromkeys(needed) if n in self._reached and n not in made]
        wanted = {tensor.name for tensor in self.graph.outputs} | (made - set(needed))
        outputs = [n for i in kept for n in operators[i].outputs if n in wanted]
        every = {*kept, *self._constants(needed)}
        graph = part(self.tosa, every, inputs, outputs)
        return graph, tuple(self.values[name] for name in inputs)

    def _constants(self, names: Iterable[str]) -> set[int]:
        found: set[int] = set()
        open_ = {n for n in names if n not in self._reached}
        for index in reversed(range(len(self.graph.operators))):
            operator = self.graph.operators[index]
            if open_.intersection(operator.outputs):
                found.add(index)
                open_.update(operator.inputs)
        return found


class _Search:
    def __init__(self, whole: _Whole, trial: Trial, trouble: Trouble, tries: int) -> None:
        self._whole, self._trial, self._trouble, self._most = whole, trial, trouble, tries
        self.made = 0
        self._seen: dict[tuple[int, ...], bool] = {}

    def shrink(self) -> list[int]:
        kept, portions = list(self._whole.chosen), 2
        try:
            while len(kept) > 1:
                smaller = self._smaller(kept, portions)
                if smaller is not None:
                    kept, portions = smaller, max(2, min(portions - 1, len(smaller)))
                elif portions >= len(kept):
                    break
                else:
                    portions = min(len(kept), 2 * portions)
        except _Enough:
            pass
        return kept

    def _smaller(self, kept: list[int], portions: int) -> list[int] | None:
        """One portion alone, or all but one."""
        size = -(-len(kept) // portions)
        pieces = [kept[i : i + size] for i in range(0, len(kept), size)]
        rests = [[i for i in kept if i not in piece] for piece in pieces]
        for candidate in (*pieces, *rests) if portions == 2 else (*rests,):
            if candidate and len(candidate) < len(kept) and self._stays(candidate):
                return candidate
        return None

    def _stays(self, candidate: list[int]) -> bool:
        key = tuple(candidate)
        if key not in self._seen:
            if self.made >= self._most:
                raise _Enough
            self.made += 1
            try:
                graph, inputs = self._whole.cut(candidate)
            except KeyError:
                self._seen[key] = False
            else:
                self._seen[key] = self._trial(graph, inputs) is self._trouble
        return self._seen[key]


def npu_trial(compiled: Compile) -> Trial:
    """Whether the NPU computes what a graph means: compiled by Vela, run on the functional model.
    A graph that Vela, TOSA or the model refuses is no trouble."""

    def run(tosa: bytes, inputs: Sequence[Array]) -> Trouble | None:
        try:
            expected = run_graph(tosa, inputs)
            network = Network(compiled(tosa))
        except (ExportError, EthosUError):
            return None
        if len(network.blob.inputs) != len(inputs):
            return None  # Vela leaves out what no operator reads
        return _compare(network, inputs, expected)

    return run


def _compare(
    network: Network, inputs: Sequence[Array], expected: Sequence[Array]
) -> Trouble | None:
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
