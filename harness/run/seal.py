"""The seal of a run: what its record and the files that it rests on were when it was judged.

``record.json`` has under ``seal`` the sha256 of each file that judging again reads, and one of the
record itself. It shows an edit, a truncated copy, a file of another run, or a disk that lost bytes.
There is no secret in it, so it does not protect against an attacker. Outputs are not among the
files: the record has their digests already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.core.errors import HarnessError
from harness.core.verdict import ExitCode, Verdict
from harness.run.directory import EXPECTED
from harness.sim.run_files import CONSOLE
from harness.system.files import read_regular

SEAL = "seal"


class SealBroken(HarnessError):
    """A run that is not what was judged. ``changed``: the files that are others, or are not there,
    or were not, by their names in the run's directory."""

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


def sealed(fields: Mapping[str, Any], run_dir: Path) -> dict[str, Any]:
    """The fields of a record with its seal. Raises OSError when a file cannot be read."""
    plain = json.loads(json.dumps(fields))  # as it will be read
    files = {name: _digest(run_dir / name) for name in _names(run_dir)}
    return {**plain, SEAL: {"files": files, "record": _of_record(plain, files)}}


def check_seal(fields: Mapping[str, Any], run_dir: Path, record: str, *, whole: bool) -> None:
    """Raises SealBroken for a record that is not what was sealed; with ``whole`` also when it has
    no seal, or a file that it rests on is another. ``record``: the name of its file."""
    seal = fields.get(SEAL)
    if seal is None:
        if whole:
            raise SealBroken(run_dir, (record,), f"{record} has none")
        return
    rest = {name: value for name, value in fields.items() if name != SEAL}
    if not isinstance(seal, dict) or seal.get("record") != _of_record(rest, seal.get("files")):
        raise SealBroken(run_dir, (record,))
    if whole:
        then = seal["files"]
        now = {name: _digest_or_nothing(run_dir / name) for name in {*then, *_names(run_dir)}}
        changed = sorted(name for name, digest in now.items() if then.get(name) != digest)
        if changed:
            raise SealBroken(run_dir, tuple(changed))


def _of_record(fields: Mapping[str, Any], files: object) -> str:
    canonical = json.dumps([fields, files], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _names(run_dir: Path) -> Iterator[str]:
    """What ``judge_again`` reads beside the record and the outputs."""
    found = (CONSOLE, *(f"{EXPECTED}/{path.name}" for path in (run_dir / EXPECTED).glob("*")))
    return (name for name in found if (run_dir / name).exists())


def _digest(path: Path) -> str:
    return hashlib.sha256(read_regular(path)).hexdigest()


def _digest_or_nothing(path: Path) -> str | None:
    try:
        return _digest(path)
    except OSError:
        return None
