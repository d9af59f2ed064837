"""Protects that an Ethos-U under Zephyr is driven by Zephyr's own driver where the workspace has
its module, under either name of its option, and by ours where it has not. In the small workspace
with a driver of names alone, in a real one with Arm's; on QEMU the calls are answered from outside,
so that no driver's own code is run."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.export.program import Program
from harness.firmware.source import Firmware
from harness.firmware.sources.bundled import build
from harness.run.pipeline import RunOptions, run_case
from harness.run.subjects import export_cases
from harness.sim.simulation import simulate
from harness.sim.simulator import NpuUse, pick
from harness.system.process import Stop
from tests.link.recorded_programs import PROGRAMS
from tests.link.test_own_builds import LISTS, forgetful_kernels
from tests.link.workspace import REAL, STANDIN, enter, needs_real_zephyr

TARGET = load_target("zephyr-corstone-300-u55-128")
ON_QEMU = pick(TARGET, "qemu")
NOT_STARTED = "Zephyr's Ethos-U driver did not start"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel and the module of all builds: what is compiled in equal paths is compiled once."""
    made = tmp_path_factory.mktemp("driver")
    forgetful_kernels(made, LISTS.replace("registry.cpp", "registry.cpp op_forgotten.cpp"))
    return made


@dataclass(frozen=True)
class With:
    """A workspace that has the module: ``options`` of a build in it, whose one kernel nobody calls;
    ``alone``: what the runner logs on a QEMU that answers no calls of the driver."""

    options: dict[str, str]
    alone: str


@pytest.fixture(
    params=[
        pytest.param("ARM_ETHOS_U", marks=pytest.mark.thorough),
        "ETHOS_U",
        pytest.param("real", marks=needs_real_zephyr),
    ]
)
def module(
    request: pytest.FixtureRequest,
    small_zephyr: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> With:
    """The small one as older Zephyrs name the option, or as newer ones do and with an NPU that
    starts and is never free."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    options = {"HIL_KERNELS_DIR": str(folder / "kernels")}
    if request.param == "real":
        return With(options, NOT_STARTED)
    enter(small_zephyr, monkeypatch)
    module = folder / "hal_ethos_u"
    shutil.rmtree(module, ignore_errors=True)
    shutil.copytree(STANDIN / "modules" / "hal_ethos_u", module)
    options["EXTRA_ZEPHYR_MODULES"] = str(module)
    if request.param == "ARM_ETHOS_U":
        return With(options, NOT_STARTED)
    for name, old, new in (
        ("Kconfig", "ARM_ETHOS_U", "ETHOS_U"),
        ("CMakeLists.txt", "ARM_ETHOS_U", "ETHOS_U"),
        ("driver.c", "return -1; /* no NPU */", "return 0;"),
    ):
        text = (module / name).read_text()
        assert old in text
        (module / name).write_text(text.replace(old, new))
    return With(options, "Failed to reserve the Ethos-U driver")


def _symbols(firmware: Firmware) -> str:
    return subprocess.run(
        ["arm-none-eabi-nm", "-C", firmware.elf], capture_output=True, text=True, check=True
    ).stdout


def test_a_program_runs_through_zephyrs_driver(module: With, tmp_path: Path) -> None:
    """For the board that the FVP is, it is what the workspace's module decides; the same driver on
    QEMU gives the reference's outputs, by two jobs of its NPU."""
    on_fvp = build(TARGET, options=module.options)
    for name in ("ethosu_invoke_v3", "hil::ethosu::invoke_core_driver"):
        assert name in _symbols(on_fvp)
    assert "RegisterDevice" not in _symbols(on_fvp)
    firmware = build(ON_QEMU.target, options={**module.options, "HIL_ETHOSU_DRIVER": "core"})
    what = PROGRAMS["u55"]
    (tmp_path / "m.pte").write_bytes(what.program())
    inputs = [tmp_path / f"input{number}.bin" for number, _ in enumerate(what.inputs())]
    for path, content in zip(inputs, what.inputs(), strict=True):
        path.write_bytes(content)
    transcript = simulate(
        ON_QEMU, firmware, tmp_path / "m.pte", [inputs, inputs], run_dir=tmp_path / "run"
    )
    console = transcript.console().decode("utf-8", "replace")
    assert (transcript.ending.stop, transcript.ending.exit_status) == (Stop.EXITED, 0), console
    assert transcript.npu == NpuUse(2)
    made = [sorted((tmp_path / "run").rglob(f"*{n}-0.bin")) for n in range(2)]
    assert [[p.read_bytes() for p in paths] for paths in made] == [list(what.expected())] * 2
    # and by itself, where nobody answers its calls
    alone = what.run(firmware.elf, tmp_path / "alone")
    assert alone.status != 0
    assert module.alone in alone.console


@needs_real_zephyr
def test_the_networks_pass_through_the_real_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every kernel, at 0 LSB."""
    monkeypatch.setenv("ZEPHYR_BASE", str(REAL))
    models = ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder")
    cases = [Case(TARGET.name, model) for model in models]
    programs = export_cases(cases, {TARGET.name: ON_QEMU.target})
    firmware = build(ON_QEMU.target, options={"HIL_ETHOSU_DRIVER": "core"})
    assert "hil::ethosu::invoke_core_driver" in _symbols(firmware)
    for case, program in zip(cases, programs, strict=True):
        assert isinstance(program, Program), program
        record = run_case(case, ON_QEMU, program, firmware, RunOptions(simulator="qemu"))
        assert (record.verdict, record.worst_lsb) == ("PASS", 0.0), record.cause


def test_without_the_module_the_registers_are_ours(
    small_zephyr: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    enter(small_zephyr, monkeypatch)
    symbols = _symbols(build(TARGET, options={"HIL_KERNELS_DIR": str(folder / "kernels")}))
    assert "RegisterDevice::run" in symbols
    assert "ethosu_invoke" not in symbols
