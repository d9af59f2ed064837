"""The program cache: complete or absent. No torch here, the Programs are made up."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.models import find_model
from harness.export import cache
from harness.export.batch import export
from harness.export.cache import NO_INPUTS
from harness.export.program import InputSet, Program, TensorSpec
from harness.export.request import ExportRequest
from harness.system.files import DiskError

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
        versions={},
    )


def leftovers(home: Path) -> list[str]:
    return sorted(p.name for p in (home / "cache" / "programs").iterdir() if p.suffix != ".lock")


def test_what_is_stored_is_found_again(own_home: Path) -> None:
    assert cache.load(KEY) is None
    stored = cache_store()
    assert stored.directory == cache.entry_dir(KEY)
    assert cache.load(KEY) == stored
    assert leftovers(own_home) == [cache.entry_dir(KEY).name]


def cache_store() -> Program:
    with cache.locked(KEY):
        return cache.store(KEY, lambda folder: (write(folder), NO_INPUTS))


@pytest.mark.parametrize(
    "damage", ["program.pte", "i0.bin", "e0.bin", "program.json", "entry.json"]
)
def test_an_incomplete_entry_is_a_miss_and_is_replaced(own_home: Path, damage: str) -> None:
    """Somebody deletes a file by hand: the next export mends it instead of failing."""
    (cache_store().directory / damage).unlink()
    assert cache.load(KEY) is None
    cache_store()
    assert cache.load(KEY) is not None


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"inputs": 3', '{"a": NaN}', "[" * 100_000, "\xff", "[]", '{"files": {"x": []}}'],
)
@pytest.mark.parametrize("name", ["program.json", "entry.json"])
def test_a_damaged_description_is_a_miss(own_home: Path, name: str, text: str) -> None:
    (cache_store().directory / name).write_text(text, "latin-1")
    assert cache.load(KEY) is None
    assert cache.invalid_reason(KEY) == f"{name} is not what was stored"


@pytest.mark.parametrize("name", ["program.pte", "i0.bin", "e0.bin"])
def test_what_is_not_what_was_stored_is_not_used(own_home: Path, name: str) -> None:
    """A flipped bit, or a file that was cut short, is neither run nor believed; and it is said."""
    place = cache_store().directory / name
    for content in (b"", b"ptf", bytes([place.read_bytes()[0] ^ 1])):
        place.write_bytes(content)
        assert cache.load(KEY) is None
        assert cache.invalid_reason(KEY) == f"{name} is not what was stored"


def test_program_expected_outputs_and_record_swapped_together(own_home: Path) -> None:
    """All three agree with each other, and so they passed; they do not agree with the entry."""
    place = cache_store().directory
    (place / "program.pte").write_bytes(b"ptf")
    (place / "e0.bin").write_bytes(b"\3")
    digests = [hashlib.sha256(pte).hexdigest() for pte in (b"pte", b"ptf")]
    text = (place / "program.json").read_text()
    assert digests[0] in text
    (place / "program.json").write_text(text.replace(*digests))
    assert cache.load(KEY) is None


def test_the_entry_of_another_key_is_not_used(own_home: Path) -> None:
    """Copied over, whole and consistent in itself."""
    shutil.copytree(cache_store().directory, cache.entry_dir("other-0123"))
    assert cache.load("other-0123") is None
    assert cache.invalid_reason("other-0123") == f"it is that of {KEY}"


def test_a_spoiled_entry_is_exported_again_and_the_note_says_so(
    own_home: Path, double: Callable[..., None]
) -> None:
    """The note comes with the program, and from there into the record of its run."""
    double()
    request = ExportRequest(find_model("add"))
    first = export([request])[0].unwrap()
    first.pte_path.write_bytes(b"ptf")
    said: list[str] = []
    again = export([request], said.append)[0]
    note = "the cached program was not used, program.pte is not what was stored"
    assert again.unwrap().pte_path.read_bytes() == b"double"
    assert again.unwrap().notes == (note,)
    assert said[0] == f"add for cortex-m55: exporting; {note}"
    (cached,) = export([request])
    assert cached.cached
    assert cached.unwrap().notes == ()


def test_a_program_that_depends_on_the_cpu_is_one_of_each_class(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store is shared by machines, and each must have its own."""

    def stored() -> Path:
        with cache.locked(KEY):
            return cache.store(
                KEY, lambda folder: (replace(write(folder), not_reproducible="why"), NO_INPUTS)
            ).directory

    def loaded() -> Path | None:
        program = cache.load(KEY)
        return None if program is None else program.directory

    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    here = stored()
    assert loaded() == here
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert loaded() is None
    there = stored()
    assert loaded() == there != here
    monkeypatch.delenv("ATEN_CPU_CAPABILITY")
    assert loaded() == here


