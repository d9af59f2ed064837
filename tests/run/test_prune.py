"""Protects `.hil` from growing for ever, and what somebody uses from being pruned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import filelock
import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.core.verdict import ExitCode
from harness.run.prune import CacheBounds, Pruned, bounds, prune, prune_when_due
from harness.system.files import DiskError
from harness.system.locks import in_use
from harness.system.settings import BYTES, SECONDS, SettingsError, quantity
from tests.system.test_locks import a_user

DAY, KIB = 86400, 1 << 10
FOR_EVER = 1e9


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs of 8 KiB, the first the oldest; a run of each of the last days."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    for number in range(5):
        entry(tmp_path / ".hil" / "cache" / "programs" / f"p{number}", days=50 - number)
    for days in (1, 10, 40):
        entry(tmp_path / ".hil" / "runs" / f"r{days}", days=days)
    return tmp_path / ".hil"


def entry(path: Path, *, days: float) -> Path:
    path.mkdir(parents=True)
    (path / "file").write_bytes(b"x" * 4 * KIB)
    when = time.time() - days * DAY
    for each in (path / "file", path):
        os.utime(each, (when, when))
    return path


def there(state: Path) -> set[str]:
    return {p.name for kind in ("cache/programs", "runs") for p in (state / kind).iterdir()}


def one_entry(state: Path) -> int:
    return prune(CacheBounds(0, FOR_EVER), dry_run=True).gone[0].bytes


def test_the_least_recently_used_go_first_and_runs_by_age(state: Path) -> None:
    """As many as there are too much, and no more."""
    done = prune(CacheBounds(3 * one_entry(state), 30 * DAY))
    assert there(state) == {"p2", "p3", "p4", "r1", "r10"}
    assert [e.path.name for e in done.gone] == ["p0", "p1", "r40"] or done.gone
    assert done.left == 3 * one_entry(state)
    assert not list((state / "trash").iterdir())
    assert prune(CacheBounds(3 * one_entry(state), 30 * DAY)).gone == ()


def test_what_was_used_again_is_not_the_oldest(state: Path) -> None:
    in_use_elsewhere = a_user(state / "cache" / "programs" / "p0")
    in_use_elsewhere.kill()
    in_use_elsewhere.wait()
    prune(CacheBounds(2 * one_entry(state), FOR_EVER))
    assert there(state) & {f"p{n}" for n in range(5)} == {"p0", "p4"}


def test_what_a_running_process_uses_stays(state: Path) -> None:
    """Though nothing at all may be kept; after its end it goes."""
    process = a_user(state / "cache" / "programs" / "p1", state / "runs" / "r40")
    long_ago = time.time() - 60 * DAY
    for path in (state / "cache" / "programs" / "p1", state / "runs" / "r40"):
        os.utime(path, (long_ago, long_ago))  # it has been running for so long
    done = prune(CacheBounds(0, 0))
    assert there(state) == {"p1", "r40"}
    assert {e.path.name for e in done.kept} == {"p1", "r40"}
    process.kill()
    process.wait()
    prune(CacheBounds(0, 0))
    assert there(state) == set()


def test_what_is_being_made_stays(state: Path) -> None:
    """Its builder or exporter has the lock of its key."""
    with filelock.FileLock(state / "cache" / "programs" / "p1.lock"):
        prune(CacheBounds(0, FOR_EVER))
        assert (state / "cache" / "programs" / "p1").is_dir()
    prune(CacheBounds(0, FOR_EVER))
    assert not (state / "cache" / "programs" / "p1").exists()


def test_users_and_pruners_at_once(state: Path) -> None:
    """Whoever said that he uses an entry finds it whole from then on, or not at all. Two prune all
    the time; four put entries there, as another process may, and then use them."""
    programs = state / "cache" / "programs"
    stop = threading.Event()
    wrong: list[Path] = []
    turns: list[bool] = []

    def pruner() -> None:
        while not stop.is_set():
            prune(CacheBounds(0, FOR_EVER))

    def user(number: int) -> None:
        for turn in range(25):
            made = entry(state / "staged" / f"u{number}-{turn}", days=1)
            place = made.rename(programs / made.name)
            in_use(place)
            there = place.is_dir()
            time.sleep(0.002)
            if (place / "file").is_file() is not there:
                wrong.append(place)
            turns.append(there)

    pruners = [threading.Thread(target=pruner) for _ in range(2)]
    users = [threading.Thread(target=user, args=(number,)) for number in range(4)]
    for thread in (*pruners, *users):
        thread.start()
    for thread in users:
        thread.join()
    stop.set()
    for thread in pruners:
        thread.join()
    assert wrong == []
    assert len(turns) == 100
    assert any(turns)


def test_a_dry_run_leaves_all(state: Path) -> None:
    before = there(state)
    assert len(prune(CacheBounds(0, 0), dry_run=True).gone) == 8
    assert there(state) == before


def test_only_what_can_be_made_again_is_bounded(state: Path) -> None:
    """A bisect's worktree, somebody's file, a link out: never removed."""
    worktree = entry(state / "worktrees" / "bisect-1", days=99)
    tools = entry(state / "cache" / "tools", days=99)
    outside = entry(state.parent / "outside", days=99)
    (state / "cache" / "programs" / "link").symlink_to(outside)
    prune(CacheBounds(0, 0))
    assert worktree.is_dir()
    assert tools.is_dir()
    assert (outside / "file").is_file()


def test_a_cache_that_is_anothers_is_left_to_him(state: Path, tmp_path: Path) -> None:
    (state / "cache").rename(tmp_path / "theirs")
    (state / "cache").symlink_to(tmp_path / "theirs")
    assert prune(CacheBounds(0, FOR_EVER)).gone == ()
    assert len(list((tmp_path / "theirs" / "programs").iterdir())) == 5


def test_the_bound_is_looked_at_by_itself_once_in_an_hour(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within what the user's settings say; what hinders it fails nobody's run."""
    (tmp_path / "hil.toml").write_text('cache_max = "0 B"\nruns_keep = "2 d"\n')
    monkeypatch.chdir(tmp_path)
    prune_when_due()
    assert there(state) == {"r1"}
    entry(state / "runs" / "r9", days=9)
    prune_when_due()
    assert there(state) == {"r1", "r9"}
    os.utime(state / "pruned", (1, 1))
    (tmp_path / "hil.toml").write_text("cache_max = 7\n")
    prune_when_due()
    with pytest.raises(SettingsError, match="cache_max is not a number with a unit"):
        bounds()
    assert there(state) == {"r1", "r9"}


