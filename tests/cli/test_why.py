"""Protects the way from a verdict to its reason: the last record, its console, what to do next."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.judge import again
from harness.cli.main import main
from harness.cli.run import run
from harness.core.judgement import Cause, Judgement
from harness.core.verdict import Verdict
from harness.export.estimates import AREAS, Estimate, NpuCost, NpuOperator
from harness.export.exporter import ExporterFacts
from harness.export.program import CpuOperator, Delegation
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import Arithmetic, CheckoutFacts
from harness.log.events import OpTicks
from harness.run.directory import last_run, save_record
from harness.run.pipeline import RunOptions
from harness.run.record import FirmwareFacts, ProgramFacts, RunRecord
from tests.run.test_record import record


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(home: Path, name: str, one: RunRecord, console: str = "") -> Path:
    folder = home / "runs" / name
    folder.mkdir(parents=True)
    (folder / "console.log").write_text(console)
    save_record(replace(one, run_dir=str(folder)))
    return folder


def fault(line: int) -> RunRecord:
    said = judged(Cause("hard_fault", "HardFault, pc in main", line))
    return replace(record(verdict="FAULT"), judgement=said)


def judged(cause: Cause) -> Judgement:
    return Judgement(Verdict.FAULT, cause)


def why(*words: str) -> Result:
    return CliRunner().invoke(main, ["why", *words])


def test_the_npu_and_what_it_left_to_the_cpu_are_listed(home: Path) -> None:
    operators = tuple(NpuOperator("Conv2D", "t", f"l{n}", 10 * n, 1) for n in range(1, 8))
    summary = {"cycles_total": 280.0, "nn_macs": 7.0, "core_clock": 1e6, "cycles_npu": 280.0}
    summary |= {f"{a}_{of}": 0.0 for a in AREAS for of in ("memory_used", "total_bytes")}
    cost = NpuCost({}, (Estimate("ethos-u55-128", "c", "m", summary, operators),))
    sort = CpuOperator("sort", "head", "net.py", 7, "Not included", (1,))
    facts = ProgramFacts("p", "aa", "o", delegation=Delegation(2, (sort,)), npu_cost=cost)
    one = replace(
        record(), program=facts, first_ticks=(OpTicks(0, 0, "q", 10), OpTicks(0, 1, "sort", 30))
    )
    kept(home, "20260101-000000-add-aaaaaa", one)
    said = why().output
    assert "NPU       delegate 0: 280 cycles, 0.280 ms at 1 MHz" in said
    assert "70 cycles: Conv2D of layer l7\n" in said
    assert "30 cycles: 2 more (--json lists all)" in said
    assert "on CPU    sort (layer head, net.py:7): 75 % of the CPU's instructions; Not incl" in said
    told = json.loads(why("--json").output)
    assert told["on_cpu"][0]["share"] == 0.75
    assert told["npu_cost"]["estimates"][0]["operators"][0]["layer"] == "l1"


def test_a_fault_has_its_lines_and_what_to_do(home: Path) -> None:
    folder = kept(
        home, "20260101-000000-add-aaaaaa", fault(3), "one\ntwo\nthree\nfour\nfive\nsix\n"
    )
    said = why().output
    assert "hard_fault: a fault that no other handler took" in said
    assert "HardFault, pc in main" in said
    assert "console   1: one" in said
    assert "console   5: five" in said
    assert "6: six" not in said
    assert f"evidence  {folder}" in said
    assert "to do     look at the function of the fault" in said


CALLER = {"pc": "0x00000000", "lr_symbol": "work+0x8", "lr_source": "planted.c:61"}


@pytest.mark.parametrize(
    ("facts", "place"),
    [
        ({"pc_symbol": "work+0x4", "pc_source": "planted.c:60"}, "in work+0x4 (planted.c:60)"),
        ({"pc_symbol": "work+0x4"}, "in work+0x4"),
        (CALLER, "called from work+0x8 (planted.c:61)"),
    ],
)
def test_the_place_of_a_fault_is_a_line_of_its_own(
    home: Path, facts: dict[str, str], place: str
) -> None:
    """Function and source line, which the cause's sentence does not say."""
    cause = Cause("hard_fault", "HardFault", 1, facts)
    kept(home, "20260101-000000-add-aaaaaa", replace(fault(1), judgement=judged(cause)), "one\n")
    assert f"\n            {place}\n" in why().output


