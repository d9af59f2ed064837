"""The figures of size that budgets limit, computed from the parts of a program and a firmware.

``harness.config.figures`` explains them. Those of a firmware need only sections: a run computes
them from the section headers, a gate from the whole anatomy, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.size.anatomy import Anatomy, Part, PartPath
from harness.size.difference import Change, Difference
from harness.size.elf_anatomy import NO_REGION

_SCRATCH = "NPU scratch of "
_LOADED = ("code", "data", "load image")
_POOL = ".pool"


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
    """Return the figures of a firmware that a part counts for."""
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
