"""A suite: which cases a night runs, as data. What is wrong in its file is "file:line: message"."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from harness.config import strict_yaml
from harness.config.case import Case
from harness.config.identity import located
from harness.config.loading import (
    Target,
    load_target,
    load_targets,
    spelled,
    target_files,
)
from harness.config.matrix import default_matrix, default_models
from harness.config.models import find_model
from harness.config.schema import Data, Rule, checked_document
from harness.core.errors import HarnessError, TargetError
from harness.firmware.names import names_of
from harness.nightly.history.model import Excluded, Planned
from harness.nightly.history.rows import case_name
from harness.sim.pick import AUTO

DEFAULT = "default"  # the suite of who names none
_DIGEST = 16


def _firmware_word(word: str) -> str:
    names_of(word)
    return word


FirmwareWord = Annotated[str, Rule(after=_firmware_word)]
Names = Annotated[tuple[str, ...], Rule(min_length=1)]
Factor = Annotated[float, Rule(gt=0, le=1000)]


@dataclass(frozen=True, kw_only=True)
class Group(Data):
    """Every model on every target. ``memory_modes``: of targets with an NPU."""

    targets: Names
    models: Names | None = None  # None: the models of the settings, else the catalogue
    memory_modes: Literal["default", "all"] | Names = "default"
    firmware: FirmwareWord | None = None
    simulator: str = AUTO
    limit_factor: Factor | None = None
    owner: str = ""


@dataclass(frozen=True, kw_only=True)
class Exclusion(Data):
    """``case``: TARGET/MODEL, with ``*`` and ``?``."""

    case: str
    reason: Annotated[str, Rule(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Quarantine(Exclusion):
    """The case is run, and its failure does not count until that day, the day itself included."""

    until: date
    owner: str = ""


@dataclass(frozen=True, kw_only=True)
class SuiteFile(Data):
    cases: Annotated[tuple[Group, ...], Rule(min_length=1)]
    firmware: FirmwareWord = "bundled"
    limit_factor: Factor | None = None
    owner: str = ""
    exclude: tuple[Exclusion, ...] = ()
    quarantine: tuple[Quarantine, ...] = ()


@dataclass(frozen=True)
class Job:
    """What is run at once: a case with one firmware, or with both. ``planned``: one for each."""

    case: Case
    sources: tuple[str, ...]
    planned: tuple[Planned, ...]
    simulator: str = AUTO
    limit_factor: float | None = None


@dataclass(frozen=True)
class Suite:
    """``name``: of its file; ``sha256``: of all that follows from it, so that a night is continued
    with the same cases only. ``expired``: quarantines that count no more."""

    name: str
    sha256: str
    jobs: tuple[Job, ...]
    excluded: tuple[Excluded, ...]
    expired: tuple[str, ...] = ()

    @property
    def plan(self) -> tuple[Planned, ...]:
        return tuple(one for job in self.jobs for one in job.planned)


def load_suite(file: Path, today: date) -> Suite:
    """Raises TargetError, and Unknown for a target or a model that nobody has. A target whose file
    is malformed stays in the suite: its cases say so."""
    document = strict_yaml.read(file)
    said = checked_document(SuiteFile, document)
    target_files()  # what is wrong with all of them is nothing of a case
    jobs: list[Job] = []
    for index, group in enumerate(said.cases):
        place = document.place(("cases", index))
        try:
            jobs += _jobs_of(said, group, file.absolute().parent)
        except HarnessError as error:
            raise place.error(error.message, hint=error.hint) from error
        for double in _doubles(jobs):
            raise place.error(f"{double} is in the suite twice")
    return _without(file.stem, said, jobs, document, today)


def default_suite(firmware: str = "bundled") -> Suite:
    """Every model on every target, as pytest has it where nobody names any."""
    sources = names_of(firmware)
    targets = [t for t in load_targets() if t.zephyr is None]
    cases = [case for case, _ in default_matrix(targets, default_models(), "all")]
    jobs = tuple(Job(case, sources, _planned(case, sources)) for case in cases)
    return Suite(DEFAULT, _digest(jobs, ()), jobs, ())


def _jobs_of(said: SuiteFile, group: Group, folder: Path) -> Iterator[Job]:
    models = [located(name, folder) for name in group.models or default_models()]
    for model in models:
        find_model(model)
    sources = names_of(group.firmware or said.firmware)
    for name in group.targets:
        for target in _modes(located(name, folder), group.memory_modes):
            for model in models:
                case = Case(target, model)
                yield Job(
                    case,
                    sources,
                    _planned(case, sources, group.owner or said.owner),
                    group.simulator,
                    group.limit_factor or said.limit_factor,
                )


def _modes(name: str, wanted: str | Sequence[str]) -> list[str]:
    """The target in each memory mode that is wanted of it, as ``load_target`` takes them."""
    try:
        target = load_target(name)
    except TargetError:
        return [name]  # malformed: each case of it will say so
    if target.npu is None or wanted == "default" or "@" in name:
        return [spelled(target, name)]
    modes = target.npu.memory_modes if wanted == "all" else wanted
    return [spelled(_in_mode(name, mode), f"{name}@{mode}") for mode in modes]


def _in_mode(name: str, mode: str) -> Target:
    return load_target(f"{name}@{mode}")


def _planned(case: Case, sources: Sequence[str], owner: str = "") -> tuple[Planned, ...]:
    return tuple(Planned(case_name(case, source), owner=owner) for source in sources)


def _doubles(jobs: Sequence[Job]) -> Iterator[str]:
    seen: set[str] = set()
    for job in jobs:
        for one in job.planned:
            if one.case in seen:
                yield one.case
            seen.add(one.case)


def _without(
    name: str, said: SuiteFile, jobs: list[Job], document: strict_yaml.Document, today: date
) -> Suite:
    """The exclusions and quarantines laid over the jobs. One that no case fits is an error: it
    would look as if it held."""
    excluded: list[Excluded] = []
    for index, one in enumerate(said.exclude):
        hit = [job for job in jobs if fnmatchcase(job.case.id, one.case)]
        if not hit:
            raise _fits_nothing(document, "exclude", index, one.case)
        excluded += [Excluded(job.case.id, one.reason) for job in hit]
        jobs = [job for job in jobs if job not in hit]
    expired: list[str] = []
    for index, kept in enumerate(said.quarantine):
        if not any(fnmatchcase(job.case.id, kept.case) for job in jobs):
            raise _fits_nothing(document, "quarantine", index, kept.case)
        if today > kept.until:
            expired.append(f"{kept.case}: since {kept.until}: {kept.reason}")
        else:
            jobs = [_quarantined(job, kept) for job in jobs]
    if not jobs:
        raise document.place(("cases",)).error("every case of the suite is excluded")
    return Suite(name, _digest(jobs, excluded), tuple(jobs), tuple(excluded), tuple(expired))


def _fits_nothing(
    document: strict_yaml.Document, section: str, index: int, pattern: str
) -> TargetError:
    return document.place((section, index, "case")).error(
        f"no case of the suite fits {pattern!r}", hint="remove it, or correct it; * fits any text"
    )


def _quarantined(job: Job, kept: Quarantine) -> Job:
    if not fnmatchcase(job.case.id, kept.case):
        return job
    whose = f" ({kept.owner})" if kept.owner else ""
    why = f"until {kept.until}: {kept.reason}{whose}"
    return replace(job, planned=tuple(replace(one, quarantined=why) for one in job.planned))


def _digest(jobs: Sequence[Job], excluded: Sequence[Excluded]) -> str:
    """Of what is run, not of words: a comment, an owner or a quarantine may change meanwhile."""
    said: list[Any] = [[one.case for one in excluded]]
    said += [[job.case.id, list(job.sources), job.simulator, job.limit_factor] for job in jobs]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:_DIGEST]