def test_a_fault_that_no_elf_explains_has_no_place(home: Path) -> None:
    cause = Cause("hard_fault", "HardFault", 1, {"pc": "0x00000000"})
    kept(home, "20260101-000000-add-aaaaaa", replace(fault(1), judgement=judged(cause)), "one\n")
    assert "            in " not in why().output


def test_the_newest_of_a_case(home: Path) -> None:
    """And of any case, where none is named."""
    old = kept(home, "20260101-000000-add-aaaaaa", record())
    other = replace(record(), case=replace(record().case, model="mul", name="mul"))
    new = kept(home, "20260102-000000-mul-bbbbbb", other)
    assert json.loads(why("--json").stdout)["run_dir"] == str(new)
    assert last_run(record().case.id).run_dir == str(old)
    assert last_run(str(old)).run_dir == str(old)


def test_a_record_that_is_damaged_is_not_another_ones(home: Path) -> None:
    kept(home, "20260101-000000-add-aaaaaa", record())
    folder = kept(home, "20260102-000000-add-bbbbbb", record())
    (folder / "record.json").write_text('{"case": [1]}')
    assert last_run(record().case.id).run_dir is not None
    assert why(record().case.id).exit_code == 0
    assert why().exit_code == 2


def test_a_console_that_is_gone(home: Path) -> None:
    folder = kept(home, "20260101-000000-add-aaaaaa", fault(3))
    (folder / "console.log").unlink()
    assert "HardFault, pc in main" in why(str(folder)).output


CHECKOUT = CheckoutFacts("/home/me/my executorch", "abc", "main", False, "", "hil")
EXPORTER = ExporterFacts(CHECKOUT.path, "abc", "main", False, "1.5", "1.5")
RUN = "hil run corstone-300-m55 ds_cnn --simulator qemu"


@pytest.mark.parametrize(
    ("source", "checkout", "exporter", "command"),
    [
        ("bundled", None, None, RUN),
        ("wheel", None, None, f"{RUN} --firmware wheel"),
        ("executorch", CHECKOUT, None, f"{RUN} --executorch '/home/me/my executorch'"),
        (
            "bundled",
            None,
            EXPORTER,
            f"{RUN} --executorch '{CHECKOUT.path}' --firmware bundled --exporter checkout",
        ),
    ],
)
def test_the_command_that_repeats_a_run_is_whole(
    source: str, checkout: CheckoutFacts | None, exporter: ExporterFacts | None, command: str
) -> None:
    program = ProgramFacts("p.pte", "aa", "tosa", exporter=exporter)
    firmware = FirmwareFacts("elf", "key", "id", "gcc", checkout)
    assert again(replace(record(), source=source, program=program, firmware=firmware)) == command


def test_the_options_of_a_run_are_repeated() -> None:
    """As `hil run` knows them: each word is one of its options."""
    options = RunOptions(
        pte=Path("a b.pte"),
        tolerance_lsb=1.5,
        oracle=Arithmetic.PYTHON,
        limit_factor=2.0,
        profile=True,
        isolate_export=True,
        accept_known_defects=("cat-of-channels-last",),
        firmware=FirmwareChoice(parts={"cmsis-nn": Path("/src/nn")}),
    )
    names = [word.partition("=")[0] for word in options.words]
    assert set(names) <= {name for option in run.params for name in option.opts}
    command = again(replace(record(), options=options.words))
    assert command == (
        f"{RUN} --part=cmsis-nn=/src/nn --accept-known-defect=cat-of-channels-last "
        "'--pte=a b.pte' --tolerance=1.5 --oracle=python --limit-factor=2.0 --profile "
        "--isolate-export"
    )
    assert RunOptions().words == ()


def test_node_data_needs_a_program(home: Path) -> None:
    kept(home, "20260101-000000-add-aaaaaa", record())
    refused = why("--node-data", str(home / "nodes"))
    assert refused.exit_code == 2
    assert "has no program: it ended before that" in " ".join(refused.output.split())
    assert not (home / "nodes").exists()
