"""Protects what machines share, in folders and by SFTP: what was stored, or a named error."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import random
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
import zstandard

from harness.nightly import store as stores
from harness.nightly.store import (
    Store,
    StoreDamaged,
    StoreFull,
    StoreNotWritable,
    StorePackageMissing,
    StoreUnreachable,
    StoreUnusable,
)
from tests.nightly.sshd import Sshd, sshd

KEY = "add-cortex-m55-0123"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd(tmp_path_factory.mktemp("sshd")) as made:
        yield made


@pytest.fixture
def by_sftp(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Sshd:
    monkeypatch.setenv("HOME", str(server.home))
    return server


@pytest.fixture(params=["folder", "sftp"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return Store(str(tmp_path / "store"))
    return Store(request.getfixturevalue("by_sftp").url + f"/{tmp_path.name}")


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    folder = tmp_path / "made" / KEY
    (folder / "set0").mkdir(parents=True)
    (folder / "set0" / "i0.bin").write_bytes(bytes(range(256)) * 4096)
    (folder / "runner").write_bytes(b"\x7fELF")
    (folder / "runner").chmod(0o755)
    return folder


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_an_entry_comes_back_as_it_was(store: Store, entry: Path, tmp_path: Path) -> None:
    store.require()
    assert not store.has("programs", KEY)
    assert store.fetch("programs", KEY, tmp_path / "there") is None
    store.keep("programs", KEY, entry)
    assert store.has("programs", KEY)
    assert not store.has("firmware", KEY)
    assert store.fetch("programs", KEY, tmp_path / "there") == KEY
    assert contents(tmp_path / "there") == contents(entry)
    (entry / "runner").write_bytes(b"another")
    store.keep("programs", KEY, entry)
    assert store.fetch("programs", KEY, tmp_path / "again") == KEY
    assert contents(tmp_path / "again") == contents(entry)


def test_nothing_half_is_left_beside(tmp_path: Path, entry: Path) -> None:
    store = Store(str(tmp_path / "store"))
    store.require()
    store.keep("programs", KEY, entry)
    store.keep("programs", KEY, entry)
    names = sorted(p.name for p in (tmp_path / "store").rglob("*") if p.is_file())
    assert len(names) == 2, names  # the same content is one object
    assert not any(name.endswith(".part") for name in names)


@pytest.mark.parametrize("what", ["object", "cut", "gone", "pointer", "moved"])
def test_what_is_not_as_stored_is_found(
    what: str, store: Store, entry: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A bit, an end, a file; a pointer that is no JSON; one that was written for another key."""
    store.keep("programs", KEY, entry)
    root = Path(store.url.partition("://")[2].partition("/")[2])
    root = Path("/") / root if "://" in store.url else Path(store.url)
    (stored,) = (root / "objects").iterdir()
    pointer = root / "programs" / KEY
    if what == "object":
        data = bytearray(stored.read_bytes())
        data[len(data) // 2] ^= 1
        stored.write_bytes(data)
    elif what == "cut":
        stored.write_bytes(stored.read_bytes()[:-1])
    elif what == "gone":
        stored.unlink()
    elif what == "pointer":
        pointer.write_text('{"object": ')
    else:
        pointer.rename(pointer.with_name("other"))
    key = "other" if what == "moved" else KEY
    with pytest.raises(StoreDamaged, match="is not what was stored") as caught:
        store.fetch("programs", key, tmp_path / "there")
    assert caught.value.name in (f"objects/{stored.name}", f"programs/{key}")
    store.keep("programs", key, entry)
    assert store.fetch("programs", key, tmp_path / "mended") is not None


@pytest.mark.parametrize("name", ["../beside", "/tmp/hil-beside", "link"])
def test_an_archive_leads_nowhere_else(name: str, tmp_path: Path, entry: Path) -> None:
    store = Store(str(tmp_path / "store"))
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(member)
    packed = zstandard.compress(archive.getvalue())
    digest = hashlib.sha256(packed).hexdigest()
    store.keep("programs", KEY, entry)
    (tmp_path / "store" / "objects" / digest).write_bytes(packed)
    pointer = {"object": digest, "name": KEY, "seal": stores._seal(KEY, digest, KEY)}
    (tmp_path / "store" / "programs" / KEY).write_text(json.dumps(pointer))
    with pytest.raises(StoreDamaged):
        store.fetch("programs", KEY, tmp_path / "there")
    assert not Path("/tmp/hil-beside").exists()
    assert not (tmp_path / "beside").exists()


def test_a_server_that_went_is_told_and_one_that_came_back_is_used(
    by_sftp: Sshd, entry: Path, tmp_path: Path
) -> None:
    store = Store(by_sftp.url + "/gone")
    store.keep("programs", KEY, entry)
    by_sftp.stop()
    try:
        with pytest.raises(StoreUnreachable, match="does not answer") as caught:
            store.fetch("programs", KEY, tmp_path / "there")
        assert str(by_sftp.port) in caught.value.message
        assert "Errno" not in caught.value.message
        with pytest.raises(StoreUnreachable):
            store.require()
    finally:
        by_sftp.start()
    assert store.fetch("programs", KEY, tmp_path / "there") == KEY


def test_a_connection_that_broke_is_made_again(by_sftp: Sshd, entry: Path, tmp_path: Path) -> None:
    """The file system remembers a connection; one that broke overnight is not the store's end."""
    store = Store(by_sftp.url + "/broke")
    store.keep("programs", KEY, entry)
    by_sftp.stop()
    by_sftp.start()
    assert store.fetch("programs", KEY, tmp_path / "there") == KEY


def test_a_server_that_is_not_known_is_not_believed(
    by_sftp: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a store gives is run: whoever answers at its address has to be in known_hosts."""
    Store(by_sftp.url).require()
    known = by_sftp.home / ".ssh" / "known_hosts"
    said = known.read_text()
    for text in ("", said.replace("AAAAI", "AAAAX"), said.split()[0] + " " + other_key(by_sftp)):
        known.write_text(text)
        fsspec.get_filesystem_class("sftp").clear_instance_cache()  # the next call connects anew
        with pytest.raises(StoreUnreachable, match="not in known_hosts"):
            Store(by_sftp.url).require()
    known.write_text(said)
    Store(by_sftp.url).require()


def other_key(server: Sshd) -> str:
    return (server.home / ".ssh" / "id_ed25519.pub").read_text()


def test_a_store_that_can_only_be_read_is_told(by_sftp: Sshd, entry: Path, tmp_path: Path) -> None:
    Store(by_sftp.url + "/ro").keep("programs", KEY, entry)
    by_sftp.stop()
    by_sftp.start("-R")
    try:
        store = Store(by_sftp.url + "/ro")
        with pytest.raises(StoreNotWritable, match="can be read but not be written"):
            store.require()
        assert store.fetch("programs", KEY, tmp_path / "there") == KEY
    finally:
        by_sftp.stop()
        by_sftp.start()


FILL = """
import sys
from pathlib import Path
from harness.nightly.store import Store, StoreFull
store = Store(sys.argv[1])
try:
    store.keep("programs", "k", Path(sys.argv[2]))
except StoreFull as error:
    print(error.message)
print(sum(1 for _ in Path(sys.argv[1]).rglob("*.part")), store.has("programs", "k"))
"""


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, entry: Path) -> None:
    """A real one, of 64 KiB."""
    small = tmp_path / "small"
    small.mkdir()
    (entry / "noise").write_bytes(random.Random(7).randbytes(1 << 18))
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", str(64 << 10), "--tmpfs", str(small),
         sys.executable, "-c", FILL, str(small), str(entry)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"the store {small} is full", "0 False"], done.stderr
    assert issubclass(StoreFull, stores.StoreError)


@pytest.mark.parametrize(("url", "error", "says"), [
    ("nowhere://host/x", StoreUnusable, "Protocol not known: nowhere"),
    ("s3://bucket/x", StorePackageMissing, "needs the Python package s3fs"),
])  # fmt: skip
def test_a_url_of_what_is_not_there(url: str, error: type[Exception], says: str) -> None:
    if url.startswith("s3") and importlib.util.find_spec("s3fs"):
        pytest.skip("s3fs is installed")
    with pytest.raises(error, match=says):
        Store(url).require()


def test_a_password_is_never_said() -> None:
    store = Store("sftp://me:secret@127.0.0.1:1/x")
    with pytest.raises(StoreUnreachable) as caught:
        store.require()
    assert "secret" not in caught.value.message + str(caught.value.facts)
    assert store.shown == "sftp://me@127.0.0.1:1/x"
