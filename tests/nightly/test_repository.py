"""Protects what a night knows of the user's repository, in CI and at a desk."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.nightly.history.nights import Origin
from harness.nightly.history.repository import (
    base_branch,
    last_commit,
    origin_of,
    renamed_files,
    started_from,
)

from .history.made import night


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    argv = ["git", "-C", str(folder), *identity, *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environ)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "scores.py").write_text("".join(f"line_{n} = {n}\n" for n in range(20)))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Scores")
    return tmp_path


def test_branch_commit_and_edits_of_tracked_files(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    (repository / "night.html").write_text("what the night wrote")
    assert origin_of(repository, {}) == Origin("main", commit)
    (repository / "scores.py").write_text("other = 1\n")
    edited = origin_of(repository, {})
    assert (edited.dirty, edited.revision) == (True, f"{commit}+edits")
    git(repository, "checkout", "--quiet", "--detach", "--force")
    assert origin_of(repository, {}) == Origin("", commit)


@pytest.mark.parametrize(
    ("environ", "branch", "pull", "base"),
    [
        ({"GITHUB_REF_NAME": "main", "GITHUB_REF": "refs/heads/main"}, "main", "", ""),
        (
            {
                "GITHUB_REF_NAME": "12/merge",
                "GITHUB_HEAD_REF": "topic",
                "GITHUB_REF": "refs/pull/12/merge",
                "GITHUB_BASE_REF": "main",
            },
            "topic",
            "12",
            "main",
        ),
        ({"CI_COMMIT_REF_NAME": "main"}, "main", "", ""),
        (
            {
                "CI_COMMIT_REF_NAME": "refs/merge-requests/7/head",
                "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic",
                "CI_MERGE_REQUEST_IID": "7",
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "release",
            },
            "topic",
            "7",
            "release",
        ),
    ],
)
def test_a_ci_service_names_branch_and_pull_request(
    environ: dict[str, str], branch: str, pull: str, base: str, tmp_path: Path
) -> None:
    assert origin_of(tmp_path, environ) == Origin(branch, pull_request=pull)
    assert base_branch(environ) == base


def test_a_branch_started_from_the_night_whose_commit_it_has(repository: Path) -> None:
    commits = [git(repository, "rev-parse", "HEAD")]
    git(repository, "checkout", "--quiet", "-b", "topic")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "Later")
    commits.append(git(repository, "rev-parse", "HEAD"))
    git(repository, "checkout", "--quiet", "topic")
    old, new = (night(d, origin=Origin("main", c)) for d, c in enumerate(commits, 1))
    assert started_from(repository, [new, old]) == old
    assert started_from(repository, [new]) == new  # nothing better
    assert started_from(repository, []) is None


def test_a_renamed_model_file_is_found_and_its_last_commit(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "mv", "scores.py", "ranks.py")
    (repository / "notes.txt").write_text("x")
    git(repository, "commit", "--quiet", "--all", "--message", "Ranks now")
    assert renamed_files(repository, commit) == {"ranks.py": "scores.py"}
    assert renamed_files(repository, "0" * 40) == {}
    told = last_commit(repository / "ranks.py")
    assert told.endswith(" Ann: Ranks now")
    (repository / "ranks.py").write_text("edited = 1\n")
    assert last_commit(repository / "ranks.py").endswith(", and edits that are not committed")


def test_a_folder_in_no_repository(tmp_path: Path) -> None:
    assert origin_of(tmp_path, {}) == Origin()
    assert last_commit(tmp_path / "model.py") == ""
