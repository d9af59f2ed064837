"""A bundle is the run and nothing else: the same bytes every time, and nobody's paths."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.run.bundle import RunIncomplete, pack
from harness.run.directory import SealBroken, load_record, save_record
from harness.run.record import ProgramFacts, RunRecord

from .conftest import USER
from .forging import members


def test_two_bundles_of_one_run_are_the_same_bytes(
    passed: RunRecord, bundle: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever and wherever they are made, in whatever order the disk has the files."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HIL_HOME", str(home / ".hil"))
    monkeypatch.chdir(tmp_path)
    copy = shutil.copytree(str(passed.run_dir), tmp_path / "copy")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    pack(Path(copy), tmp_path / "again.tar.zst")
    assert (tmp_path / "again.tar.zst").read_bytes() == bundle.read_bytes()


def test_nothing_of_the_machine_is_in_it(bundle: Path, home: Path, passed: RunRecord) -> None:
    """No folder of the user's, no name of user or host."""
    record = (Path(str(passed.run_dir)) / "record.json").read_text()
    assert USER in record  # else this test sees nothing
    content = members(bundle)
    told = [USER, str(home), str(Path(__file__).parents[3])]
    host = socket.gethostname()
    told += [host] if len(host) > 3 else []
    for name, data in content.items():
        for word in told:
            assert word.encode() not in data, (name, word)


def test_the_firmware_is_the_same(bundle: Path, passed: RunRecord) -> None:
    assert passed.firmware is not None
    assert members(bundle)["firmware/executor_runner"] == Path(passed.firmware.elf).read_bytes()


@pytest.fixture
def run_dir(passed: RunRecord, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(home / ".hil"))
    return Path(shutil.copytree(str(passed.run_dir), tmp_path / "run"))


def resealed(run_dir: Path, change: Callable[[RunRecord], RunRecord]) -> Path:
    save_record(change(replace(load_record(run_dir), run_dir=str(run_dir))))
    return run_dir


def of_program(record: RunRecord, **fields: object) -> RunRecord:
    assert isinstance(record.program, ProgramFacts)
    return replace(record, program=replace(record.program, **fields))  # type: ignore[arg-type]


GONE: dict[str, tuple[Callable[[RunRecord], RunRecord], str]] = {
    "the firmware": (
        lambda r: replace(r, firmware=replace(r.firmware, elf="/gone/executor_runner")),  # type: ignore[type-var]
        "not there any more",
    ),
    "another firmware": (
        lambda r: replace(r, firmware=replace(r.firmware, build_id="00")),  # type: ignore[type-var]
        "not there any more",
    ),
    "another program": (lambda r: of_program(r, sha256="00"), "or is another"),
    "what the inputs were": (lambda r: of_program(r, input_sha256=()), "not hold a whole run"),
    "an input": (lambda r: of_program(r, input_sha256=(("00",),) * 3), "or is another"),
    "the program": (lambda r: replace(r, program=None), "ended before its program ran"),
    "how it ended": (lambda r: replace(r, ending=None), "not hold a whole run"),
}


@pytest.mark.parametrize("name", GONE)
def test_a_run_of_which_something_is_gone(name: str, run_dir: Path, tmp_path: Path) -> None:
    """Is told by what is missing; there is no bundle of half a run."""
    change, said = GONE[name]
    with pytest.raises(RunIncomplete, match=said) as caught:
        pack(resealed(run_dir, change), tmp_path / "out")
    assert caught.value.hint
    assert not (tmp_path / "out").exists()


def test_a_runner_with_shared_libraries(run_dir: Path, passed: RunRecord, tmp_path: Path) -> None:
    """As that of ExecuTorch's wheel: a bundle has one file of a firmware, which would not start."""
    assert passed.firmware is not None
    elf = Path(passed.firmware.elf)
    shutil.copytree(elf.parent, tmp_path / "firmware")
    (tmp_path / "firmware" / "root").mkdir()
    there = replace(passed.firmware, elf=str(tmp_path / "firmware" / elf.name))
    with pytest.raises(RunIncomplete, match="shared libraries, which no bundle holds"):
        pack(resealed(run_dir, lambda r: replace(r, firmware=there)), tmp_path / "out")


def test_without_the_cache_the_runs_own_copies_do(run_dir: Path, tmp_path: Path) -> None:
    """Program and inputs are still in the guest's directory, if it left them as they were."""
    resealed(run_dir, lambda r: of_program(r, pte="/gone/program.pte"))
    pack(run_dir, tmp_path / "out")
    (run_dir / "work" / "s0i0.bin").write_bytes(b"the guest's own")
    with pytest.raises(RunIncomplete, match="or is another"):
        pack(run_dir, tmp_path / "out")


def test_a_run_that_was_changed_since(run_dir: Path, tmp_path: Path) -> None:
    """Proves nothing, and becomes no bundle."""
    output = run_dir / "work" / "s1-0.bin"
    output.write_bytes(bytes(len(output.read_bytes())))
    with pytest.raises(RunIncomplete, match=r"s1-0.bin is not there any more, or is another"):
        pack(run_dir, tmp_path / "out")
    (run_dir / "console.log").write_bytes(b"")
    with pytest.raises(SealBroken):
        pack(run_dir, tmp_path / "out")


def test_what_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a run directory"):
        pack(tmp_path, tmp_path / "out")


def test_a_file_that_names_a_folder_of_this_machine_is_reported(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text is freed of it; what is loaded or was printed stays as it is."""
    assert pack(run_dir, tmp_path / "1")["naming"] == []
    named = b"/somewhere/of/mine"
    (run_dir / "console.log").write_bytes((run_dir / "console.log").read_bytes() + named + b"\n")

    def told(record: RunRecord) -> RunRecord:
        judgement = replace(record.judgement, notes=(f"{named.decode()}/x is made",))
        return replace(record, judgement=judgement)

    resealed(run_dir, told)
    monkeypatch.setenv("HOME", named.decode())
    assert pack(run_dir, tmp_path / "2")["naming"] == ["console.log"]
    assert b'"x is made"' in members(tmp_path / "2")["record.json"]
