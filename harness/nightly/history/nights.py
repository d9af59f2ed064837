"""A night and its rows, as plain data, the same in every database.

A row is one run of one case in one night. It is written once and never changed. A case has one
row in a night, or two: only INFRA is tried again, and both tries are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from harness.core.judgement import Blame, Cause
from harness.core.tables import read_table
from harness.core.verdict import ExitCode, Verdict
from harness.export.program import OutputAccuracy, Witnessed

SCHEMA = 2
_MOST_ATTEMPTS = 2
NOT_OF_PRODUCT = ("host", "harness")  # where it ran and who judged it
_MADE = ("program", "firmware")  # of the other inputs
_NO_CAUSE = (*_MADE, *NOT_OF_PRODUCT)
MALFORMED = "malformed "  # in front of a target file's digest
# In a cause: folders, addresses, digests and numbers, which differ from run to run.
_VARYING = re.compile(
    r"(?<![\w/])/(?:[^\s/:]+/)+|\b0x[0-9a-f]+|\b[0-9a-f]{8,64}\b"
    r"|[-+]?\d[\d.,]*(?:e[-+]?\d+)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Identity:
    """Everything that a result depends on, as digests and versions; "" if unknown.

    ``program``: sha256 of the ``.pte``. ``exporter``: who made it. ``sources``: of the firmware, a
    digest of the bundled runner's files, or commit and edits of a checkout. ``firmware``: sha256
    of the ELF. ``toolchain``, ``simulator``: with version. ``reference``: digest of the accepted
    outputs, sizes and budgets. ``target``: digest of the target's description. ``harness``:
    revision. ``host``: name and machine.
    """

    program: str = ""
    exporter: str = ""
    sources: str = ""
    firmware: str = ""
    toolchain: str = ""
    simulator: str = ""
    reference: str = ""
    target: str = ""
    harness: str = ""
    host: str = ""

    @property
    def of_product(self) -> tuple[str, ...]:
        """All but where it ran and who judged: two runs that agree in it should end alike."""
        return tuple(value for name, value in vars(self).items() if name not in NOT_OF_PRODUCT)


@dataclass(frozen=True)
class InputDifference:
    """An input of ``Row.inputs`` in earlier runs and in a later one; both know it."""

    what: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return str(read_table(__file__)["inputs"].get(self.what, self.what))


@dataclass(frozen=True)
class Origin:
    """Whose night it is: the user's repository as it stood. ``pull_request``: its number, where a
    CI service names one; "" for whatever is not known."""

    branch: str = ""
    commit: str = ""
    dirty: bool = False
    pull_request: str = ""

    @property
    def revision(self) -> str:
        return f"{self.commit}+edits" if self.dirty else self.commit


@dataclass(frozen=True)
class Excerpt:
    """Lines of a console. ``first``: number of the first one, from 1."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One run of one case. ``case``: its name in the history, ``Case.id``, followed by
    `` [executorch]`` if the firmware is not the bundled one. ``attempt`` counts from 1.

    ``metrics``: bytes and ticks by name; ``seconds``: ``total`` of the case, ``simulate`` of the
    simulation, ``cause`` until its line. ``operators``: of the program; ``outline``: each that it
    executes, with a digest. ``versions``: of the exporter's packages. ``model_source``: digest of
    the model's file, or the name in the catalogue; ``model_commit``: the last commit of the file.
    ``mismatch_at``: where NPU and TOSA first disagree; ``blame``: whose fault that is.
    ``accuracy``: of the program, the least accurate outputs; ``witness``: as in Program.
    ``on_cpu``: operators that an NPU left to the CPU, the most expensive first. ``output``: digest
    of all outputs. ``owner``: named by the suite; ``quarantined``: why a failure does not count
    this night, "" if it does. ``run_dir``: directory of the evidence, on ``identity.host``.
    ``suite`` and ``origin``: of its night.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # read only as this version writes it

    night: str
    case: str
    time: str
    target: str
    model: str
    source: str
    verdict: Verdict
    attempt: int = 1
    verdict_text: str = ""
    cause: Cause | None = None
    notes: tuple[str, ...] = ()
    metrics: dict[str, int] = field(default_factory=dict)
    worst_lsb: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    operators: tuple[str, ...] = ()
    outline: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    model_source: str = ""
    model_commit: str = ""
    mismatch_at: str | None = None
    blame: Blame | None = None
    accuracy: tuple[OutputAccuracy, ...] = ()
    witness: Witnessed | None = None
    on_cpu: tuple[str, ...] = ()
    output: str = ""
    excerpt: Excerpt | None = None
    identity: Identity = Identity()
    owner: str = ""
    quarantined: str = ""
    run_dir: str | None = None
    suite: str = ""
    origin: Origin = Origin()
    schema: int = SCHEMA

    @property
    def sqnr_db(self) -> float | None:
        """SQNR of the least accurate output in dB; None if it was not measured."""
        return min((each.sqnr_db for each in self.accuracy), default=None)

    @property
    def bad(self) -> bool:
        """The product failed, or nothing was proven of it. INFRA and SKIPPED are neither good nor
        bad."""
        return self.verdict.exit_code is ExitCode.FAILED and self.verdict is not Verdict.SKIPPED

    @property
    def good(self) -> bool:
        return self.verdict.passed

    @property
    def settled(self) -> bool:
        """Whether the case is not run again in its night: only INFRA is, once."""
        return self.verdict is not Verdict.INFRA or self.attempt >= _MOST_ATTEMPTS

    @property
    def kind(self) -> tuple[str, str]:
        """Verdict, and the kind of its cause."""
        return str(self.verdict), "" if self.cause is None else self.cause.kind

    @property
    def fault(self) -> tuple[str, str, str]:
        """Its kind, and the text of the cause without what varies: equal for the same regression
        in two nights."""
        return (*self.kind, "" if self.cause is None else _VARYING.sub("#", self.cause.text))

    @property
    def inputs(self) -> dict[str, str]:
        """The inputs of the result, by the names in ``model.yaml`` and names of packages; "" where
        the run ended before an input was known."""
        own = {"model": self.model_source, "repository": self.origin.revision}
        return own | self.versions | vars(self.identity)


