"""Compares arguments of ExecuTorch's operators: as a version declares them, as a program passes
them.

The wrapper of a kernel is generated from the operator's schema in a YAML file of ExecuTorch. It
counts a call's arguments, outputs included and the returned value once more, and reads each as the
type in the schema (``codegen/gen.py``, cff6f4dd32). Operators without a schema there
are torch's, and are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.firmware.operators import plans_in
from harness.formats.pte import calls_of, operator_names

_DECLARED_IN = (
    "backends/cortex_m/ops/operators.yaml",
    "kernels/portable/functions.yaml",
    "kernels/quantized/quantized.yaml",
)
_FUNCTION = re.compile(r"^- func: ([\w:.]+)\((.*)\) *-> ", re.MULTILINE)
_TYPE = re.compile(r"(?:^|, )([A-Za-z]\w*(?:\([^)]*\))?[\w\[\]?]*) \w")
_ALIAS = re.compile(r"\([^)]*\)|\d+(?=\])")  # of "Tensor(a!)", "int[2]"
# The possible values of a type: members of the union KernelTypes in schema/program.fbs. Other types
# are not checked; an optional one may also be Null.
_VALUES = {
    "Tensor": {"Tensor"},
    "Tensor[]": {"TensorList"},
    "Tensor?[]": {"OptionalTensorList", "TensorList"},
    "int": {"Int"},
    "SymInt": {"Int"},
    "ScalarType": {"Int"},
    "float": {"Double", "Int"},
    "bool": {"Bool"},
    "Scalar": {"Int", "Double", "Bool"},
    "str": {"String"},
    "int[]": {"IntList"},
    "SymInt[]": {"IntList"},
    "float[]": {"DoubleList"},
    "bool[]": {"BoolList"},
}
_NOTHING = "Null"

Signatures = Mapping[str, tuple[str, ...]]


def declared(root: Path) -> Signatures:
    """The types of the arguments of each operator that the ExecuTorch in ``root`` (a checkout, the
    wheel's package) declares, outputs last; a missing file declares nothing."""
    signatures = {}
    for file in _DECLARED_IN:
        try:
            text = (root / file).read_text("utf-8")
        except OSError:
            continue
        for name, arguments in _FUNCTION.findall(text):
            types = tuple(_ALIAS.sub("", each) for each in _TYPE.findall(arguments))
            signatures[name if "::" in name else f"aten::{name}"] = types
    return signatures


def arguments_in(pte: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Each operator that a ``.pte`` calls, with the kinds of its arguments (members of
    KernelTypes), once; nothing for a file that violates the format."""
    calls: list[tuple[str, tuple[str, ...]]] = []
    try:
        for plan in plans_in(pte):
            names = operator_names(plan)
            values = [value.get("val") for value in plan.items("values")]
            kinds = [_NOTHING if value is None else value.name for value in values]
            for call in calls_of(plan):
                if call is not None and call.name == "KernelCall":
                    given = tuple(kinds[index] for index in call.items("args"))
                    calls.append((names[call.get("op_index")], given))
    except (MalformedFile, IndexError):
        return []
    return list(dict.fromkeys(calls))


@dataclass(frozen=True)
class Misfit:
    """``operator``: its full name. ``text``: what does not fit, as a predicate."""

    operator: str
    text: str


def first_misfit(pte: Path, written: Signatures, read: Signatures) -> Misfit | None:
    """The first call of a program that a firmware would refuse or misread. ``written``:
    the exporter's declarations, nothing when unknown. ``read``: those of the firmware's version."""
    for operator, given in arguments_in(pte):
        if (types := read.get(operator)) is None:
            if operator in written:
                return Misfit(operator, "is not declared there")
        elif (text := _difference(types, given[:-1])) is not None:
            return Misfit(operator, text)
    return None


def _difference(types: tuple[str, ...], given: tuple[str, ...]) -> str | None:
    if len(types) != len(given):
        return f"takes {len(types)} arguments there, and the program gives it {len(given)}"
    for number, (kind, value) in enumerate(zip(types, given, strict=True), start=1):
        possible = _VALUES.get(kind.removesuffix("?"))
        if possible is None or value in possible or (kind.endswith("?") and value == _NOTHING):
            continue
        return f"takes {kind} as argument {number} there, and the program gives it {value}"
    return None
