"""Protects that ExecuTorch's sample for Zephyr is built with each program and its operators, that
its inputs and outputs are exchanged to the bit, and that one that cannot go on ends at once; in the
small workspace of tests/link, with the small checkout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.config.models import find_model
from harness.core.errors import LinkError, UsageError
from harness.core.simulator_name import SimulatorName
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.firmware.checkout import PartMissing
from harness.firmware.executorch.zephyr import make_sample_plan
from harness.firmware.operators import missing_names, needs_of, require
from harness.firmware.source import BuildRequest, Firmware, source_named
from harness.sim.gdbstub.stub import StubError
from harness.sim.run_files import CONSOLE, WORK
from harness.sim.simulation import simulate
from harness.sim.simulator import pick
from harness.sim.transcript import Transcript
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.small import KERNEL, edit
from tests.link.workspace import enter

CHOSEN = pick(load_target("zephyr-corstone-300"), "qemu")
SAMPLE = Path("zephyr/samples/hello-executorch")
EXECUTORCH = source_named("executorch")


@pytest.fixture(autouse=True)
def workspace(
    small_zephyr: Path, home: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Path:
    enter(small_zephyr, monkeypatch)
    return small_zephyr


@pytest.fixture(scope="session")
def exported(shared_hil_home: str, hil_export_process: ExportProcess) -> Callable[[str], Program]:
    def make(model: str) -> Program:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HIL_HOME", shared_hil_home)
            request = ExportRequest(find_model(model), "cortex-m55")
            return export([request], process=hil_export_process)[0].unwrap()

    return make


def _request(source: Source, program: Path | None = None) -> BuildRequest:
    return BuildRequest(CHOSEN.target, CHOSEN.name, source.find(), program=program)


def _built(source: Source, program: Program) -> Firmware:
    return EXECUTORCH.build(_request(source, program.pte_path))


def _run(firmware: Firmware, program: Program, run_dir: Path) -> Transcript:
    run_dir.mkdir()
    sets = [[program.directory / name for name in each.inputs] for each in program.sets]
    return simulate(CHOSEN, firmware, program=program.pte_path, sets=sets, run_dir=run_dir)


def _outputs(program: Program, run_dir: Path) -> list[bytes]:
    """The first of each set."""
    return [(run_dir / WORK / f"s{k}-0.bin").read_bytes() for k in range(len(program.sets))]


def _expected(program: Program) -> list[bytes]:
    return [(program.directory / each.expected[0]).read_bytes() for each in program.sets]


def test_each_program_runs_to_the_bit_with_its_own_operators(
    small: Source, exported: Callable[[str], Program], tmp_path: Path
) -> None:
    qadd, dense = exported("qadd"), exported("deep_autoencoder")
    for number, program in enumerate((qadd, dense)):
        firmware, run_dir = _built(small, program), tmp_path / f"run{number}"
        require(firmware.images, needs_of(program.pte_path), EXECUTORCH)
        assert _run(firmware, program, run_dir).ending.exit_status == 0
        assert _outputs(program, run_dir) == _expected(program)
        assert "Program complete, exiting." in (run_dir / CONSOLE).read_text()
    linear = ["cortex_m::quantized_linear.out"]
    assert missing_names(_built(small, qadd).elf, linear) == tuple(linear)
    with pytest.raises(UsageError, match="has another program in it"):
        _run(firmware, qadd, tmp_path / "other")
    edit(small.root / KERNEL, "return Error::Ok;", "return Error::InvalidState;")
    broken = _run(_built(small, qadd), qadd, tmp_path / "broken")
    assert broken.ending.exit_status == 3, "of this sample, when execute fails"


def test_a_missing_operator_ends_the_run_at_once(
    small: Source, exported: Callable[[str], Program], tmp_path: Path
) -> None:
    """As in ExecuTorch's pull request 17075, whose job then hung."""
    qadd = exported("qadd")
    edit(small.root / SAMPLE / "CMakeLists.txt", '"${called}"', '"cortex_m::transpose.out"')
    transcript = _run(_built(small, qadd), qadd, tmp_path / "run")
    assert transcript.ending.exit_status == 255
    assert "cortex_m::quantized_add.out" in (tmp_path / "run" / CONSOLE).read_text()


