"""The program cache: complete or absent. No torch here, the Programs are made up."""

from __future__ import annotations

import errno
import hashlib
import sys
from pathlib import Path

import pytest

from harness.case.models import find_model
from harness.errors import InfraError
from harness.export import cache
from harness.export.batch import export
from harness.export.program import InputSet, Program, TensorSpec
from harness.export.request import ExportRequest

KEY = "model-cortex-m55-0123"


def write(directory: Path) -> Program:
    (directory / "program.pte").write_bytes(b"pte")
    (directory / "i0.bin").write_bytes(b"\1")
    (directory / "e0.bin").write_bytes(b"\2")
    spec = TensorSpec("x", "int8", (1,), (0,))
    return Program(
        directory=directory,
        model="model",
        compile_target="cortex-m55",
        pte="program.pte",
        pte_sha256=hashlib.sha256(b"pte").hexdigest(),
        oracle="none",
        inputs=(spec,),
        outputs=(spec,),
        sets=(InputSet(("i0.bin",), ("e0.bin",)),),
        operators=(),
        planned_buffers=(),
        versions={},
        seed=0,
    )


def leftovers(home: Path) -> list[str]:
    return sorted(p.name for p in (home / "cache" / "programs").iterdir() if p.suffix != ".lock")


def test_what_is_stored_is_found_again(own_home: Path) -> None:
    assert cache.load(KEY) is None
    stored = cache_store()
    assert stored.directory == cache.entry_dir(KEY)
    assert cache.load(KEY) == stored
    assert leftovers(own_home) == [KEY]


def cache_store() -> Program:
    with cache.locked(KEY, wait=True) as mine:
        assert mine
        return cache.store(KEY, write)


@pytest.mark.parametrize("damage", ["program.pte", "i0.bin", "e0.bin", "program.json"])
def test_an_incomplete_entry_is_a_miss_and_is_replaced(own_home: Path, damage: str) -> None:
    """Somebody deletes a file by hand: the next export mends it instead of failing."""
    (cache_store().directory / damage).unlink()
    assert cache.load(KEY) is None
    cache_store()
    assert cache.load(KEY) is not None


@pytest.mark.parametrize("text", ["", "{}", '{"inputs": 3'])
def test_a_damaged_description_is_a_miss(own_home: Path, text: str) -> None:
    (cache_store().directory / "program.json").write_text(text)
    assert cache.load(KEY) is None


def test_a_changed_program_is_not_silently_exported_again(own_home: Path) -> None:
    """It runs as it is and the verdict names it: whoever flips a byte wants to see it."""
    cache_store().pte_path.write_bytes(b"ptf")
    program = cache.load(KEY)
    assert program is not None
    assert program.pte_path.read_bytes() == b"ptf"


def test_a_key_is_written_by_one_at_a_time(own_home: Path) -> None:
    with cache.locked(KEY, wait=True) as first, cache.locked(KEY, wait=False) as second:
        assert (first, second) == (True, False)
    with cache.locked(KEY, wait=False) as third:
        assert third


def test_a_full_disk_leaves_nothing(own_home: Path) -> None:
    """The message says where, and how much is free."""

    def full(directory: Path) -> Program:
        (directory / "program.pte").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        cache.locked(KEY, wait=True),
        pytest.raises(cache.CacheNotWritable, match="No space left on device") as caught,
    ):
        cache.store(KEY, full)
    assert leftovers(own_home) == []
    assert str(own_home) in caught.value.message
    assert caught.value.free_bytes
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.facts.keys() == {"path", "free_bytes", "errno"}


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "file" / "hil"))
    with (
        pytest.raises(InfraError, match="cannot write the program cache") as caught,
        cache.locked(KEY, wait=True),
    ):
        pass
    assert "HIL_HOME" in (caught.value.hint or "")


def test_an_exporter_that_cannot_be_imported(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "harness.export.worker", None)
    error = export([ExportRequest(find_model("add"))])[0].error
    assert isinstance(error, InfraError)
    assert "cannot be imported" in error.message
    assert leftovers(own_home) == []


def test_what_a_killed_export_left_is_swept(own_home: Path) -> None:
    stale = own_home / "cache" / "programs" / f".{KEY}.tmp-999999"
    stale.mkdir(parents=True)
    cache_store()
    assert leftovers(own_home) == [KEY]


def test_an_interrupted_write_leaves_nothing(own_home: Path) -> None:
    def interrupted(directory: Path) -> Program:
        raise KeyboardInterrupt

    with cache.locked(KEY, wait=True), pytest.raises(KeyboardInterrupt):
        cache.store(KEY, interrupted)
    assert leftovers(own_home) == []
