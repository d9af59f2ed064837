"""Protects a target that comes from the cache: it is what its files say, or it is read anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import TargetError
from harness.system import paths
from harness.target import kept
from harness.target.loading import Target, load_target, target_directories, target_files
from harness.target.reading import read_target

OURS = target_files(target_directories({}))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "cache" / "targets"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "base.yaml").write_text("extends: corstone-300-m55\nmarker: base\n")
    (folder / "board.yaml").write_text("extends: base\nmarker: mine\nlimits: {host: 600}\n")
    return folder


def load(folder: Path) -> Target:
    return load_target("board", (*target_directories({}), folder))


@pytest.mark.parametrize("name", OURS)
def test_every_target_of_ours_comes_back_as_it_was_read(name: str) -> None:
    read, digests = read_target(OURS[name], OURS)
    assert kept.remembered(OURS[name], OURS, None) is None
    kept.remember(OURS[name], OURS, None, read, digests)
    again = kept.remembered(OURS[name], OURS, None)
    assert again == read
    assert repr(again) == repr(read)


def test_a_mode_is_another_target() -> None:
    for said in ("", "@Sram_Only", "@Shared_Sram"):
        name = f"corstone-300-u55-128{said}"
        assert load_target(name) == load_target(name)
    assert (
        load_target("corstone-300-u55-128@Sram_Only").npu != load_target("corstone-300-u55-128").npu
    )


@pytest.mark.parametrize("file", ["board.yaml", "base.yaml"])
def test_a_changed_file_is_read_again(mine: Path, file: str) -> None:
    """Also of the same size, and by somebody who sets the time of the file as it was."""
    import os

    assert load(mine) == load(mine)
    changed = mine / file
    status = changed.stat()
    changed.write_text(changed.read_text().replace("marker: ", "marker: x"))
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert load(mine).marker == ("xmine" if file == "board.yaml" else "mine")


def test_an_error_has_its_file_and_line_although_the_target_was_known(mine: Path) -> None:
    load(mine)
    (mine / "board.yaml").write_text("extends: base\nmarker: mine\nlimts: {}\n")
    for _ in range(2):  # an error is not kept either
        with pytest.raises(TargetError, match=r"board\.yaml:3: unknown key 'limts'"):
            load(mine)


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw.replace(b"600", b"900"),
        lambda raw: b"",
        lambda raw: b"0" * 64 + raw[64:],
        lambda raw: b"\xff" * len(raw),
    ],
)
def test_a_damaged_entry_is_not_believed(home: Path, mine: Path, damage: object) -> None:
    before = load(mine)
    (entry,) = (f for f in home.iterdir() if b"600" in f.read_bytes())
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))  # type: ignore[operator]
    assert load(mine) == before
    assert entry.read_bytes() == whole  # written again


def test_an_entry_makes_nothing_but_targets(home: Path, mine: Path) -> None:
    """Whoever can write to the cache can write a seal; not even then is another class made."""
    import hashlib

    before = load(mine)
    (entry,) = (f for f in home.iterdir() if b"600" in f.read_bytes())
    fields = json.loads(entry.read_bytes().partition(b"\n")[2])
    fields["target"]["file"] = {"": "Popen", "args": "true"}
    text = json.dumps(fields).encode()
    entry.write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
    assert load(mine) == before


def test_other_code_of_ours_reads_again(
    home: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(mine)
    entries = len(list(home.iterdir()))
    monkeypatch.setattr(kept, "_code", lambda: "other")
    load(mine)
    assert len(list(home.iterdir())) == entries + 1
    assert paths.cache_dir("targets") == home