def test_a_targets_kconfig_options_reach_the_sample(
    small: Source, exported: Callable[[str], Program], tmp_path: Path
) -> None:
    file = tmp_path / "large-stack.yaml"
    options = 'cmake: {CONFIG_MAIN_STACK_SIZE: "4096", HIL_OTHER: "1"}'
    file.write_text(f"extends: zephyr-corstone-300\ndescription: a larger stack\n{options}\n")
    plain = _request(small, exported("qadd").pte_path)
    larger = replace(plain, target=pick(load_target(str(file)), "qemu").target)
    for request, size in ((larger, 4096), (plain, 1024)):
        EXECUTORCH.build(request)
        tree = make_sample_plan(request).tree_folder
        config = (tree / "zephyr/.config").read_text()
        assert f"CONFIG_MAIN_STACK_SIZE={size}\n" in config
        # other definitions of a target are the bundled runner's
        assert "HIL_OTHER" not in (tree / "CMakeCache.txt").read_text()


def test_another_layout_of_tensors_is_reported(
    small: Source, exported: Callable[[str], Program], tmp_path: Path
) -> None:
    qadd, sample = exported("qadd"), small.root / SAMPLE / "src/arm_executor_runner.cpp"
    edit(sample, "hil::element_size(tensor.type)), 0,", "hil::element_size(tensor.type)) + 1, 0,")
    with pytest.raises(StubError, match=r"set_input got \d+ bytes for input 0; its file has"):
        _run(_built(small, qadd), qadd, tmp_path / "size")
    edit(sample, "static_cast<int8_t>(tensor.type)};", "99};")
    with pytest.raises(StubError, match="has no known type"):
        _run(_built(small, qadd), qadd, tmp_path / "type")
    edit(sample, "int Method::set_input(const EValue& value", "int Method::put(const EValue& value")
    edit(sample, "  int set_input(const EValue& value", "  int put(const EValue& value")
    edit(sample, "method.set_input(executorch", "method.put(executorch")
    with pytest.raises(StubError, match="has no function _ZN10executorch7runtime6Method9set_input"):
        _run(_built(small, qadd), qadd, tmp_path / "name")


def test_a_file_that_is_in_no_target_is_a_link_error(
    small: Source, exported: Callable[[str], Program]
) -> None:
    """As in ExecuTorch's pull request 19264."""
    edit(
        small.root / "backends/cortex_m/CMakeLists.txt",
        "add_library(cortex_m_kernels STATIC",
        "list(FILTER sources EXCLUDE REGEX checks.cpp)\nadd_library(cortex_m_kernels STATIC",
    )
    with pytest.raises(LinkError) as caught:
        _built(small, exported("qadd"))
    said = f"{caught.value.message} {caught.value.hint}"
    assert "backends/cortex_m/ops/checks.cpp" in said
    assert "cortex_m_kernels" in said


def test_the_bundled_runner_is_not_for_a_map_of_qemus() -> None:
    chosen = pick(load_target("zephyr-corstone-320-u85-256"), "qemu")
    with pytest.raises(UsageError, match="the bundled runner is not built for QEMU") as caught:
        source_named("bundled").check(BuildRequest(chosen.target, chosen.name))
    assert "--executorch DIR" in str(caught.value.hint)


def test_what_there_must_be(read_only: Source, small: Source) -> None:
    with pytest.raises(UsageError, match="no runner without one"):
        EXECUTORCH.build(_request(read_only))
    on_fvp = replace(_request(read_only), simulator=SimulatorName.FVP)
    with pytest.raises(UsageError, match="through QEMU's gdb stub"):
        EXECUTORCH.check(on_fvp)
    checkout = small.find()
    parts = {name: part for name, part in checkout.parts.items() if name != "core_driver"}
    with pytest.raises(PartMissing, match="core driver"):
        EXECUTORCH.check(replace(_request(small), checkout=replace(checkout, parts=parts)))
    (small.root / SAMPLE).rename(small.root / SAMPLE.with_name("mv2-ethosu"))
    with pytest.raises(UsageError, match="has no zephyr/samples/hello-executorch") as caught:
        EXECUTORCH.check(_request(small))
    assert caught.value.hint == "it has mv2-ethosu"
