"""Where mutants are planted: copies of a checkout and of parts of its build, and what runs them.

The checkout's copy is its worktree; a part is copied as it is. Both stay in the state directory,
so that the next time only what differs is built.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.config.case import Case
from harness.config.loading import load_target
from harness.core.errors import Unknown
from harness.core.simulator_name import SimulatorName
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import BuildRequest
from harness.run.bisect import with_parts
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.sim.simulator import pick
from harness.suites.results import Selection, SuiteReport
from harness.suites.run import SuiteOptions, run_suite
from harness.suites.suites import SUITES
from harness.system.files import disk_errors, write_whole
from harness.system.git import borrowed, git, top_of
from harness.system.paths import cache_dir
from harness.system.progress import Progress
from tools.bench.mutant_list import SuiteCheck, read_mutants
from tools.bench.mutant_runs import Runs
from tools.bench.mutants import MutantResults, chosen, measure
from tools.clone import project_root

_NOT_COPIED = frozenset({".git"})


def measure_mutants(
    firmware: FirmwareChoice, only: Sequence[str], word: str, progress: Progress
) -> MutantResults:
    """Every bug of the list, or those that are named, in the checkout that ``firmware`` names.

    Raises what ``prepared`` and ``measure`` do, Unknown for a name.
    """
    listed = read_mutants()
    mutants = chosen(listed.mutants, only, word)
    parts = {mutant.part for mutant in mutants.values() if mutant.part is not None}
    with prepared(firmware, parts, progress) as (ground, commit):
        return MutantResults(measure(mutants, [ground], progress), commit, listed.written_for)


@contextmanager
def prepared(
    firmware: FirmwareChoice, parts: Iterable[str], progress: Progress
) -> Iterator[tuple[Runs, str]]:
    """The ground, and the commit it stands at: HEAD of the checkout that ``firmware`` names.

    ``parts``: those that bugs are planted in. Raises what ``find_checkout`` and ``borrowed`` do,
    Unknown for a part that there is not.
    """
    assert firmware.root is not None
    top = top_of(firmware.root)
    commit = git(top, "rev-parse", "HEAD")
    named = dict(with_parts(firmware).parts)
    with borrowed(top, "mutants", progress) as worktree:
        worktree.stand_at(commit)
        roots: dict[str | None, Path] = {None: worktree.folder}
        for part in sorted(set(parts)):
            if part not in named:
                raise Unknown(f"ExecuTorch's build has no part {part!r}", part, named)
            progress(f"copying {part}")
            roots[part] = worktree.folder.parent / "parts" / part
            with disk_errors(f"copying {named[part]}"):
                mirror(named[part], roots[part])
            named[part] = roots[part]
        choice = replace(firmware, root=worktree.folder, parts=named)
        runs = _Runs(choice, progress)
        yield Runs(roots, runs.case, runs.suite, runs.built.clear, runs.forget), commit


@dataclass
class _Runs:
    """What is under test, and the firmware of the runs since somebody last asked."""

    firmware: FirmwareChoice
    progress: Progress
    built: set[Path] = field(default_factory=set)

    def case(self, case: Case) -> RunRecord:
        options = RunOptions("qemu", firmware=self.firmware)
        model = str(project_root() / case.model) if case.model.endswith(".py") else case.model
        (record,) = run_cases([Case(case.target, model)], options, self.progress)
        if record.firmware is not None:
            self.built.add(Path(record.firmware.elf).parent)
        return record

    def suite(self, check: SuiteCheck) -> SuiteReport:
        if check.name not in SUITES:
            raise Unknown(f"there is no suite {check.name!r}", check.name, SUITES)
        chosen = pick(load_target(SUITES[check.name].target), SimulatorName.QEMU)
        (source,) = self.firmware.sources
        request = BuildRequest(chosen.target, chosen.name, self.firmware.checkout())
        firmware = source.build(request, self.progress)
        self.built.add(firmware.directory)
        options = SuiteOptions(Selection(keyword=check.tests), firmware.elf)
        return run_suite(check.name, options, self.progress)

    def forget(self) -> None:
        """Nobody will ask for these again, and fifty of them are a gigabyte."""
        for directory in self.built:
            if directory.parent == cache_dir("firmware"):
                shutil.rmtree(directory, ignore_errors=True)
        self.built.clear()


def mirror(source: Path, copy: Path, leave_out: frozenset[str] = _NOT_COPIED) -> None:
    """Make ``copy`` have the same files. One that differs is written anew, with the time of now:
    what was built of it is older, whatever it was built of. ``leave_out``: names of files and
    folders. Raises OSError."""
    wanted = set(files_below(source, leave_out))
    for name in set(files_below(copy, leave_out)) - wanted:
        (copy / name).unlink()
    for name in wanted:
        there, here = source / name, copy / name
        if here.is_file() and filecmp.cmp(there, here, shallow=False):
            continue
        here.parent.mkdir(parents=True, exist_ok=True)
        write_whole(here, there.read_bytes())
        shutil.copymode(there, here)


def files_below(folder: Path, leave_out: frozenset[str]) -> Iterator[Path]:
    for directory, below, names in os.walk(folder):
        below[:] = [name for name in below if name not in leave_out]
        for name in names:
            if name not in leave_out:
                yield (Path(directory) / name).relative_to(folder)
