"""The formulas of the figures of a program and a firmware, and which parts make each up.

What they mean is in ``harness.target.figures``. Those of a firmware need only sections, so a run
and a gate compute them alike, one from the section headers, the other from the whole anatomy.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.footprint.anatomy import Anatomy, Part, Path
from harness.footprint.difference import Change
from harness.footprint.elf import NO_REGION

_SCRATCH = "NPU scratch of "
_LOADED = ("code", "data", "load image")
_POOL = ".pool"


def program_figures(anatomy: Anatomy) -> dict[str, int]:
    """Of a ``.pte``: the file, its planned buffers, and the largest NPU scratch."""
    scratch = [p.bytes for p in anatomy.memory if p.path[0].startswith(_SCRATCH)]
    planned = [p.bytes for p in anatomy.memory if not p.path[0].startswith(_SCRATCH)]
    return {
        "pte_bytes": anatomy.total,
        "planned_bytes": sum(planned),
        "npu_scratch_bytes": max(scratch, default=0),
    }


def firmware_figures(parts: Iterable[Part], regions: Iterable[str] = ()) -> dict[str, int]:
    """Of an ELF whose parts' paths start with region, kind and section.

    A region counts all that the linker put into it, with the stored copies of what runs
    elsewhere and with what is only reserved; one that nothing uses counts 0. Pools are so large
    that a share of them as slack would hide any other growth in their region, so the region is
    also counted without them.
    """
    found = {"elf_loaded": 0, "elf_text": 0, "elf_outside": 0}
    found |= {f"elf_{name}{what}": 0 for name in regions for what in ("", "_no_pools", "_pools")}
    for part in parts:
        for figure in _figures_of(part.path):
            found[figure] = found.get(figure, 0) + part.bytes
    return found


def _figures_of(path: Path) -> tuple[str, ...]:
    """The figures of a firmware that a part counts for."""
    region, kind, section = path[:3]
    loaded = ("elf_loaded",) if kind in _LOADED else ()
    text = ("elf_text",) if kind == "code" else ()
    if region == NO_REGION:
        return (*loaded, *text, "elf_outside")
    # under Zephyr a devicetree's region is one section, of its own name
    pools = "_pools" if section.startswith(_POOL) or section == region else "_no_pools"
    return (*loaded, *text, f"elf_{region}", f"elf_{region}{pools}")


def concerning(figure: str, parts: Iterable[Change], memory: Iterable[Change]) -> list[Change]:
    """The changes that a figure is made of."""
    if figure == "planned_bytes":
        return [c for c in memory if not c.path[0].startswith(_SCRATCH)]
    if figure == "npu_scratch_bytes":
        return [c for c in memory if c.path[0].startswith(_SCRATCH)]
    if figure.startswith("elf_"):
        return [c for c in parts if figure in _figures_of(c.path)]
    return list(parts)
