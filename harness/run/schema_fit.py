"""Does the firmware read programs by the schema that the exporter writes them by?

Found before anything is built or run: with other numbers for its fields a program is not
refused, it is misread.
"""

from __future__ import annotations

from pathlib import Path

from harness.core.errors import BuildError
from harness.export.exporter import ExporterFacts, exporter_label
from harness.firmware.executorch.checkout import Checkout
from harness.firmware.source import FirmwareSource
from harness.formats.conform import SchemaDifference, conform
from harness.formats.schema import PTE, read_schema
from harness.system.paths import executorch_package


class SchemaMismatch(BuildError):
    """``difference``: the first place where the schemas do not fit; ``exporter`` and ``firmware``:
    whose they are."""

    kind = "schema_mismatch"

    def __init__(
        self, exporter: str, firmware: FirmwareSource, difference: SchemaDifference, reader: Path
    ) -> None:
        self.exporter = exporter
        self.firmware = firmware.name
        self.where = difference.where
        self.written = difference.writer
        self.read = difference.reader
        super().__init__(
            f"the firmware would misread the program: {self.where} is '{self.written}' in the "
            f"schema of the exporter ({exporter}), and '{self.read}' in that of the firmware "
            f"({firmware})",
            hint=firmware.schema_hint,
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
    reader = firmware.schema_root(checkout) / PTE
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
    schema_notes(exporter, firmware, None if checkout is None else checkout.root)
