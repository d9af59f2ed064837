"""The directory of one run: what judging it again needs, and its record.

``record.json`` has under ``seal`` the sha256 of each file that judging again reads, and one of the
record itself. It shows an edit, a truncated copy, a file of another run, or a disk that lost bytes.
There is no secret in it, so it does not protect against an attacker. Outputs are not among the
files: the record has their digests already.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from harness.config.case import Case, parse_case
from harness.config.schema import checked
from harness.core.errors import HarnessError, NotThere, UsageError
from harness.core.verdict import ExitCode, Verdict
from harness.export.program import Program, load_program
from harness.firmware.names import source_names
from harness.npu.doorbell import ANSWER_FIFO, REQUEST_FIFO
from harness.run.record import SCHEMA, RunRecord
from harness.sim.run_files import CONSOLE
from harness.system.artifact_cache import digest_of, files_below, key_of
from harness.system.files import MALFORMED, NotJson, disk_errors, read_json, sha256_of, write_whole
from harness.system.locks import claimed, in_use
from harness.system.paths import make_runs_dir, runs_dir

EXPECTED, RECORD = "expected", "record.json"
_STAMP, _STAMPED, _STAMPS = "%Y%m%d-%H%M%S", 15, "[0-9]" * 8 + "-" + "[0-9]" * 6 + "-*"
SEAL = "seal"  # the key of the digests in a record


def new_run_dir(label: str) -> Path:
    """Return a fresh directory under ``.hil/runs``. Raises InfraError when it cannot be made."""
    path = runs_dir() / f"{_stamp(runs_dir())}-{label}-{uuid.uuid4().hex[:6]}"
    in_use(path)
    with disk_errors("making the run directory"):
        make_runs_dir()
        path.mkdir()
        _remove_abandoned_fifos()
    return path


def _stamp(runs: Path) -> str:
    """Return the time, or a later one than every run's where the clock was set back."""
    now = datetime.now(timezone.utc)
    last = max((d.name[:_STAMPED] for d in runs.glob(_STAMPS)), default="")
    with suppress(ValueError):
        then = datetime.strptime(last, _STAMP).replace(tzinfo=timezone.utc)
        now = max(now, then + timedelta(seconds=1)) if then > now else now
    return now.strftime(_STAMP)


def _remove_abandoned_fifos() -> None:
    """Remove the FIFOs of a killed run's NPU, on which `grep -r` in its folder would wait."""
    with suppress(OSError):
        for name in (REQUEST_FIFO, ANSWER_FIFO):
            for fifo in runs_dir().glob(f"*/work/{name}"):
                with claimed(fifo.parents[1]) as free:
                    if free and fifo.is_fifo():
                        fifo.unlink(missing_ok=True)


