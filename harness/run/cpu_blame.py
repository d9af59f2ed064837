"""After a MISMATCH on a CPU: which operator is wrong, and whose fault that is.

The result of each instruction is looked up among the values of the exported graph. The first
instruction whose result is not there is blamed on its kernel, unless it reads a value that was
right when it was written and is not any more: then the exported program is wrong (a view, or memory
that is used twice).

Each runner adds floats up in an order of its own. Where only the last bits of floats differ, and a
quantisation rounds them to another integer, no operator is wrong: that is ``float_rounding``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.config.known import PASSES, Trouble
from harness.core.errors import HarnessError
from harness.core.judgement import Blame, Reason
from harness.export.graph_values import GraphValues
from harness.formats.pte import Instruction
from harness.judge.executorch_defects import defects_in
from harness.judge.first_difference import FirstDifference, first_difference, first_upstream
from harness.run.cut_runs import CutRuns

Found = tuple[str, Blame | None]  # where, and whose fault
Operands = list[tuple[int, bytes]]  # the values that an instruction reads
# How far from a half the float that an integer step rounded may lie: float32 has 24 bits, and
# 16-bit values take 16 of them.
_ROUNDING = 0.51
_HELPS = (
    "what helps: quantise that layer, so that integers reach the rounding (for a Conv1d on a "
    "Cortex-M `layout: explicit`), or allow the difference with `tolerance_lsb` in the budgets"
)


@dataclass
class _Graph:
    """Values of the exported graph. ``output``: the value of the output that was judged wrong."""

    runs: CutRuns
    values: GraphValues
    output: int
    exchanged: dict[int, str] = field(default_factory=dict)  # by a delegate's instruction

    def right(self, value: int, raw: bytes, after: int, *, exactly: bool = False) -> bool:
        last, meant = self.runs.of_delegates.get(value, (-1, b""))
        if after <= last:  # the oracle has this very value
            return raw == meant
        return self.values.have(self.runs.spec(value).decode(raw), exactly=exactly)

    def wrong(self, step: Instruction) -> bool | None:
        """Whether a result differs beyond the last bits of floats; the judged output, at all."""
        return self._differs(step, (self.output,))

    def inexact(self, step: Instruction) -> bool | None:
        return self._differs(step, step.values)

    def _differs(self, step: Instruction, exactly: Sequence[int]) -> bool | None:
        results = self.runs.results(step)
        if results is None:
            return None
        if step.is_delegate:
            self.exchanged[step.number] = _wrong_outputs(self.runs, step, results)
        pairs = zip(step.values, results, strict=True)
        return not all(
            self.right(value, raw, step.number, exactly=value in exactly) for value, raw in pairs
        )


def blame_on_cpu(runs: CutRuns, output: str) -> Found:
    """Find the first wrong operator, or why not. ``output``: which was judged wrong."""
    if not runs.program.values:
        return "not found: the graph of this lowering was not run", None
    try:
        names = [spec.name for spec in runs.program.outputs]
        value = runs.cuttable.outputs[names.index(output)]
        graph = _Graph(runs, GraphValues(runs.program.directory / runs.program.values), value)
        found = first_difference(runs.cuttable, graph.wrong)
    except HarnessError as error:
        return f"not found: {error.message}", None
    if found is None:
        return "not found: each instruction gives what the exported graph has", None
    steps = runs.cuttable.instructions()
    before, step = steps[found.instruction - 1], steps[found.instruction]
    read = runs.values(before, found.read)
    if not found.sure or read is None:
        return f"{found}; what it reads could not be compared", None
    operands = list(zip(found.read, read, strict=True))
    if not all(graph.right(*operand, before.number) for operand in operands):
        why = "what the operator reads was right when it was written"
        return _blamed(runs, found, PASSES, Trouble.VIEW, why)
    if _is_rounding(graph, step, operands):
        return _float_rounding(graph, found)
    if not all(graph.right(*operand, before.number, exactly=True) for operand in operands):
        return f"{found}; what it reads differs in the last bits of floats", None
    ours = runs.firmware.source.follows_definitions
    part = "backend" if found.operator.startswith("delegate ") else "kernel"
    culprit = f"{'the bundled runner' if ours else 'ExecuTorch'}'s {part}"
    if runs.pte != runs.program.pte_path:
        culprit = f"the program file {runs.pte}, or {culprit}"
    trouble = None if ours else Trouble.WRONG
    why = graph.exchanged.get(found.instruction, "") + "what the operator reads is right"
    return _blamed(runs, found, culprit, trouble, why)


def _is_rounding(graph: _Graph, step: Instruction, operands: Operands) -> bool:
    """Return whether a result is wrong in the last bits of floats, or quantises such floats.

    Any other operator that reads them may be wrong as well."""
    results = graph.runs.results(step) or ()
    pairs = list(zip(step.values, results, strict=False))
    if pairs and all(graph.right(*pair, step.number) for pair in pairs):
        return True
    named = step.operator.partition("::")[2].startswith("quantize_per_tensor.")
    if not (named and len(pairs) == len(operands) == 1):
        return False
    numbers = [_number(graph.runs, value) for value in step.arguments[1:5]]
    if None in numbers:
        return False
    scale, zero_point, low, high = numbers
    (read, raw), (written, result) = *operands, *pairs
    meant = graph.runs.spec(read).decode(raw).astype(np.float64) / scale + zero_point
    rounded = graph.runs.spec(written).decode(result).astype(np.float64)
    return bool((np.abs(rounded - np.clip(meant, low, high)) <= _ROUNDING).all())


def _number(runs: CutRuns, value: int) -> Any:
    number = runs.cuttable.values[value].get("val") if value >= 0 else None
    names = {"Int": "int_val", "Double": "double_val"}
    if number is None or number.name not in names:
        return None
    return number.get(names[number.name])


def _float_rounding(graph: _Graph, found: FirstDifference) -> Found:
    origin = first_upstream(graph.runs.cuttable, graph.inexact, found.instruction)
    text = f"no operator's: {origin.place} adds floats up in another order than the oracle"
    if origin.instruction != found.instruction:
        text += f", and {found.place} rounds what comes of its last bits to another value"
    culprit = "the order in which floats are added up"
    facts = {
        "culprit": culprit,
        "instruction": origin.instruction,
        "operator": origin.operator,
        "rounded_by": found.operator,
    }
    return str(found), Blame(culprit, f"{text}; {_HELPS}", facts, Reason.FLOAT_ROUNDING)


def _wrong_outputs(runs: CutRuns, call: Instruction, results: Sequence[bytes]) -> str:
    """Name a delegate's wrong outputs, and whether they are exchanged; "" for a single one."""
    meant = [runs.of_delegates.get(value, (0, b""))[1] for value in call.values]
    wrong = [n for n, raw in enumerate(results) if meant[n] and raw != meant[n]]
    where = {n: meant.index(results[n]) for n in wrong if results[n] in meant}
    texts = [f"output {n} is {f'output {where[n]}' if n in where else 'wrong'}" for n in wrong]
    return f"{' and '.join(texts)} of the delegate; " if texts and len(meant) > 1 else ""


def _blamed(
    runs: CutRuns, found: FirstDifference, culprit: str, trouble: Trouble | None, why: str
) -> Found:
    """``trouble``: of a known defect that would explain it."""
    for defect in defects_in(runs.pte):
        if defect.instruction == found.instruction and defect.known.trouble is trouble:
            return defect.place, defect.blame
    facts = {"culprit": culprit, "instruction": found.instruction, "operator": found.operator}
    return str(found), Blame(culprit, f"{culprit}, not your model: {why}", facts)
