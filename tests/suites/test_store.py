"""The store of what a suite's tests exported: when a program is used again, and when it is not."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.suites.standin.record import REFUSED
from harness.suites.store import ExportStore, export_key
from harness.suites.suites import Suite
from harness.system.paths import cache_dir
from tests.suites.conftest import checkout_exporter

SUITE = Suite("own", root="backends/own", runners=("arm_test/own",), target="none")
TEST = "ops/test_add.py::test_add[0]"
PHASES = [
    {"test": TEST, "when": "setup", "outcome": "passed", "seconds": 0.5},
    {"test": TEST, "when": "call", "outcome": "passed", "seconds": 2.0},
]
PROGRAM = b"the program"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ExecuTorch with a suite of one test file, and a home of its own."""
    package = tmp_path / "executorch"
    (package / "backends" / "own" / "ops").mkdir(parents=True)
    (package / "backends" / "own" / "ops" / "test_add.py").write_text("def test_add(): ...\n")
    (package / "exir.py").write_text("PASSES = 1\n")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("harness.suites.suites.executorch_package", lambda: package)
    monkeypatch.setattr("harness.suites.store.distributions", list)  # to read them all takes 0.1 s
    return package


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    """What the stand-in leaves of a test with one simulation."""
    folder = tmp_path / "simulated"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "add.pte").write_bytes(PROGRAM)
    (folder / "1" / "out.bin").write_bytes(b"sum")
    (folder / "1.log").write_bytes(b"Model executed successfully.\n")
    (folder / "1.json").write_text(json.dumps(simulation()))
    return folder


def simulation(**other: Any) -> dict[str, Any]:
    fields = {"model": "FVP", "argv": ["-a", "elf"], "cwd": "/tmp/run", "status": 0}
    return {**fields, "inputs": ["add.pte"], "repeatable": True, **other}


def stored(tmp_path: Path, simulated: Path) -> ExportStore:
    """The store of now, after a run of the test."""
    store = ExportStore.of(SUITE.name, export_key(SUITE, None))
    store.prepare()
    store.save_recording(simulated, tmp_path / "workspace", TEST, PHASES)
    store.save_collection("add", [TEST], [])
    return store


def test_a_program_is_used_again_for_the_same_key(
    package: Path, tmp_path: Path, simulated: Path
) -> None:
    """With all that a simulation needs; by another process, too: only the key leads to it."""
    stored(tmp_path, simulated)
    recording = ExportStore.of(SUITE.name, export_key(SUITE, None)).recording(TEST)
    assert recording is not None
    assert (recording.test, recording.phases) == (TEST, tuple(PHASES))
    assert recording.workspace == str(tmp_path / "workspace")
    assert recording.seconds == 2.5
    (again,) = recording.simulations
    assert (again.files / "add.pte").read_bytes() == PROGRAM
    assert (again.argv, again.inputs, again.status) == (("-a", "elf"), ("add.pte",), 0)


def test_a_test_that_simulates_nothing_is_stored_as_one(package: Path, tmp_path: Path) -> None:
    recording = stored(tmp_path, tmp_path / "nothing").recording(TEST)
    assert recording is not None
    assert recording.simulations == ()


def test_another_test_has_another_recording(package: Path, tmp_path: Path, simulated: Path) -> None:
    assert stored(tmp_path, simulated).recording("ops/test_add.py::test_add[1]") is None