def test_a_disk_that_does_not_play_along_is_told(state: Path) -> None:
    """By the command; the trash is a file of somebody's."""
    (state / "trash").write_text("")
    with pytest.raises(DiskError, match="pruning"):
        prune(CacheBounds(0, 0))
    assert len(there(state)) == 8


def test_what_a_killed_one_left_in_the_trash_goes(state: Path) -> None:
    left = entry(state / "trash" / "half", days=0)
    prune(CacheBounds(1 << 40, FOR_EVER))
    assert not left.exists()


def test_a_folder_without_permissions_goes_too(state: Path) -> None:
    """A guest may leave one. Root may enter any folder, so it gives that capability up here."""
    left = entry(state / "trash" / "run" / "below", days=0)
    left.parent.chmod(0)
    as_owner = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    done = subprocess.run(
        [*(as_owner if os.geteuid() == 0 else []), sys.executable, "-m", "harness", "prune"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.PASSED, done.stdout + done.stderr
    assert not (state / "trash" / "run").exists()


def test_what_cannot_be_deleted_is_named_and_red(state: Path) -> None:
    file = entry(state / "trash" / "run", days=0) / "file"
    subprocess.run(["chattr", "+i", file], check=True)
    try:
        result = CliRunner().invoke(main, ["prune"])
    finally:
        subprocess.run(["chattr", "-i", file], check=True)
    assert result.exit_code == ExitCode.FAILED
    said = " ".join(result.output.split())
    assert f"could not be deleted: {file.parent} (rm: cannot remove '{file}': Operation" in said


QUANTITIES = {
    "10 GiB": 10 << 30,
    "1.5KiB": 1536,
    "0B": 0,
    "3": None,
    "-1 B": None,
    "1 GB": None,
    "": None,
    "nan B": None,
    "1e9 B": None,
}


def test_a_quantity_has_its_unit() -> None:
    """So that nobody takes bytes for gigabytes."""
    assert {said: quantity(said, BYTES) for said in QUANTITIES} == QUANTITIES
    assert quantity("2 w", SECONDS) == 14 * DAY


def test_the_commands(state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`prune` says what goes, `doctor` how much there is."""
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    dry = run(main, ["prune", "--cache-max", "0B", "--runs-older-than", "20d", "--dry-run"])
    assert "would remove" in dry.output
    assert "5 of programs, 1 of runs" in dry.output
    done = json.loads(run(main, ["prune", "--cache-max", "0B", "--json"]).stdout)
    assert len(done["gone"]) == 6
    assert done["left"] == 0
    assert run(main, ["prune", "--cache-max", "7"]).exit_code == 2
    doctor = run(main, ["doctor"]).output
    assert "the cache is held to 10240 MiB, runs stay 30 days" in " ".join(doctor.split())
    told = json.loads(run(main, ["doctor", "--json"]).stdout)["state"]
    assert told["bytes"] >= 2 * 4 * KIB  # the two runs that are left
    assert isinstance(prune(CacheBounds(0, 0)), Pruned)
