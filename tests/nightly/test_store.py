"""Protects what machines share: what was stored comes back, or a note says why, and a case is never
in the way of it."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import random
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.firmware.choice import FirmwareChoice, sources_of
from harness.firmware.sources.wheel import make_plan
from harness.nightly.history.nights import Planned, Row
from harness.nightly.pool import Task, work
from harness.nightly.store import Store, StoredEntry, StoreFailed, entries_of
from harness.nightly.store import _pack as packed
from harness.nightly.suite import NightJob
from harness.run.pipeline import RunOptions
from harness.system import artifact_cache
from tests.firmware.wheel.wheels import plant
from tests.nightly.history.made import night

KEY = "add-cortex-m55-0123"
ENTRY = StoredEntry("programs", KEY)
CASE = Case("corstone-300-m55", "add")
OPTIONS = RunOptions(simulator="qemu")
needs_tools = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A folder, and what has buckets as S3 has them."""
    if request.param == "folder":
        return Store(str(tmp_path / "store"))
    fsspec.filesystem("memory").mkdir(f"/{tmp_path.name}")
    return Store(f"memory://{tmp_path.name}/store")


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the cache of this machine."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "warm"))
    folder = tmp_path / "warm" / "cache" / "programs" / f"{KEY}+inputs"
    (folder / "set0").mkdir(parents=True)
    (folder / "set0" / "i0.bin").write_bytes(bytes(range(256)) * 4096)
    (folder / "runner").write_bytes(b"\x7fELF")
    (folder / "runner").chmod(0o755)
    artifact_cache.seal(folder, KEY)
    return folder


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a machine that has nothing."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "cold"))
    return tmp_path / "cold"


