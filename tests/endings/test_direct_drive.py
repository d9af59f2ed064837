"""Direct drive that goes wrong, as a user would see it: in the guest, whose kernel has the driver,
and with the driver in the runner itself."""

from __future__ import annotations

import hashlib
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tosa_reference_model", reason="needs Vela and tosa-tools")

from harness.config.case import Case
from harness.config.loading import load_target
from harness.export.program import InputSet, Program, TensorSpec
from harness.firmware.sources.bundled import build
from harness.npu.blob import IoTensor, read_actions, read_blob
from harness.npu.doorbell import Outcome
from harness.npu.npu_process import NpuProcess
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim import companion
from harness.sim.simulator import pick
from tests.direct_drive.programs import Array, program_of
from tests.npu import assembling
from tests.npu.tosa_cases import APART, COP2, TosaCase, results
from tests.npu.tosa_graph import INT32, Graph, attributes, compile_tosa

_HAS_GUEST = shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-system-aarch64")
_HOST, _GUEST = "host-u85-256", "corstone-1000-u85-256"
_OF_THE_GUEST = (
    pytest.mark.corstone1000,
    pytest.mark.skipif(not _HAS_GUEST, reason="needs the compiler and QEMU of AArch64"),
)
TARGETS = [_HOST, pytest.param(_GUEST, marks=_OF_THE_GUEST)]
# What the runner itself says, and what a push asks of the guest's driver in test_driver.
THE_GUEST_EACH_NIGHT = [_HOST, pytest.param(_GUEST, marks=[*_OF_THE_GUEST, pytest.mark.thorough])]
U85, DIRECT = "ethos-u85-256", (COP2, APART)


