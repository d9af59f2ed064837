"""A night and its rows, as plain data; the same in every database.

A row is one run of one case in one night. It is written once and never changed. A case has one
row in a night, or two: only INFRA is tried again, and both tries are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from dataclasses import fields as dataclass_fields
from typing import Any, ClassVar

from harness.core.judgement import Blame, Cause
from harness.core.verdict import ExitCode, Verdict

SCHEMA = 1
MOST_ATTEMPTS = 2
NOT_OF_PRODUCT = ("host", "harness")  # where it ran and who judged it


@dataclass(frozen=True)
class Identity:
    """What a result depends on, each part as a digest or a version; "" if not known.

    ``program``: sha256 of the ``.pte``. ``exporter``: who made it. ``sources``: of the firmware, a
    digest of the bundled runner's files, or commit and edits of a checkout. ``firmware``: sha256
    of the ELF. ``toolchain``, ``simulator``: with version. ``reference``: digest of what outputs
    and sizes were compared with, budgets included. ``target``: digest of the target's description.
    ``harness``: revision. ``host``: name and machine.
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

    def differences(self, other: Identity) -> tuple[Difference, ...]:
        """What differs in ``other``, the later one, of what is known here."""
        pairs = (
            (f.name, getattr(self, f.name), getattr(other, f.name)) for f in dataclass_fields(self)
        )
        return tuple(Difference(*pair) for pair in pairs if pair[1] and pair[2] != pair[1] != "")

    @property
    def of_product(self) -> tuple[str, ...]:
        """All but where it ran and who judged: two runs that agree in it should end alike."""
        return tuple(value for name, value in vars(self).items() if name not in NOT_OF_PRODUCT)


@dataclass(frozen=True)
class Difference:
    """One part of an Identity in an earlier and a later run. ``after``: "" if the later one did not
    get so far."""

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Excerpt:
    """Lines of a console. ``first``: number of the first one, from 1."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One run of one case. ``case``: its name in the history, ``Case.id``, with `` [executorch]``
    behind it if the firmware is not the bundled one. ``attempt`` counts from 1.

    ``metrics``: bytes and ticks by name; ``seconds``: ``total`` of the case, ``simulate`` of the
    simulation, ``cause`` until its line. ``operators``: of the program; ``outline``: each that it
    executes, with a digest. ``versions``: of what exported it. ``model_source``: digest of the
    model's file, the name of one of the catalogue. ``mismatch_at``: where NPU
    and TOSA first disagree, ``blame``: whose fault that is. ``output``: digest of all outputs.
    ``owner``: named by the suite; ``quarantined``: why a failure does not count this night, "" if
    it does. ``run_dir``: of the evidence, on ``identity.host``.
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
    mismatch_at: str | None = None
    blame: Blame | None = None
    output: str = ""
    excerpt: Excerpt | None = None
    identity: Identity = Identity()
    owner: str = ""
    quarantined: str = ""
    run_dir: str | None = None
    schema: int = SCHEMA

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
        """The case is not run again in its night."""
        return self.verdict is not Verdict.INFRA or self.attempt >= MOST_ATTEMPTS

    def to_fields(self) -> dict[str, Any]:
        """Plain data for JSON; ``read`` of the store is the way back."""
        return asdict(self)


@dataclass(frozen=True)
class Planned:
    """A case that a night will run. ``shard`` counts from 1."""

    case: str
    shard: int = 1
    owner: str = ""
    quarantined: str = ""


@dataclass(frozen=True)
class Excluded:
    case: str
    reason: str


@dataclass(frozen=True)
class Night:
    """One night: its suite and its plan, written once, when it begins.

    ``suite_sha256``: of the suite's cases, so that a night is not continued with others.
    ``shards``: how many processes or machines share it.
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
    schema: int = SCHEMA

    def to_fields(self) -> dict[str, Any]:
        return asdict(self)

    def of_shard(self, shard: int) -> tuple[Planned, ...]:
        return tuple(planned for planned in self.plan if planned.shard == shard)


def last_tries(rows: Iterable[Row]) -> dict[str, Row]:
    """The row that counts for each case of one night: its last try."""
    last: dict[str, Row] = {}
    for row in rows:
        if row.case not in last or row.attempt > last[row.case].attempt:
            last[row.case] = row
    return last
