"""How the record of a run becomes a row of the history, which has 4 KiB at most."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.config.case import Case, is_user_file
from harness.config.loading import load_target, target_files
from harness.config.npu import split_mode
from harness.core.errors import HarnessError
from harness.core.safe_text import plain
from harness.core.verdict import Verdict
from harness.export.exporter import exporter_label
from harness.export.request import exporter_versions
from harness.firmware.source import label
from harness.judge.evidence import Expectation
from harness.judge.pte_contents import contents_of
from harness.nightly.history.nights import MALFORMED, Excerpt, Identity, Night, Planned, Row
from harness.nightly.history.repository import last_commit
from harness.run.record import RunRecord, host
from harness.sim.run_files import CONSOLE
from harness.system.files import read_regular, sha256_of

_DIGEST = 16  # hex digits of a digest that is only compared
_LINES, _AFTER = 10, 3  # of the console: how many, and how many after the cause's line
_MOST_LINE = 120  # characters kept of a line
_MOST_TEXT = 800  # of a cause, and of each of its facts: a row has 4 KiB at most
_MOST_NOTE, _MOST_NOTES = 200, 4
_MOST_CONSOLE = 16 << 20
_MOST_OPERATORS = 100
_MOST_OUTPUTS = 4
_MOST_LEFT = 4  # operators on the CPU


def case_name(case: Case, source: str) -> str:
    """Return the name of a case in the history, whatever commit its firmware is of."""
    return f"{case.id} [{source}]" if label(source) else case.id


def row_of(
    record: RunRecord, night: Night, planned: Planned, *, attempt: int, seconds: float, harness: str
) -> Row:
    """``seconds``: of the whole case, export and build included; ``harness``: where it ran."""
    cause, model = record.cause, record.case.model
    known, versions = is_user_file(model) and night.origin.commit, _versions(record)
    return Row(
        night=night.id,
        case=planned.case,
        time=record.time,
        target=record.case.board,
        model=record.case.name,
        source=record.source,
        verdict=record.verdict,
        attempt=attempt,
        verdict_text=record.verdict_text,
        cause=cause and replace(cause, text=_short(cause.text), facts=_small(cause.facts)),
        notes=tuple(_short(note, _MOST_NOTE) for note in record.notes[:_MOST_NOTES]),
        metrics=record.metrics,
        worst_lsb=record.worst_lsb,
        seconds={**record.seconds, "total": round(seconds, 3)},
        operators=() if record.program is None else record.program.operators,
        outline=_outline(record),
        versions=versions,
        model_source=_model_source(record.case),
        model_commit=_short(last_commit(Path(model)), _MOST_NOTE) if known else "",
        mismatch_at=record.mismatch_at,
        blame=record.blame,
        accuracy=tuple(sorted(record.accuracy, key=lambda a: a.sqnr_db)[:_MOST_OUTPUTS]),
        witness=None if record.program is None else record.program.witness,
        on_cpu=tuple(_short(o.describe(), _MOST_NOTE) for o in record.on_cpu[:_MOST_LEFT]),
        output=_digest(record.output_sha256) if record.output_sha256 else "",
        excerpt=_excerpt(record),
        identity=_identity(record, harness, versions.get("executorch", "")),
        owner=planned.owner,
        quarantined=planned.quarantined,
        run_dir=record.run_dir,
        suite=night.suite,
        origin=night.origin,
    )


def _outline(record: RunRecord) -> tuple[str, ...]:
    """Return the program's outline; () if it is gone, malformed or very long: a row is small."""
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


def _versions(record: RunRecord) -> dict[str, str]:
    """Versions of the exporter, also of a failed export: a night uses the installed exporter."""
    if record.program is not None:
        return dict(record.program.versions)
    return exporter_versions() if record.verdict is Verdict.EXPORT_ERROR else {}


def _identity(record: RunRecord, harness: str, wheel: str) -> Identity:
    program, firmware, simulator = record.program, record.firmware, record.simulator
    return Identity(
        program="" if program is None else program.sha256,
        exporter=record.exporter_label or (exporter_label(None, wheel) if wheel else ""),
        sources="" if firmware is None else _sources(record),
        firmware="" if firmware is None else firmware.sha256,
        toolchain="" if firmware is None else firmware.toolchain,
        simulator="" if simulator is None else f"{simulator.name} {simulator.version}".strip(),
        reference="" if record.expectation is None else _expectation_digest(record.expectation),
        target=target_digest(record.case.target),
        harness=harness,
        host=host(),
    )


def _sources(record: RunRecord) -> str:
    assert record.firmware is not None
    checkout = record.firmware.checkout
    if checkout is None:
        return record.firmware.sources[:_DIGEST]
    edits = f"+edits {checkout.diff_sha256[:_DIGEST]}" if checkout.dirty else ""
    return f"{checkout.commit}{edits}"


def _expectation_digest(expectation: Expectation) -> str:
    runs = (expectation.reference, expectation.truth)
    accepted = [run and asdict(replace(run, history=())) for run in runs]
    return _digest([*accepted, asdict(expectation.budgets)])


def target_digest(name: str) -> str:
    """Digest of the target as its files describe it; of its own file's bytes if malformed."""
    try:
        fields = asdict(load_target(name))
        return _digest({key: value for key, value in fields.items() if key != "file"})
    except HarnessError:
        stem = split_mode(name)[0]
        try:
            file = target_files().get(stem, Path(stem))
            return MALFORMED + hashlib.sha256(read_regular(file)).hexdigest()[:_DIGEST]
        except (HarnessError, OSError):
            return ""


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def _small(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the short facts; long ones (the end of a log) are in the run's record."""
    if facts is None:
        return None
    plain_facts = json.loads(json.dumps(dict(facts), default=str))
    return {n: v for n, v in plain_facts.items() if len(json.dumps(v)) <= _MOST_TEXT}


def _short(text: str, most: int = _MOST_TEXT) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _excerpt(record: RunRecord) -> Excerpt | None:
    """Return the console around the cause's line, or its end if the cause has none."""
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
