"""The files of a run: their names, the guest's inputs and command line, and the files it leaves.

The guest sees the files of ``work``, its current directory. Its command line has the names of its
inputs and, for each input set, the base of its outputs; the runner appends ``-<n>.bin``. Names are
short because an FVP's command line is.

The guest may do anything in that directory, so nothing is written through files found there: a link
could lead out. In a run of several processes each has its own directory below ``work``, which the
others cannot see.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import count
from pathlib import Path

from harness.system.files import read_regular
from harness.system.quota import remove

CONSOLE = "console.log"  # in the run's directory
WORK = "work"  # likewise: the guest's current directory


def program_name(program: Path) -> str:
    """Return the program's name; its suffix tells the runner whether inputs are bundled."""
    return "program.bpte" if program.suffix == ".bpte" else "program.pte"


def input_name(input_set: int, index: int) -> str:
    return f"s{input_set}i{index}.bin"


def output_base(input_set: int) -> str:
    return f"s{input_set}"


def output_name(base: str, index: int) -> str:
    """Return the runner's name of output ``index`` of the set with this ``base``."""
    return f"{base}-{index}.bin"


def is_output(name: str) -> bool:
    """Whether ``output_name`` makes such names."""
    return re.fullmatch(r"s\d+-\d+\.bin", name) is not None


def runner_arguments(
    program: Path, counts: Sequence[int], profile: bool = False
) -> tuple[str, ...]:
    """Our runner's command line; each ``-o`` starts the next input set."""
    words = ["executor_runner", "-m", program_name(program)]
    if profile:
        words.append("-p")
    for number, inputs in enumerate(counts):
        words += ["-o", output_base(number)]
        for index in range(inputs):
            words += ["-i", input_name(number, index)]
    return tuple(words)


def executorch_arguments(program: Path, number: int, count: int) -> tuple[str, ...]:
    """Return the command line of ExecuTorch's runner for set ``number`` with ``count`` inputs.

    Source: ``main`` of examples/arm/executor_runner/arm_executor_runner.cpp, which needs at least
    seven arguments, so at least one input."""
    inputs = (word for index in range(count) for word in ("-i", input_name(number, index)))
    return ("executor_runner", "-m", program_name(program), *inputs, "-o", output_base(number))


def flag_arguments(program: Path, number: int, count: int) -> tuple[str, ...]:
    """Return the command line of ExecuTorch's runner for Linux, likewise.

    Source: the flags of examples/portable/executor_runner/executor_runner.cpp, which fills inputs
    that it is not given with ones."""
    inputs = ",".join(input_name(number, index) for index in range(count))
    return (
        "executor_runner",
        f"--model_path={program_name(program)}",
        *((f"--inputs={inputs}",) if inputs else ()),
        f"--output_file={output_base(number)}",
    )


def written_outputs(work: Path, input_set: int) -> Iterator[Path]:
    """Yield the existing outputs of a set, in order, up to the first missing one."""
    files = (work / output_name(output_base(input_set), index) for index in count())
    for file in files:
        if file.is_symlink() or not file.is_file():  # a guest may leave anything
            return
        yield file


def read_output(file: Path, expected: int) -> tuple[bytes, int] | None:
    """At most ``expected`` bytes of the file, and its size; None unless it is a regular file.

    A guest may leave anything: a link, a FIFO, two gigabytes of zeros."""
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


def make(path: Path, copies: Mapping[str, Path], files: Mapping[str, bytes]) -> frozenset[Path]:
    """Make a directory with these files, by name.

    ``copies``: files that are copied, because the guest may write to them. Returns the files.

    ``path`` must not exist yet, so every other file in it is made by this run. This function and
    those below raise OSError."""
    path.mkdir(parents=True)
    for name, source in copies.items():
        shutil.copyfile(source, path / name)
    for name, content in files.items():
        (path / name).write_bytes(content)
    return frozenset(path / name for name in (*copies, *files))


def rewritten(guest: Path, copies: Mapping[str, Path]) -> tuple[str, ...]:
    """Which of the files that were copied here for a guest it did not leave as they were."""
    contents = ((name, read_regular(source)) for name, source in copies.items())
    return tuple(
        name
        for name, content in contents
        if read_output(guest / name, len(content)) != (content, len(content))
    )


def move_outputs(guest: Path, input_set: int, to: Path) -> None:
    """Move the outputs of a set into a directory that no guest can reach."""
    for path in list(written_outputs(guest, input_set)):
        path.rename(to / path.name)


def clear(guest: Path, placed: Iterable[Path]) -> None:
    """Remove the placed files, and the directory if it is empty then."""
    for path in placed:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(guest.iterdir()):
        guest.rmdir()


def discard(work: Path, placed: Set[Path]) -> None:
    """Remove the files of a guest that wrote too much."""
    for entry in os.scandir(work):
        if Path(entry.path) not in placed or entry.is_dir(follow_symlinks=False):
            remove(Path(entry.path))
