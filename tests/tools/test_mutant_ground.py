"""The copies that bugs are planted in: the same files as the original's, and newer than what was
built of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tools.bench.mutant_ground import mirror


def content(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref")
    (folder / "a").write_text("a")
    (folder / "deep" / "er" / "b").write_text("b")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def test_the_same_files_without_the_repository(source: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    mirror(source, copy)
    assert content(copy) == {"a": "a", "deep/er/b": "b", "run.sh": "#!/bin/sh\n"}
    subprocess.run([copy / "run.sh"], check=True)
    (copy / "extra").write_text("x")
    (source / "a").unlink()
    mirror(source, copy)
    assert content(copy) == {"deep/er/b": "b", "run.sh": "#!/bin/sh\n"}


def test_what_a_killed_bench_planted_is_undone_and_looks_new(source: Path, tmp_path: Path) -> None:
    """With the original's time, make would keep the object that was built of the bug."""
    copy = tmp_path / "copy"
    os.utime(source / "a", (1, 1))
    mirror(source, copy)
    same = (copy / "deep" / "er" / "b").stat().st_mtime_ns
    (copy / "a").write_text("z")  # as long as the original
    planted = (copy / "a").stat().st_mtime_ns
    mirror(source, copy)
    assert (copy / "a").read_text() == "a"
    assert (copy / "a").stat().st_mtime_ns >= planted
    assert (copy / "deep" / "er" / "b").stat().st_mtime_ns == same
