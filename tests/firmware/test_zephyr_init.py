"""`hil zephyr init` and what `hil doctor` says of a workspace, by the real west and git on local
repositories: a manifest of Zephyr's shape, its commands for west, and tiny modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.core.errors import InfraError, ToolMissing, UsageError
from harness.firmware.zephyr.examine import examine
from harness.firmware.zephyr.init import MODULES, UPSTREAM, init, plan_init
from harness.firmware.zephyr.workspace import find_workspace
from tests.firmware.zephyr_remote import commit, git, make_remote


def _quiet(_message: str) -> None:
    pass


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for GitHub: Zephyr with a tag, its modules by commit, and one nobody asks for,
    whose repository is not there. Each has a history."""
    return make_remote(tmp_path_factory.mktemp("remote"))


@pytest.fixture(scope="module")
def west_environment() -> Iterator[None]:
    """No workspace of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ZEPHYR_BASE", raising=False)
        yield


@pytest.fixture(scope="module")
def made(remote: Path, tmp_path_factory: pytest.TempPathFactory, west_environment: None) -> Path:
    """For who changes nothing in it: fetched by west once."""
    folder = tmp_path_factory.mktemp("made") / "ws"
    init(plan_init(folder, "4.1.0", remote.as_uri(), packages=False), _quiet)
    return folder


@pytest.fixture
def own(made: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(made, tmp_path / "ws", symlinks=True))


def _environ(base: Path) -> dict[str, str]:
    return {**os.environ, "ZEPHYR_BASE": str(base)}


def test_a_workspace_has_the_modules_needed_without_history_and_no_others(made: Path) -> None:
    for folder in ("zephyr", *(f"modules/{name}" for name in MODULES)):
        assert git(made / folder, "rev-list", "--count", "HEAD") == "1", folder
    assert (made / "modules/cmsis_6/README").read_text() == "cmsis_6"
    assert not (made / "modules/hal/unneeded").exists()


def test_what_init_made_is_a_workspace_that_a_target_is_built_in(made: Path) -> None:
    """And west knows Zephyr's own commands there."""
    workspace = find_workspace("board", _environ(made / "zephyr"))
    assert workspace.version == "4.1.0"
    done = subprocess.run([workspace.west, "build"], cwd=made, check=False)
    assert done.returncode == 0


def test_init_again_goes_on_where_it_ended(remote: Path, own: Path) -> None:
    shutil.rmtree(own / "modules/picolibc")
    plan = plan_init(own, "4.1.0", remote.as_uri(), packages=False)
    assert list(plan.steps()) == ["fetching"]
    said: list[str] = []
    init(plan, said.append)
    assert (own / "modules/picolibc/README").is_file()
    assert any("fetching picolibc" in line for line in said)


def test_python_packages_are_put_into_an_environment_of_the_workspace(
    remote: Path, own: Path
) -> None:
    init(plan_init(own, "4.1.0", remote.as_uri()), _quiet)
    assert (own / ".venv/bin/python").exists()
    done = plan_init(own, "4.1.0", remote.as_uri()).steps()
    assert "making its Python environment" not in done


def _hil(*words: str) -> Any:
    done = CliRunner().invoke(main, [*words, "--json"])
    return done.exit_code, json.loads(done.stdout)


def test_dry_run_says_what_from_where_and_how_much_and_writes_nothing(
    tmp_path: Path, west_environment: None
) -> None:
    folder = tmp_path / "ws"
    code, said = _hil("zephyr", "init", str(folder), "--dry-run")
    assert (code, said["done"], folder.exists()) == (0, False, False)
    assert f"{UPSTREAM}/CMSIS_6" in [item["from"] for item in said["downloads"]]
    assert said["megabytes"] == sum(item["megabytes"] for item in said["downloads"]) > 100
    assert "west update --narrow --fetch-opt=--depth=1" in "\n".join(said["commands"])
    text = CliRunner().invoke(main, ["zephyr", "init", str(folder), "--dry-run"]).stdout
    assert "MB in all" in text
    assert "nothing was written" in text


