"""What the bytes between two known things are: alignment padding, or something nobody refers to."""

from __future__ import annotations

from harness.footprint.anatomy import UNKNOWN, Path, Tally

_FLATBUFFER_ALIGNMENT = 32  # force_align of the program inside a .bpte
_LARGEST_ALIGNMENT = 1 << 16  # larger than any page size that a file is aligned to


def classify(
    view: memoryview, start: int, end: int, where: Path, tally: Tally, *, foreign: bool = False
) -> None:
    """Account for ``[start, end)``.

    Padding is zero, and either shorter than any alignment inside a FlatBuffer or shorter than
    the alignment of what follows it. The rest is unreferenced; it is *unknown* when ``foreign``:
    then the file has fields that our schema does not, and they may refer to it.
    """
    if end <= start:
        return
    size = end - start
    aligned = size < _FLATBUFFER_ALIGNMENT or _alignment(end) > size
    if size < _LARGEST_ALIGNMENT and aligned and not any(view[start:end]):
        tally.add(("padding", *where), size)
    elif foreign:
        tally.add((UNKNOWN, *where), size)
    else:
        tally.add(("unreferenced", *where), size)


def _alignment(position: int) -> int:
    return position & -position if position else _LARGEST_ALIGNMENT
