"""What git says of commits, as data; and its refusals, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.bisect.history import History, UnknownRevision, Unrelated

from .histories import linear


def test_a_commit_has_its_facts(tmp_path: Path) -> None:
    made = linear(tmp_path / "r", "PASS", "MISMATCH")
    commit = History(made.folder).commit("c1")
    assert commit == History(made.folder).commit("HEAD")
    assert (commit.subject, commit.author, commit.date) == ("c1", "A", "2026-01-02T12:00:00+01:00")
    assert commit.sha.startswith(commit.short)
    assert str(commit) == f"{commit.short} c1"


@pytest.mark.parametrize("name", ["v9", "", "--all", "HEAD~9", "main:verdict", "a b"])
def test_a_revision_that_there_is_not(tmp_path: Path, name: str) -> None:
    made = linear(tmp_path / "r", "PASS")
    with pytest.raises(UnknownRevision) as caught:
        History(made.folder).commit(name)
    assert caught.value.revision == name
    assert f"has no revision {name!r}" in caught.value.message
    assert "git fetch --unshallow" in (caught.value.hint or "")


def test_between_begins_with_the_middle(tmp_path: Path) -> None:
    made = linear(tmp_path / "r", *["PASS"] * 8)
    history = History(made.folder)
    found = history.between([history.commit("c0")], history.commit("c7"))
    assert len(found) == 7
    assert history.commit(found[0]).subject in ("c3", "c4")
    newest = history.newest_first([history.commit("c0")], history.commit("c7"))
    assert [c.subject for c in newest] == [f"c{n}" for n in range(7, 0, -1)]
    assert sorted(found) == sorted(c.sha for c in newest)


def test_histories_that_have_nothing_in_common(tmp_path: Path) -> None:
    made = linear(tmp_path / "r", "PASS")
    made.git("checkout", "-q", "--orphan", "other")
    made.commit("other")
    history = History(made.folder)
    with pytest.raises(Unrelated, match="have no history in common"):
        history.merge_bases(history.commit("main"), history.commit("other"))


def test_ancestors(tmp_path: Path) -> None:
    made = linear(tmp_path / "r", "PASS", "PASS")
    history = History(made.folder)
    old, new = history.commit("c0"), history.commit("c1")
    assert history.is_ancestor(old, new)
    assert history.is_ancestor(old, old)
    assert not history.is_ancestor(new, old)
    assert history.merge_bases(old, new) == (old,)


def test_dirty(tmp_path: Path) -> None:
    made = linear(tmp_path / "r", "PASS")
    assert not History(made.folder).dirty()
    (made.folder / "verdict").write_text("edited")
    assert History(made.folder).dirty()