@pytest.mark.parametrize(
    "change",
    ["package version", "new package", "test file", "module", "new module", "variable"],
)
def test_whatever_may_export_something_else_is_another_key(
    package: Path,
    tmp_path: Path,
    simulated: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    def install(**versions: str) -> None:
        installed = [SimpleNamespace(metadata={"Name": n}, version=v) for n, v in versions.items()]
        monkeypatch.setattr("harness.suites.store.distributions", lambda: installed)

    install(torch="2.12.0")
    stored(tmp_path, simulated)
    key = export_key(SUITE, None)
    if change == "package version":
        install(torch="2.12.1")
    elif change == "new package":
        install(torch="2.12.0", vela="5.0.0")
    elif change == "test file":
        (package / "backends" / "own" / "ops" / "test_add.py").write_text("def test_add(): 1\n")
    elif change == "module":
        (package / "exir.py").write_text("PASSES = 2\n")
    elif change == "new module":
        (package / "pass.py").write_text("")
    else:
        monkeypatch.setenv("TEST_SEED", "3")
    assert export_key(SUITE, None) != key
    store = ExportStore.of(SUITE.name, export_key(SUITE, None))
    assert (store.recording(TEST), store.collected("add")) == (None, None)


@pytest.mark.parametrize("name", ["op_add.cpp", "README.md", "__pycache__/exir.pyc"])
def test_what_exports_nothing_is_not_part_of_the_key(package: Path, name: str) -> None:
    """Whoever works on a kernel runs the suite again and again with the same exports."""
    before = export_key(SUITE, None)
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("int x;")
    assert export_key(SUITE, None) == before


def test_a_large_file_counts_by_its_size_and_time(package: Path) -> None:
    """Its content would take longer to read than the suite's start."""
    large = package / "libtorch.so"
    with large.open("wb") as file:
        file.truncate(20 << 20)
    before = export_key(SUITE, None)
    with large.open("ab") as file:
        file.write(b"1")
    assert export_key(SUITE, None) != before


def test_a_checkout_s_exports_are_not_those_of_the_wheel(package: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout" / "executorch"
    (checkout / "backends" / "own" / "ops").mkdir(parents=True)
    exporter = checkout_exporter(checkout.parent)
    assert export_key(SUITE, exporter) != export_key(SUITE, None)


@pytest.mark.parametrize(
    "name", ["entry.json", "1.json", "1.log", "1/add.pte", "1/out.bin", "a file that was added"]
)
def test_a_damaged_entry_is_not_used(
    package: Path, tmp_path: Path, simulated: Path, name: str
) -> None:
    """Whichever of its files it is; the next run of the test takes its place."""
    stored(tmp_path, simulated)
    (entry,) = (cache_dir("suite-exports")).glob("*/tests/*/entry.json")
    damaged = entry.parent / name
    if name == "entry.json":
        damaged.write_text(damaged.read_text().replace('"passed"', '"failed"'))
    else:
        damaged.write_bytes((damaged.read_bytes() if damaged.exists() else b"") + b" ")
    store = ExportStore.of(SUITE.name, export_key(SUITE, None))
    assert store.recording(TEST) is None
    assert stored(tmp_path, tmp_path / "nothing").recording(TEST) is not None


def test_a_flipped_byte_is_no_other_answer(package: Path, tmp_path: Path, simulated: Path) -> None:
    """20 places of each file of a store: what it answers is what was stored, or nothing."""
    store = stored(tmp_path, simulated)
    whole, collected = store.recording(TEST), store.collected("add")
    chance, files = random.Random(52), [p for p in store.folder.rglob("*") if p.is_file()]
    assert len(files) == 6
    for file in files:
        content = file.read_bytes()
        for at in chance.choices(range(len(content)), k=20):
            flip = 1 << chance.randrange(8)
            file.write_bytes(bytes([*content[:at], content[at] ^ flip, *content[at + 1 :]]))
            assert store.recording(TEST) in (None, whole), f"{file}, byte {at} ^ {flip}"
            assert store.collected("add") in (None, collected), f"{file}, byte {at} ^ {flip}"
        file.write_bytes(content)


@pytest.mark.parametrize("spoilt", ["refused", "killed", "not repeatable"])
def test_what_cannot_be_simulated_again_is_not_stored(
    package: Path, tmp_path: Path, simulated: Path, spoilt: str
) -> None:
    """A test that is expected to fail may pass over a simulator that does not start, too."""
    if spoilt == "refused":
        (simulated / REFUSED).touch()
    elif spoilt == "killed":
        (simulated / "1.json").unlink()
    else:
        (simulated / "1.json").write_text(json.dumps(simulation(repeatable=False)))
    assert stored(tmp_path, simulated).recording(TEST) is None


def test_what_a_keyword_matches_is_known_after_pytest_collected_it(
    package: Path, tmp_path: Path, simulated: Path
) -> None:
    store = stored(tmp_path, simulated)
    assert store.collected("add") == ([TEST], [])
    assert store.collected("sub") is None
    assert store.collected(None) is None
