"""A folder of the cache is used only when it is whole, of the wanted key and as it was written."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from harness.core.errors import InfraError
from harness.system import artifact_cache
from harness.system.files import DiskError, disk_errors


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An entry of key "k" with the files ``a`` and ``lib/b``."""
    folder = tmp_path / "cache" / "k"
    artifact_cache.cached(folder, "k", fill)
    return folder


def fill(folder: Path) -> None:
    (folder / "a").write_text("first")
    (folder / "lib").mkdir()
    (folder / "lib" / "b").write_text("second")


def test_an_entry_is_made_once(place: Path) -> None:
    again = artifact_cache.cached(place, "k", lambda _: pytest.fail("it is there"))
    assert again == artifact_cache.load(place, "k")
    assert sorted(again.files) == ["a", "lib/b"] == artifact_cache.files_below(place)


@pytest.mark.parametrize("name", ["a", "lib/b", artifact_cache.ENTRY])
def test_an_edited_file_spoils_the_entry(place: Path, name: str) -> None:
    content = (place / name).read_text()
    (place / name).write_text(content.replace("s", "S", 1))
    with pytest.raises(artifact_cache.NotAsStored) as caught:
        artifact_cache.check(place)
    assert caught.value.name == name
    assert artifact_cache.load(place, "k") is None
    assert artifact_cache.cached(place, "k", fill) == artifact_cache.load(place, "k")
    assert (place / "a").read_text() == "first"


@pytest.mark.parametrize("name", ["a", "lib/b"])
def test_a_missing_file_spoils_the_entry(place: Path, name: str) -> None:
    (place / name).unlink()
    assert artifact_cache.load(place, "k") is None


def test_an_added_file_spoils_the_entry(place: Path) -> None:
    (place / "lib" / "c").write_text("")
    with pytest.raises(artifact_cache.NotAsStored, match=r"^lib/c is not what was stored$"):
        artifact_cache.check(place)


def test_a_file_that_became_a_pipe_is_not_waited_for(place: Path) -> None:
    (place / "a").unlink()
    os.mkfifo(place / "a")
    assert artifact_cache.load(place, "k") is None


def test_an_entry_moved_to_another_key_is_not_used(place: Path) -> None:
    other = place.with_name("other")
    place.rename(other)
    assert artifact_cache.load(other, "other") is None
    assert artifact_cache.load(other, "k") is not None


def test_a_digest_that_was_edited_with_its_file_breaks_the_seal(place: Path) -> None:
    (place / "a").write_text("other")
    fields = json.loads((place / artifact_cache.ENTRY).read_text())
    fields["files"]["a"] = artifact_cache.sha256_of(place / "a")
    (place / artifact_cache.ENTRY).write_text(json.dumps(fields))
    with pytest.raises(artifact_cache.NotAsStored, match=r"^entry\.json is not what was stored$"):
        artifact_cache.check(place)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"key": 1, "files": []}', "null"])
def test_an_entry_that_is_none_spoils_the_folder(place: Path, text: str) -> None:
    (place / artifact_cache.ENTRY).write_text(text)
    assert artifact_cache.load(place, "k") is None


def test_a_writer_that_failed_leaves_no_entry_and_the_next_starts_from_nothing(
    tmp_path: Path,
) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError("killed")

    with pytest.raises(OSError, match="killed"):
        artifact_cache.cached(tmp_path / "k", "k", fail)
    assert artifact_cache.check(tmp_path / "k") is None
    entry = artifact_cache.cached(tmp_path / "k", "k", fill)
    assert sorted(entry.files) == ["a", "lib/b"]


def test_facts_are_sealed(tmp_path: Path) -> None:
    artifact_cache.seal(tmp_path, "k", {"target": "t"})
    entry = artifact_cache.check(tmp_path)
    assert entry is not None
    assert entry.facts == {"target": "t"}
    text = (tmp_path / artifact_cache.ENTRY).read_text()
    (tmp_path / artifact_cache.ENTRY).write_text(text.replace('"t"', '"u"'))
    assert artifact_cache.load(tmp_path, "k") is None


def test_the_second_process_waits_and_is_notified(tmp_path: Path) -> None:
    waiting, acquired = threading.Event(), threading.Event()

    def second() -> None:
        with artifact_cache.locked(tmp_path / "k", on_wait=waiting.set):
            acquired.set()

    other = threading.Thread(target=second)
    with artifact_cache.locked(tmp_path / "k", on_wait=lambda: pytest.fail("the lock is free")):
        other.start()
        assert waiting.wait(30)
        assert not acquired.is_set()
    other.join(30)
    assert acquired.is_set()


def test_a_lock_is_not_waited_for_without_end(tmp_path: Path) -> None:
    match = "another process has been building for 0 s"
    with (
        artifact_cache.locked(tmp_path / "k"),
        pytest.raises(InfraError, match=match) as caught,
        artifact_cache.locked(tmp_path / "k", seconds=0.05),
    ):
        pass
    assert caught.value.path == str(tmp_path / "k.lock")


def test_what_a_killed_build_left_is_out_of_the_way_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "k.0123abcd.trash").mkdir()
    (tmp_path / "kk").mkdir()
    artifact_cache.clear(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["kk"]
    artifact_cache.clear(folder)  # nothing there is nothing to do


def test_a_folder_is_cleared_while_a_process_writes_there(tmp_path: Path) -> None:
    """A compiler that survived its harness has its current directory there."""
    (tmp_path / "there").mkdir()
    writing = "i=0; while :; do i=$((i+1)); echo > f$i; [ $i = 3 ] && echo; done"
    writer = subprocess.Popen(
        ["sh", "-c", writing],
        cwd=tmp_path / "there",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    for _ in range(20):
        artifact_cache.clear(tmp_path / "there")
        assert not (tmp_path / "there").exists()
    writer.kill()
    writer.wait()
    artifact_cache.clear(tmp_path / "there")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_locks_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some servers of NFS answer."""

    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(DiskError) as caught, disk_errors("building"):
        artifact_cache.cached(tmp_path / "entry", "key", lambda _: None)
    assert "point HIL_HOME at a local disk" in str(caught.value.hint)
