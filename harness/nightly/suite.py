"""A suite: which cases a night runs, as data. Errors in its file are "file:line: message"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from harness.config import strict_yaml
from harness.config.case import Case, located
from harness.config.loading import load_target, load_targets, loadable_name, target_files
from harness.config.matrix import default_matrix, default_models
from harness.config.models import find_model
from harness.config.schema import Data, checked_document
from harness.core.errors import HarnessError, TargetError, UsageError
from harness.firmware.names import names_of
from harness.nightly.history.nights import Excluded, Planned
from harness.nightly.history.row_of_record import case_name
from harness.nightly.history.steps import WATCHED
from harness.sim.simulator import AUTO
from harness.system.artifact_cache import key_of

DEFAULT = "default"  # the suite where none is named
_DIGEST = 16
_BISECT_MINUTES = 60.0  # where the suite says no more than true


def _firmware_word(word: str) -> str:
    names_of(word)
    return word


FirmwareWord = Annotated[str, AfterValidator(_firmware_word)]
Names = Annotated[tuple[str, ...], Field(min_length=1)]
Percent = Annotated[str, Field(pattern=r"^\d{1,6}(\.\d{1,3})?%$")]
AlarmName = Annotated[str, Field(pattern=f"^({'|'.join(figure.name for figure in WATCHED)})$")]
NotifyUrl = Annotated[str, Field(pattern=r"^(\$\w+|[\w.+-]+://\S+)$")]
Factor = Annotated[float, Field(gt=0, le=1000)]


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
    reason: Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Quarantine(Exclusion):
    """The case is run, and its failure does not count until that day, the day itself included."""

    until: date
    owner: str = ""


@dataclass(frozen=True, kw_only=True)
class FollowUp(Data):
    """Actions after a night.

    ``notify``: URLs of apprise; ``owners``: how a service mentions each; ``issues``: of GitHub, for
    every case and cause; ``bisect``: whether, or for how many minutes."""

    notify: tuple[NotifyUrl, ...] = ()
    owners: dict[str, str] = field(default_factory=dict)
    issues: bool = False
    bisect: bool | Factor = False

    @property
    def tells(self) -> bool:
        """Whether the night is reported to anybody."""
        return bool(self.notify) or self.issues

    @property
    def minutes(self) -> float:
        return _BISECT_MINUTES * self.bisect if isinstance(self.bisect, bool) else self.bisect


@dataclass(frozen=True, kw_only=True)
class SuiteFile(FollowUp):
    cases: Annotated[tuple[Group, ...], Field(min_length=1)]
    firmware: FirmwareWord = "bundled"
    limit_factor: Factor | None = None
    owner: str = ""
    exclude: tuple[Exclusion, ...] = ()
    quarantine: tuple[Quarantine, ...] = ()
    renames: dict[str, str] = field(default_factory=dict)  # the old name of a case, and the new one
    # by which part a figure may grow over nights
    alarm: dict[AlarmName, Percent] = field(default_factory=dict)


@dataclass(frozen=True)
class NightJob:
    """One case with each of its sources of firmware. ``planned``: one entry for each source."""

    case: Case
    sources: tuple[str, ...]
    planned: tuple[Planned, ...]
    simulator: str = AUTO
    limit_factor: float | None = None


@dataclass(frozen=True)
class NightSuite:
    """A suite, read and checked.

    ``name``: of its file; ``sha256``: of cases, firmware, simulators, limits and exclusions, so
    that a night is continued with the same cases only. ``expired``: quarantines whose day is over;
    ``renames``: names of cases, and what they were called before; ``alarms``: by which part a
    figure may grow over nights."""

    name: str
    sha256: str
    jobs: tuple[NightJob, ...]
    excluded: tuple[Excluded, ...]
    expired: tuple[str, ...] = ()
    renames: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, float] = field(default_factory=dict)
    follow_up: FollowUp = field(default_factory=FollowUp)

    @property
    def plan(self) -> tuple[Planned, ...]:
        return tuple(planned for job in self.jobs for planned in job.planned)


@dataclass(frozen=True)
class Shard:
    """``number`` of ``count``, from 1."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Read ``I/N``. Raises UsageError."""
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= 1000):
        raise UsageError(
            f"{text!r} is not a shard", hint="1/4 is the first of four; up to 1000 are possible"
        )
    return Shard(int(number), int(count))


def load_suite(file: Path, today: date) -> NightSuite:
    """Load a suite. Raises TargetError, and Unknown for a target or a model that nobody has.

    A target whose file is malformed stays in the suite: its cases say so."""
    document = strict_yaml.read(file)
    contents = checked_document(SuiteFile, document)
    target_files()  # an unreadable folder of targets fails the suite, not one case
    jobs: list[NightJob] = []
    for index, group in enumerate(contents.cases):
        place = document.place(("cases", index))
        try:
            jobs += _jobs_of(contents, group, file.absolute().parent)
        except HarnessError as error:
            raise place.error(error.message, hint=error.hint) from error
        for name, times in Counter(p.case for job in jobs for p in job.planned).most_common(1):
            if times > 1:
                raise place.error(f"{name} is in the suite twice")
    return _without(file.stem, contents, jobs, document, today)