def keep_expectations(program: Program, run_dir: Path) -> None:
    """Copy what judging needs (not the program) into the run directory."""
    kept = replace(program, directory=run_dir / EXPECTED)
    with disk_errors("keeping the expected outputs"):
        kept.directory.mkdir()
        for name in program.expected_files:
            (kept.directory / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(program.directory / name, kept.directory / name)
        kept.save()


def kept_expectations(run_dir: Path) -> Program | None:
    """Return the Program that ``keep_expectations`` kept; None if it is missing or damaged."""
    try:
        return load_program(run_dir / EXPECTED)
    except (OSError, *MALFORMED):
        return None


def save_record(record: RunRecord) -> None:
    """Write ``record.json`` with its seal into the run directory, atomically."""
    if record.run_dir is None:
        return
    run_dir = Path(record.run_dir)
    with disk_errors("writing the record"):
        fields = with_digests(asdict(record), run_dir)
        write_whole(run_dir / RECORD, json.dumps(fields, indent=1, sort_keys=True) + "\n")


def load_record(run_dir: Path, *, whole: bool = False) -> RunRecord:
    """Return the record in a run directory.

    ``whole``: its seal is there, and the files that it rests on are what they were.

    Raises UsageError when there is none that can be read, SealBroken when it is not what was
    written."""
    path = run_dir / RECORD
    in_use(run_dir)
    try:
        fields = read_json(path, finite=False)
    except (FileNotFoundError, NotADirectoryError):
        if not run_dir.exists():
            raise NotThere(
                run_dir, "file or directory", hint="run directories are under .hil/runs"
            ) from None
        raise UsageError(
            f"{run_dir} is not a run directory: it has no {RECORD}",
            hint="run directories are under .hil/runs",
        ) from None
    except (OSError, NotJson) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(fields, dict) or fields.get("schema") != SCHEMA:
        raise UsageError(f"{path} has another format than this version reads (schema {SCHEMA})")
    _check_digests(fields, run_dir, whole=whole)
    try:
        # Every value has the type that its field has. Raises ValueError, KeyError or TypeError.
        if fields["source"] not in source_names():
            raise ValueError(f"no source of firmware is called {fields['source']!r}")
        plain = {name: value for name, value in fields.items() if name != SEAL}
        if (ending := fields["ending"]) is not None:  # what is not there is not known
            plain["ending"] = {"console_complete": False, **ending}
        return checked(RunRecord, plain)
    except MALFORMED as error:
        raise UsageError(f"{path} is not a run record: {error!r}") from error


class SealBroken(HarnessError):
    """A run that is not what was judged.

    ``changed``: the files that are others, or are not there, or were not, by their names in the
    run's directory."""

    kind = "seal_broken"
    verdict = Verdict.NO_VERDICT
    exit_code = ExitCode.FAILED

    def __init__(self, run_dir: Path, changed: tuple[str, ...], what: str = "") -> None:
        self.changed = changed
        were = "was" if len(changed) == 1 else "were"
        what = what or f"{', '.join(changed)} {were} changed after the run"
        super().__init__(
            f"the seal of {run_dir} is broken: {what}",
            hint="nothing is proven by it any more; run the case again",
            path=run_dir,
        )


def with_digests(fields: Mapping[str, Any], run_dir: Path) -> dict[str, Any]:
    """Return the fields of a record with its seal. Raises OSError when a file cannot be read."""
    plain = json.loads(json.dumps(fields))  # as it will be read
    files = {name: sha256_of(run_dir / name) for name in judged_files(run_dir)}
    return {**plain, SEAL: {"files": files, "record": key_of([plain, files])}}


def _check_digests(fields: Mapping[str, Any], run_dir: Path, *, whole: bool) -> None:
    """Raise SealBroken for a record that is not what was written.

    With ``whole`` also when it has no digests, or a file that it rests on is another."""
    seal = fields.get(SEAL)
    if seal is None:
        if whole:
            raise SealBroken(run_dir, (RECORD,), f"{RECORD} has none")
        return
    rest = {name: value for name, value in fields.items() if name != SEAL}
    if not isinstance(seal, dict) or seal.get("record") != key_of([rest, seal.get("files")]):
        raise SealBroken(run_dir, (RECORD,))
    if whole:
        then = seal["files"]
        names = {*then, *judged_files(run_dir)}
        changed = sorted(n for n in names if then.get(n) != digest_of(run_dir / n))
        if changed:
            raise SealBroken(run_dir, tuple(changed))


def judged_files(run_dir: Path) -> Iterator[str]:
    """Yield the files that ``judge_again`` reads in addition to the record and the outputs."""
    yield from (name for name in (CONSOLE,) if (run_dir / name).exists())
    yield from (f"{EXPECTED}/{name}" for name in files_below(run_dir / EXPECTED))


def last_run(wanted: str | None) -> RunRecord:
    """``wanted``: a run directory, a case as ``parse_case`` takes it, or None for any.

    Raises UsageError for a malformed case and if there is no run, and what ``load_record`` raises.
    """
    if wanted is not None and Path(wanted).is_dir():
        return load_record(Path(wanted))
    case = None if wanted is None else parse_case(wanted).id
    for run_dir in _newest_first():
        if case is None or _case_of(run_dir) == case:
            return load_record(run_dir)
    raise UsageError(
        f"no run{f' of {case}' if case else ''} is recorded in {runs_dir()}",
        hint="a case that ends before its program runs leaves none: `hil run` says why it did",
        path=runs_dir(),
        kind="no_run",
        case=case,
    )


def _newest_first() -> Iterator[Path]:
    """Their names begin with the time, in seconds."""
    runs = runs_dir()
    records = [d / RECORD for d in (runs.iterdir() if runs.is_dir() else ())]
    found = ((r.parent.name[:_STAMPED], r.stat().st_mtime_ns, r) for r in records if r.is_file())
    yield from (record.parent for *_, record in sorted(found, reverse=True))


def _case_of(run_dir: Path) -> str | None:
    """Without what else a record needs to be one."""
    try:
        return Case(**read_json(run_dir / RECORD, finite=False)["case"]).id
    except (OSError, UsageError, *MALFORMED):
        return None
