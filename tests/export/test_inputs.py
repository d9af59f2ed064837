"""What an export read belongs to its Program: another state of it is another Program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from harness.export.inputs import Inputs, inputs_from, seen_now, value_digest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights.pt"
    path.write_bytes(b"12345678")
    return path


def inputs_of(*paths: Path, home: str = "/h") -> Inputs:
    return Inputs(home, tuple(seen_now(str(path)) for path in paths))


CHANGES: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda path: path.write_bytes(b"87654321"),
    "cut short": lambda path: path.write_bytes(b"1234"),
    "gone": lambda path: path.unlink(),
    "a folder now": lambda path: (path.unlink(), path.mkdir()),
    "a FIFO now": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_does_not_hold(file: Path, change: str) -> None:
    inputs = inputs_of(file)
    assert inputs.hold("/h")
    CHANGES[change](file)
    assert not inputs.hold("/h")


def test_bytes_that_changed_with_size_and_time_kept(file: Path) -> None:
    """``cp -p``, tar and some editors keep the time of modification."""
    inputs = inputs_of(file)
    before = file.stat()
    file.write_bytes(b"87654321")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not inputs.hold("/h")


def test_a_file_that_was_touched_or_restored_holds(file: Path) -> None:
    """A fresh checkout has other times, and the same content."""
    inputs = inputs_of(file)
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    os.utime(file, (5, 5))
    assert inputs.hold("/h")


def test_settled_times_spare_the_reading(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large weights are not read at each use; where the file changed a moment ago they are."""
    assert seen_now(str(file)).times == ()
    monkeypatch.setattr("harness.export.inputs._SETTLED_NS", -1)
    inputs = inputs_of(file)

    def refused(path: str) -> str:
        raise AssertionError(path)

    monkeypatch.setattr("harness.export.inputs.digest_of", refused)
    assert inputs.hold("/h")


def test_what_was_not_there_and_appears(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path / "absent.pt")
    assert inputs.hold("/h")
    (tmp_path / "absent.pt").touch()
    assert not inputs.hold("/h")


def test_a_folder_is_its_names(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path)
    assert inputs.hold("/h")
    (tmp_path / "new").touch()
    assert not inputs.hold("/h")


def test_a_relative_path_is_looked_for_where_one_stands(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = inputs_of(Path(file.name))
    assert inputs.hold("/h")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert not inputs.hold("/h")


def test_another_folder_of_the_model_has_other_files(file: Path) -> None:
    """``Path(__file__).parent`` in a copied model is the copy's."""
    assert not inputs_of(file).hold("/copy")


def test_a_variable_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = Inputs(variables=(("SIZE", value_digest("3")), ("OTHER", None)))
    for environ, holds in (
        ({"SIZE": "3"}, True),
        ({"SIZE": "4"}, False),
        ({}, False),
        ({"SIZE": "3", "OTHER": ""}, False),
    ):
        assert inputs.hold("/h", environ) == holds, environ
    assert "3" not in json.dumps(asdict(inputs))[:40]


def test_what_is_unknown_never_holds() -> None:
    assert not Inputs(unknown="it starts a process").hold("")


def test_round_trip(file: Path) -> None:
    inputs = Inputs("/h", (seen_now(str(file)),), (("A", None),), "why")
    assert inputs_from(json.loads(json.dumps(asdict(inputs)))) == inputs
    assert inputs.name() != Inputs("/h").name()
