"""Protects what a case needs from elsewhere: brought where it is there, made once where it is not,
and never in the way of a case."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.build.source import FirmwareSource
from harness.case.case import Case
from harness.errors import BuildError
from harness.history.model import Planned, Row
from harness.nightly import share
from harness.nightly.share import bring
from harness.nightly.store import Store
from harness.nightly.suite import Job
from harness.nightly.work import OfStore, Task, work
from harness.run.pipeline import RunOptions
from tests.nightly.sshd import sshd

CASE = Case("corstone-300-m55", "add")
OPTIONS = RunOptions(simulator="qemu")

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, shared_hil_home: str) -> Path:
    """A store that has what the case needs, from the session's home."""
    folder = tmp_path_factory.mktemp("filled") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", shared_hil_home)
        assert bring(CASE, OPTIONS, Store(str(folder))).notes == ()
    return folder


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    shutil.copytree(filled, tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "cold"))
    return tmp_path / "cold"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made here: its key."""
    keys: list[str] = []
    for cls in (share._Program, share._Firmware):
        make = cls.make

        def counted(self: share._Program | share._Firmware, make: object = make) -> None:
            keys.append(self.kind)
            make(self)  # type: ignore[operator]

        monkeypatch.setattr(cls, "make", counted)
    return keys


def worked(store: str) -> Row:
    job = Job(CASE, OPTIONS.firmware.sources, (Planned(CASE.id),), "qemu")
    task = Task("night", job, OPTIONS, 1, "rev")
    (row,) = work(task, lambda case, options: bring(case, options, Store(store)))
    return row


def store_notes(row: Row) -> list[str]:
    return [note for note in row.notes if isinstance(note, OfStore)]


def test_a_cold_machine_makes_nothing(store: Path, cold: Path, made: list[str]) -> None:
    row = worked(str(store))
    assert row.verdict.passed, row
    assert made == []
    assert store_notes(row) == []
    assert list((cold / "cache" / "programs").glob("add-*/program.pte"))


@pytest.mark.parametrize("kind", ["programs", "firmware"])
def test_a_damaged_object_is_made_again_and_mended(
    kind: str, store: Path, cold: Path, made: list[str], shared_hil_home: str, filled: Path
) -> None:
    """Found by its name when it is read; nobody runs it. The program is "exported" from the
    session's cache, which takes its place here for the time that this takes."""
    (pointer,) = (store / kind).iterdir()
    name = pointer.read_text().partition('"object": "')[2][:64]
    damaged = store / "objects" / name
    damaged.write_bytes(damaged.read_bytes()[::-1])
    entry = Path(shared_hil_home) / "cache" / kind / pointer.name
    thing = share._Program if kind == "programs" else share._Firmware

    def copied(self: object) -> None:
        made.append(kind)
        shutil.copytree(entry, cold / "cache" / kind / pointer.name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thing, "make", copied)
        row = worked(str(store))
    assert row.verdict.passed
    assert made == [kind]
    (note,) = store_notes(row)
    assert note == f"objects/{name} in the store {store} is not what was stored"
    shutil.rmtree(cold)
    assert store_notes(worked(str(store))) == []
    assert made == [kind], "the second machine takes what the first one mended"


def test_a_store_that_goes_costs_a_note(
    tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sshd(tmp_path) as server, monkeypatch.context() as patch:
        patch.setenv("HOME", str(server.home))
        patch.setenv("HIL_HOME", shared_hil_home)
        server.stop()
        row = worked(server.url)
    assert row.verdict.passed
    (note,) = store_notes(row)
    assert "does not answer" in note


def test_who_comes_second_waits_and_takes(store: Path, cold: Path, made: list[str]) -> None:
    """What appears in the store while one waits for the right to make it is not made again."""
    shutil.move(store / "firmware", store / "later")
    asked: list[str] = []

    @contextmanager
    def alone(name: str) -> Iterator[None]:
        asked.append(name.partition("/")[0])
        shutil.move(store / "later", store / "firmware")
        yield

    brought = bring(CASE, OPTIONS, Store(str(store)), alone)
    assert (asked, made, brought.errors) == (["firmware"], [], {})


def test_a_build_that_fails_is_the_row_of_its_firmware(
    store: Path, cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(store / "firmware")

    def fails(self: share._Firmware) -> None:
        raise BuildError("it does not compile")

    monkeypatch.setattr(share._Firmware, "make", fails)
    row = worked(str(store))
    assert (row.verdict.name, row.source) == ("BUILD_ERROR", FirmwareSource.BUNDLED)
    assert row.cause is not None
    assert row.cause.text == "it does not compile"
