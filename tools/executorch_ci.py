"""The page on ExecuTorch's CI: ``python -m tools.executorch_ci CLONE [--part N=DIR] [--fault F]``.

Plants faults of tests/suites/ci/faults.yaml in CLONE, one after the other, runs the job of each and
the case of ``hil run``, and keeps what came of it in docs/executorch-ci-faults.json. Then writes
docs/executorch-ci.md: the jobs as ``hil suite executorch-ci --list`` has them, and the faults.

CLONE is a checkout of ExecuTorch without edits, for this alone. Every file is restored.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import yaml

from tools.networks import DOCS, line, table

ROOT = Path(__file__).parents[1]
FAULTS = ROOT / "tests/suites/ci/faults.yaml"
KEPT, PAGE = DOCS / "executorch-ci-faults.json", DOCS / "executorch-ci.md"
_FOLDER = re.compile(r"/[^\s(]*/cache/executorch-ci/\w+/")  # of this machine
_HEAD = """\

## Planted faults
Each fault was planted in the checkout, and its job run. ExecuTorch's own CI sees the exit status
of the *script* alone. Where the stand-in ends a program that can never go on, an FVP runs on until
the job's limit of two hours. *hil run* builds and runs the same part of the checkout, and compares
its outputs.

"""


@contextmanager
def planted(clone: Path, fault: Mapping[str, Any]) -> Iterator[None]:
    """Has the fault in the clone's file meanwhile. Raises ClickException when the clone has edits,
    or not exactly one place for it."""
    edits = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"],
        cwd=clone,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if edits:
        raise click.ClickException(f"{clone} has edits, and faults are planted in it: {edits}")
    file = clone / fault["file"]
    before = file.read_bytes()
    old, new = (str(fault[name]).encode() for name in ("old", "new"))
    if before.count(old) != 1:
        raise click.ClickException(f"{file} has the text of the fault {before.count(old)} times")
    try:
        file.write_bytes(before.replace(old, new))
        yield
    finally:
        file.write_bytes(before)


def job_of(fault: Mapping[str, Any], clone: Sequence[str], *, resume: bool) -> dict[str, Any]:
    """What the job says of the planted fault. ``clone``: options that name it. ``resume``: takes
    the result that is kept for this content of the clone, if there is one."""
    for how in (["--list"] if resume else [], []):
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            words = ["suite", "executorch-ci", "--only", fault["job"], "--report", report.name]
            _hil(*words, *how, *clone)
            (job,) = json.loads(Path(report.name).read_text())["jobs"]
        if job["verdict"] != "not run":
            return {name: job[name] for name in ("name", "verdict", "status", "reasons", "seconds")}
    raise click.ClickException(f"{job['name']}: {'; '.join(job['reasons'])}")


def run_of(case: Sequence[str], clone: Sequence[str]) -> list[str | None]:
    """Verdict and cause of ``hil run``."""
    (ran,) = json.loads(_hil("run", *case, "--json", *clone).stdout)["cases"]
    return [ran["verdict"], ran["cause"] and ran["cause"]["text"].splitlines()[0]]


def _keep(rows: Mapping[str, Any]) -> None:
    KEPT.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")


def _hil(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "harness", *words]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)


def section(faults: Mapping[str, Any], rows: Mapping[str, Any]) -> str:
    """The part of the page on the faults that were run."""
    text = _HEAD + table("fault", "kind", "job", "script", "verdict here", "hil run")
    for name, fault in faults.items():
        if row := rows.get(name):
            here = _FOLDER.sub("", ": ".join([row["verdict"], *row["reasons"][:1]]))
            run = ": ".join(filter(None, row.get("run", [])))
            cells = (name, fault["kind"], row["name"], f"exit {row['status']}", here, run)
            text += line(*(cell.replace("|", "\\|") for cell in cells))
    return text


@click.command()
@click.argument("clone", type=click.Path(exists=True, path_type=Path))
@click.option("--part", "parts", multiple=True, metavar="NAME=DIR")
@click.option("--fault", "names", multiple=True, metavar="NAME")
@click.option("--resume", is_flag=True, help="Take the kept result of a job with its fault.")
@click.option("--jobs-only", is_flag=True, help="Leave `hil run` out.")
def main(
    clone: Path, parts: tuple[str, ...], names: tuple[str, ...], resume: bool, jobs_only: bool
) -> None:
    faults = yaml.safe_load(FAULTS.read_text())
    rows = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    named = ["--executorch", str(clone), *(f"--part={part}" for part in parts)]
    for name in names:
        with planted(clone, fault := faults[name]):
            rows[name] = job_of(fault, named, resume=resume)
            _keep(rows)
            if "run" in fault and not jobs_only:
                rows[name]["run"] = run_of(fault["run"], named)
                _keep(rows)
        click.echo(f"{name}: {rows[name]}")
    _hil("suite", "executorch-ci", "--list", "--report", str(PAGE), *named)
    planted_ones = section(faults, rows) if rows else ""
    PAGE.write_text(PAGE.read_text().rstrip("\n") + "\n" + planted_ones)


if __name__ == "__main__":
    main()
