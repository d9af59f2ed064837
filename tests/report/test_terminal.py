"""Protects what a terminal says of a fault: its place is a line of its own."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.config.case import Case
from harness.config.models import find_model
from harness.core.errors import BuildError, UsageError
from harness.core.judgement import Cause, Judgement
from harness.core.verdict import Verdict
from harness.export.estimates import Estimate, NpuCost, NpuOperator
from harness.export.failures import LoweringDiffers
from harness.export.program import CpuOperator, Delegation, OutputAccuracy, Witnessed
from harness.export.request import ExportRequest
from harness.log.events import OpTicks
from harness.report.safe_console import Terminal
from harness.report.terminal import (
    fault_details,
    fault_place,
    print_profile,
    print_records,
    write_profile,
)
from harness.run.record import ProgramFacts, RunRecord, failed_record
from tests.run.test_record import record

PC = {"pc": "0x10000104", "pc_symbol": "work+0x4", "pc_source": "planted.c:60"}
LR = {"lr": "0x10000108", "lr_symbol": "run+0x8", "lr_source": "planted.c:71"}


def shown(text: str, facts: dict[str, str]) -> list[str]:
    console = Console(record=True, width=100)
    judgement = Judgement(Verdict.FAULT, Cause("hard_fault", text, 3, facts))
    print_records(console, [replace(record(verdict="FAULT"), judgement=judgement)])
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.mark.parametrize(
    ("facts", "place"),
    [
        (PC | LR, "in work+0x4 (planted.c:60)"),
        ({"pc_symbol": "work+0x4"}, "in work+0x4"),
        ({"pc": "0x00000000"} | LR, "called from run+0x8 (planted.c:71)"),
        (PC | {"which": "Division by zero"}, "Division by zero, in work+0x4 (planted.c:60)"),
        (
            PC | LR | {"assertion": "a == b", "reason": "4"},
            "in run+0x8 (planted.c:71)",
        ),  # pc is in its handler
    ],
)
def test_function_and_source_line_of_a_fault(facts: dict[str, str], place: str) -> None:
    """Of the caller, where the CPU jumped to nowhere: pc = 0 is no source line."""
    lines = shown("HardFault", facts)
    assert lines[lines.index("  HardFault") + 1] == f"  {place}"


def test_the_estimate_of_the_npu_has_a_column_that_says_whose_it_is() -> None:
    console = Console(record=True, width=120)
    slow = replace(record(), metrics={"npu_cycles_estimated": 108_145})
    print_records(console, [slow, record()])
    title, heads, *rows = console.export_text().splitlines()
    assert "npu kcyc estimated by Vela" in title
    assert heads.endswith("npu kcyc")
    assert [row.split()[-1] for row in rows[:2]] == ["108.1", "-"]
    plain = Console(record=True, width=120)
    print_records(plain, [record()])
    assert "npu kcyc" not in plain.export_text()


def profiled(layers: int) -> RunRecord:
    operators = tuple(
        NpuOperator("Conv2D", "t", f"l{n}", 100 - n, 1) for n in range(layers) for _ in range(2)
    )
    cost = NpuCost({}, (Estimate("ethos-u55-128", "c", "m", {"cycles_total": 1.0}, operators),))
    pool = CpuOperator("avg_pool2d", "pool", None, None, "", (2,), (1,))
    facts = ProgramFacts("p", "aa", "o", delegation=Delegation(1, (pool,)), npu_cost=cost)
    names = ("EthosUBackend", "cortex_m::dequantize_per_tensor.out", "aten::avg_pool2d.out")
    ticks = tuple(OpTicks(0, n, name, 10 * n + 10) for n, name in enumerate(names))
    return replace(record(), program=replace(facts, layers=("", "", "pool")), first_ticks=ticks)


def test_a_profile_has_the_layers_that_matter_in_two_columns() -> None:
    console = Console(record=True, width=80)
    print_profile(console, [profiled(2)])
    text = console.export_text()
    lines = [line.split() for line in text.splitlines()]
    assert lines[1] == ["layer", "operator", "instructions", "share", "npu", "cycles", "share"]
    assert ["l0", "Conv2D", "x2", "200", "50.3%"] in lines
    assert ["pool", "avg_pool2d", "30", "50.0%"] in lines
    assert ["pool", "dequantize_per_tensor", "20", "33.3%"] in lines
    assert ["delegate", "0", "EthosUBackend", "10", "16.7%"] in lines
    assert "Vela's estimate" in text


def test_a_long_profile_is_cut_and_json_is_not() -> None:
    console = Console(record=True, width=80)
    print_profile(console, [profiled(40)])
    assert "28 more rows: --json has all" in console.export_text()
    assert len(profiled(40).summary()["profile"]) == 43
    print_profile(console, [record()])
    assert console.export_text() == "", "nothing was counted"


def test_a_profile_is_drawn_with_every_layer(tmp_path: Path) -> None:
    file = tmp_path / "profile.html"
    evil = NpuOperator("<script>", "t", "l", 1, 1)
    one = profiled(40)
    assert one.program is not None
    assert one.program.npu_cost is not None
    (estimate,) = one.program.npu_cost.estimates
    more = replace(estimate, operators=(*estimate.operators, evil))
    cost = replace(one.program.npu_cost, estimates=(more,))
    write_profile(file, replace(one, program=replace(one.program, npu_cost=cost)))
    page = file.read_text()
    assert page.count("<tr>") == 45
    assert "l39" in page
    assert "<script>" not in page
    with pytest.raises(UsageError, match="nobody counted"):
        write_profile(file, record())


def test_a_place_that_the_cause_names_is_not_repeated() -> None:
    lines = shown("HardFault in work+0x4 (planted.c:60)", PC)
    assert not [line for line in lines if line.startswith("  in ")]


def test_a_fault_that_no_elf_explains_has_no_place() -> None:
    assert fault_place({"pc": "0x00000000", "lr": "0x1"}) is None


def test_a_reset_loop_says_what_came_before_and_what_can_reset() -> None:
    facts = {"boots": "3", "above": "meter starts", "resets": "sys_reboot"}
    assert fault_details(facts) == (
        "the last line before the banner: meter starts, of what can reset the board the firmware "
        "has sys_reboot"
    )
    assert fault_details({"boots": "3", "above": ""}) is None


@pytest.mark.parametrize(
    ("confined", "reason", "said"),
    [
        (True, None, "on qemu 7.2;"),
        (True, "no filter for system calls", "on qemu 7.2, confined in part;"),
        (False, "no bwrap", "on qemu 7.2, not confined;"),
    ],
)
def test_how_far_a_guest_was_confined(confined: bool, reason: str | None, said: str) -> None:
    console, run = Console(record=True, width=100), record()
    assert run.simulator is not None
    simulator = replace(run.simulator, confined=confined, unconfined_reason=reason)
    print_records(console, [replace(run, simulator=simulator)])
    assert said in console.export_text()


def accurate(*sqnr_db: float) -> RunRecord:
    outputs = tuple(OutputAccuracy(f"output{n}", 3, db, 1.0, 0.02) for n, db in enumerate(sqnr_db))
    worst = [{"lsb": 2.0, "set": 1, "element": [3]}]
    eager = ({"name": "quantised eager model", "worst": worst},)
    facts = ProgramFacts("p.pte", "aa", "o", eager, accuracy=outputs, witness=Witnessed(9, 8, 1))
    return replace(record(), program=facts, worst_lsb=0.0)


def test_the_table_has_the_accuracy_of_the_worst_output() -> None:
    console = Console(record=True, width=100)
    print_records(console, [accurate(38.25, 24.125), record()])
    heads, first, second = (line.split() for line in console.export_text().splitlines()[1:4])
    assert heads[2:5] == ["LSB", "eager", "dB"]
    assert first[2:5] == ["0", "2", "24.1"]
    assert second[2:5] == ["-", "-", "-"]


@pytest.mark.parametrize(("sqnr_db", "bold"), [(9.9, True), (10.0, False)])
def test_a_low_accuracy_stands_out(sqnr_db: float, bold: bool) -> None:
    console = Console(record=True, width=100, force_terminal=True, color_system="standard")
    print_records(console, [accurate(sqnr_db)])
    assert (f"\x1b[1;33m{sqnr_db:.3g}" in console.export_text(styles=True)) == bold


FIGURES = {
    "pte_bytes": 53_600,
    "elf_text": 103_856,
    "method_allocator_planned": 20_464,
    "stack_high_water": 3328,
    "ticks_set0": 134_157_700,
}


def rows_at(width: int | None, *models: str) -> list[str]:
    """The heads and the rows, the second of the widest verdict."""
    console = Console(record=True, width=width) if width else Terminal(file=StringIO(), record=True)
    wide = record(verdict="EXPORT_ERROR")
    runs = [replace(accurate(24.0), metrics=FIGURES), wide]
    cases = [Case("corstone-300-m55", model) for model in models]
    print_records(console, [replace(r, case=c) for r, c in zip(runs, cases, strict=True)])
    return [line.rstrip() for line in console.export_text().splitlines()[1:4]]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_names_and_verdicts_are_whole_at_every_width(width: int) -> None:
    """Figures are left out from the right, whole ones."""
    heads, *rows = rows_at(width, "ds_cnn", "resnet8")
    assert [row.split()[0] for row in rows] == ["ds_cnn", "resnet8"]
    assert ["PASS" in rows[0], "FAIL EXPORT_ERROR" in rows[1]] == [True, True]
    assert max(map(len, rows)) <= width
    assert (heads.split()[-1] == "instr") == (width >= 80)
    numbers = ["53600", "103856", "20464", "3328", "134157700"]
    assert set(rows[0].split()[5:]) <= set(numbers)


def test_a_long_name_is_cut_at_its_left() -> None:
    long = f"{'deep/' * 20}classifier_of_birds.py"
    name = rows_at(60, long, "ds_cnn")[1].split()[0]
    assert name.startswith("\N{HORIZONTAL ELLIPSIS}")
    assert name.endswith("_of_birds.py")


def test_a_pipe_folds_and_leaves_out_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # whoever sets it is obeyed
    folder = "a_folder_of_a_long_name/" * 8
    heads, first, _ = rows_at(None, f"{folder}mine.py", "ds_cnn")
    assert first.startswith(f"{folder}mine.py PASS") or f"{folder}mine.py  PASS" in first
    assert heads.split()[-1] == "instr"


def test_a_note_of_all_runs_is_said_without_their_names() -> None:
    def notes(*runs: RunRecord) -> list[str]:
        console = Console(record=True, width=200)
        print_records(console, runs)
        return [x for x in console.export_text().splitlines() if x.startswith("note: no reference")]

    noted = replace(record(), judgement=Judgement(Verdict.PASS, None, ("no reference",)))
    assert notes(noted, noted) == ["note: no reference"]
    assert notes(noted, record()) == ["note: no reference (ds_cnn)"]


def test_a_lowering_that_differs_is_reported_whole() -> None:
    error = LoweringDiffers(
        ExportRequest(find_model("ds_cnn"), "cortex-m55"),
        ["add"],
        "stage.add",
        ("mine.py", 12),
        (7.0, 1.0, (0, 3), 1),
        "ExecuTorch's passes (AtenToCortexMPass)",
        "`layout: explicit`",
    )
    console = Console(record=True, width=60)
    print_records(console, [failed_record(record().case, error)])
    shown = console.export_text()
    assert "computes add (layer stage.add, mine.py:12) otherwise than the quantised model" in shown
    assert "`layout: explicit` in the model's YAML file helps" in shown


def test_what_stops_a_build_is_printed_once() -> None:
    """A Kconfig failure is that of every model of the target."""
    console = Console(record=True, width=100)
    error = BuildError("CONFIG_EXECUTORCH was set to y and got n", hint="add the module")
    records = [failed_record(Case("a-board", name), error) for name in ("one", "two")]
    print_records(console, [*records, failed_record(Case("a-board", "x"), BuildError("y"))])
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert sum("CONFIG_EXECUTORCH" in line for line in lines) == 1
    assert any(line.startswith("a-board/one, a-board/two: FAIL BUILD_ERROR") for line in lines)
    assert any(line.startswith("a-board/x: FAIL BUILD_ERROR") for line in lines)
