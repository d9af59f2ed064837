"""A night and its rows, as plain data, the same in every database; and how a run's record becomes a
row.

A row is one run of one case in one night. It is written once and never changed. A case has one
row in a night, or two: only INFRA is tried again, and both tries are kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, ClassVar

from harness.config.case import Case, is_user_file
from harness.config.loading import load_target, target_files
from harness.config.npu import split_mode
from harness.config.schema import as_json
from harness.core.errors import HarnessError
from harness.core.judgement import Blame, Cause
from harness.core.plain import plain
from harness.core.verdict import ExitCode, Verdict
from harness.firmware.source import label
from harness.judge.evidence import Expectation
from harness.judge.pte_contents import contents_of
from harness.run.record import RunRecord
from harness.sim.run_files import CONSOLE
from harness.system.files import read_regular, sha256_of

SCHEMA = 1
MOST_ATTEMPTS = 2
NOT_OF_PRODUCT = ("host", "harness")  # where it ran and who judged it
_DIGEST = 16  # hex digits of a digest that is only compared
_LINES, _AFTER = 10, 3  # of the console: how many, and how many after the cause's line
_MOST_LINE = 120  # characters kept of a line
_MOST_TEXT = 600  # of a cause, and of each of its facts: a row has 4 KiB at most
_MOST_NOTE, _MOST_NOTES = 200, 4
_MOST_CONSOLE = 16 << 20
_MOST_OPERATORS = 100


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


def case_name(case: Case, source: str) -> str:
    """The name of a case in the history, whatever commit its firmware is of."""
    return f"{case.id} [{source}]" if label(source) else case.id


def row_of(
    record: RunRecord,
    night: str,
    planned: Planned,
    *,
    attempt: int,
    seconds: float,
    harness: str,
    host: str,
) -> Row:
    """``seconds``: of the whole case, export and build included; ``harness`` and ``host``: where it
    ran."""
    cause = record.cause
    return Row(
        night=night,
        case=planned.case,
        time=record.time,
        target=record.case.board,
        model=record.case.name,
        source=record.source,
        verdict=record.verdict,
        attempt=attempt,
        verdict_text=record.verdict_text,
        cause=None if cause is None else _short_cause(cause),
        notes=tuple(_short(note, _MOST_NOTE) for note in record.notes[:_MOST_NOTES]),
        metrics=dict(record.metrics),
        worst_lsb=record.worst_lsb,
        seconds={**record.seconds, "total": round(seconds, 3)},
        operators=() if record.program is None else record.program.operators,
        outline=_outline(record),
        versions={} if record.program is None else dict(record.program.versions),
        model_source=_model_source(record.case),
        mismatch_at=record.mismatch_at,
        blame=record.blame,
        output=_digest(record.output_sha256) if record.output_sha256 else "",
        excerpt=_excerpt(record),
        identity=_identity(record, harness, host),
        owner=planned.owner,
        quarantined=planned.quarantined,
        run_dir=record.run_dir,
    )


def _outline(record: RunRecord) -> tuple[str, ...]:
    """Nothing of a program that is gone, is none or is very long: a row is small."""
    if record.program is None:
        return ()
    try:
        outline = contents_of(Path(record.program.pte)).outline
    except (OSError, HarnessError):
        return ()
    return outline if len(outline) <= _MOST_OPERATORS else ()


def _model_source(case: Case) -> str:
    if not is_user_file(case.model):
        return case.model
    try:
        return sha256_of(Path(case.model))[:_DIGEST]
    except OSError:
        return ""


def _identity(record: RunRecord, harness: str, host: str) -> Identity:
    program, firmware, simulator = record.program, record.firmware, record.simulator
    return Identity(
        program="" if program is None else program.sha256,
        exporter=record.exporter_label,
        sources="" if firmware is None else _sources(record),
        firmware="" if firmware is None else firmware.sha256,
        toolchain="" if firmware is None else firmware.toolchain,
        simulator="" if simulator is None else f"{simulator.name} {simulator.version}".strip(),
        reference="" if record.expectation is None else _expectation_digest(record.expectation),
        target=target_digest(record.case.target),
        harness=harness,
        host=host,
    )


def _sources(record: RunRecord) -> str:
    assert record.firmware is not None
    checkout = record.firmware.checkout
    if checkout is None:
        return record.firmware.sources[:_DIGEST]
    edits = f"+edits {checkout.diff_sha256[:_DIGEST]}" if checkout.dirty else ""
    return f"{checkout.commit}{edits}"


def _expectation_digest(expectation: Expectation) -> str:
    """Digest of the accepted runs and the budgets."""
    reference, truth = expectation.reference, expectation.truth
    return _digest(
        [
            None if reference is None else asdict(replace(reference, history=())),
            None if truth is None else asdict(replace(truth, history=())),
            as_json(expectation.budgets),
        ]
    )


def target_digest(name: str) -> str:
    """Of the target as its files describe it; of its own file's bytes if that is malformed."""
    try:
        fields = as_json(load_target(name))
        return _digest({key: value for key, value in fields.items() if key != "file"})
    except HarnessError:
        stem = split_mode(name)[0]
        try:
            file = target_files().get(stem, Path(stem))
            return "malformed " + hashlib.sha256(read_regular(file)).hexdigest()[:_DIGEST]
        except (HarnessError, OSError):
            return ""


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def _short_cause(cause: Cause) -> Cause:
    return Cause(cause.kind, _short(cause.text), cause.line, _small(cause.facts))


def _small(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The short facts; long ones (the end of a log) are in the run's record."""
    if facts is None:
        return None
    plain_facts = json.loads(json.dumps(dict(facts), default=str))
    return {n: v for n, v in plain_facts.items() if len(json.dumps(v)) <= _MOST_TEXT}


def _short(text: str, most: int = _MOST_TEXT) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _excerpt(record: RunRecord) -> Excerpt | None:
    """The console around the cause's line, or its end if the cause has none."""
    if record.verdict.passed or record.run_dir is None:
        return None
    try:
        console = read_regular(Path(record.run_dir) / CONSOLE, _MOST_CONSOLE)
    except OSError:
        return None
    lines = console.decode("utf-8", "replace").removesuffix("\n").split("\n")
    named = None if record.cause is None else record.cause.line
    last = len(lines) if named is None else min(named + _AFTER, len(lines))
    first = max(last - _LINES, 0)
    kept = tuple(plain(line)[:_MOST_LINE] for line in lines[first:last])
    return Excerpt(first + 1, kept) if kept else None
