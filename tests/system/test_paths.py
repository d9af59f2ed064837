"""Protects a checkout that its user cannot write to: what is kept goes elsewhere; and what is said
where ExecuTorch's wheel is not installed."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.core.errors import ToolMissing, UsageError
from harness.formats.schema import PTE, load_schema
from harness.system import paths
from harness.system.files import DiskError, disk_errors
from harness.system.paths import install_command, state_dir

NOBODY = 65534


@contextmanager
def somebody_else() -> Iterator[int]:
    """For root, which may write everywhere: nobody. Where we are not root: we."""
    root = os.geteuid() == 0
    try:
        if root:
            os.seteuid(NOBODY)
        yield os.geteuid()
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def checkout(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Not writable; not below pytest's own folder, which others cannot read."""
    monkeypatch.delenv("HIL_HOME", raising=False)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder, "home")
        home.mkdir(mode=0o777)
        home.chmod(0o777)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        repository = Path(folder, "repository")
        repository.mkdir()
        (repository / "hil.toml").touch()
        repository.chmod(0o555)
        monkeypatch.chdir(repository)
        yield repository
        repository.chmod(0o755)
        monkeypatch.undo()


def test_it_is_kept_in_the_users_cache(checkout: Path) -> None:
    with somebody_else():
        place = state_dir()
        assert place.parent == checkout.parent / "home" / ".cache" / "executorch-hil"
        assert place.name.startswith("repository-")
        place.mkdir(parents=True)
        assert state_dir() == place


def test_another_repository_of_that_name_has_another_place(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with somebody_else():
        first = state_dir()
        (checkout.parent / "home" / "repository").mkdir(mode=0o555)
        monkeypatch.chdir(checkout.parent / "home" / "repository")
        assert state_dir() not in (first, checkout / ".hil")


def test_the_xdg_folder_is_taken(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with somebody_else():
        monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
        assert state_dir().parent == Path("/elsewhere/executorch-hil")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the specification
        assert state_dir().is_relative_to(checkout.parent / "home" / ".cache")


def test_what_another_user_began_there(checkout: Path) -> None:
    """An installation by root, used by somebody else."""
    checkout.chmod(0o777)
    (checkout / ".hil").mkdir(mode=0o555)
    with somebody_else():
        assert state_dir() != checkout / ".hil"
    (checkout / ".hil").rmdir()
    assert state_dir() == checkout / ".hil"


def test_where_it_was_asked_for_it_is_not_moved(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(checkout / "mine"))
    with somebody_else() as uid:
        assert state_dir() == checkout / "mine"
        with (
            pytest.raises(DiskError, match="Permission denied") as caught,
            disk_errors("making it"),
        ):
            state_dir().mkdir()
    hint = str(caught.value.hint)
    assert str(checkout) in hint
    assert "point HIL_HOME at a folder that you can write" in hint
    assert "free some" not in hint
    if os.geteuid() == 0 and uid != 0:
        assert "belongs to root, and you are nobody" in hint


def test_without_executorch_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ToolMissing, match="the schemas of its files are in it") as caught:
        load_schema(PTE)
    assert "executorch[ethos-u]==" in str(caught.value.hint)


def test_what_an_extra_needs_is_installed_into_this_environment() -> None:
    """pip takes the line as it is. The project itself is on no index."""
    python, *words = shlex.split(install_command("board"))
    assert python == sys.executable
    assert words[:3] == ["-m", "pip", "install"]
    assert words[3].startswith("labgrid>=")
    assert "executorch-hil" not in install_command("nightly")
    asked = [*words, "--dry-run", "--quiet", "--no-index"]  # what is there satisfies it
    subprocess.run([python, *asked], check=True, stdout=subprocess.DEVNULL, timeout=120)


def test_how_hil_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a clone, from elsewhere, and where a wheel installed it."""
    monkeypatch.chdir(paths.import_root())
    assert paths.hil_command() == "./hil"
    monkeypatch.chdir(tmp_path)
    assert paths.hil_command() == str(paths.import_root() / "hil")
    monkeypatch.setattr(paths, "import_root", lambda: tmp_path / "site-packages")
    assert paths.hil_command() == "hil"


@pytest.mark.parametrize("where", ["home", "folder"])
def test_a_line_break_in_its_name_is_refused_at_once(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of ninja's can name it: CMake then said something about a lexing error."""
    odd = tmp_path / "two\nlines"
    odd.mkdir()
    monkeypatch.delenv("HIL_HOME", raising=False)
    monkeypatch.setenv("HIL_PROJECT", str(tmp_path))
    if where == "home":
        monkeypatch.setenv("HIL_HOME", str(odd))
    else:
        monkeypatch.setenv("HIL_PROJECT", str(odd))
        (odd / "hil.toml").touch()
    with pytest.raises(UsageError, match="has a line break in its name"):
        state_dir()
