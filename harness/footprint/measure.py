"""A file to its Anatomy, whatever kind of file it is; and a run to what it used."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from harness.errors import UsageError
from harness.footprint import bpte, elf_anatomy, ptd, pte
from harness.footprint.anatomy import Anatomy
from harness.formats import schema
from harness.formats.damage import DamagedFile
from harness.formats.elf import MAGIC
from harness.formats.linker_map import MapRegion
from harness.target.model import Region


def measure_file(
    path: Path, regions: Sequence[Region | MapRegion] = (), linker_map: Path | None = None
) -> Anatomy:
    """The anatomy of a ``.pte``, ``.bpte``, ``.ptd`` or ELF, told apart by their content.

    ``regions`` and ``linker_map`` are for an ELF. Raises UsageError for a file that is none of
    these, DamagedFile for one that breaks off or contradicts itself.
    """
    view = _mapped(path)
    magic, identifier = bytes(view[:4]), bytes(view[4:8])
    try:
        if magic == MAGIC:
            return elf_anatomy.anatomy(path, view, regions, linker_map)
        return _reader(identifier, path)(view)
    except DamagedFile as error:
        raise error.within(path) from None


def _reader(identifier: bytes, path: Path) -> Callable[[memoryview], Anatomy]:
    if identifier[:2] == b"ET":
        return partial(pte.anatomy, schema=schema.load_schema(schema.PTE))
    if identifier[:2] == b"BP":
        of_program = partial(pte.anatomy, schema=schema.load_schema(schema.PTE))
        return partial(bpte.anatomy, schema=schema.load_schema(schema.BPTE), of_program=of_program)
    if identifier[:2] == b"FT":
        return partial(ptd.anatomy, schema=schema.load_schema(schema.PTD))
    raise DamagedFile(
        f"{path} is no .pte, .bpte, .ptd or ELF: it has {identifier!r} where the kind stands",
        4 if len(identifier) == 4 else 0,
    )


def _mapped(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size == 0:
                raise DamagedFile(f"{path} is empty", 0)
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}", path=str(path)) from error
