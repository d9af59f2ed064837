"""ExecuTorch's executor_runner under Linux: how it is built, and that what it does wrong is found.

The guest, QEMU and the NPU's model are the real ones. The small checkout is run with the two faults
that ExecuTorch's main had in August 2026; the real one has them until somebody mends it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.config.models import ModelSource, find_model
from harness.core.simulator_name import SimulatorName
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.firmware.checkout import LINUX_PRESET, RevisionUnsupported
from harness.firmware.executorch.overlay import lay
from harness.firmware.executorch.plan import LINUX_RUNNER, configure, make_plan
from harness.firmware.operators import needs_of, require
from harness.firmware.source import BuildRequest, Firmware, source_named
from harness.run.pipeline import RunOptions, run_case
from harness.run.record import RunRecord
from harness.sim.run_files import flag_arguments
from harness.sim.simulator import pick
from harness.system import paths
from tests.export.conftest import user_model  # noqa: F401
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.small import BATCH, STAGE, commit, edit
from tests.thorough import is_thorough

A320, U85 = "corstone-1000-a320", "corstone-1000-u85-256"
# Its inputs lie in the other order than its arguments, and fit into what it asks for as scratch.
DIFFERENCE = """
import torch
class Difference(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Conv2d(4, 16, 3, padding=1)
        self.other = torch.nn.Conv2d(16, 4, 3, padding=1)
    def forward(self, x, y):
        return self.other(torch.relu(self.one(y))) - x
torch.manual_seed(1)
ModelUnderTest = Difference()
ModelInputs = (torch.rand(1, 4, 16, 16), torch.rand(1, 4, 16, 16))
"""
needs_guest = pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("qemu-system-aarch64")),
    reason="needs aarch64-linux-gnu-g++ and qemu-system-aarch64",
)


@pytest.mark.parametrize(("name", "npu"), [(A320, "OFF"), (U85, "ON")])
def test_what_the_build_is_told(read_only: Source, name: str, npu: str) -> None:
    plan = read_only.plan(name)
    overlay = lay(plan.checkout, read_only.folder / "tree", plan.platform)
    argv = configure(plan, overlay, read_only.folder / "build", Path("python"))
    given = dict(word[2:].split("=", 1) for word in argv if word.startswith("-D"))
    assert given["EXECUTORCH_BUILD_ARM_ETHOSU_LINUX"] == npu
    assert given["CMAKE_BUILD_TYPE"] == "RelWithDebInfo", "a fault's place has a name"
    assert "NDEBUG" not in given["CMAKE_CXX_FLAGS_RELWITHDEBINFO"]
    assert given["EXECUTORCH_BUILD_PRESET_FILE"].endswith(str(LINUX_PRESET))
    driver = Path(given["ETHOSU_LINUX_DRIVER_SOURCE_DIR"])
    assert (driver / "driver_library/src/ethosu.cpp").is_file()
    assert plan.runner == LINUX_RUNNER
    assert any("page that nobody may touch" in note for note in plan.notes)
    assert any("driver library" in note for note in plan.notes) == (npu == "ON")


@pytest.mark.parametrize(("name", "other"), [(A320, "qemu_user"), (U85, "fvp")])
def test_every_simulator_has_the_same_program(read_only: Source, name: str, other: str) -> None:
    checkout = read_only.find()
    plan = make_plan(pick(load_target(name), other).target, SimulatorName(other), checkout)
    assert plan.key() == read_only.plan(name).key()


def test_our_own_parts_are_in_the_key(read_only: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit of any of them is another firmware."""
    keys = [read_only.plan(U85).key()]
    ours = read_only.folder / "data"
    for name in ("cmake", "targets"):
        shutil.copytree(paths.data_root() / name, ours / name)
    monkeypatch.setattr(paths, "data_root", lambda: ours)
    assert read_only.plan(U85).key() == keys[0]
    for file in (
        "cmake/toolchains/aarch64-linux.cmake",
        "targets/executorch/linux/runner.cmake",
        "targets/linux/ethosu/uapi.h",
        "targets/runner/ports/linux/signals.cpp",
    ):
        (ours / file).write_text("")
        keys.append(read_only.plan(U85).key())
        assert keys[-1] not in keys[:-1], file


def test_a_revision_of_before(small: Source) -> None:
    (small.root / LINUX_PRESET).unlink()
    commit(small.root, "as it was")
    with pytest.raises(RevisionUnsupported, match=r"has no .*arm_ethosu_linux\.cmake") as caught:
        small.plan(U85)
    assert "17367" in str(caught.value.hint)
    assert small.plan("corstone-300-m55").runner == "arm_executor_runner"


def test_its_command_line() -> None:
    """Flags, for one input set; a program without inputs has no flag for them."""
    program = Path("some.pte")
    assert flag_arguments(program, 2, 2) == (
        "executor_runner",
        "--model_path=program.pte",
        "--inputs=s2i0.bin,s2i1.bin",
        "--output_file=s2",
    )
    assert not any("inputs" in word for word in flag_arguments(program, 0, 0))


Build = Callable[[Source, str], Firmware]


@pytest.fixture
def build(guest_home: Path, shared_hil_home: str) -> Build:
    """With the session's compiled objects, in a home of its own."""
    shared = Path(shared_hil_home) / "cache" / "ccache"
    shared.mkdir(parents=True, exist_ok=True)
    (guest_home / ".hil" / "cache" / "ccache").symlink_to(shared)

    def make(source: Source, name: str) -> Firmware:
        chosen = pick(load_target(name), "qemu").target
        return source_named("executorch").build(
            BuildRequest(chosen, SimulatorName.QEMU, source.find())
        )

    return make


@pytest.fixture
def difference(
    shared_hil_home: str,
    hil_export_process: ExportProcess,
    user_model: Callable[[str], ModelSource],  # noqa: F811
) -> Program:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", shared_hil_home)
        request = ExportRequest(user_model(DIFFERENCE), "ethos-u85-256", direct_drive=True)
        return export([request], process=hil_export_process)[0].unwrap()


def run(firmware: Firmware, program: Program, name: str = U85) -> RunRecord:
    require(firmware.images, needs_of(program.pte_path), source_named("executorch"))
    # no model's budgets and references: what was accepted is of the bundled runner
    case = Case(name, "add")
    return run_case(case, pick(load_target(name), "qemu"), program, firmware, RunOptions())


@needs_guest
@pytest.mark.corstone1000
def test_a_program_by_direct_drive(small: Source, build: Build, difference: Program) -> None:
    """And then with a fault, in a thorough run with another one: a copy of the inputs in a scratch
    that has no room for them, and inputs that lie one after another. A guest boots for each input
    set: two show that each has a process, one the fault."""
    two, one = (replace(difference, sets=difference.sets[:count]) for count in (2, 1))
    firmware = build(small, U85)
    record = run(firmware, two)
    assert record.verdict.name == "PASS", record.cause
    assert record.npu is not None
    assert record.npu.jobs == 2, "one input set, one process"
    assert "elf_stripped" not in record.metrics

    edit(small.root / STAGE, "allocate(end, 16)", "allocate(end - 16, 16)")
    record = run(build(small, U85), one)
    assert record.cause is not None
    assert (record.verdict.name, record.cause.kind) == ("FAULT", "process_crash"), record.cause
    where = record.cause.facts or {}
    assert where["lr_symbol"].startswith(("arm_ethos_io_memcpy", "hil::ethosu::stage_inputs"))

    if not is_thorough():
        return
    edit(small.root / STAGE, "allocate(end - 16, 16)", "allocate(end, 16)")
    edit(small.root / BATCH, "tensors[a].offset < tensors[b].offset", "a < b")
    edit(small.root / BATCH, "if (io.offset != end)", "if (false)")
    check_inputs_are_blamed(run(build(small, U85), difference))


def check_inputs_are_blamed(record: RunRecord) -> None:
    assert record.cause is not None
    assert (record.verdict.name, record.cause.kind) == ("MISMATCH", "outputs_differ"), record.cause
    assert "(delegate EthosUBackend)" in record.cause.text
    assert record.blame is not None
    assert record.blame.culprit == "ExecuTorch's backend"


@needs_guest
@pytest.mark.corstone1000
def test_the_two_faults_of_executorch(real: Source, build: Build, difference: Program) -> None:
    """When this fails, ExecuTorch was mended, and the heading in docs/findings.md should say so.

    ``add`` asks for no scratch; of DIFFERENCE the inputs fit in, and are swapped."""
    firmware = build(real, U85)
    check_inputs_are_blamed(run(firmware, difference))
    request = ExportRequest(find_model("add"), "ethos-u85-256", direct_drive=True)
    record = run(firmware, export([request])[0].unwrap())
    assert record.cause is not None
    assert (record.verdict.name, record.cause.kind) == ("FAULT", "process_crash"), record.cause
    where = record.cause.facts or {}
    assert "arm_ethos_io_memcpy" in where["lr_symbol"] or "EthosUBackend" in where["lr_symbol"]


@needs_guest
@pytest.mark.corstone1000
def test_executorchs_kernels_on_the_cpu(real: Source, build: Build) -> None:
    """With its portable, quantised and cortex_m libraries."""
    program = export([ExportRequest(find_model("ds_cnn"), load_target(A320).compile_target)])[
        0
    ].unwrap()
    record = run(build(real, A320), program, A320)
    assert record.verdict.name == "PASS", record.cause
