"""Protects that what west itself refuses has a cause and a fix; by the west that is installed, in
workspaces of our own that are broken on purpose. Zephyr is not needed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.link.build_failure import BuildFailureKind, build_failure
from tests.link.workspace import WEST

_MANIFEST = "manifest:\n  projects:\n    - name: zephyr\n      url: file:///nowhere/zephyr\n"


def _environ() -> dict[str, str]:
    """Without the workspace of whoever runs the tests."""
    return {name: value for name, value in os.environ.items() if name != "ZEPHYR_BASE"}


def _west(folder: Path, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [WEST, *words],
        cwd=folder,
        env={**_environ(), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode != 0, done.stdout
    return done.stdout


def _workspace(folder: Path, manifest: str) -> Path:
    (folder / "manifest").mkdir()
    (folder / "manifest" / "west.yml").write_text(_MANIFEST + "  self:\n    path: manifest\n")
    subprocess.run(
        [WEST, "init", "-l", "manifest"],
        cwd=folder,
        env=_environ(),
        check=True,
        capture_output=True,
    )
    (folder / "manifest" / "west.yml").write_text(manifest)
    return folder


_BUILD = ("build", "-b", "mps3/corstone300/an547", "app")
CASES = {
    "no_workspace": (None, _BUILD, "found no workspace", "ZEPHYR_BASE", ""),
    "update_outside": (None, ("update",), "is not in a west workspace", "west init", ""),
    "no_extension": (
        _MANIFEST,
        _BUILD,
        "has no project that brings the command build",
        "west-commands: scripts/west-commands.yml",
        "",
    ),
    "unknown_key": (
        _MANIFEST + "      revisoin: main\n",
        ("update",),
        "revisoin, in /projects/0",
        "Correct the key revisoin",
        "manifest/west.yml",
    ),
    "no_mapping": (
        "manifest:\n  projects\n    - x: y\n",
        ("update",),
        "is not a YAML mapping",
        "west manifest --validate",
        "manifest/west.yml",
    ),
    "no_remote": (
        _MANIFEST.replace("manifest:\n", "manifest:\n  defaults:\n    remote: nowhere\n"),
        ("list",),
        "west refuses the manifest",
        "remote nowhere is not defined",
        "manifest/west.yml",
    ),
    "not_fetched": (
        _MANIFEST,
        ("update",),
        "could not fetch the project zephyr",
        "the url or the revision of zephyr",
        "",
    ),
}


@pytest.mark.parametrize(
    ("manifest", "words", "cause", "fix", "file"), CASES.values(), ids=CASES.keys()
)
def test_west_refuses(
    manifest: str | None, words: tuple[str, ...], cause: str, fix: str, file: str, tmp_path: Path
) -> None:
    folder = tmp_path if manifest is None else _workspace(tmp_path, manifest)
    found = build_failure(_west(folder, *words))
    assert found is not None
    assert found.kind is BuildFailureKind.WORKSPACE
    assert cause in found.cause
    assert fix in found.fix
    assert (found.file or "").endswith(file)


def test_a_wrong_zephyr_base_is_not_a_workspace(tmp_path: Path) -> None:
    found = build_failure(_west(tmp_path, *_BUILD, ZEPHYR_BASE="/nowhere/zephyr"))
    assert found is not None
    assert "ZEPHYR_BASE" in found.fix
    assert "ZEPHYR_BASE" in found.cause


@pytest.mark.parametrize(
    ("text", "kind", "cause"),
    [
        ("ERROR: /a/b doesn't contain a CMakeLists.txt\n", "workspace", "/a/b is not an app"),
        ("ERROR: source directory /a/b does not exist\n", "workspace", "/a/b does not exist"),
        (
            "ERROR: Build directory /b targets board x/y, but board x/z was specified. (Clean",
            "board",
            "configured for the board x/y, and x/z",
        ),
    ],
)
def test_west_build_of_zephyr_refuses(text: str, kind: str, cause: str) -> None:
    """The wording is that of Zephyr 4.1.0's scripts/west_commands/build.py."""
    found = build_failure(text + "FATAL ERROR: refusing to proceed without --force\n")
    assert found is not None
    assert (found.kind, cause in found.cause) == (kind, True)
    assert found.fix
