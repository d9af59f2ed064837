"""``python -m tools.bench.scale [ROWS]``: what grows with a history and a suite.

Rows of a database, cases of a night, shards of a merge; in PostgreSQL, too, when
``$HIL_BENCH_HISTORY`` names an empty database of one. Takes minutes for a million rows.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Night, Planned
from harness.nightly.night import merge
from tools.bench.farm import empty_row
from tools.bench.nightly import CASES, fill, overhead

_NIGHT, _SHARDS = 5_000, 16


def _verb(*words: str) -> str:
    """Seconds of CPU and MiB of memory that a verb of ``hil`` takes as a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = ["/usr/bin/env", "time", "-f", "%M", sys.executable, "-m", "harness", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return f"{seconds:.2f} s of CPU, {int(done.stderr.split()[-1]) >> 10} MiB"


def _database(name: str, url: str, rows: int, scratch: Path) -> None:
    began = time.monotonic()
    fill(url, rows // CASES)
    each = (time.monotonic() - began) / rows
    print(f"{name}: {rows:,} rows written, {each * 1e6:.0f} us each", flush=True)
    print(f"{name}: history of a case: {_verb('history', 't/m0', '--history', url)}")
    page = ("nightly", "page", "-o", f"{scratch}/n.html", "--history", url)
    print(f"{name}: page of the last night: {_verb(*page)}", flush=True)


def _merge(scratch: Path) -> None:
    now = datetime.now(timezone.utc)
    plan = tuple(Planned(f"t/m{i}", shard=i % _SHARDS + 1) for i in range(_NIGHT))
    night = Night("n", "bench", "bench", now.isoformat(), "h", "desk", plan, shards=_SHARDS)
    folders = [scratch / f"shard-{number}" for number in range(1, _SHARDS + 1)]
    for number, folder in enumerate(folders, 1):
        folder.mkdir()
        history = open_history(f"sqlite:///{folder}/h.db")
        history.begin(replace(night, host=f"runner-{number}"))
        mine = [planned.case for planned in plan if planned.shard == number]
        history.append([empty_row(night.id, case, now) for case in mine])
        history.close()
    whole = open_history(f"sqlite:///{scratch}/whole.db")
    began = time.monotonic()
    _, missing, doubled = merge(folders, whole)
    took = time.monotonic() - began
    assert not missing
    assert not doubled
    whole.close()
    print(f"merge of {_SHARDS} shards, {_NIGHT} cases: {took:.1f} s")


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        each = overhead(scratch, lambda _: None, _NIGHT)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"a night of {_NIGHT} cases that take no time: {each * 1e3:.2f} ms each, {peak} MiB")
        _merge(scratch)
        file = scratch / "large.db"
        _database("SQLite", f"sqlite:///{file}", rows, scratch)
        print(f"SQLite: {file.stat().st_size >> 20} MiB")
        if "HIL_BENCH_HISTORY" in os.environ:
            _database("PostgreSQL", os.environ["HIL_BENCH_HISTORY"], rows, scratch)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
