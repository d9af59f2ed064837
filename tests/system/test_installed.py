"""The version of a package is the one that ``importlib.metadata`` finds, or none."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest

from harness.system.installed import version


@pytest.mark.parametrize("name", ["click", "pytest-xdist", "Pydantic", "ruamel.yaml", "torch"])
def test_it_says_what_metadata_says(name: str) -> None:
    """torch is not everywhere; then both say so."""
    wanted: str | None = None
    with suppress(metadata.PackageNotFoundError):
        wanted = metadata.version(name)
    assert version(name) == wanted
    assert wanted is not None or name == "torch"


def test_what_is_not_installed_has_no_version() -> None:
    assert version("hil-no-such-package") is None


def package(folder: Path, name: str, said: str) -> None:
    place = folder / name
    place.mkdir(parents=True)
    (place / "METADATA").write_text(said)


def test_the_first_one_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout's environment stands before the installed wheel."""
    for number, folder in enumerate(("a", "b"), start=1):
        package(
            tmp_path / folder, "Some_Thing-9.dist-info", f"Name: Some.Thing\nVersion: {number}\n\n"
        )
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / folder)])
    assert version("some-thing") == "1"


@pytest.mark.parametrize("said", ["", "Name: x\n\nVersion: 3\n"])
def test_metadata_without_a_version_gives_none(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in the description, below the head, is no version."""

    def refuses(name: str) -> str:
        raise KeyError(name)

    package(tmp_path, "hil_no_such-9.dist-info", said)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(metadata, "version", refuses)  # as where importlib_metadata was imported
    assert version("hil-no-such") is None
