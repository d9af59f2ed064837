"""Does the firmware read programs by the schema that the exporter writes them by?

Found before anything is built or run: with other numbers for its fields a program is not
refused, it is misread.
"""

from __future__ import annotations

from pathlib import Path

from harness.build.executorch.checkout import Checkout
from harness.build.plan import executorch_package
from harness.build.source import FirmwareSource
from harness.errors import BuildError
from harness.export.exporter import ExporterFacts, exporter_label
from harness.formats.conform import SchemaDifference, conform
from harness.formats.schema import PTE, read_schema


class SchemaMismatch(BuildError):
    """``difference``: the first place where the schemas do not fit; ``exporter`` and ``firmware``:
    whose they are."""

    kind = "schema_mismatch"

    def __init__(
        self, exporter: str, firmware: FirmwareSource, difference: SchemaDifference, reader: Path
    ) -> None:
        self.exporter = exporter
        self.firmware = firmware
        self.where = difference.where
        self.written = difference.writer
        self.read = difference.reader
        ours = firmware is FirmwareSource.BUNDLED
        super().__init__(
            f"the firmware would misread the program: {self.where} is '{self.written}' in the "
            f"schema of the exporter ({exporter}), and '{self.read}' in that of the firmware "
            f"({firmware})",
            hint="export with the wheel, whose schema the bundled runner is built from "
            "(--exporter wheel), or run the checkout's (--firmware executorch)"
            if ours
            else "export with the checkout, too: --exporter checkout",
            path=reader,
        )


def schema_notes(
    exporter: ExporterFacts | None, firmware: FirmwareSource, checkout: Path | None
) -> tuple[str, ...]:
    """What only one of the two schemas has, in words; it does no harm where it is not used.

    ``checkout``: that of the firmware. Raises SchemaMismatch, InfraError for a schema that flatc
    does not take.
    """
    package = executorch_package()
    writer = (package if exporter is None else Path(exporter.path)) / PTE
    reader = (checkout if checkout is not None else package) / PTE
    if writer == reader:
        return ()
    found = conform(read_schema(writer), read_schema(reader))
    if found.difference is not None:
        raise SchemaMismatch(exporter_label(exporter), firmware, found.difference, reader)
    if not found.grown:
        return ()
    return (
        "the schemas of the exporter (writer) and of the firmware (reader) differ where it does "
        f"no harm unless used: {'; '.join(found.grown)}",
    )


def require_schema(
    exporter: ExporterFacts | None, firmware: FirmwareSource, checkout: Checkout | None
) -> None:
    """Before a build. Raises as ``schema_notes`` does."""
    used = checkout is not None and firmware is FirmwareSource.EXECUTORCH
    schema_notes(exporter, firmware, checkout.root if used and checkout is not None else None)
