"""Planted faults on an Ethos-U target: each ends in its own verdict, and none in PASS."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.core.errors import HarnessError, InfraError
from harness.export.program import Program
from harness.firmware.sources.bundled import build
from harness.formats.pte import CuttableProgram
from harness.npu.blob import find_blobs, read_blob
from harness.npu.doorbell import Outcome, Result, Run
from harness.npu.errors import EthosUError, Unsupported
from harness.npu.model import Network, npu
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.run.subjects import export_cases
from harness.sim import companion
from harness.sim.simulator import pick
from harness.system import paths
from harness.system.confine import why_not
from harness.system.paths import data_root, runs_dir

pytestmark = pytest.mark.u55
TARGET = "corstone-300-u55-128"
OTHER_MACS = "corstone-300-u55-256"
MODEL = "linear"


def exported(target: str, model: str = MODEL) -> Program:
    (program,) = export_cases([Case(target, model)], {target: load_target(target)})
    assert not isinstance(program, HarnessError), program
    return program


def run(program: Program, target: str = TARGET, **options: object) -> RunRecord:
    chosen = pick(load_target(target), "qemu")
    firmware = build(chosen.target)
    wanted = RunOptions(**options)  # type: ignore[arg-type]
    return run_case(Case(target, program.model), chosen, program, firmware, wanted)


def told(record: RunRecord) -> tuple[str, str]:
    cause = record.cause
    return record.verdict.name, "" if cause is None else cause.kind


def text(record: RunRecord) -> str:
    assert record.cause is not None
    return record.cause.text


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Put another model in place of the NPU's, here instead of in a process of its own."""

    class Process:
        def __init__(self, run: Run) -> None:
            self._run = run

        def __call__(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
            return self._run(commands, regions)

        def __enter__(self) -> Process:
            return self

        def __exit__(self, *_: object) -> None:
            self.stop()

        def stop(self) -> None:
            pass

    def put(run: Run) -> None:
        monkeypatch.setattr(companion, "NpuProcess", lambda *_: Process(run))

    return put


def test_the_unharmed_program_passes_and_its_npu_worked() -> None:
    """What the faults below are planted into; the model ran one delegate per input set."""
    record = run(exported(TARGET))
    assert told(record) == ("PASS", "")
    assert record.npu is not None
    assert record.npu.jobs == len(exported(TARGET).sets)
    assert record.npu.stop is None
    assert record.simulator is not None
    assert record.simulator.confined == (why_not() is None)


def test_a_program_for_another_mac_count_fails_as_the_driver_does() -> None:
    record = run(exported(OTHER_MACS))
    assert record.verdict.name == "FAULT"
    assert "NPU config mismatch. npu.macs_per_cc=7, optimizer.macs_per_cc=8" in text(record)
    assert record.npu is not None
    assert record.npu.jobs == 0


def test_a_program_for_another_product_fails_as_the_driver_does() -> None:
    record = run(exported("corstone-320-u85-256"))
    assert record.verdict.name == "FAULT"
    assert "npu.product=0, optimizer.product=2" in text(record)


def test_a_program_for_a_memory_mode_with_fast_scratch_faults_without_it() -> None:
    """Compiled for a dedicated SRAM, run where the board gives the NPU none of its own."""
    dedicated = exported("corstone-300-u65-256", "ds_cnn")
    assert told(run(dedicated, "corstone-300-u65-256")) == ("PASS", "")
    record = run(dedicated, "corstone-300-u65-256@Shared_Sram")
    assert told(record) == ("FAULT", "npu_fault")
    assert "region 2" in text(record)


def changed(program: Program, folder: Path) -> Path:
    """The .pte with the first bit of its weights flipped that changes results and no more."""
    raw = program.pte_path.read_bytes()
    (blob,) = find_blobs(raw)
    weights = read_blob(blob).weights
    at, start = raw.index(blob), blob.index(weights)
    inputs = [(program.directory / n).read_bytes() for n in program.delegates[0].sets[0].inputs]
    right = Network(blob).run(inputs)[0]
    for offset in range(start, start + len(weights)):
        wrong = bytearray(blob)
        wrong[offset] ^= 0x10
        try:
            if Network(bytes(wrong)).run(inputs)[0] == right:
                continue
        except EthosUError:
            continue
        file = folder / "changed.pte"
        file.write_bytes(raw[:at] + bytes(wrong) + raw[at + len(blob) :])
        return file
    raise AssertionError("no bit of the weights matters")


def test_a_flipped_weight_is_a_mismatch_that_names_its_element(tmp_path: Path) -> None:
    program = exported(TARGET)
    record = run(program, pte=changed(program, tmp_path))
    assert told(record) == ("MISMATCH", "outputs_differ")
    assert "first: delegate 0, input set 0: " in text(record)
    assert "on the NPU and" in text(record)
    assert record.run_dir is not None
    again = judge_again(Path(record.run_dir))
    assert again.judgement == record.judgement


def test_a_difference_outside_the_npu_is_said_to_be_outside(tmp_path: Path) -> None:
    """The delegates agree with TOSA; what was expected of the whole program is wrong."""
    program = exported(TARGET)
    folder = tmp_path / "program"
    shutil.copytree(program.directory, folder)
    planted = replace(program, directory=folder)
    file = folder / program.sets[0].expected[0]
    file.write_bytes(bytes(byte ^ 0x41 for byte in file.read_bytes()))
    record = run(planted)
    assert told(record) == ("MISMATCH", "outputs_differ")
    assert "every delegate computes what TOSA does" in text(record)


def test_nobody_at_the_doorbell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(companion, "serving", lambda *_: nullcontext())
    record = run(exported(TARGET))
    assert record.verdict.name == "FAULT"
    assert "the NPU stand-in does not answer" in text(record)


def test_an_npu_that_never_answers_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest waits, nobody computes: a stall, which does not take the host limit."""

    @contextmanager
    def silent(work: Path, *_: object) -> Iterator[None]:
        with doorbell_pair(work):
            yield

    monkeypatch.setattr(companion, "serving", silent)
    record = run(exported(TARGET), limit_factor=0.1)
    assert told(record) == ("HANG", "stall")


@contextmanager
def doorbell_pair(work: Path) -> Iterator[None]:
    """Both FIFOs, open, and nobody who reads the one or writes to the other."""
    names = [work / "npu-request", work / "npu-answer"]
    for name in names:
        os.mkfifo(name)
    files = [os.open(name, os.O_RDWR) for name in names]
    try:
        yield
    finally:
        for file in files:
            os.close(file)


def test_a_slow_model_is_not_a_hang(model: Callable[[Run], None]) -> None:
    """QEMU is silent and idle for longer than the stall limit, while the host computes."""
    true = npu("u55", 128)

    def slow(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        time.sleep(1.5)
        return true(commands, regions)

    model(slow)
    record = run(exported(TARGET), limit_factor=0.05)  # stall after 1 s
    assert told(record) == ("PASS", "")


def test_what_the_model_does_not_know_is_not_a_verdict(model: Callable[[Run], None]) -> None:
    """The program may be fine: the verdict names register and offset, and blames nobody."""

    def unsupported(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        error = Unsupported("OFM_SCALE", 7, 0x24, "planted")
        return Outcome(Result.UNSUPPORTED, error.message, status=0)

    model(unsupported)
    record = run(exported(TARGET))
    assert told(record) == ("NO_VERDICT", "npu_unsupported")
    assert "OFM_SCALE = 7 is not verified: planted (command at byte 0x24" in text(record)


def test_a_model_that_fails_is_our_fault(model: Callable[[Run], None]) -> None:
    def broken(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        raise IndexError("planted")

    model(broken)
    record = run(exported(TARGET))
    assert told(record) == ("INFRA", "npu_model")
    assert "IndexError: planted" in text(record)


def test_the_shared_memory_leaves_nothing_behind(model: Callable[[Run], None]) -> None:
    """It has no name while the run goes on, and afterwards it is not mapped any more."""
    seen: list[list[str]] = []
    true = npu("u55", 128)

    def look(commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        seen.extend(sorted(os.listdir(work)) for work in runs_dir().glob("*/work"))
        assert "memfd:ddr" in Path("/proc/self/maps").read_text()
        return true(commands, regions)

    model(look)
    record = run(exported(TARGET))
    assert told(record) == ("PASS", "")
    assert record.run_dir is not None
    assert not list(Path(record.run_dir).glob("work/npu-*"))
    assert "memfd:ddr" not in Path("/proc/self/maps").read_text()
    assert seen
    assert not any("ddr" in name for names in seen for name in names)


def test_no_memory_to_share_is_an_error_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(companion, "SharedMemory", full)
    with pytest.raises(InfraError, match="memory that the NPU's model shares: Cannot allocate"):
        run(exported(TARGET))


TWO_OUTPUTS = """
import torch
class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = (torch.nn.Conv2d(3, 3, 3, padding=1) for _ in range(2))
    def forward(self, x):
        x = self.first(x)
        return torch.sigmoid(x), self.second(x)
torch.manual_seed(3)
ModelUnderTest = Two().eval()
ModelInputs = (torch.randn(1, 3, 6, 5),)
"""
COPY_OUTPUT = "copy_output(scratch.data() + io.offset, io, args[inputs + i]->tensor);"


def test_two_outputs_that_the_runner_exchanges_are_its_backend_s_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both values are in the graph, each at the place of the other: what dequantises one of them
    gets what was meant for its neighbour, and does with it what it should."""
    (tmp_path / "two.py").write_text(TWO_OUTPUTS)
    case = Case(TARGET, str(tmp_path / "two.py"))
    program = exported(TARGET, case.model)
    (delegate,) = program.delegates
    assert len(delegate.outputs) == 2
    assert delegate.outputs[0].nbytes == delegate.outputs[1].nbytes
    (call,) = (s for s in CuttableProgram(program.pte_path, [2]).instructions() if s.is_delegate)
    assert call.values == call.arguments[-2:]
    root = tmp_path / "edited"
    for folder in ("targets", "cmake"):
        shutil.copytree(data_root() / folder, root / folder)
    edited = root / "targets/runner/ethosu/in_scratch.cpp"
    text = edited.read_text()
    assert text.count(COPY_OUTPUT) == 1
    other = COPY_OUTPUT.replace("inputs + i]", "args.size() - 1 - i]")
    edited.write_text(text.replace(COPY_OUTPUT, other))
    chosen = pick(load_target(TARGET), "qemu")
    with monkeypatch.context() as patched:
        patched.setattr(paths, "data_root", lambda: root)
        firmware = build(chosen.target)
    record = run_case(case, chosen, program, firmware, RunOptions())
    assert told(record) == ("MISMATCH", "outputs_differ")
    assert record.blame is not None
    assert record.blame.culprit == "the bundled runner's backend"
    assert record.blame.text == (
        "the bundled runner's backend, not your model: output 0 is output 1 and output 1 is "
        "output 0 of the delegate; what the operator reads is right"
    )
    assert "(delegate EthosUBackend)" in (record.mismatch_at or "")


REORDERED = """
import torch
class Unshuffle(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 16, 1)
    def forward(self, x):
        b, c, h, w = (y := self.conv(x)).shape
        return torch.sigmoid(y.reshape(b, c, h // 2, 2, w // 2, 2).permute(0, 3, 5, 2, 4, 1))
torch.manual_seed(5)
ModelUnderTest = Unshuffle().eval()
ModelInputs = (torch.rand(1, 3, 8, 8),)
"""


def test_what_the_model_cannot_verify_may_be_a_known_defect_of_the_compiler(
    tmp_path: Path,
) -> None:
    """A window of one element with padding of twelve, for a transpose before an activation."""
    (tmp_path / "reordered.py").write_text(REORDERED)
    case = Case(TARGET, str(tmp_path / "reordered.py"))
    chosen = pick(load_target(TARGET), "qemu")
    program = exported(TARGET, case.model)
    record = run_case(case, chosen, program, build(chosen.target), RunOptions())
    assert told(record) == ("NO_VERDICT", "npu_unsupported")
    assert record.blame is not None
    assert record.blame.facts["defect"] == "reordered-before-activation"
    assert "the compiler (Vela 5.1.0), not your model: known defect" in text(record)


def test_nobody_is_blamed_for_an_operation_that_nobody_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program may be right."""
    monkeypatch.setattr("harness.judge.blame._of_stream", lambda _, __, blame, ___: blame)
    (tmp_path / "reordered.py").write_text(REORDERED)
    case = Case(TARGET, str(tmp_path / "reordered.py"))
    chosen = pick(load_target(TARGET), "qemu")
    program = exported(TARGET, case.model)
    record = run_case(case, chosen, program, build(chosen.target), RunOptions())
    assert told(record) == ("NO_VERDICT", "npu_unsupported")
    assert record.blame is None
    assert "whose fault" not in text(record)
