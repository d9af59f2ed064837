"""Protects runs with the firmware of more than one source: one record for each, ours first, and
none of them shown as the other's.

The builds are replaced by planted firmware, which runs on the real QEMU; the checkout is the small
one that other tests build.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from harness.cli.main import main
from harness.config.case import Case
from harness.core.errors import BuildError, UsageError
from harness.firmware.choice import FirmwareChoice, choose
from harness.firmware.source import BuildRequest, CheckoutFacts, FirmwareSource, source_named
from harness.report.terminal import print_records
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.run.subjects import firmware_of, tree_of
from harness.system.progress import silent
from tests.firmware.executorch.small import small_checkout
from tools.doubles import double_program, planted_firmware

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
TARGET = "corstone-300-m55"
SOURCES = (source_named("bundled"), source_named("executorch"))


class Builds:
    """What builds give; ``endings`` is how the firmware of each source ends."""

    def __init__(self, folder: Path) -> None:
        self.endings = {source_named("bundled"): "PASSES", source_named("executorch"): "PASSES"}
        self.error: BuildError | None = None
        self.folder = folder

    def build(self, source: FirmwareSource, request: BuildRequest, _: object = None) -> Any:
        made = planted_firmware(self.folder / source.name, self.endings[source], source.name)
        if not source.needs_checkout:
            return made
        if self.error is not None:
            raise self.error
        checkout = request.checkout
        assert checkout is not None
        there = checkout.revision
        facts = CheckoutFacts(
            str(checkout.root), there.commit, there.branch, there.dirty, there.changes, "hil"
        )
        return replace(made, checkout=facts)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root, parts = small_checkout(tmp_path / "src")
    named = [f"{name}={folder}" for name, folder in parts.items()]
    (tmp_path / "hil.toml").write_text(f"parts = {named}")
    monkeypatch.setenv("HIL_PROJECT", str(tmp_path))
    return root


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builds:
    for source in SOURCES:
        (tmp_path / str(source)).mkdir()
    planted = Builds(tmp_path)
    program = double_program(tmp_path / "program")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    monkeypatch.delenv("EXECUTORCH_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    for source in SOURCES:
        monkeypatch.setattr(type(source), "build", lambda *words: planted.build(*words))
    monkeypatch.setattr(
        "harness.run.pipeline.export_cases", lambda wanted, *_, **__: [program] * len(wanted)
    )
    return planted


def hil(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def run(checkout: Path, *models: str) -> list[RunRecord]:
    options = RunOptions(simulator="qemu", firmware=choose("both", checkout, ()))
    return run_cases([Case(TARGET, model) for model in models], options)


def test_one_record_per_source_and_case(builds: Builds, checkout: Path) -> None:
    builds.endings[source_named("executorch")] = "WRONG_BY_ONE"
    records = run(checkout, "add", "softmax")
    said = [(r.case.model, str(r.source), r.verdict.name) for r in records]
    assert said == [
        ("add", "bundled", "PASS"),
        ("add", "executorch", "MISMATCH"),
        ("softmax", "bundled", "PASS"),
        ("softmax", "executorch", "MISMATCH"),
    ]
    assert [len(r.starts) for r in records] == [1, 2, 1, 2]


def test_the_terminal_never_shows_one_as_the_other(builds: Builds, checkout: Path) -> None:
    builds.endings[source_named("executorch")] = "LEAVES_2"
    records = run(checkout, "add")
    shown = Console(record=True, width=100)
    print_records(shown, records)
    facts = records[1].firmware
    assert facts is not None
    assert facts.checkout is not None
    whose = f"executorch {facts.checkout.commit[:8]}"
    text = shown.export_text()
    assert f"\n{TARGET} [{whose}] on qemu" in text
    assert f"{TARGET}/add [{whose}]: FAIL FAULT exit_status" in text
    assert "note: no reference run accepted yet\n" in text
    assert text.startswith(f"{TARGET} on qemu")


def test_a_build_that_fails_is_the_record_of_its_source_alone(
    builds: Builds, checkout: Path
) -> None:
    builds.error = BuildError("it does not compile")
    ours, theirs = run(checkout, "add")
    assert ours.verdict.passed
    assert (theirs.verdict.name, theirs.title) == ("BUILD_ERROR", f"{TARGET}/add [executorch]")
    assert theirs.summary()["firmware"] == {"source": "executorch", "checkout": None}


def test_exit_code_and_json_are_over_all(
    builds: Builds, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "")  # nothing of these runs was accepted
    words = ("run", TARGET, "add", "--simulator", "qemu", "--executorch", checkout, "--json")
    assert hil(*words).exit_code == 0
    builds.endings[source_named("executorch")] = "WRONG_BY_ONE"
    done = hil(*words, "--firmware", "both")
    assert done.exit_code == 1, done.output
    cases = json.loads(done.stdout)["cases"]
    assert [case["firmware"]["source"] for case in cases] == ["bundled", "executorch"]
    assert cases[1]["firmware"]["checkout"]["path"] == str(checkout)
    assert hil(*words, "--firmware", "bundled").exit_code == 0


def test_exec_writes_the_outputs_of_each(builds: Builds, checkout: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    words = (
        "exec",
        TARGET,
        program / "program.pte",
        "-i",
        program / "in0.bin",
        "-o",
        tmp_path / "o",
        "--simulator",
        "qemu",
        "--executorch",
        checkout,
    )
    alone = hil(*words, "--json")
    assert alone.exit_code == 0, alone.output
    assert json.loads(alone.stdout)["outputs"] == [str(tmp_path / "o-0.bin")]
    both = hil(*words, "--firmware", "both", "--json")
    assert both.exit_code == 0, both.output
    runs = json.loads(both.stdout)["runs"]
    assert [r["outputs"] for r in runs] == [
        [str(tmp_path / "o-0.bin")],
        [str(tmp_path / "o.executorch-0.bin")],
    ]
    assert [r["firmware"].split()[0] for r in runs] == ["bundled", "executorch"]
    shown = hil(*words, "--firmware", "both").output
    assert shown.index("hil: bundled:") < shown.index("hil: executorch ")


def test_exec_without_an_input_is_refused(builds: Builds, checkout: Path, tmp_path: Path) -> None:
    program = tmp_path / "program" / "program.pte"
    done = hil("exec", TARGET, program, "--simulator", "qemu", "--executorch", checkout)
    assert done.exit_code == 2
    assert "ExecuTorch's runner needs one" in done.output


COMMANDS = (
    ("run", TARGET, "add"),
    ("exec", TARGET, "x.pte"),
    ("suite", "cortex-m"),
    ("size", f"{TARGET}/runner"),
    ("link", "explain", "x.log"),
    ("link", "reduce", "x"),
    ("link", "check", "x", "--overridable", "f"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_verb_says_how_to_name_a_checkout(
    builds: Builds, command: tuple[str, ...], tmp_path: Path
) -> None:
    done = hil(*command, "--firmware", "executorch")
    assert done.exit_code == 2
    assert "--firmware executorch needs a checkout of ExecuTorch" in done.output
    assert "EXECUTORCH_ROOT" in done.output


def test_what_is_no_checkout_is_said_before_any_work(builds: Builds, tmp_path: Path) -> None:
    done = hil("run", TARGET, "add", "--executorch", tmp_path / "program")
    assert done.exit_code == 2
    assert "is not a checkout of ExecuTorch" in done.output
    assert not (tmp_path / ".hil").exists()


def test_a_given_elf_is_the_runner_under_test(builds: Builds, checkout: Path) -> None:
    (builds.folder / "elf").write_bytes(b"")
    words = ("suite", "cortex-m", "--elf", builds.folder / "elf", "--executorch", checkout)
    done = hil(*words)
    assert done.exit_code == 2
    assert "--elf is the runner under test" in done.output


def test_a_targets_runner_in_place_of_a_file(builds: Builds, checkout: Path) -> None:
    choice = choose("both", checkout, ())
    subject = Path(f"{TARGET}/runner")
    assert [f.source for f in firmware_of(subject, choice, silent)] == list(SOURCES)
    assert firmware_of(checkout, choice, silent) == ()
    for wrong in ("x.elf", f"{TARGET}/add", f"a/{TARGET}/runner"):
        with pytest.raises(UsageError, match="there is no file") as caught:
            firmware_of(Path(wrong), choice, silent)
        assert "TARGET/runner" in str(caught.value.hint)


def test_sizes_of_both(builds: Builds, checkout: Path, tmp_path: Path) -> None:
    """Each under its own name; ExecuTorch's by the regions of its own linker script."""
    words = ("size", f"{TARGET}/runner", "--executorch", checkout, "--firmware", "both")
    shown = hil(*words)
    assert shown.exit_code == 0, shown.output
    assert f"{TARGET}/runner [bundled]" in shown.output
    assert f"{TARGET}/runner [executorch " in shown.output
    said = json.loads(hil(*words, "--json").stdout)["firmware"]
    assert [each["source"] for each in said] == ["bundled", "executorch"]
    assert hil(*words, "--html", tmp_path / "x.html").exit_code == 2


def test_a_tree_is_there_or_said_not_to_be(builds: Builds, checkout: Path, tmp_path: Path) -> None:
    subject = Path(f"{TARGET}/runner")
    assert tree_of(tmp_path, FirmwareChoice()) == tmp_path
    with pytest.raises(UsageError, match=r"there is no build of .*/runner with firmware bundled"):
        tree_of(subject, FirmwareChoice())
    with pytest.raises(UsageError, match="--firmware both makes no sense here"):
        tree_of(subject, FirmwareChoice(SOURCES, checkout))
