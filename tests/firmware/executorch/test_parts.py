"""Protects where parts are looked for, what is said of one that is not there, and what tells one
state of a part from another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.core.errors import Unknown, UsageError
from harness.firmware.checkout import PartMissing, find_part, part_files, pinned, read_given, specs
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.small import commit, git, head


def test_given_on_the_command_line() -> None:
    assert read_given(["cmsis-nn=/src/nn", "json=a=b"]) == {
        "cmsis-nn": Path("/src/nn"),
        "json": Path("a=b").absolute(),
    }


@pytest.mark.parametrize("word", ["cmsis-nn", "cmsis-nn=", ""])
def test_a_word_that_is_none(word: str) -> None:
    with pytest.raises(UsageError, match=f"not a part: '{word}'") as caught:
        read_given([word])
    assert "NAME=DIR" in str(caught.value.hint)


def test_a_name_that_is_none() -> None:
    with pytest.raises(Unknown, match="ExecuTorch's build has no part 'cmsis_nn'") as caught:
        read_given(["cmsis_nn=/src/nn"])
    assert "cmsis-nn" in caught.value.close


@pytest.mark.parametrize("name", specs())
def test_a_given_folder_that_does_not_hold_it(name: str, tmp_path: Path) -> None:
    """Named before a build fails for it; the one in the checkout is not taken instead."""
    probe = tmp_path / "checkout" / specs()[name].place / specs()[name].probe
    probe.parent.mkdir(parents=True)
    probe.write_text("")
    with pytest.raises(UsageError, match=f"--part {name}={tmp_path}: .* that folder has none") as e:
        find_part(name, tmp_path / "checkout", {name: tmp_path})
    assert e.value.path == str(tmp_path)


def test_the_given_one_then_the_checkouts(small: Source) -> None:
    own = small.root / "third-party" / "flatcc"
    shutil.copytree(small.parts["flatcc"], own, dirs_exist_ok=True)
    for given, folder in (({}, own), ({"flatcc": small.parts["flatcc"]}, small.parts["flatcc"])):
        part = find_part("flatcc", small.root, given)
        assert part is not None
        assert part.folder == folder


def test_a_folder_left_by_a_killed_clone_is_not_a_part(read_only: Source) -> None:
    """An uninitialised submodule is an empty folder."""
    assert (read_only.root / "third-party" / "flatcc").is_dir()
    assert find_part("flatcc", read_only.root, {}) is None


@pytest.mark.parametrize(
    ("names", "command"),
    [
        (["flatcc"], "git -C {root} submodule update --init third-party/flatcc"),
        (
            ["core_driver", "cmsis_6"],
            "{root}/examples/arm/setup.sh --i-agree-to-the-contained-eula",
        ),
        (
            ["cmsis-nn"],
            "git clone https://github.com/ARM-software/CMSIS-NN.git {nn} && "
            "git -C {nn} checkout {pin}",
        ),
        (
            ["json", "core_platform"],
            "git -C {root} submodule update --init third-party/json && "
            "{root}/examples/arm/setup.sh --i-agree-to-the-contained-eula",
        ),
    ],
)
def test_the_one_command_that_gets_it(read_only: Source, names: list[str], command: str) -> None:
    nn = read_only.root / specs()["cmsis-nn"].place
    wanted = command.format(root=read_only.root, nn=nn, pin=head(read_only.parts["cmsis-nn"]))
    error = PartMissing(read_only.root, names)
    assert error.exit_code == 2
    assert error.command == wanted
    assert wanted in str(error.hint)
    assert " ".join(f"--part {name}=DIR" for name in names) in str(error.hint)
    assert error.parts == tuple(names)
    assert all(str(read_only.root / specs()[name].place) in str(error) for name in names)


def test_what_the_checkout_asks_for(small: Source) -> None:
    assert pinned(specs()["flatcc"], small.root) == head(small.parts["flatcc"])
    assert pinned(specs()["cmsis-nn"], small.root) == head(small.parts["cmsis-nn"])
    assert pinned(specs()["core_driver"], small.root) is None
    (small.root / "backends" / "cortex_m" / "CMakeLists.txt").unlink()
    assert pinned(specs()["cmsis-nn"], small.root) is None
    git(small.root, "rm", "-q", "--cached", "third-party/flatcc")
    commit(small.root, "no submodule")
    assert pinned(specs()["flatcc"], small.root) is None


def identity(small: Source, name: str) -> str:
    part = find_part(name, small.root, small.parts)
    assert part is not None
    return part.identity


def test_a_repository_is_known_by_commit_and_changes(small: Source) -> None:
    place = small.parts["core_driver"]
    clean = identity(small, "core_driver")
    source = place / "src" / "ethosu_driver.c"
    os.utime(source, (1, 1))
    assert identity(small, "core_driver") == clean
    source.write_text("int x;")
    edited = identity(small, "core_driver")
    commit(place, "the same")
    assert len({clean, edited, identity(small, "core_driver")}) == 3


def test_other_folders_are_known_by_their_files(small: Source) -> None:
    place = small.parts["core_driver"]
    shutil.rmtree(place / ".git")
    source = place / "src" / "ethosu_driver.c"
    seen = [identity(small, "core_driver")]
    assert identity(small, "core_driver") == seen[0]
    os.utime(source, (1, 1))
    seen.append(identity(small, "core_driver"))
    source.write_text("int x;")
    seen.append(identity(small, "core_driver"))
    (place / "src" / "more.c").write_text("")
    seen.append(identity(small, "core_driver"))
    assert len(set(seen)) == 4


@pytest.mark.parametrize("repository", [True, False])
def test_files_of_a_part(small: Source, repository: bool) -> None:
    place = small.parts["flatcc"]
    if not repository:
        shutil.rmtree(place / ".git")
    part = find_part("flatcc", small.root, small.parts)
    assert part is not None
    names = {str(path.relative_to(place)) for path in part_files(part)}
    hidden = {".gitignore"} if repository else set()
    assert names == {"CMakeLists.txt", "include/flatcc/flatcc.h", "src/runtime.c"} | hidden
