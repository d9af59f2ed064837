"""Protects what is taken for a checkout of ExecuTorch, that whatever is wrong with one is said with
what to do about it, and what makes two checkouts the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import ToolMissing, UsageError
from harness.firmware.checkout import (
    ENTRY,
    PartMissing,
    RevisionUnsupported,
    find_checkout,
    revision_of,
    specs,
)
from harness.system.git import shown
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.small import KERNEL, SUBMODULES, commit, edit, git, head
from tools.clone import project_root


def test_a_checkout_and_its_parts(read_only: Source) -> None:
    checkout = read_only.find()
    assert checkout.root == read_only.root
    assert (checkout.revision.commit, checkout.revision.branch) == (head(read_only.root), "main")
    assert not checkout.revision.dirty
    assert {name: part.folder for name, part in checkout.parts.items()} == read_only.parts
    assert checkout.notes == ()


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="is not a checkout of ExecuTorch: there is no such folder"
    ) as e:
        find_checkout(tmp_path / "none", {})
    assert e.value.missing == "CMakeLists.txt"
    assert "git clone https://github.com/pytorch/executorch" in str(e.value.hint)


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is not a checkout of ExecuTorch"):
        find_checkout(tmp_path / "file", {})


@pytest.mark.parametrize("name", ["version.txt", "runtime/executor/program.cpp"])
def test_another_project(small: Source, name: str) -> None:
    (small.root / name).unlink()
    with pytest.raises(UsageError, match=f"it has no {name}"):
        small.find()


def test_a_release_unpacked_has_its_content_as_a_name(small: Source) -> None:
    """A release or a CI system's copy has no repository; an edit is another name all the same."""
    shutil.rmtree(small.root / ".git")
    seen = []
    for line in ("", "// an edit"):
        with (small.root / "runtime/executor/program.cpp").open("a") as file:
            file.write(line)
        checkout = small.find()
        assert not checkout.revision.dirty
        assert re.fullmatch("content [0-9a-f]{8}", shown(checkout.revision.commit, edited=False))
        assert checkout.notes == ()
        seen.append((checkout.revision.commit, checkout.identity()))
    assert not set(seen[0]) & set(seen[1])


def test_the_content_is_the_buildable_files_without_the_parts(small: Source) -> None:
    shutil.rmtree(small.root / ".git")
    before = revision_of(small.root)
    for name in ("docs/page.md", f"{specs()['flatcc'].place}/src/x.c", ".cache/x", "out/x.o"):
        place = small.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x")
    (small.root / "tools" / "link").symlink_to("nowhere")
    assert revision_of(small.root) == before


def test_without_git(read_only: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="git is not installed"):
        read_only.find()


def test_a_revision_without_the_entry(small: Source) -> None:
    """An old release's branch, say; its commit and branch are named."""
    git(small.root, "checkout", "-q", "-b", "release/0.6")
    shutil.rmtree((small.root / ENTRY).parent)
    old = commit(small.root, "as it was")
    with pytest.raises(
        RevisionUnsupported, match=rf"at {old[:10]} \(branch release/0\.6\) has no"
    ) as e:
        small.find()
    assert (e.value.commit, e.value.branch) == (old, "release/0.6")
    assert f"git -C {small.root} checkout main" in str(e.value.hint)
    assert e.value.verdict == "BUILD_ERROR"
    git(small.root, "checkout", "-q", "--detach")
    with pytest.raises(RevisionUnsupported, match=r"\(a detached HEAD\)"):
        small.find()


def test_all_that_is_missing_is_named_at_once(read_only: Source) -> None:
    with pytest.raises(PartMissing, match="needs FlatBuffers, flatcc, gflags, JSON for") as caught:
        find_checkout(read_only.root, {})
    assert caught.value.parts == tuple(read_only.parts)
    command = caught.value.command
    assert command in str(caught.value.hint)
    assert command.count("submodule update") == command.count("setup.sh") == 1
    assert f"checkout {head(read_only.parts['cmsis-nn'])}" in command


def test_the_command_for_submodules_gets_them(small: Source) -> None:
    """The hint's command is run as it stands."""
    given = {name: place for name, place in small.parts.items() if name not in SUBMODULES}
    with pytest.raises(PartMissing) as caught:
        find_checkout(small.root, given)
    assert caught.value.command == (
        f"git -C {small.root} submodule update --init third-party/flatbuffers "
        "third-party/flatcc third-party/gflags third-party/json"
    )
    environment = {**os.environ, "GIT_ALLOW_PROTOCOL": "file"}
    subprocess.run(caught.value.command, shell=True, check=True, env=environment)
    found = find_checkout(small.root, given)
    assert found.parts["flatcc"].folder == small.root / "third-party" / "flatcc"
    assert found.identity() == small.find().identity()


