"""Protects answers that are remembered: none is believed that is damaged, or of other facts."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from harness.system import installed, proven, remembered


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "cache" / "tools"


def test_an_answer_is_of_its_kind_and_facts() -> None:
    remembered.remember("key", "facts", "text\nof two lines")
    assert remembered.answer("key", "facts") == "text\nof two lines"
    assert remembered.answer("key", "facts ") is None
    assert remembered.answer("other", "facts") is None
    remembered.forget("key")
    assert remembered.answer("key", "facts") is None


@pytest.mark.parametrize("damaged", [b"", b"\n", b"\xff\xfe", b"text", None])
def test_a_damaged_answer_is_none(tools: Path, damaged: bytes | None) -> None:
    remembered.remember("key", "facts", "abcdef")
    (file,) = tools.iterdir()
    file.write_bytes(file.read_bytes()[:-1] if damaged is None else damaged)
    assert remembered.answer("key", "facts") is None


def test_the_answer_of_other_facts_in_its_place_is_none(tools: Path) -> None:
    remembered.remember("key", "one", "1")
    remembered.remember("key", "two", "2")
    one, two = sorted(tools.iterdir(), key=lambda file: file.read_text()[-1])
    one.write_bytes(two.read_bytes())
    assert remembered.answer("key", "one") is None
    assert remembered.answer("key", "two") == "2"


def test_a_file_that_may_change_unseen_has_no_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was changed a moment ago can change again within the clock's step."""
    file = tmp_path / "f"
    file.write_text("a")
    assert remembered.stamps([str(file)]) is None
    monkeypatch.setattr(remembered, "_SETTLED_NS", -(10**10))
    before = remembered.stamps([str(file)])
    status = file.stat()
    file.write_text("b")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert before is not None
    assert remembered.stamps([str(file)]) != before
    with pytest.raises(FileNotFoundError):
        remembered.stamps([str(tmp_path / "absent")])


def test_what_was_proven_is_for_one_program_its_arguments_and_its_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Path("/bin/sh").resolve()
    known = proven.facts(program, "walls", b"filter")
    assert known is not None
    assert not proven.known(known)
    proven.remember(known)
    assert proven.known(known)
    for other in (
        proven.facts(Path("/bin/true").resolve(), "walls", b"filter"),
        proven.facts(program, "other", b"filter"),
        proven.facts(program, "walls", b"other"),
    ):
        assert other is not None
        assert not proven.known(other)
    monkeypatch.setattr(proven, "_text", lambda path: "another boot")
    moved = proven.facts(program, "walls", b"filter")
    assert moved is not None
    assert not proven.known(moved)
    proven.forget()
    assert not proven.known(known)
    assert proven.facts(tmp_path / "absent", "walls", b"") is None


@pytest.mark.parametrize("package", ["pytest", "ruamel.yaml", "pytest-xdist", "typing_extensions"])
def test_the_version_of_a_package_is_that_of_importlib(package: str) -> None:
    assert installed.version(package) == metadata.version(package)


def test_a_package_that_is_not_there_has_no_version() -> None:
    assert installed.version("no-such-package-of-ours") is None


def test_the_first_folder_counts(tmp_path: Path) -> None:
    folder = tmp_path / "pytest-0.0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest\nVersion: 0.0.1\n\nx\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from harness.system.installed import version\n"
        "assert version('pytest') == '0.0.1'\n"
        "assert 'importlib.metadata' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
