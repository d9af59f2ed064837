"""The accepted file of a subject: one reviewed file, written by ``hil accept`` and by nothing else.

A subject is a case, ``references/<target>/<name>.json``, or a target's runner,
``references/<target>/runner.json``; the name of a user's model is its path (``Case.name``). The
results of a checkout's runner are another subject, ``<name>.executorch.json``, and are never
compared with the bundled runner's. Figures of the program hold for every toolchain; the others are
kept per toolchain id, because every compiler makes its own size. A folded anatomy is kept too: it
names the cause of a later growth without the file that was accepted.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.config.case import Case, is_user_file, repository_of
from harness.config.figures import MeasuredIn, figure
from harness.config.schema import Data, checked
from harness.core.errors import InfraError, UsageError
from harness.export.estimates import NpuCost
from harness.export.program import OutputAccuracy
from harness.firmware.names import BUNDLED, source_names
from harness.firmware.source import label
from harness.judge.program_contents import ProgramContents
from harness.size.anatomy import Anatomy, FoldedAnatomy
from harness.system.files import MALFORMED, read_json
from harness.system.paths import references_dir

ANY_TOOLCHAIN = "any"  # a program does not depend on the C++ compiler


@dataclass(frozen=True)
class Reference(Data):
    """The accepted outputs and figures of a subject.

    ``outputs`` are the sha256 of every output of every input set, in order; they are compared
    only when the run's ``.pte`` is the accepted one (``pte_sha256``). ``contents``: what that
    program contains, to say how another one differs; ``accuracy`` is its own. All are empty until a
    run was accepted.
    ``firmware`` has the figures of firmware and run by toolchain id. ``anatomies`` has that of
    a program under ``ANY_TOOLCHAIN``, that of a runner under its toolchain. ``history`` says
    when, why, for which toolchain, and what became of each figure, oldest first. ``truth``:
    these outputs are what every firmware has to give for this program, whatever the oracle says.
    ``npu_cost``: Vela's estimate of each operator, to say which one grew.
    """

    pte_sha256: str
    outputs: tuple[tuple[str, ...], ...]
    program: dict[str, int]
    firmware: dict[str, dict[str, int]]
    history: tuple[dict[str, Any], ...]
    anatomies: dict[str, FoldedAnatomy] = field(default_factory=dict)
    truth: bool = False
    contents: ProgramContents | None = None
    accuracy: tuple[OutputAccuracy, ...] = ()
    npu_cost: NpuCost | None = None

    def accepted(self, toolchain: str) -> dict[str, int]:
        """Return the accepted figures for one toolchain."""
        return {**self.program, **self.firmware.get(toolchain, {})}

    def figures_and_outputs(self) -> Reference:
        """As a run's record keeps it."""
        return replace(self, anatomies={}, contents=None)

    def equals_without_history(self, other: Reference) -> bool:
        """Whether they are equal except for the history."""
        return replace(self, history=other.history) == other


@dataclass(frozen=True)
class Acceptance:
    """The outputs and figures to accept for a subject, and the reason.

    ``figures`` replace all that were accepted of the same ``stages``. ``outputs``: None when
    no run is accepted. ``program_change``: how its program differs from the one accepted before.
    """

    toolchain: str
    reason: str
    when: str
    stages: tuple[MeasuredIn, ...] = ()
    figures: Mapping[str, int] = field(default_factory=dict)
    anatomies: Mapping[str, Anatomy] = field(default_factory=dict)
    pte_sha256: str = ""
    outputs: tuple[tuple[str, ...], ...] | None = None
    truth: bool = False
    contents: ProgramContents | None = None
    accuracy: tuple[OutputAccuracy, ...] = ()
    npu_cost: NpuCost | None = None
    program_change: str = ""


def propose(old: Reference | None, accepting: Acceptance) -> Reference:
    """Return the reference that would make this the accepted state; other toolchains are kept."""
    old = old or Reference("", (), {}, {}, ())
    figures = {n: v for n, v in accepting.figures.items() if figure(n).gated}
    own = _kept(old.firmware.get(accepting.toolchain, {}), accepting.stages)
    own |= {n: v for n, v in figures.items() if figure(n).per_toolchain}
    program = _kept(old.program, accepting.stages)
    program |= {n: v for n, v in figures.items() if not figure(n).per_toolchain}
    known = own or accepting.toolchain in old.firmware
    folded = {t: FoldedAnatomy.of(a) for t, a in accepting.anatomies.items()}
    new = replace(
        old,
        program=program,
        firmware={**old.firmware, accepting.toolchain: own} if known else old.firmware,
        anatomies=old.anatomies | folded,
    )
    if "program" in accepting.stages:
        new = replace(new, npu_cost=accepting.npu_cost)
    if accepting.outputs is not None:
        new = replace(
            new,
            pte_sha256=accepting.pte_sha256,
            outputs=accepting.outputs,
            truth=accepting.truth,
            contents=accepting.contents,
            accuracy=accepting.accuracy,
        )
    entry = {
        "when": accepting.when,
        "why": accepting.reason,
        "toolchain": accepting.toolchain,
        "what": _changes(old, new, accepting.toolchain),
        **({"program": accepting.program_change} if accepting.program_change else {}),
    }
    return replace(new, history=(*old.history, entry))


