"""Measures the Anatomy of a file, whatever its kind."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from harness.config.target import Region
from harness.core.errors import MalformedFile, UsageError
from harness.formats import schema
from harness.formats.elf import MAGIC
from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.linker_map import MapRegion
from harness.formats.schema import Schema
from harness.size import elf_anatomy, pte
from harness.size.anatomy import Anatomy, Tally
from harness.size.claims import Claims
from harness.system.files import MALFORMED, read_json, sha256_of

_BUNDLE, _TABLES = ("bundle",), ("tables",)
_RECORD = "program.json"
_PTD_MAGIC, _PTD_HEADER = b"FH01", 40


def measure_file(
    path: Path, regions: Sequence[Region | MapRegion] = (), linker_map: Path | None = None
) -> Anatomy:
    """The anatomy of a ``.pte``, ``.bpte``, ``.ptd`` or ELF, recognised by its content.

    ``regions`` and ``linker_map`` are for an ELF. Raises UsageError for a file that is none of
    these, MalformedFile for one that is truncated or contradicts itself.
    """
    view = _mapped(path)
    magic, identifier = bytes(view[:4]), bytes(view[4:8])
    try:
        if magic == MAGIC:
            return elf_anatomy.anatomy(path, view, regions, linker_map)
        return _reader(identifier, path)(view)
    except MalformedFile as error:
        raise error.within(path) from None


def _reader(identifier: bytes, path: Path) -> Callable[[memoryview], Anatomy]:
    load = schema.load_schema
    if identifier[:2] == b"ET":
        return partial(pte.anatomy, schema=load(schema.PTE), layers=_layers(path))
    if identifier[:2] == b"BP":
        return partial(_bundle, bundle_schema=load(schema.BPTE), program_schema=load(schema.PTE))
    if identifier[:2] == b"FT":
        return partial(_tensors, schema=load(schema.PTD))
    raise UsageError(
        f"{path} is not a .pte, .bpte, .ptd or ELF: its identifier is {identifier!r}",
        hint="`hil run TARGET FILE.py` exports a model file",
        path=path,
        kind="malformed_file",
        identifier=repr(identifier),
    )


def _layers(path: Path) -> tuple[str, ...]:
    """Layers of the model, as its export recorded them: beside a program of the cache, and in the
    directory of its run. () for any other file; a ``.pte`` itself has no layers."""
    for file in (path.with_name(_RECORD), path.absolute().parent.parent / "expected" / _RECORD):
        with suppress(OSError, *MALFORMED):
            fields = read_json(file)
            if fields["pte_sha256"] == sha256_of(path):
                return tuple(map(str, fields["layers"]))
    return ()


def _mapped(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size == 0:
                raise MalformedFile(f"{path} is empty", 0)
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}", path=str(path)) from error


def _bundle(view: memoryview, bundle_schema: Schema, program_schema: Schema) -> Anatomy:
    """A ``.bpte``: a program bundled with test cases.

    Layout: ``devtools/bundled_program/schema/bundled_program_schema.fbs`` of ExecuTorch 1.5.1.
    """
    buffer = FlatBuffer(view, bundle_schema, len(view))
    root, tally = buffer.root(), Tally()
    claims = Claims(buffer, _BUNDLE)
    claims.bytes(0, 8, (*_BUNDLE, "root offset and identifier"))
    program = root.get("program")
    if program is None or not claims.reserve(program, (*_BUNDLE, "program length")):
        raise MalformedFile("there is no program in this bundle", root.pos)
    for suite in root.items("method_test_suites"):
        _claim_suite(suite, claims)
    claims.table(root, (*_BUNDLE, "root"))
    claims.account(tally)
    try:
        inner = pte.anatomy(program.raw(), program_schema)
    except MalformedFile as error:
        raise error.within("the bundled program", program.data) from None
    tally.extend(inner.parts)
    return Anatomy("bpte", len(view), tally.parts(), inner.memory)


def _claim_suite(suite: Table, claims: Claims) -> None:
    method = suite.get("method_name") or "(no name)"
    for number, case in enumerate(suite.items("test_cases")):
        for name in ("inputs", "expected_outputs"):
            path = (*_BUNDLE, method, f"test case {number}", name.replace("_", " "))
            for index, value in enumerate(case.items(name)):
                claims.table(value, (*path, str(index)))
            claims.field(case, name, path)
        claims.table(case, (*_BUNDLE, method, "tables"))
    claims.table(suite, (*_BUNDLE, method, "tables"))


def _tensors(view: memoryview, schema: Schema) -> Anatomy:
    """A ``.ptd``: tensors by name, for programs whose data is in a file of its own.

    Layout (``extension/flat_tensor/serialize`` of ExecuTorch 1.5.1): FlatBuffer with file
    identifier FT01 and, from byte 8, a header ``FH01`` (u32 length, u64 FlatBuffer offset, u64
    FlatBuffer size, u64 segment base, u64 segment size); behind it the data segments.
    """
    if len(view) < 8 + _PTD_HEADER or bytes(view[8:12]) != _PTD_MAGIC:
        raise MalformedFile("no FH01 header", min(8, len(view)))
    length, start, size, base = struct.unpack_from("<IQQQ", view, 12)
    if length < _PTD_HEADER or start + size > len(view) or base > len(view):
        raise MalformedFile("the FH01 header points outside the file", 12)
    limit = start + size
    if start != 0 or 8 + length > limit:
        raise MalformedFile(f"a FlatBuffer at {start} is not supported", 16)
    buffer = FlatBuffer(view, schema, limit)
    root, tally = buffer.root(), Tally()
    claims = Claims(buffer, _TABLES)
    claims.bytes(0, 8, ("header", "root offset and identifier"))
    claims.bytes(8, 8 + length, ("header", "FH01 header"))
    owners: dict[int, pte.Accounting] = {}

    def add(name: str, segment: pte.DataSegment) -> None:
        tally.add(("data", name), segment.end - segment.start)

    for item in root.items("named_data"):
        key = item.get("key") or ""
        owners.setdefault(item.get("segment_index"), partial(add, key))
        claims.table(item, (*_TABLES, "named data", key))
    claims.field(root, "segments", (*_TABLES, "index of segments"))
    claims.table(root, (*_TABLES, "root"))
    claims.account(tally)
    segments = pte.segments_of(root, base, len(view))
    pte.account_segments(view, segments, owners, limit, tally)
    return Anatomy("ptd", len(view), tally.parts())
