"""Measures the Anatomy of a file, whatever its kind."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness.config.target import Region
from harness.core.errors import MalformedFile, UsageError
from harness.formats.elf import MAGIC
from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.linker_map import MapRegion
from harness.formats.schema import BPTE, PTE, load_schema
from harness.size import elf_anatomy, pte
from harness.size.anatomy import Anatomy, Tally
from harness.size.claims import Claims
from harness.system.files import MALFORMED, read_json, regular, sha256_of

_BUNDLE = ("bundle",)
_RECORD = "program.json"


def measure_file(
    path: Path, regions: Sequence[Region | MapRegion] = (), linker_map: Path | None = None
) -> Anatomy:
    """Return the anatomy of a ``.pte``, ``.bpte`` or ELF, recognised by its content.

    ``regions`` and ``linker_map`` are for an ELF. Raises UsageError for any other file,
    MalformedFile for one that is truncated or contradicts itself."""
    view = _mapped(path)
    identifier = bytes(view[4:8])
    try:
        if view[:4] == MAGIC:
            return elf_anatomy.anatomy(path, view, regions, linker_map)
        if identifier[:2] == b"ET":
            return pte.anatomy(view, load_schema(PTE), layers_of(path))
        if identifier[:2] == b"BP":
            return _bundle(view)
    except MalformedFile as error:
        raise error.within(path) from None
    raise UsageError(
        f"{path} is not a .pte, .bpte or ELF: its identifier is {identifier!r}",
        hint="`hil run TARGET FILE.py` exports a model file",
        path=path,
        kind="malformed_file",
        identifier=repr(identifier),
    )


def layers_of(path: Path) -> tuple[str, ...]:
    """Return the layers of the model, as its export recorded them; () for any other file.

    They are next to a program of the cache, and in the directory of its run; a ``.pte`` itself has
    no layers."""
    for file in (path.with_name(_RECORD), path.absolute().parent.parent / "expected" / _RECORD):
        with suppress(OSError, *MALFORMED):
            fields = read_json(file)
            if fields["pte_sha256"] == sha256_of(path):
                return tuple(map(str, fields["layers"]))
    return ()


def _mapped(path: Path) -> memoryview:
    try:
        with regular(path) as (file, size):
            if size == 0:
                raise MalformedFile(f"{path} is empty", 0)
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {path}: {said}", path=path) from error


def _bundle(view: memoryview) -> Anatomy:
    """Return a ``.bpte``, laid out as ExecuTorch 1.5.1's bundled_program_schema.fbs."""
    buffer = FlatBuffer(view, load_schema(BPTE), len(view))
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
        inner = pte.anatomy(program.raw(), load_schema(PTE))
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