def fetched(store: Store, entry: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where another machine has the entry once it asked the store for it."""
    home = entry.parents[3] / "other"
    with monkeypatch.context() as patch:
        patch.setenv("HIL_HOME", str(home))
        store.share([ENTRY])
    return home / "cache" / "programs" / entry.name


def test_an_entry_comes_back_as_it_was(
    store: Store, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.require()
    assert not fetched(store, entry, monkeypatch).exists()
    store.share([ENTRY])
    assert contents(fetched(store, entry, monkeypatch)) == contents(entry)
    assert store.notes == []


def test_nothing_half_is_left_beside(tmp_path: Path, entry: Path) -> None:
    store = Store(str(tmp_path / "store"))
    store.require()
    store.share([ENTRY])
    names = [path.name for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert names == [KEY]


@pytest.mark.parametrize("damage", ["a bit", "cut", "no archive", "another's", "empty"])
def test_what_is_not_as_stored_is_found_and_replaced(
    damage: str, entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "store"))
    store.require()
    store.share([ENTRY])
    file = tmp_path / "store" / "programs" / KEY
    data = bytearray(file.read_bytes())
    if damage == "a bit":
        data[len(data) // 2] ^= 1
    elif damage == "cut":
        del data[-1]
    elif damage == "no archive":
        data = bytearray(b"hello")
    elif damage == "another's":
        artifact_cache.seal(entry, "another")
        data = bytearray(packed(entry))
        artifact_cache.seal(entry, KEY)
    else:
        data = bytearray()
    file.write_bytes(data)
    there = fetched(store, entry, monkeypatch)
    assert store.notes == [f"the store {tmp_path / 'store'} has a damaged {KEY}"]
    assert not there.exists()
    assert not file.exists()
    store.share([ENTRY])
    assert contents(fetched(store, entry, monkeypatch)) == contents(entry)


@pytest.mark.parametrize("name", ["../out/x", "/tmp/out/x", f"{KEY}/../../out/x", "x"])
def test_a_name_that_leads_out_is_refused(name: str, cold: Path, tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    store.require()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, b"")
    (tmp_path / "store" / "programs").mkdir()
    (tmp_path / "store" / "programs" / KEY).write_bytes(
        hashlib.sha256(made.getvalue()).digest() + made.getvalue()
    )
    store.share([ENTRY])
    assert "has a damaged" in store.notes[0]
    assert list(tmp_path.rglob("x")) == []
    assert not Path("/tmp/out").exists()


def test_a_folder_whose_parent_does_not_exist_is_not_made(tmp_path: Path) -> None:
    """As where a share is not mounted."""
    with pytest.raises(StoreFailed, match="No such file or directory"):
        Store(str(tmp_path / "mnt" / "store")).require()
    assert not (tmp_path / "mnt").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nowhere://host/x", "Protocol not known: nowhere"),
        ("s3://bucket/x", "Install s3fs"),
        ("sftp://me:secret@host/x", "SFTP is not supported"),
    ],
)
def test_a_url_that_cannot_be_used(url: str, message: str) -> None:
    if url.startswith("s3") and importlib.util.find_spec("s3fs"):
        pytest.skip("s3fs is installed")
    with pytest.raises(StoreFailed, match=message) as caught:
        Store(url).require()
    assert "secret" not in str(vars(caught.value))


FILL = """
import sys
from pathlib import Path
from harness.nightly.store import Store, StoredEntry
store = Store(sys.argv[1])
store.share([StoredEntry("programs", sys.argv[2])])
print(*store.notes)
print(sum(1 for path in Path(sys.argv[1]).rglob("*") if path.is_file()))
"""


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path, entry: Path) -> None:
    """A real one, of 64 KiB."""
    small = tmp_path / "small"
    small.mkdir()
    (entry / "noise").write_bytes(random.Random(7).randbytes(1 << 18))
    artifact_cache.seal(entry, KEY)
    mounting = ["bwrap", "--dev-bind", "/", "/", "--size", str(64 << 10), "--tmpfs", str(small)]
    done = subprocess.run(
        [*mounting, sys.executable, "-c", FILL, str(small), KEY],
        capture_output=True,
        text=True,
        check=False,
    )
    message, rest = done.stdout.splitlines()
    assert f"the store {small} cannot be used: [Errno 28] No space left" in message, done.stderr
    assert rest == "0"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, shared_hil_home: str) -> Path:
    """A store that has what the case needs, from the session's home."""
    folder = tmp_path_factory.mktemp("filled") / "store"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", shared_hil_home)
        row = worked(folder)
        assert row.verdict.passed, row
        assert store_notes(row) == []
    return folder


@pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-system-aarch64")),
    reason="needs aarch64-linux-gnu-g++ and qemu-system-aarch64",
)
def test_a_night_with_the_wheels_firmware_can_share_it(
    cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path / "shelf")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "shelf"))
    options = replace(OPTIONS, firmware=FirmwareChoice(sources_of("wheel")))
    _, firmware = entries_of(Case("corstone-1000-a320", "add"), options)
    assert firmware == StoredEntry("firmware", make_plan(load_target("corstone-1000-a320")).key())


def worked(store: Path) -> Row:
    job = NightJob(CASE, ("bundled",), (Planned(CASE.id),), "qemu")
    (row,) = work(Task(night(1), job, OPTIONS, 1, "rev"), str(store))
    return row


def store_notes(row: Row) -> list[str]:
    return [note for note in row.notes if note.startswith("the store ")]


@needs_tools
def test_a_cold_machine_makes_nothing(filled: Path, cold: Path) -> None:
    """It has the entries, and runs them, with no compiler and no exporter in reach."""
    Store(str(filled)).share(entries_of(CASE, OPTIONS))
    assert list((cold / "cache" / "programs").glob("add-*/program.pte"))
    (stamp,) = (cold / "cache" / "firmware").glob("*/firmware.json")
    built = stamp.stat().st_mtime_ns, stamp.read_text()
    row = worked(filled)
    assert row.verdict.passed, row
    assert (stamp.stat().st_mtime_ns, stamp.read_text()) == built
    assert store_notes(row) == []


@needs_tools
def test_a_store_that_goes_costs_a_note(
    tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    row = worked(tmp_path / "gone" / "store")
    assert row.verdict.passed
    (note,) = store_notes(row)
    assert "cannot be used: [Errno 2] No such file or directory" in note
