"""The files of a run: their names, what a guest is given and told, and what it leaves.

The guest sees the files of ``work``, its current directory. Its command line has the names of its
inputs and, for each input set, the base of its outputs; the runner appends ``-<n>.bin``. Names are
short because an FVP's command line is.

The guest may do anything in that directory, so nothing is written through what is found there: a
link could lead out. In a run of several processes each has a directory of its own below ``work``,
where the others cannot see it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import count
from pathlib import Path

from harness.system.quota import remove

CONSOLE = "console.log"  # in the run's directory
WORK = "work"  # likewise: the guest's current directory


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
    """The command line of ExecuTorch's runner for input set ``number`` with ``count`` inputs.

    Source: ``main`` of examples/arm/executor_runner/arm_executor_runner.cpp, which wants at
    least seven words, so at least one input.
    """
    inputs = (word for index in range(count) for word in ("-i", input_name(number, index)))
    return ("executor_runner", "-m", program_name(program), *inputs, "-o", output_base(number))


def flag_arguments(program: Path, number: int, count: int) -> tuple[str, ...]:
    """The command line of ExecuTorch's runner for Linux, likewise.

    Source: the flags of examples/portable/executor_runner/executor_runner.cpp, which fills inputs
    that it is not given with ones.
    """
    inputs = ",".join(input_name(number, index) for index in range(count))
    return (
        "executor_runner",
        f"--model_path={program_name(program)}",
        *((f"--inputs={inputs}",) if inputs else ()),
        f"--output_file={output_base(number)}",
    )


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


def make(path: Path, copies: Mapping[str, Path], files: Mapping[str, bytes]) -> frozenset[Path]:
    """A directory with files in it, by name: copies, for the guest may write to what it finds.
    What was put there.

    ``path`` must not exist yet, so whatever else is found in it was made by this run. OSError,
    here and below, when the disk does not play along.
    """
    path.mkdir(parents=True)
    for name, source in copies.items():
        shutil.copyfile(source, path / name)
    for name, content in files.items():
        (path / name).write_bytes(content)
    return frozenset(path / name for name in (*copies, *files))


def move_outputs(guest: Path, input_set: int, to: Path) -> None:
    """The outputs of a set, into a directory that no guest has."""
    for path in list(written_outputs(guest, input_set)):
        path.rename(to / path.name)


def clear(guest: Path, placed: Iterable[Path]) -> None:
    """Away with what was put there, and with the directory when nothing else is in it."""
    for path in placed:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(guest.iterdir()):
        guest.rmdir()


def discard(work: Path, placed: Set[Path]) -> None:
    """Remove what a guest left: there was too much of it to keep."""
    for entry in os.scandir(work):
        if Path(entry.path) not in placed or entry.is_dir(follow_symlinks=False):
            remove(Path(entry.path))
