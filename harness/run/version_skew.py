"""Checks whether a firmware reads what an exporter of another version writes.

The file's schema and the arguments of operators are checked before anything runs. A program of the
wheel that does not fit a checkout's runner is exported again, with the checkout, unless the user
chose the exporter.

The wrapper of a kernel is generated from the operator's schema in a YAML file of ExecuTorch. It
counts a call's arguments, outputs included and the returned value once more, and reads each as the
type in the schema (``codegen/gen.py``, cff6f4dd32). Operators without a schema there are torch's,
and are not checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from harness.config.case import Case
from harness.config.target import Target
from harness.core.errors import ExportError, HarnessError, MalformedFile
from harness.core.tables import read_table
from harness.export.batch import ExportOptions
from harness.export.exporter import exporter_label
from harness.export.program import Program
from harness.export.request import exporter_versions
from harness.firmware.checkout import Checkout
from harness.firmware.operators import plans_in
from harness.firmware.source import FirmwareSource
from harness.formats.pte import calls_of, operator_names
from harness.formats.schema import PTE, conform, read_schema
from harness.run.subjects import export_cases
from harness.system.files import text_of
from harness.system.paths import executorch_package
from harness.system.progress import Progress

_WHEEL = "executorch"  # its name in ``exporter_versions``
_PIN = re.compile(r"executorch\[ethos-u\]==([\w.]+)")

_FUNCTION = re.compile(r"^- func: ([\w:.]+)\((.*)\) *-> ", re.MULTILINE)
_TYPE = re.compile(r"(?:^|, )([A-Za-z]\w*(?:\([^)]*\))?[\w\[\]?]*) \w")
_ALIAS = re.compile(r"\([^)]*\)|\d+(?=\])")  # of "Tensor(a!)", "int[2]"
_NOTHING = "Null"

Signatures = Mapping[str, tuple[str, ...]]


def declared(root: Path) -> Signatures:
    """Return the types of the arguments of each operator that the ExecuTorch in ``root`` has.

    ``root``: a checkout, or the wheel's package. Outputs come last; a missing file declares
    nothing."""
    signatures = {}
    for file in read_table(__file__)["declared_in"]:
        for name, arguments in _FUNCTION.findall(text_of(root / file)):
            types = tuple(_ALIAS.sub("", each) for each in _TYPE.findall(arguments))
            signatures[name if "::" in name else f"aten::{name}"] = types
    return signatures


def arguments_in(pte: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return each operator that a ``.pte`` calls, once, with the kinds of its arguments.

    The kinds are members of KernelTypes. Empty for a file that violates the format."""
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


def redeclared(writer: Path, reader: Path) -> dict[str, str]:
    """Return the operators that two ExecuTorches declare with other arguments, and how."""
    written, read = declared(writer), declared(reader)
    return {
        operator: f"takes {len(types)} arguments, not {len(written[operator])}"
        if len(types) != len(written[operator])
        else "takes arguments of other types"
        for operator, types in read.items()
        if operator in written and types != written[operator]
    }


def first_misfit(pte: Path, written: Signatures, read: Signatures) -> tuple[str, str] | None:
    """Return the operator that a firmware would refuse or misread first, and how, as a predicate.

    ``written``: the exporter's declarations, nothing when unknown. ``read``: those of the
    firmware's version."""
    for operator, given in arguments_in(pte):
        if (types := read.get(operator)) is None:
            if operator in written:
                return operator, "is not declared there"
        elif (text := _difference(types, given[:-1])) is not None:
            return operator, text
    return None


def _difference(types: tuple[str, ...], given: tuple[str, ...]) -> str | None:
    if len(types) != len(given):
        return f"takes {len(types)} arguments there, and the program gives it {len(given)}"
    for number, (kind, value) in enumerate(zip(types, given, strict=True), start=1):
        possible = read_table(__file__)["values"].get(kind.removesuffix("?"))
        if possible is None or value in possible or (kind.endswith("?") and value == _NOTHING):
            continue
        return f"takes {kind} as argument {number} there, and the program gives it {value}"
    return None