@dataclass(frozen=True)
class Planned:
    """A case that a night will run. ``shard`` counts from 1."""

    case: str
    shard: int = 1
    owner: str = ""
    quarantined: str = ""
    last_day: str = ""  # of its quarantine, in ISO 8601


@dataclass(frozen=True)
class Excluded:
    case: str
    reason: str


@dataclass(frozen=True)
class Night:
    """One night: its suite and its plan, written once, when it begins.

    ``suite_sha256``: of the suite's cases, so that a night is not continued with others.
    ``shards``: how many processes or machines share it. ``base``: the id of the night of another
    branch with which it is compared; "": with those before it of its own. ``renames``: names of
    cases now, and what they were called before. ``alarms``: by which part a figure may grow.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    id: str
    suite: str
    suite_sha256: str
    began: str
    harness: str
    host: str
    plan: tuple[Planned, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    shards: int = 1
    origin: Origin = Origin()
    base: str = ""
    renames: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, float] = field(default_factory=dict)
    schema: int = SCHEMA

    @property
    def file_name(self) -> str:
        """Its id, which somebody may have chosen, as a part of names of files."""
        return re.sub(r"[^\w.-]", "_", self.id)

    def of_shard(self, shard: int) -> tuple[Planned, ...]:
        return tuple(planned for planned in self.plan if planned.shard == shard)


def last_tries(rows: Iterable[Row]) -> dict[str, Row]:
    """The row that counts for each case of one night: its last try."""
    last: dict[str, Row] = {}
    for row in rows:
        if row.case not in last or row.attempt > last[row.case].attempt:
            last[row.case] = row
    return last


def changes(earlier: Iterable[Row], row: Row) -> list[InputDifference]:
    """The inputs of ``row`` that differ from their last known value in ``earlier``, the oldest
    first. An input that a run did not learn counts as unchanged."""
    known: dict[str, str] = {}
    for before in earlier:
        known |= {name: v for name, v in before.inputs.items() if v and not v.startswith(MALFORMED)}
    names = list(read_table(__file__)["inputs"])
    differing = (
        InputDifference(name, known[name], value)
        for name, value in row.inputs.items()
        if value and known.get(name, value) != value
    )
    place = names.index("exporter")
    return sorted(differing, key=lambda d: names.index(d.what) if d.what in names else place)


def causes(changed: Sequence[InputDifference]) -> list[InputDifference]:
    """Without what is made of the others, unless that is all there is."""
    found = [change for change in changed if change.what not in _NO_CAUSE]
    return found or [change for change in changed if change.what in _MADE]
