"""What the files of a run are called: those that the guest is given, and those it writes.

The guest sees them in its current directory. It is told the names of its inputs and, for each
input set, the base of its outputs; ``-<n>.bin`` behind the base is the runner's own doing, ours
and ExecuTorch's. Names are short, because an FVP's command line is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path


def program_name(program: Path) -> str:
    """The suffix tells the runner whether inputs are bundled."""
    return "program.bpte" if program.suffix == ".bpte" else "program.pte"


def input_name(input_set: int, index: int) -> str:
    return f"s{input_set}i{index}.bin"


def output_base(input_set: int) -> str:
    return f"s{input_set}"


def output_name(base: str, index: int) -> str:
    """As the runner names output ``index`` of the set whose base is ``base``."""
    return f"{base}-{index}.bin"


def written_outputs(work: Path, input_set: int) -> Iterator[Path]:
    """The outputs of a set that are there, in order, up to the first that is not."""
    files = (work / output_name(output_base(input_set), index) for index in count())
    for file in files:
        if file.is_symlink() or not file.is_file():  # a guest may leave anything
            return
        yield file


def read_output(file: Path, expected: int) -> tuple[bytes, int] | None:
    """Its bytes, of ``expected`` ones no more, and how many it has; None when it is no file of its
    own. A guest may leave anything: a link, a FIFO, two gigabytes of nothing."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as opened:
            return opened.read(expected), status.st_size
    finally:
        os.close(descriptor)


def expected_name(input_set: int, index: int) -> str:
    """In a run's own directory, where the guest does not see it."""
    return f"set{input_set}-{index}.bin"


def by_design_name(input_set: int, index: int) -> str:
    """Likewise: the same with the differences that have a name."""
    return f"set{input_set}-{index}.by-design.bin"
