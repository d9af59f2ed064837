"""Measures the Anatomy of a file, whatever its kind, and the figures that budgets limit.

``harness.config.figures`` explains them. Those of a firmware need only sections: a run computes
them from the section headers, a gate from the whole anatomy, with the same result.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from harness.config.target import Region
from harness.core.errors import MalformedFile, UsageError
from harness.formats.elf import MAGIC
from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.linker_map import MapRegion
from harness.formats.schema import BPTE, PTE, load_schema
from harness.size import elf_anatomy, pte
from harness.size.anatomy import Anatomy, Change, Difference, Part, PartPath, Tally
from harness.size.claims import Claims
from harness.size.elf_anatomy import NO_REGION
from harness.system.files import MALFORMED, read_json, regular, sha256_of

_BUNDLE = ("bundle",)
_RECORD = "program.json"
_SCRATCH = "NPU scratch of "
_LOADED = ("code", "data", "load image")
_POOL = ".pool"


def measure_file(
    path: Path, regions: Sequence[Region | MapRegion] = (), linker_map: Path | None = None
) -> Anatomy:
    """Return the anatomy of a ``.pte``, ``.bpte`` or ELF, recognised by its content.

    ``regions`` and ``linker_map`` are for an ELF. Raises UsageError for any other file,
    MalformedFile for one that is truncated or contradicts itself."""
    view = _content(path)
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


def _content(path: Path) -> memoryview:
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


def figures_of_program(anatomy: Anatomy) -> dict[str, int]:
    """Return the sizes of a ``.pte``, of its planned buffers, and of the largest NPU scratch."""
    scratch = [p.bytes for p in anatomy.memory if p.path[0].startswith(_SCRATCH)]
    planned = [p.bytes for p in anatomy.memory if not p.path[0].startswith(_SCRATCH)]
    return {
        "pte_bytes": anatomy.total,
        "planned_bytes": sum(planned),
        "npu_scratch_bytes": max(scratch, default=0),
    }


def figures_of_firmware(parts: Iterable[Part], regions: Iterable[str] = ()) -> dict[str, int]:
    """Return the figures of an ELF whose parts' paths start with region, kind and section.

    A region counts everything that the linker put into it, including stored copies and reserved
    memory; an unused region counts 0. Each region is also counted without its pools: a few percent
    of them would hide any other growth."""
    figures = {"elf_loaded": 0, "elf_text": 0, "elf_outside": 0}
    figures |= {
        f"elf_{name}{suffix}": 0 for name in regions for suffix in ("", "_no_pools", "_pools")
    }
    for part in parts:
        for figure in _figures_of(part.path):
            figures[figure] = figures.get(figure, 0) + part.bytes
    return figures


def _figures_of(path: PartPath) -> tuple[str, ...]:
    region, kind, section = path[:3]
    loaded = ("elf_loaded",) if kind in _LOADED else ()
    text = ("elf_text",) if kind == "code" else ()
    if region == NO_REGION:
        return (*loaded, *text, "elf_outside")
    # under Zephyr a region of the devicetree is one section with the region's name
    pools = "_pools" if section.startswith(_POOL) or section == region else "_no_pools"
    return (*loaded, *text, f"elf_{region}", f"elf_{region}{pools}")


def changes_behind(figure: str, difference: Difference) -> list[Change]:
    """Return the changes that add up to a figure's growth."""
    scratch = figure == "npu_scratch_bytes"
    if scratch or figure == "planned_bytes":
        return [c for c in difference.memory if c.path[0].startswith(_SCRATCH) == scratch]
    if figure.startswith("elf_"):
        return [c for c in difference.parts if figure in _figures_of(c.path)]
    return list(difference.parts)