def stored_with(inputs: dict[str, str]) -> Path:
    with cache.locked(KEY):
        return cache.store(KEY, lambda folder: (write(folder), inputs)).directory


def test_each_state_of_the_input_files_has_an_entry(own_home: Path, tmp_path: Path) -> None:
    """Old weights that come back are found; a third state is not; neither replaces the other."""
    weights = tmp_path / "weights.pt"
    stored = []
    for content in ("a", "b"):
        weights.write_text(content)
        digest = hashlib.sha256(content.encode()).hexdigest()
        stored.append(stored_with({"weights.pt": digest}))
    for content, place in zip(("a", "b"), stored, strict=True):
        weights.write_text(content)
        program = cache.load(KEY, str(tmp_path))
        assert program is not None
        assert program.directory == place
    assert cache.load(KEY, "/elsewhere") is None
    weights.write_text("c")
    assert cache.load(KEY, str(tmp_path)) is None
    assert cache.invalid_reason(KEY) == ""


@pytest.mark.parametrize("change", ["gone", "folder", "fifo", "cut"])
def test_a_changed_input_file_does_not_hold(own_home: Path, tmp_path: Path, change: str) -> None:
    file = tmp_path / "weights.pt"
    file.write_bytes(b"1234")
    stored_with({"weights.pt": hashlib.sha256(b"1234").hexdigest()})
    assert cache.load(KEY, str(tmp_path)) is not None
    if change == "cut":
        file.write_bytes(b"12")
    else:
        file.unlink()
    if change == "folder":
        file.mkdir()
    elif change == "fifo":
        os.mkfifo(file)
    assert cache.load(KEY, str(tmp_path)) is None


def test_a_key_is_written_by_one_at_a_time(own_home: Path) -> None:
    waited: list[bool] = []
    release = threading.Event()

    def on_wait() -> None:
        waited.append(True)
        release.set()

    def second() -> None:
        with cache.locked(KEY, on_wait):
            pass

    with ThreadPoolExecutor(1) as pool:
        with cache.locked(KEY):
            future = pool.submit(second)
            assert release.wait(30)
            assert not future.done()
        future.result(30)
    assert waited == [True]


def test_a_full_disk_leaves_nothing(own_home: Path) -> None:
    def full(directory: Path) -> tuple[Program, dict[str, str]]:
        (directory / "program.pte").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        cache.locked(KEY),
        pytest.raises(DiskError, match="writing the program cache: No space left") as caught,
    ):
        cache.store(KEY, full)
    assert leftovers(own_home) == []
    assert (caught.value.errno, caught.value.kind) == ("ENOSPC", "disk_full")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "file" / "hil"))
    with (
        pytest.raises(DiskError, match="writing the program cache: Not a directory") as caught,
        cache.locked(KEY),
    ):
        pass
    assert str(tmp_path) in caught.value.message


def test_what_a_killed_export_left_is_swept(own_home: Path) -> None:
    stale = own_home / "cache" / "programs" / f".{KEY}.tmp-999999"
    stale.mkdir(parents=True)
    cache_store()
    assert leftovers(own_home) == [cache.entry_dir(KEY).name]


def test_an_interrupted_write_leaves_nothing(own_home: Path) -> None:
    def interrupted(directory: Path) -> tuple[Program, dict[str, str]]:
        raise KeyboardInterrupt

    with cache.locked(KEY), pytest.raises(KeyboardInterrupt):
        cache.store(KEY, interrupted)
    assert leftovers(own_home) == []