def _kept(figures: Mapping[str, int], replaced: Collection[MeasuredIn]) -> dict[str, int]:
    return {n: v for n, v in figures.items() if not figure(n).measured_by(replaced)}


def _changes(old: Reference, new: Reference, toolchain: str) -> dict[str, list[Any]]:
    """Return the old and new value of each difference; of the ``.pte`` its sha256."""
    before, after = (
        {
            **one.accepted(toolchain),
            "pte_sha256": one.pte_sha256 or None,
            "truth": one.truth or None,
            **{f"{a.output} sqnr_db": a.sqnr_db for a in one.accuracy},
            **{f"{a.output} top1": a.top1 for a in one.accuracy if a.top1 is not None},
        }
        for one in (old, new)
    )
    names = sorted({*before, *after})
    return {n: [before.get(n), after.get(n)] for n in names if before.get(n) != after.get(n)}


def references_of(case: Case) -> Path:
    """Return the directory of a case's accepted files.

    It is in the user's repository for a user's model, in the harness's for others, or
    ``$HIL_REFERENCES``."""
    root = repository_of(Path(case.model)) if is_user_file(case.model) else None
    return references_dir(root)


def reference_path(root: Path, case: Case, source: str = BUNDLED) -> Path:
    """``<target>/<name>.json``; a model in no repository is below ``@``, with its whole path."""
    whose = f".{source}" if label(source) else ""
    name = f"@{case.name}" if case.name.startswith("/") else case.name
    return root / case.board / f"{name}{whose}.json"


def accepted_runs(source: str, target: str) -> list[Case]:
    """Return the cases with an accepted run of another firmware. ``target``: "*" for any."""
    root, end = references_dir(), f".{source}.json"
    names = (str(file.relative_to(root)) for file in sorted(root.glob(f"{target}/**/*{end}")))
    parts = (name.removesuffix(end).partition("/") for name in names)
    return [Case(board, name.removeprefix("@")) for board, _, name in parts]


def load_reference(root: Path, case: Case, source: str = BUNDLED) -> Reference | None:
    """Return the accepted reference of a subject, or None. Raises UsageError if malformed."""
    path = reference_path(root, case, source)
    return read_reference(path) if path.exists() else None


def read_reference(path: Path) -> Reference:
    """Read a reference. Raises UsageError on a malformed file."""
    try:
        return from_fields(read_json(path))
    except OSError as error:
        raise InfraError(f"cannot read {path}: {error.strerror}", path=path) from error
    except MALFORMED as error:
        raise UsageError(
            f"{path} is not a reference: {repr(error)[:200]}",
            hint="restore it from version control, or accept the case again",
            path=path,
        ) from error


def load_truth(root: Path, case: Case) -> Reference | None:
    """Return the reference whose outputs are the truth of a case for every firmware, if one is."""
    references = (load_reference(root, case, source) for source in source_names())
    return next((r for r in references if r is not None and r.truth), None)


def from_fields(fields: Mapping[str, Any]) -> Reference:
    """From an accepted file. Raises what ``MALFORMED`` names."""
    anatomies = fields.get("anatomies", {})
    given = {**fields, "anatomies": {t: FoldedAnatomy.from_fields(f) for t, f in anatomies.items()}}
    no_run = {} if "pte_sha256" in fields else {"pte_sha256": "", "outputs": ()}
    return checked(Reference, {**no_run, **given})


def render(reference: Reference) -> str:
    """Return the text of the file: figures first, one per line; what only machines read, last."""
    has_run = bool(reference.pte_sha256)
    fields = {
        "program": dict(sorted(reference.program.items())),
        "firmware": {t: dict(sorted(f.items())) for t, f in sorted(reference.firmware.items())},
        **({"pte_sha256": reference.pte_sha256, "outputs": reference.outputs} if has_run else {}),
        **({"truth": True} if reference.truth else {}),
        **({"accuracy": [*map(asdict, reference.accuracy)]} if reference.accuracy else {}),
        "history": reference.history,
        **({} if reference.npu_cost is None else {"npu_cost": reference.npu_cost.to_fields()}),
        **({} if reference.contents is None else {"contents": asdict(reference.contents)}),
        "anatomies": {t: a.to_fields() for t, a in sorted(reference.anatomies.items())},
    }
    return _lines(fields, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    """JSON with every entry on a line of its own, but a list of plain values on one."""
    deeper = indent + " "
    if isinstance(value, Mapping) and value:
        entries = [f"{deeper}{json.dumps(k)}: {_lines(v, deeper)}" for k, v in value.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and any(
        isinstance(v, Mapping | list | tuple) for v in value
    ):
        return "[\n" + ",\n".join(deeper + _lines(v, deeper) for v in value) + f"\n{indent}]"
    return json.dumps(value)


def diff(path: Path, old: Reference | None, new: Reference) -> str:
    """Return the proposed change as a unified diff."""
    before = render(old).splitlines(keepends=True) if old else []
    after = render(new).splitlines(keepends=True)
    name = str(path) if old else "/dev/null"
    return "".join(difflib.unified_diff(before, after, fromfile=name, tofile=str(path), n=1))
