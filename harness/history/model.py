"""A night and its rows, as plain data; the same in every database and as JSON lines.

A row is one run of one case in one night. It is written once and never changed. A case has one
row in a night, or two: only INFRA is tried again, and both tries are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from harness.errors.verdict import ExitCode, Verdict
from harness.judge.cause import Blame, Cause

SCHEMA = 1
MOST_ATTEMPTS = 2
NO_PLACE = ("host", "harness")  # where it ran and who judged it, which the product does not see


@dataclass(frozen=True)
class Identity:
    """What a result rests on, each part as a digest or a version; "" for what is not known.

    ``program``: sha256 of the ``.pte``. ``exporter``: who made it. ``sources``: of the firmware, a
    digest of our runner's files, or commit and edits of a checkout. ``firmware``: sha256 of the
    ELF. ``toolchain``, ``simulator``: with version. ``reference``: digest of what outputs and sizes
    were held against, budgets included. ``target``: digest of the target as its files say it.
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
        """What both know and do not agree on; ``other`` is the later one."""
        pairs = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return tuple(Difference(*pair) for pair in pairs if pair[1] and pair[2] != pair[1] != "")

    @property
    def of_product(self) -> tuple[str, ...]:
        """All of it but where it ran and who judged: two runs with the same should end alike."""
        return tuple(value for name, value in vars(self).items() if name not in NO_PLACE)


@dataclass(frozen=True)
class Difference:
    """One part of an Identity, in an earlier and a later run. ``after`` is "" where the later one
    did not get so far."""

    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Excerpt:
    """Lines of a console; ``first`` is the number of the first of them, from 1."""

    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One run of one case. ``case`` is its name in the history: ``Case.id``, and behind it
    `` [executorch]`` where the firmware is not ours. ``attempt`` counts from 1.

    ``metrics``: bytes and ticks by name; ``seconds``: ``total`` of the case, ``simulate`` of the
    simulation, ``cause`` until its line. ``operators``: those that the program has.
    ``mismatch_at``: where NPU and TOSA first disagree, ``blame``: whose fault that is. ``output``:
    digest of all outputs. ``owner``: whom the suite names; ``quarantined``: why a failure does not
    count this night, "" when it does. ``run_dir``: where the evidence was, on ``identity.host``.
    """

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
        """The product failed, or nothing was proven of it; what the infrastructure or a missing
        simulator prevented is neither good nor bad."""
        return self.verdict.exit_code is ExitCode.FAILED and self.verdict is not Verdict.SKIPPED

    @property
    def good(self) -> bool:
        return self.verdict.passed

    @property
    def settled(self) -> bool:
        """Nothing more of this case is to be run in its night."""
        return self.verdict is not Verdict.INFRA or self.attempt >= MOST_ATTEMPTS

    def to_fields(self) -> dict[str, Any]:
        """Plain data for JSON; ``row_from`` is the way back."""
        return asdict(self)


def row_from(said: Mapping[str, Any]) -> Row:
    """From plain data. Raises one of MALFORMED for what is no row."""
    cause, blame, excerpt = said.get("cause"), said.get("blame"), said.get("excerpt")
    return Row(
        **{
            **said,
            "verdict": Verdict[said["verdict"]],
            "cause": None if cause is None else Cause(**cause),
            "blame": None if blame is None else Blame(**blame),
            "excerpt": None
            if excerpt is None
            else Excerpt(excerpt["first"], tuple(excerpt["lines"])),
            "identity": Identity(**said.get("identity", {})),
            "notes": tuple(said.get("notes", ())),
            "operators": tuple(said.get("operators", ())),
        }
    )


@dataclass(frozen=True)
class Planned:
    """A case that a night is to run. ``shard`` counts from 1."""

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
    """One night: which suite, and what was planned. It is written once, when it begins.

    ``suite_sha256``: of what the suite says, so that a night is not continued with another.
    ``shards``: over how many processes or machines it is spread.
    """

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
        return tuple(one for one in self.plan if one.shard == shard)


def night_from(said: Mapping[str, Any]) -> Night:
    """From plain data. Raises one of MALFORMED for what is no night."""
    return Night(
        **{
            **said,
            "plan": tuple(Planned(**one) for one in said.get("plan", ())),
            "excluded": tuple(Excluded(**one) for one in said.get("excluded", ())),
        }
    )


def last_tries(rows: Iterable[Row]) -> dict[str, Row]:
    """Of each case of one night the row that counts: its last try."""
    last: dict[str, Row] = {}
    for row in rows:
        if row.case not in last or row.attempt > last[row.case].attempt:
            last[row.case] = row
    return last
