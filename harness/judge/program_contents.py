"""The contents of a program, operator by operator, and the differences between two programs.

The contents are small enough to be kept with an accepted run. Two programs with equal contents
compute the same: only debug text and the layout of the file may differ. The names of an operator's
arguments are read from the schemas in ExecuTorch's and torch's wheels, for the message alone.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Final

from harness.core.safe_text import counted
from harness.core.tables import read_table

Value = str | int | float | bool | None
Operator = tuple[Value, ...]  # its name, then its parts
_DIGEST = 16  # hex digits; only ever compared with the digest of another export of one model
DELEGATE_PARTS: Final = ("compile specs", "data")
_MOST_SHOWN = 4  # operators in a sentence
_MOST_KEPT = 40  # in a record
_MOST_ALIGNED = 400  # operators that are paired by name; those of a longer stretch in order


def digest_of(value: object) -> str:
    """Return the digest of plain values or of bytes."""
    raw = value if isinstance(value, bytes | memoryview) else repr(value).encode()
    return hashlib.sha256(raw).hexdigest()[:_DIGEST]


@dataclass(frozen=True)
class ProgramContents:
    """The operators that a program executes, as names and digests.

    ``operators`` in the order of execution, each a name and its parts: a tensor as type, shape and,
    of a constant, a digest of its bytes; other arguments as they are. After a delegate for an
    Ethos-U come the operations of its command stream. ``memory``: bytes of the planned buffers.
    ``wiring``: digest of which result goes where; ``placement``: of where in memory each tensor is;
    ``named_data``: of the data that delegates share."""

    memory: tuple[int, ...]
    wiring: str
    placement: str
    named_data: str
    operators: tuple[Operator, ...]

    @property
    def outline(self) -> tuple[str, ...]:
        """Each operator in a few characters: its name, and a digest of its parts."""
        return tuple(f"{one[0]} {digest_of(one[1:])[:8]}" for one in self.operators)


@dataclass(frozen=True)
class PartChange:
    """One part of an operator that differs: an argument by its name, an NPU's register."""

    name: str
    before: Value
    after: Value

    def __str__(self) -> str:
        before, after = _shown(self.before), _shown(self.after)
        if before[0] == after[0] and before[1] and after[1]:
            return f"{self.name} {before[0]} has other values".replace("  ", " ")
        return f"{self.name} is {after[0] or after[1]}, was {before[0] or before[1]}"


def _shown(value: Value) -> tuple[str, str]:
    """Return a value without the digest of its bytes, and that digest."""
    match = re.fullmatch(r"(.*?) ?([0-9a-f]{16})", value) if isinstance(value, str) else None
    return (str(value), "") if match is None else (match[1], match[2])


@dataclass(frozen=True)
class OperatorChange:
    """An operator that differs.

    ``operator``: its name, and which of that name it is. ``change``: "added", "removed" or
    "changed"."""

    operator: str
    change: str
    parts: tuple[PartChange, ...] = ()

    def __str__(self) -> str:
        if not self.parts:
            return f"{self.operator} {self.change}"
        return f"{self.operator}: {', '.join(map(str, self.parts))}"


@dataclass(frozen=True)
class ProgramDifference:
    """The difference of two programs; if both fields are empty, it executes nothing else.

    ``operators``: the first of the ``changed`` operators that differ. ``other``: further
    differences, in words."""

    operators: tuple[OperatorChange, ...] = ()
    changed: int = 0
    other: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.changed and not self.other:
            return "only debug text or the layout of the file"
        shown = [str(change) for change in self.operators[:_MOST_SHOWN]]
        if self.changed > _MOST_SHOWN:
            shown.append(f"{counted(self.changed - _MOST_SHOWN, 'operator')} more")
        return "; ".join((*shown, *self.other))


def difference(before: ProgramContents, after: ProgramContents) -> ProgramDifference:
    """Return the changes since ``before``."""
    changes = list(_operator_changes(before.operators, after.operators))
    other = []
    if before.memory != after.memory:
        other.append(f"planned memory is {_bytes(after.memory)}, was {_bytes(before.memory)}")
    if before.named_data != after.named_data:
        other.append("the data that delegates share differs")
    if not changes and before.wiring != after.wiring:
        other.append("the same operators are connected in another way")
    if not changes and not other and before.placement != after.placement:
        other.append("tensors have other places in the planned memory")
    return ProgramDifference(tuple(changes[:_MOST_KEPT]), len(changes), tuple(other))