def test_a_dry_run_needs_no_west(tmp_path: Path) -> None:
    plan = plan_init(tmp_path / "w", "4.1.0", dry_run=True, environ={"PATH": ""})
    assert any(command[0] == "west" for command in plan.steps().values())


def test_init_by_the_command_ends_with_what_to_say_to_the_shell(
    remote: Path, tmp_path: Path, west_environment: None
) -> None:
    folder = tmp_path / "ws"
    words = ["zephyr", "init", str(folder), "--url", remote.as_uri(), "--no-packages"]
    text = CliRunner().invoke(main, words)
    assert text.exit_code == 0, text.output
    assert f"export ZEPHYR_BASE={folder}/zephyr" in text.stdout
    assert text.stdout.index("MB in all") < text.stdout.index("done.")


def _wrong(act: Callable[[], Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        act()
    assert words in str(caught.value)
    assert caught.value.hint  # type: ignore[attr-defined]


def test_what_init_refuses_before_it_writes(
    tmp_path: Path, west_environment: None, made: Path, remote: Path
) -> None:
    """A folder with something of the user's, another workspace's, versions and remotes that are
    none."""
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").touch()
    new = tmp_path / "new"
    _wrong(lambda: plan_init(full, "4.1.0"), UsageError, "not empty")
    _wrong(lambda: plan_init(full / "mine", "4.1.0"), UsageError, "not empty")
    _wrong(lambda: plan_init(made, "4.2.0", remote.as_uri()), UsageError, "another --zephyr")
    _wrong(lambda: plan_init(made / "sub", "4.1.0"), UsageError, str(made))
    _wrong(lambda: plan_init(new, "newest"), UsageError, "not a version")
    _wrong(lambda: plan_init(new, "3.7.0"), UsageError, "too old")
    _wrong(lambda: plan_init(new, "4.1.0", "zephyr project"), UsageError, "not a remote")
    assert not new.exists()


def test_init_without_west(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    environ = {"PATH": str(tmp_path)}
    _wrong(lambda: plan_init(tmp_path / "ws", "4.1.0", environ=environ), ToolMissing, "west")


def test_a_remote_that_does_not_answer_is_named_with_gits_own_reason(
    remote: Path, tmp_path: Path, west_environment: None
) -> None:
    """And the same command goes on when it is there again."""
    away = tmp_path / "away"
    plan = plan_init(tmp_path / "ws", "4.1.0", away.as_uri(), packages=False)
    with pytest.raises(InfraError) as caught:
        init(plan, _quiet)
    assert "does not appear to be a git repository" in caught.value.said
    assert caught.value.said.startswith("zephyr: "), "the project that failed is named"
    assert away.as_uri() in str(caught.value.hint)
    away.symlink_to(remote)
    again = plan_init(tmp_path / "ws", "4.1.0", away.as_uri(), packages=False)
    init(again, _quiet)
    assert (again.base / "VERSION").is_file()


def test_a_remote_without_that_release(
    remote: Path, tmp_path: Path, west_environment: None
) -> None:
    plan = plan_init(tmp_path / "ws", "4.9.9", remote.as_uri(), packages=False)
    with pytest.raises(InfraError, match=r"v4\.9\.9"):
        init(plan, _quiet)


def test_a_remote_whose_zephyr_is_none(tmp_path: Path, west_environment: None) -> None:
    root = tmp_path / "remote"
    commit(
        root / "zephyr",
        {"west.yml": "manifest: {}\n", "scripts/west-commands.yml": "west-commands: []\n"},
    )
    git(root / "zephyr", "tag", "v4.1.0")
    plan = plan_init(tmp_path / "ws", "4.1.0", root.as_uri(), packages=False)
    with pytest.raises(InfraError, match="is not Zephyr") as caught:
        init(plan, _quiet)
    assert "v4.1.0" in str(caught.value.hint)


def _missing(base: Path) -> dict[str, str]:
    return {f.name: f.text for f in examine(_environ(base)) if f.required and f.state is None}


def test_the_doctor_finds_nothing_missing_in_what_init_made(made: Path) -> None:
    assert _missing(made / "zephyr") == {}


def test_the_doctor_names_what_is_missing_with_the_command_that_gets_it(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = own / "zephyr"
    shutil.rmtree(own / "modules/cmsis_6")
    manifest = own / "hil-manifest/west.yml"
    manifest.write_text(manifest.read_text().replace("          - picolibc\n", ""))
    (base / "scripts/west-commands.yml").write_text("west-commands: []\n")
    (base / "scripts/requirements-base.txt").write_text("west>=0.14\njsonschema\ncanopen\n")
    monkeypatch.setattr("harness.firmware.zephyr.examine._MISSING", "print('jsonschema')")
    missing = _missing(base)
    assert missing.keys() == {"cmsis_6", "picolibc", "west-commands", "Python packages"}
    assert "west update --narrow --fetch-opt=--depth=1 cmsis_6" in missing["cmsis_6"]
    assert "manifest" in missing["picolibc"]
    assert "west-commands:" in missing["west-commands"]
    assert missing["Python packages"].endswith("-m pip install jsonschema")


def test_the_doctor_of_no_zephyr_an_old_one_and_no_workspace(
    tmp_path: Path, remote: Path, west_environment: None
) -> None:
    assert "hil zephyr init" in _missing(tmp_path)["zephyr"]
    alone = tmp_path / "alone"
    git(tmp_path, "clone", "-q", str(remote / "zephyr"), str(alone))
    (alone / "VERSION").write_text("VERSION_MAJOR = 3\nVERSION_MINOR = 7\nPATCHLEVEL = 0\n")
    missing = _missing(alone)
    assert "3.7.0 is too old" in missing["zephyr"]
    assert "west does not know the workspace of" in missing["workspace"]


def test_the_doctor_shows_the_workspace_and_fails_for_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZEPHYR_BASE", str(tmp_path))
    code, said = _hil("doctor")
    assert code == 3
    assert "Zephyr's zephyr" in said["missing"]
    assert said["zephyr"][0]["state"] is None
    assert "Zephyr workspace" in CliRunner().invoke(main, ["doctor"]).stdout
    monkeypatch.delenv("ZEPHYR_BASE")
    assert _hil("doctor")[1]["zephyr"] == []


def test_the_locks_of_a_git_that_was_killed_go(remote: Path, own: Path) -> None:
    """And a folder in which nothing but our own is, killed before its manifest was written."""
    shutil.rmtree(own / "modules/picolibc")
    locks = [own / "zephyr/.git/index.lock", own / "modules/cmsis/.git/HEAD.lock"]
    for lock in locks:
        lock.touch()
    init(plan_init(own, "4.1.0", remote.as_uri(), packages=False), _quiet)
    assert not any(lock.exists() for lock in locks)
    assert not (own / "hil-manifest/unfinished").exists()
    (own.parent / "new" / "hil-manifest").mkdir(parents=True)
    (own.parent / "new" / "hil-manifest.lock").touch()
    assert plan_init(own.parent / "new", "4.1.0", remote.as_uri(), packages=False)


@pytest.mark.parametrize("finished", [False, True])
def test_files_that_a_killed_git_did_not_write_are_written(
    finished: bool, remote: Path, own: Path
) -> None:
    """Git takes them for deleted, and west for up to date. In a workspace that was whole once the
    user may have deleted or edited them."""
    (own / "modules/cmsis/README").unlink()
    (own / "modules/picolibc/README").write_text("hal")
    if not finished:
        (own / "hil-manifest/unfinished").touch()
    init(plan_init(own, "4.1.0", remote.as_uri(), packages=False), _quiet)
    assert (own / "modules/cmsis/README").exists() != finished
    assert (own / "modules/picolibc/README").read_text() == ("hal" if finished else "picolibc")