class VersionSkew(ExportError):
    """A program of ``exporter`` does not fit the firmware's ExecuTorch.

    That is in ``root``, or the pinned release's. ``what``: the part of the program; ``text``, a
    predicate, says how."""

    kind = "version_skew"

    def __init__(
        self, exporter: str, firmware: FirmwareSource, root: Path, what: str, text: str
    ) -> None:
        self.exporter, self.firmware = exporter, firmware.name
        release = pinned_release() if firmware.arguments() else ""
        release = release or text_of(root / "version.txt").strip()  # only a checkout has the file
        self.version, self.what = release or exporter_versions()[_WHEEL], what
        whose = "the checkout" if firmware.needs_checkout else firmware.runner
        message = f"exported by {exporter}, {whose} is {self.version}: {what} {text}"
        super().__init__(message, hint=firmware.schema_hint, path=root)


def pinned_release() -> str:
    """Return the release of ExecuTorch that this version of the harness is written for."""
    wanted = map(_PIN.match, metadata.requires("executorch-hil") or ())
    return next(match[1] for match in wanted if match is not None)


def require_fit(
    pte: Path, program: Program | None, firmware: FirmwareSource, checkout: Path | None
) -> tuple[str, ...]:
    """Return the parts that only one of the two schemas has; they do no harm unless used.

    ``program``: None when nobody knows who exported the file; ``checkout``: the firmware's. Raises
    VersionSkew for a program that the firmware would misread, or that calls an operator otherwise
    than the firmware's ExecuTorch declares it; InfraError for a schema that flatc does not take."""
    reader, exporter = firmware.schema_root(checkout), "another version"
    written: Signatures = {}
    grown: Sequence[str] = ()
    if program is not None:
        facts = program.exporter
        writer = executorch_package() if facts is None else Path(facts.path)
        exporter = f"the {exporter_label(facts, program.versions.get(_WHEEL, ''))}"
        if (own := firmware.arguments()) and (misfit := first_misfit(pte, {}, own)) is not None:
            raise VersionSkew(exporter, firmware, reader, *misfit)
        if writer == reader:
            return ()
        schemas = conform(read_schema(writer / PTE), read_schema(reader / PTE))
        if (found := schemas.difference) is not None:
            text = f"is '{found.reader}' there, and '{found.writer}' in the exporter's schema"
            raise VersionSkew(exporter, firmware, reader, found.where, text)
        written, grown = declared(writer), schemas.grown
    if (misfit := first_misfit(pte, written, declared(reader))) is not None:
        raise VersionSkew(exporter, firmware, reader, *misfit)
    only = "; ".join(grown)
    harmless = (
        "the exporter's schema (writer) and the firmware's (reader) differ where it does no harm"
    )
    return (f"{harmless} unless used: {only}",) if only else ()


def export_to_fit(
    programs: Mapping[Case, Program | HarnessError],
    targets: Mapping[str, Target],
    checkout: Checkout,
    firmware: FirmwareSource,
    options: ExportOptions,
    progress: Progress,
) -> dict[Case, Program | HarnessError]:
    """Export with the checkout what ``firmware`` of the checkout does not fit.

    ``programs``: of the wheel. The others stay; an exported one has a note of why."""
    skewed: dict[Case, VersionSkew] = {}
    for case, program in programs.items():
        try:
            if isinstance(program, Program):
                require_fit(program.pte_path, program, firmware, checkout.root)
        except VersionSkew as error:
            skewed[case] = error
    if not skewed:
        return dict(programs)
    from harness.export.checkout import find_exporter

    progress("the wheel's programs do not fit the checkout: exporting with the checkout")
    exported: Sequence[Program | HarnessError]
    try:
        options = replace(options, checkout=find_exporter(checkout.root))
        exported = export_cases(list(skewed), targets, progress, options)
    except HarnessError as error:
        exported = [error] * len(skewed)
    fitting: dict[Case, Program | HarnessError] = {**programs, **skewed}
    for (case, skew), program in zip(skewed.items(), exported, strict=True):
        if isinstance(program, HarnessError):
            skew.hint = f"{firmware.schema_hint}, which was tried: {program.message}"
        else:
            note = f"exported with the checkout, for the wheel's program does not fit: {skew}"
            fitting[case] = replace(program, notes=(*program.notes, note))
    return fitting
