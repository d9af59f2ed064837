"""Protects who is who: a user's file is never taken for a catalogue model or for another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import RUNNER, Case, identity, located, parse_case, repository_of
from harness.firmware.names import source_names
from harness.judge.reference import reference_path, references_of
from tools.clone import project_root

TARGET = "corstone-300-m55"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With one model in two folders, and one that is called as a catalogue model is."""
    root = tmp_path / "repository"
    for name in ("a/tinynet.py", "b/tinynet.py", "add.py", "runner.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / ".git").mkdir()
    return root


def test_files_of_one_name_have_two_identities(repository: Path) -> None:
    cases = [Case(TARGET, str(repository / f"{folder}/tinynet.py")) for folder in "ab"]
    assert [case.id for case in cases] == [f"{TARGET}/a/tinynet.py", f"{TARGET}/b/tinynet.py"]
    assert len({reference_path(Path(), case) for case in cases}) == 2
    assert len({case.slug for case in cases}) == 2


def test_a_users_file_is_not_the_catalogues_model_of_its_name(repository: Path) -> None:
    users, ours = Case(TARGET, str(repository / "add.py")), Case(TARGET, "add")
    assert (users.id, ours.id) == (f"{TARGET}/add.py", f"{TARGET}/add")
    paths = {
        reference_path(Path(), case, source)
        for case in (users, ours, Case(TARGET, str(repository / "runner.py")), Case(TARGET, RUNNER))
        for source in source_names()
    }
    assert len(paths) == 4 * len(source_names())


def test_it_is_the_same_from_every_directory(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for there, said in ((".", "a/tinynet.py"), ("a", "tinynet.py"), ("b", "../a/./tinynet.py")):
        monkeypatch.chdir(repository / there)
        assert identity(said) == "a/tinynet.py"


def test_what_an_id_says_is_understood_from_every_directory(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what a report says can be given to `hil accept`."""
    for there in (".", "a", "b"):
        monkeypatch.chdir(repository / there)
        case = parse_case(f"{TARGET}/a/tinynet.py")
        assert (case.name, Path(case.model).is_file()) == ("a/tinynet.py", True)


def test_in_no_repository_the_whole_path_is_the_name(tmp_path: Path) -> None:
    """Two folders of no repository have nothing that would tell their files apart otherwise."""
    file = tmp_path / "tinynet.py"
    case = Case(TARGET, str(file))
    assert case.name == str(file)
    assert parse_case(case.id) == case
    assert reference_path(Path("r"), case) == Path(f"r/{TARGET}/@{file}.json")


def test_the_root_is_that_of_the_checkout_not_of_a_project_in_it(repository: Path) -> None:
    """Two projects of one repository may each have a models/tinynet.py."""
    for folder in "ab":
        (repository / folder / "pyproject.toml").touch()
    assert repository_of(repository / "a/tinynet.py") == repository
    (repository / ".git").rmdir()
    assert repository_of(repository / "a/tinynet.py") == repository / "a"
    (repository / "pyproject.toml").touch()  # an image has no .git: the same names as in a checkout
    assert identity(str(repository / "a/tinynet.py")) == "a/tinynet.py"


def test_references_of_a_users_model_are_in_the_users_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two users of one harness share no reference, and each reviews their own."""
    monkeypatch.delenv("HIL_REFERENCES", raising=False)
    users = Case(TARGET, str(repository / "add.py"))
    assert references_of(users) == repository / "references"
    assert references_of(Case(TARGET, "add")) == project_root() / "references"
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path))
    assert references_of(users) == tmp_path


def test_a_file_is_found_from_a_root_when_it_is_not_here(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "b")
    assert located("a/tinynet.py", repository) == str(repository / "a/tinynet.py")
    assert located("tinynet.py", repository) == "tinynet.py"
    assert located("add", repository) == "add"
    assert located("absent.py", repository) == "absent.py"


@pytest.mark.parametrize("name", ["a/" * 200 + "deep.py", "/.py", "weird name$(x).py", "ü.py"])
def test_a_directory_can_be_called_after_any_case(name: str) -> None:
    slug = Case(TARGET, "m", name).slug
    assert 0 < len(slug) <= 60
    assert not set(slug) & set("/ $()")