def outline_difference(before: Sequence[str], after: Sequence[str]) -> ProgramDifference:
    """Which operators differ in two outlines (``ProgramContents.outline``), but not how."""
    old, new = (tuple(tuple(line.rsplit(" ", 1)) for line in one) for one in (before, after))
    changes = [*_operator_changes(old, new, named=False)]
    other = () if changes else ("not its operators: memory plan, wiring or layout of the file",)
    return ProgramDifference(tuple(changes[:_MOST_KEPT]), len(changes), other)


def _operator_changes(
    before: Sequence[Operator], after: Sequence[Operator], *, named: bool = True
) -> Iterator[OperatorChange]:
    old_names, new_names = _numbered(before), _numbered(after)
    for number, (old, new) in enumerate(_pairs(before, after)):
        if old is None and new is not None:
            yield OperatorChange(new_names[new], "added")
        elif new is None and old is not None:
            yield OperatorChange(old_names[old], "removed")
        elif old is not None and new is not None:
            parts = _parts(before[old], after[new]) if named and number < _MOST_KEPT else ()
            yield OperatorChange(new_names[new], "changed", parts)


def _pairs(
    before: Sequence[Operator], after: Sequence[Operator]
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the places of what differs: of a pair of one name, or of one that has no partner."""
    for tag, i, i_end, j, j_end in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            continue
        old, new = [o[0] for o in before[i:i_end]], [o[0] for o in after[j:j_end]]
        if old == new or max(len(old), len(new)) > _MOST_ALIGNED:
            yield from zip_longest(range(i, i_end), range(j, j_end))
            continue
        for same, a, a_end, b, b_end in SequenceMatcher(None, old, new, False).get_opcodes():
            if same == "equal":
                yield from zip(range(i + a, i + a_end), range(j + b, j + b_end), strict=True)
            else:
                yield from ((n, None) for n in range(i + a, i + a_end))
                yield from ((None, n) for n in range(j + b, j + b_end))


def _numbered(operators: Sequence[Operator]) -> list[str]:
    """ "cortex_m::quantized_linear.out #2" for the second one; without a number if it is alone."""
    total = Counter(operator[0] for operator in operators)
    seen: Counter[Value] = Counter()
    names = []
    for name, *_ in operators:
        seen[name] += 1
        names.append(f"{name} #{seen[name]}" if total[name] > 1 else str(name))
    return names


def _parts(before: Operator, after: Operator) -> tuple[PartChange, ...]:
    names = part_names(str(after[0]))
    return tuple(
        PartChange(names[n] if n < len(names) else f"argument {n}", old, new)
        for n, (old, new) in enumerate(zip_longest(before[1:], after[1:]))
        if old != new
    )


def part_names(operator: str) -> tuple[str, ...]:
    """Return the names of an operator's parts; empty if no schema describes it."""
    if operator.startswith("Ethos-U "):
        return tuple(read_table(__file__)["npu_parts"])
    if operator.startswith("delegate "):
        return DELEGATE_PARTS
    wanted = {operator, operator.removeprefix("aten::")}
    for package, file in read_table(__file__)["schemas"]:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for name, arguments in _schemas(Path(folder) / file):
                if name in wanted:
                    return arguments
    return ()


def _schemas(file: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """``- func: name.overload(Tensor self, *, int[2] size=[1, 1]) -> Tensor`` of each operator."""
    if not file.is_file():
        return
    for name, arguments in re.findall(
        r"^- func: ([\w:.]+)\((.*)\) *->", file.read_text("utf-8"), re.M
    ):
        yield name, tuple(re.findall(r"(?<=[ ])(\w+)(?:=[^,\[]*|=\[[^\]]*\])?(?:,|$)", arguments))


def _bytes(memory: Sequence[int]) -> str:
    return f"{sum(memory):,} bytes"