def default_suite(firmware: str = "bundled") -> NightSuite:
    """Every model on every target in all memory modes, without the targets of Zephyr."""
    sources = names_of(firmware)
    targets = [t for t in load_targets() if t.zephyr is None]
    cases = [case for case, _ in default_matrix(targets, default_models(), "all")]
    jobs = tuple(NightJob(case, sources, _planned(case, sources)) for case in cases)
    return NightSuite(DEFAULT, _digest(jobs, ()), jobs, ())


def _jobs_of(contents: SuiteFile, group: Group, folder: Path) -> Iterator[NightJob]:
    models = [located(name, folder) for name in group.models or default_models()]
    for model in models:
        find_model(model)
    sources = names_of(group.firmware or contents.firmware)
    for name in group.targets:
        for target in _modes(located(name, folder), group.memory_modes):
            for model in models:
                case = Case(target, model)
                yield NightJob(
                    case,
                    sources,
                    _planned(case, sources, group.owner or contents.owner),
                    group.simulator,
                    group.limit_factor or contents.limit_factor,
                )


def _modes(name: str, wanted: str | Sequence[str]) -> list[str]:
    """Return the target in each memory mode that is wanted of it, as ``load_target`` takes them."""
    try:
        target = load_target(name)
    except TargetError:
        return [name]  # malformed: each case of it will say so
    if target.npu is None or wanted == "default" or "@" in name:
        return [loadable_name(target, name)]
    modes = target.npu.memory_modes if wanted == "all" else wanted
    return [loadable_name(load_target(f"{name}@{mode}"), f"{name}@{mode}") for mode in modes]


def _planned(case: Case, sources: Sequence[str], owner: str = "") -> tuple[Planned, ...]:
    return tuple(Planned(case_name(case, source), owner=owner) for source in sources)


def _without(
    name: str,
    contents: SuiteFile,
    jobs: list[NightJob],
    document: strict_yaml.Document,
    today: date,
) -> NightSuite:
    """Return the exclusions and quarantines laid over the jobs.

    One that fits no case is an error: it would look as if it held."""
    excluded: list[Excluded] = []
    for index, exclusion in enumerate(contents.exclude):
        matching = [job for job in jobs if fnmatchcase(job.case.id, exclusion.case)]
        if not matching:
            raise _fits_nothing(document, exclusion.case, "exclude", index, "case")
        excluded += [Excluded(job.case.id, exclusion.reason) for job in matching]
        jobs = [job for job in jobs if job not in matching]
    expired: list[str] = []
    for index, quarantine in enumerate(contents.quarantine):
        if not any(fnmatchcase(job.case.id, quarantine.case) for job in jobs):
            raise _fits_nothing(document, quarantine.case, "quarantine", index, "case")
        if today > quarantine.until:
            expired.append(f"{quarantine.case}: since {quarantine.until}: {quarantine.reason}")
        else:
            jobs = [_quarantined(job, quarantine) for job in jobs]
    if not jobs:
        raise document.place(("cases",)).error("every case of the suite is excluded")
    names = {planned.case for job in jobs for planned in job.planned}
    for old, new in contents.renames.items():
        if new not in names:
            raise _fits_nothing(document, new, "renames", old)
    return NightSuite(
        name=name,
        sha256=_digest(jobs, excluded),
        jobs=tuple(jobs),
        excluded=tuple(excluded),
        expired=tuple(expired),
        renames={new: old for old, new in contents.renames.items()},
        alarms={name: float(part.rstrip("%")) / 100 for name, part in contents.alarm.items()},
        follow_up=contents,
    )


def _fits_nothing(document: strict_yaml.Document, pattern: str, *place: str | int) -> TargetError:
    return document.place(place).error(
        f"no case of the suite fits {pattern!r}", hint="remove it, or correct it; * fits any text"
    )


def _quarantined(job: NightJob, quarantine: Quarantine) -> NightJob:
    if not fnmatchcase(job.case.id, quarantine.case):
        return job
    owner = f" ({quarantine.owner})" if quarantine.owner else ""
    why = f"until {quarantine.until}: {quarantine.reason}{owner}"
    last = quarantine.until.isoformat()
    planned = (replace(planned, quarantined=why, last_day=last) for planned in job.planned)
    return replace(job, planned=tuple(planned))


def _digest(jobs: Sequence[NightJob], excluded: Sequence[Excluded]) -> str:
    """Digest of what is run. A comment, an owner or a quarantine may change during the night."""
    facts: list[Any] = [[exclusion.case for exclusion in excluded]]
    facts += [[job.case.id, list(job.sources), job.simulator, job.limit_factor] for job in jobs]
    return key_of(facts)[:_DIGEST]