def test_a_part_that_is_not_what_the_checkout_asks_for(small: Source) -> None:
    """Another commit than the pinned one, edits, or both; of a driver no commit is asked for."""
    assert small.find().differences == ()
    asked = head(small.parts["flatcc"])
    now = commit(small.parts["flatcc"], "later")
    assert small.find().notes == (f"flatcc is at {now[:10]}, the checkout asks for {asked[:10]}",)
    (small.parts["flatcc"] / "new.c").write_text("int new;\n")
    edit(small.parts["cmsis-nn"] / "Source" / "version.c", "int", "long int")
    edit(small.parts["core_driver"] / "src" / "ethosu_driver.c", "int", "long int")
    assert small.find().differences == (
        f"flatcc {now[:8]}+edits",
        f"core_driver {head(small.parts['core_driver'])[:8]}+edits",
        f"cmsis-nn {head(small.parts['cmsis-nn'])[:8]}+edits",
    )
    assert "CMSIS-NN has edits" in small.find().notes


def clone(small: Source, name: str) -> Source:
    """Another checkout of the same, with parts of its own."""
    for part, place in small.parts.items():
        git(small.folder, "clone", "-q", str(place), f"{name}/parts/{part}")
    git(small.folder, "clone", "-q", str(small.root), f"{name}/checkout")
    folder = small.folder / name
    return Source(folder / "checkout", {p: folder / "parts" / p for p in small.parts}, folder)


def test_equal_content_is_the_same_checkout(small: Source) -> None:
    other = clone(small, "other")
    assert other.find().identity() == small.find().identity()
    for place in (small, other):
        edit(place.root / KERNEL, "namespace hil {", "namespace hil { ")
        (place.root / "runtime" / "new.h").write_text("")
    assert other.find().identity() == small.find().identity()


CHANGES: dict[str, Callable[[Source], object]] = {
    "commit": lambda small: commit(small.root, "nothing"),
    "new file": lambda small: (small.root / "backends/cortex_m/ops/op_new.cpp").write_text(""),
    "edit": lambda small: edit(small.root / KERNEL, "namespace hil {", "namespace hil { "),
    "part": lambda small: commit(small.parts["cmsis-nn"], "nothing"),
    "edit of a part": lambda small: (small.parts["cmsis-nn"] / "Source/version.c").write_text(""),
}


def test_whatever_is_built_tells_checkouts_apart(small: Source) -> None:
    identities = [small.find().identity()]
    for name, change in CHANGES.items():
        change(small)
        identities.append(small.find().identity())
        assert identities[-1] not in identities[:-1], name


def test_a_change_where_nothing_is_built_is_none(small: Source) -> None:
    before = small.find()
    (small.root / "docs" / "README.md").write_text("more")
    (small.root / "new.md").write_text("")
    (small.root / "runtime" / "__pycache__").mkdir()
    (small.root / "runtime" / "__pycache__" / "x.pyc").write_text("")
    assert small.find().identity() == before.identity()
    assert not small.find().revision.dirty


SHADOWED = """
import sys
from pathlib import Path
from harness.core.errors import UsageError
from harness.firmware.checkout import find_checkout, read_given
try:
    find_checkout(Path(sys.argv[1]), read_given(sys.argv[2:]))
except UsageError as error:
    print(error, error.hint, error.found, sep="\\n")
"""


def found_in(source: Source, python: Path, *path: Path) -> str:
    """What is said of shadows by a Python whose path has more folders, in front."""
    given = [f"{name}={place}" for name, place in source.parts.items()]
    places = os.pathsep.join(map(str, (*path, project_root())))
    return subprocess.run(
        [python, "-c", SHADOWED, source.root, *given],
        env={**os.environ, "PYTHONPATH": places},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=source.folder,
    ).stdout


def as_package(small: Source) -> Source:
    """The checkout as the package ``executorch`` of its parent folder."""
    root = small.root.rename(small.root.with_name("executorch"))
    (root / "__init__.py").write_text("")
    return Source(root, small.parts, small.folder)


def test_a_checkout_that_python_takes_for_the_wheel(small: Source) -> None:
    checkout = as_package(small)
    here = Path(sys.executable)
    assert found_in(checkout, here) == ""
    said, hint, found = found_in(checkout, here, checkout.root.parent).splitlines()
    assert said.startswith("Python finds the package executorch in the checkout")
    assert "work in another directory" in hint
    assert found == str(checkout.root)
    (checkout.root / "src").mkdir()
    shutil.copytree(checkout.root / "schema", checkout.root / "src" / "executorch")
    (checkout.root / "src" / "executorch" / "__init__.py").write_text("")
    _, _, found = found_in(checkout, here, checkout.root / "src").splitlines()  # as if editable
    assert found == str(checkout.root / "src" / "executorch")


def test_an_environment_inside_the_checkout_is_not_a_shadow(small: Source) -> None:
    """People keep their .venv there, and the wheel is in it."""
    place = small.root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = place / "lib" / version / "site-packages"
    (packages / "executorch").mkdir()
    (packages / "executorch" / "__init__.py").write_text("")
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = place / "bin" / "python"
    asked = "import executorch; print(executorch.__file__)"
    said = subprocess.run([python, "-c", asked], stdout=subprocess.PIPE, text=True, check=True)
    assert Path(said.stdout.strip()).is_relative_to(packages)
    assert found_in(small, python) == ""


def test_a_part_that_is_not_one(read_only: Source, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--part cmsis-nn=.*: CMSIS-NN has a file Include/arm_nn"):
        read_only.find(**{"cmsis-nn": tmp_path})
