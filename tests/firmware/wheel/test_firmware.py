"""ExecuTorch's own runtime on AArch64: the wheel is the real one, QEMU and the guest, too.

What is run: one small model in each lowering as a process in QEMU's user mode, and in two of them
in the guest on the whole machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.core.errors import ToolMissing, UsageError
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import Verdict
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.firmware.choice import FirmwareChoice, sources_of
from harness.firmware.source import BuildRequest, Firmware, source_named
from harness.firmware.sources.wheel import LIBRARIES, make_plan
from harness.run.pipeline import RunOptions, run_case, run_cases
from harness.run.record import RunRecord
from harness.run.subjects import export_cases
from harness.sim.run_files import WORK, output_base, output_name
from harness.sim.simulator import pick
from harness.system import toolchain
from tests.thorough import cases

A320 = "corstone-1000-a320"
# Of every kind that the kernels differ in: convolutions, one by channel, a reduction and a product.
MODEL = """
import torch
class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 8, 3, groups=8)
        self.last = torch.nn.Linear(8, 10)
    def forward(self, x):
        y = torch.relu(self.second(torch.relu(self.first(x))))
        return self.last(y.mean((2, 3)))
ModelUnderTest = Small()
torch.manual_seed(2)
ModelInputs = (torch.randn(1, 3, 16, 16),)
"""
# Of operators that our runner has, too.
SHARED = """
import torch
class Shared(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.only = torch.nn.Conv2d(3, 8, 3, padding=1)
    def forward(self, x, y):
        x = torch.nn.functional.leaky_relu(x)
        z = torch.clamp(self.only(x), 0.0, 6.0)
        return torch.softmax(z, -1), y * 0.5 + x
ModelUnderTest = Shared()
torch.manual_seed(2)
ModelInputs = (torch.randn(1, 3, 16, 16), torch.randn(1, 3, 16, 16))
"""
WHEEL = FirmwareChoice((source_named("wheel"),))
IN_THE_GUEST = ("portable-fp32", "xnnpack-int8")
pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(
        not all(
            map(
                shutil.which,
                ("aarch64-linux-gnu-g++", "qemu-aarch64-static", "qemu-system-aarch64"),
            )
        ),
        reason="needs aarch64-linux-gnu-g++, qemu-aarch64-static and qemu-system-aarch64",
    ),
]


@dataclass(frozen=True)
class Ran:
    """Each run is made once."""

    model: Path
    process: ExportProcess
    records: dict[tuple[str, str], RunRecord] = field(default_factory=dict)

    def record(self, simulator: str, lowering: str) -> RunRecord:
        if (simulator, lowering) not in self.records:
            case = Case(f"{A320}@{lowering}", str(self.model))
            options = RunOptions(simulator, firmware=WHEEL)
            (self.records[simulator, lowering],) = run_exported([case], options, self.process)
        return self.records[simulator, lowering]


@pytest.fixture(scope="module", autouse=True)
def _no_references(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_REFERENCES", str(tmp_path_factory.mktemp("references")))
        yield


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, hil_export_process: ExportProcess) -> Ran:
    model = tmp_path_factory.mktemp("model") / "small.py"
    model.write_text(MODEL)
    return Ran(model, hil_export_process)


def run_exported(cases: list[Case], options: RunOptions, process: ExportProcess) -> list[RunRecord]:
    """Runs the cases, whose programs this session's process has put in the cache."""
    export_cases(cases, {case.target: load_target(case.target) for case in cases}, process=process)
    return run_cases(cases, options)


@pytest.fixture(scope="module")
def firmware() -> Firmware:
    return source_named("wheel").build(BuildRequest(load_target(A320), SimulatorName.QEMU))


def outputs(record: RunRecord) -> list[bytes]:
    assert record.run_dir is not None
    work = Path(record.run_dir) / WORK
    return [(work / output_name(output_base(number), 0)).read_bytes() for number in range(3)]


@pytest.mark.parametrize(
    "lowering", cases("portable-int8", "xnnpack-int8", thorough=["portable-fp32", "xnnpack-fp32"])
)
def test_it_passes_in_user_mode_and_in_the_guest_with_the_same_bytes(
    ran: Ran, lowering: str
) -> None:
    """Against PyTorch within the tolerance, against each other without one."""
    record = ran.record("qemu_user", lowering)
    assert record.verdict is Verdict.PASS, record.cause
    assert record.source == "wheel"
    assert record.program is not None
    assert "ExecuTorch's runtime on this machine" in record.program.oracle
    made = outputs(record)
    assert len(set(made)) == 3, "three input sets"
    if lowering in IN_THE_GUEST:
        in_the_guest = ran.record("qemu", lowering)
        assert in_the_guest.verdict is Verdict.PASS, in_the_guest.cause
        assert outputs(in_the_guest) == made


@pytest.mark.parametrize("simulator", ["qemu_user", "qemu"])
def test_a_record_says_whose_runtime_and_memory_it_was(ran: Ran, simulator: str) -> None:
    """The guest counts its memory; the emulator's is nobody's."""
    record = ran.record(simulator, "xnnpack-int8")
    assert any(
        note.startswith("the runtime and the kernels are those of executorch-")
        for note in record.judgement.notes
    )
    assert record.title.endswith("[wheel]")
    assert ("vm_hwm" in record.metrics) == (simulator == "qemu")
    assert record.metrics["method_allocator_planned"] > 0


def exported(ran: Ran, lowering: str) -> tuple[Case, Program]:
    case = Case(f"{A320}@{lowering}", str(ran.model))
    (program,) = export_cases([case], {case.target: load_target(case.target)})
    assert isinstance(program, Program)
    return case, program


@pytest.mark.parametrize(
    "lowering", cases("portable-int8", "xnnpack-int8", thorough=["portable-fp32"])
)
def test_a_wrong_answer_is_found(
    ran: Ran, firmware: Firmware, lowering: str, tmp_path: Path
) -> None:
    """One element of one set, off by twice the tolerance and by half of it."""
    case, program = exported(ran, lowering)
    folder = tmp_path / "program"
    shutil.copytree(program.directory, folder)
    tolerance = load_target(case.target).budgets.tolerance_lsb
    scale = program.outputs[0].scale
    assert scale is not None
    given = outputs(ran.record("qemu_user", lowering))[1]
    file = folder / program.sets[1].expected[0]
    chosen = pick(load_target(case.target), "qemu_user")
    for share, verdict in ((2.0, Verdict.MISMATCH), (0.5, Verdict.PASS)):
        values = np.frombuffer(given, np.float32).copy()
        values[3] += share * tolerance * scale
        file.write_bytes(values.tobytes())
        planted = replace(program, directory=folder)
        record = run_case(case, chosen, planted, firmware, RunOptions())
        assert record.verdict is verdict, record.cause
        if verdict is Verdict.MISMATCH:
            assert record.cause is not None
            assert record.cause.facts is not None
            assert (record.cause.facts["input_set"], record.cause.facts["index"]) == (1, [0, 3])


def test_a_dead_program_is_a_fault_with_executorch_s_own_words(
    ran: Ran, firmware: Firmware, tmp_path: Path
) -> None:
    """Cut in its middle, damaged in the delegate's own part, and one that it does not open."""
    case, program = exported(ran, "xnnpack-int8")
    content = program.pte_path.read_bytes()
    chosen = pick(load_target(case.target), "qemu_user")
    xnnpack = content.index(b"XH00")  # of the delegate's own header
    for name, planted, said in (
        ("cut.pte", content[: len(content) // 2], ""),
        ("damaged.pte", content[:xnnpack] + b"XXXX" + content[xnnpack + 4 :], ""),
        ("bundle.bpte", content, "is a bundled program, which this runner does not open"),
    ):
        dead = tmp_path / name
        dead.write_bytes(planted)
        record = run_case(case, chosen, program, firmware, RunOptions(pte=dead))
        assert record.verdict is Verdict.FAULT, record.cause
        assert record.cause is not None
        assert record.cause.line is not None
        assert said in record.cause.text


def test_our_runner_and_executorch_s_on_one_program(
    tmp_path: Path, hil_export_process: ExportProcess
) -> None:
    """Where both have the operators: sums within the tolerance of each other, with the operator
    where that begins, and what adds nothing up the same to the bit. The first of them is one that
    our runner has only for programs that call it."""
    model = tmp_path / "shared.py"
    model.write_text(SHARED)
    choice = FirmwareChoice(sources_of("bundled+wheel"))
    ours, theirs = run_exported(
        [Case(f"{A320}@portable-fp32", str(model))],
        RunOptions("qemu_user", firmware=choice),
        hil_export_process,
    )
    assert (ours.verdict, theirs.verdict) == (Verdict.PASS, Verdict.PASS), (
        ours.cause,
        theirs.cause,
    )
    found = theirs.differential
    assert found is not None
    softmax, scaled = found.tensors[0::2], found.tensors[1::2]
    assert all(diff.exact for diff in scaled)
    assert all(diff.within(1) for diff in softmax)
    assert found.first is not None
    assert "aten::convolution.out" in str(found.first)


def test_only_targets_with_linux_have_it() -> None:
    with pytest.raises(
        UsageError, match="for Linux on AArch64; corstone-300-m55 has no Linux"
    ) as e:
        make_plan(load_target("corstone-300-m55"))
    assert "corstone-1000-" in str(e.value.hint)


def test_without_the_compiler_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is fetched."""
    monkeypatch.setattr(toolchain.shutil, "which", lambda name, **_: None)
    monkeypatch.setattr(toolchain, "install", lambda package: False)
    with pytest.raises(ToolMissing) as e:
        source_named("wheel").build(BuildRequest(load_target(A320), SimulatorName.QEMU))
    assert e.value.package == "g++-aarch64-linux-gnu"


def test_it_is_built_once_with_all_that_it_loads(firmware: Firmware) -> None:
    target = load_target(f"{A320}@xnnpack-int8")
    again = source_named("wheel").build(BuildRequest(target, pick(target).name))
    assert (again.key, again.target) == (firmware.key, target.name)
    assert {path.name for path in firmware.images[1:]} == set(LIBRARIES)
    assert not firmware.one_set_per_process
    assert firmware.regions == ()