@pytest.fixture(autouse=True)
def no_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was accepted is of another program than these."""
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))


def difference() -> TosaCase:
    """The difference of two tensors: their order would show."""
    graph = Graph()
    one, other = (graph.input((1, 5, 7, 3), INT32) for _ in range(2))
    graph.output(graph.op("SUB", (one, other), (1, 5, 7, 3), INT32, attributes("Sub")))
    inputs = tuple(graph.sample(np.random.default_rng(15)))
    return TosaCase("difference", 0, U85, graph.serialise(), inputs)


def program(folder: Path, blob: bytes, specs: Mapping[str, bytes] | None = None) -> Program:
    """One delegate, and nothing on the CPU."""
    case = difference()
    expected = results(case)
    folder.mkdir(exist_ok=True)
    pte = program_of(blob, case.inputs, expected, specs)
    (folder / "program.pte").write_bytes(pte)
    return Program(
        directory=folder,
        model="add",
        compile_target=U85,
        pte="program.pte",
        pte_sha256=hashlib.sha256(pte).hexdigest(),
        oracle="TOSA",
        inputs=_kept(folder, "i", case.inputs),
        outputs=_kept(folder, "o", expected),
        sets=(InputSet(("i0.bin", "i1.bin"), ("o0.bin",)),),
        operators=(),
        versions={},
        direct_drive=True,
    )


def _kept(folder: Path, stem: str, values: Sequence[Array]) -> tuple[TensorSpec, ...]:
    for index, value in enumerate(values):
        (folder / f"{stem}{index}.bin").write_bytes(value.tobytes())
    return tuple(
        TensorSpec(f"{stem}{index}", "int32", value.shape, tuple(range(value.ndim)), 1.0, 0)
        for index, value in enumerate(values)
    )


def run(target: str, given: Program) -> RunRecord:
    """``pytest -rP`` shows how long the verdict took when its cause was on the console."""
    chosen = pick(load_target(target))
    firmware = build(chosen.target)
    started = time.monotonic()
    record = run_case(Case(target, "add"), chosen, given, firmware, RunOptions())
    cause = record.seconds.get("cause", 0.0)
    late = time.monotonic() - started - cause
    print(f"{target}: {told(record)}, its cause at {cause:.3f} s, and {late:.3f} s later")
    return record


def told(record: RunRecord) -> tuple[str, str]:
    return record.verdict.name, "" if record.cause is None else record.cause.kind


def said(record: RunRecord) -> str:
    """Everything on the console."""
    assert record.run_dir is not None
    return (Path(record.run_dir) / "console.log").read_text("utf-8", "replace")


@pytest.mark.parametrize("target", THE_GUEST_EACH_NIGHT)
def test_what_the_faults_are_planted_into(target: str, tmp_path: Path) -> None:
    record = run(target, program(tmp_path, compile_tosa(difference().tosa, U85, DIRECT)))
    assert told(record) == ("PASS", ""), record.cause
    assert record.npu is not None
    assert record.npu.jobs == 1


@pytest.mark.parametrize("target", TARGETS)
def test_another_mac_count(target: str, tmp_path: Path) -> None:
    blob = compile_tosa(difference().tosa, "ethos-u85-128", DIRECT)
    record = run(target, program(tmp_path, blob))
    assert told(record) == ("FAULT", "npu_driver_error"), record.cause
    assert "network refused: " in said(record)
    assert "ethosu_stream: for config 0x20000117" in said(record)
    assert "driver invocation failed: creating a network: Invalid argument" in said(record)


def _table(rows: Sequence[IoTensor]) -> bytes:
    return assembling.tensors(*((t.shape, t.element_size, t.offset, t.region) for t in rows))


@pytest.mark.parametrize("target", THE_GUEST_EACH_NIGHT)
def test_a_container_for_bare_metal(target: str, tmp_path: Path) -> None:
    direct = read_blob(compile_tosa(difference().tosa, U85, DIRECT))
    for_bare_metal = read_blob(compile_tosa(difference().tosa, U85)).commands
    made = assembling.blob(
        for_bare_metal,
        weights=direct.weights,
        scratch=direct.scratch_size,
        inputs=_table(direct.inputs),
        outputs=_table(direct.outputs),
    )
    record = run(target, program(tmp_path, made))
    assert told(record) == ("FAULT", "npu_driver_error"), record.cause
    assert record.cause is not None
    assert "this is COP1, for bare metal" in record.cause.text


@pytest.mark.parametrize("target", THE_GUEST_EACH_NIGHT)
def test_a_program_for_bare_metal(target: str, tmp_path: Path) -> None:
    record = run(target, program(tmp_path, compile_tosa(difference().tosa, U85)))
    assert told(record) == ("FAULT", "npu_driver_error"), record.cause
    assert record.cause is not None
    assert "lie in scratch, as bare metal takes them" in record.cause.text


@pytest.mark.parametrize("target", THE_GUEST_EACH_NIGHT)
def test_a_stream_that_is_none(target: str, tmp_path: Path) -> None:
    """Its last command, the one that stops, is one that no NPU has."""
    blob = compile_tosa(difference().tosa, U85, DIRECT)
    commands = read_blob(blob).commands
    assert read_actions(commands).words[-1] == 0xFFFF0000
    at = blob.index(commands) + len(commands) - 4
    record = run(target, program(tmp_path, blob[:at] + b"\xff\x03\0\0" + blob[at + 4 :]))
    assert told(record) == ("FAULT", "npu_fault"), record.cause
    assert "Ethos-U inference failed with status ERROR" in said(record)


class Changed(NpuProcess):
    """A model that does something else than its work."""

    def __call__(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        self.before()
        return super().__call__(commands, regions)

    def before(self) -> None:
        raise AssertionError("each of those below says what it does instead")


class Dies(Changed):
    def before(self) -> None:
        assert self._process is not None
        self._process.kill()


class Takes(Changed):
    def before(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # and it never comes back


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_that_dies(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is nobody's fault but the harness's: it says so, and the program is not blamed."""
    monkeypatch.setattr(companion, "NpuProcess", Dies)
    record = run(target, program(tmp_path, compile_tosa(difference().tosa, U85, DIRECT)))
    assert told(record) == ("INFRA", "npu_model"), record.cause
    assert "Ethos-U inference failed with status REJECTED" in said(record)


@pytest.mark.parametrize("target", THE_GUEST_EACH_NIGHT)
def test_an_inference_that_takes_too_long(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the limit that the program itself says; it is cancelled."""
    monkeypatch.setattr(companion, "NpuProcess", Takes)
    specs = {"ethosu.timeout_ns": (100_000_000).to_bytes(8, "little")}
    blob = compile_tosa(difference().tosa, U85, DIRECT)
    record = run(target, program(tmp_path, blob, specs))
    assert told(record) == ("FAULT", "npu_driver_error"), record.cause
    assert record.cause is not None
    assert "Ethos-U inference timed out after 100000000 ns" in record.cause.text
    assert "Ethos-U inference was cancelled" in said(record)
