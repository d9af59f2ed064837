"""The figures that budgets are held against, out of an anatomy; and which parts make each up."""

from __future__ import annotations

from collections.abc import Iterable

from harness.footprint.anatomy import Anatomy, Path
from harness.footprint.difference import Change

PROGRAM_FIGURES = ("pte_bytes", "planned_bytes", "npu_scratch_bytes")
_SCRATCH = "NPU scratch of "
_LOADED = ("code", "data", "load image")


def program_figures(anatomy: Anatomy) -> dict[str, int]:
    """Of a ``.pte``: the file, its planned buffers, and the largest NPU scratch."""
    scratch = [p.bytes for p in anatomy.memory if p.path[0].startswith(_SCRATCH)]
    planned = [p.bytes for p in anatomy.memory if not p.path[0].startswith(_SCRATCH)]
    return {
        "pte_bytes": anatomy.total,
        "planned_bytes": sum(planned),
        "npu_scratch_bytes": max(scratch, default=0),
    }


def firmware_figures(anatomy: Anatomy, regions: Iterable[str] = ()) -> dict[str, int]:
    """Of an ELF: what is loaded (``elf_loaded``) and every region's use (``elf_<REGION>``).

    Pools are apart (``elf_<REGION>_pools``): they are so large that a share of them as slack
    would hide any other growth in their region. A region that nothing uses counts 0.
    """
    found = {"elf_loaded": sum(p.bytes for p in anatomy.parts if p.path[1] in _LOADED)}
    found |= {f"elf_{name}{kind}": 0 for name in regions for kind in ("", "_pools")}
    for part in anatomy.parts:
        key = _region_figure(part.path)
        found[key] = found.get(key, 0) + part.bytes
    return found


def _region_figure(path: Path) -> str:
    is_pool = len(path) > 2 and path[2].startswith(".pool")
    return f"elf_{path[0]}_pools" if is_pool else f"elf_{path[0]}"


def kind_of(figure: str) -> str:
    """Where a figure comes from: "program", "firmware", or "run"."""
    if figure in PROGRAM_FIGURES:
        return "program"
    return "firmware" if figure.startswith("elf_") else "run"


def concerning(figure: str, found: Iterable[Change]) -> list[Change]:
    """The changes that a figure is made of."""
    return [c for c in found if _concerns(figure, c.path)]


def _concerns(figure: str, path: Path) -> bool:
    if figure == "planned_bytes":
        return path[0].startswith("planned buffer ")
    if figure == "npu_scratch_bytes":
        return path[0].startswith(_SCRATCH)
    if figure == "elf_loaded":
        return len(path) > 1 and path[1] in _LOADED
    if figure.startswith("elf_"):
        return _region_figure(path) == figure
    return True
