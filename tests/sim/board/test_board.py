"""A board through labgrid, with QEMU's STM32F405 as the board: its results, and what becomes of
each fault that only hardware has.
"""

from __future__ import annotations

import random
import shutil
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import filelock
import pytest
import yaml

from harness.config.loading import load_target
from harness.config.target import Target
from harness.core.errors import InfraError, NotThere, ToolMissing
from harness.core.simulator_name import SimulatorName
from harness.core.verdict import Verdict
from harness.firmware.source import BuildRequest, Firmware, source_named
from harness.firmware.sources.bundled import make_plan
from harness.judge.ending import execution_cause
from harness.log.events import Kind
from harness.log.parser import parse_console
from harness.run.judging import ending
from harness.sim.board import SIMULATOR, what_board_lacks
from harness.sim.simulation import simulate
from harness.sim.simulator import pick
from harness.sim.transcript import Transcript
from harness.system.paths import install_command, state_dir
from harness.system.process import Stop
from harness.system.settings import in_ci
from tests.firmware.executorch.small import edit
from tests.late import Late
from tests.thorough import amount, is_thorough
from tools.clone import project_root

lab = Late("harness.sim.lab")

EXAMPLE = project_root() / "examples" / "lab"
PROGRAM = project_root() / "targets/runner/ports/zephyr/sample/qlinear.bpte"  # our exporter's
RUNS = amount(1, 100)


@pytest.fixture(scope="module", autouse=True)
def _needs_labgrid() -> None:
    installed = SIMULATOR.find(load_target(str(EXAMPLE / "boards" / "stm32f405.yaml"))) is not None
    if not installed and not in_ci():
        pytest.skip("labgrid is not installed")


@dataclass(frozen=True)
class Bench:
    """A copy of the example in ``folder``."""

    folder: Path
    firmware: Firmware

    def target(self, **limits: float) -> Target:
        target = load_target(str(self.folder / "boards" / "stm32f405.yaml"))
        board = target.simulators.board
        assert board is not None
        own = {name: value for name, value in limits.items() if hasattr(board, name)}
        others = {name: value for name, value in limits.items() if name not in own}
        return replace(
            target,
            limits=replace(target.limits, **others),
            simulators=replace(target.simulators, board=replace(board, **own)),
        )

    def plant(self, drivers: Mapping[str, Any]) -> None:
        """The board's driver is the faulty one, with these attributes."""
        lab = self.folder / "lab-stm32f405.yaml"
        text = lab.read_text().replace("QemuBoardDriver:\n", "FaultyBoardDriver:\n")
        extra = "".join(f"        {line}\n" for line in yaml.safe_dump(dict(drivers)).splitlines())
        text = text.replace(
            "        machine: netduinoplus2\n", f"        machine: netduinoplus2\n{extra}"
        )
        lab.write_text(text + "  - faulty_board.py\n")
        shutil.copy(Path(__file__).with_name("faulty_board.py"), self.folder)

    def run(self, run_dir: Path, **limits: float) -> Transcript:
        chosen = pick(self.target(**limits))
        run_dir.mkdir()
        return simulate(chosen, self.firmware, PROGRAM, [[]], run_dir=run_dir)


def make_bench(folder: Path) -> Bench:
    shutil.copytree(EXAMPLE, folder)
    board = folder / "boards" / "stm32f405.yaml"
    if not is_thorough():  # its Cortex-M4 runs what other tests compile for a Cortex-M0+
        edit(board, "extends: mps2-m4", "extends: mps2-m0plus")
    target = pick(load_target(str(board))).target
    built = source_named("bundled").build(BuildRequest(target, SimulatorName.BOARD))
    return Bench(folder, built)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path / "lab")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Transcript:
    folder = tmp_path_factory.mktemp("undisturbed")
    return make_bench(folder / "lab").run(folder / "run")


def found(bench: Bench, transcript: Transcript) -> tuple[Verdict, str, str] | None:
    """Verdict, kind of the cause and its text; None where nothing speaks against the run."""
    assert transcript.observation is not None
    cause = execution_cause(
        transcript.observation, ending(transcript), bench.firmware.printed_build_id
    )
    return None if cause is None else (cause[0], cause[1].kind, cause[1].text)


def output(transcript: Transcript) -> bytes:
    return (transcript.run_dir / "work" / "s0-0.bin").read_bytes()


def test_a_board_is_flashed_run_and_read(bench: Bench, undisturbed: Transcript) -> None:
    """Its firmware compared three sets with what they must give; the first one's output is here."""
    transcript = undisturbed
    assert found(bench, transcript) is None
    assert transcript.observation is not None
    assert transcript.observation.bundle_passes == 3
    assert len(output(transcript)) == 1184
    assert transcript.simulator.name is SimulatorName.BOARD
    assert any("QEMU's netduinoplus2" in text for text in transcript.stands_in)
    assert b"@0000B" in (transcript.run_dir / "work" / "serial.log").read_bytes()


def test_a_program_cannot_speak_for_the_board(bench: Bench, undisturbed: Transcript) -> None:
    """What the process that drives the board reports goes through a pipe of its own."""
    end = undisturbed.ending
    assert (end.began, end.problem) == (True, None)
    line = b"hil: the serial line broke off: x\n"
    observation = parse_console(undisturbed.console() + line)
    forged = replace(undisturbed, observation=observation)
    cause = found(bench, forged)
    assert cause is not None
    assert cause[:2] == (Verdict.FAULT, Kind.BOARD_LOST)


FAULTS = [
    ({"fault": "silent"}, Verdict.NO_VERDICT, Kind.BOARD_SILENT, "within 1 s (0 bytes came"),
    (
        {"fault": "lost", "count": 2},
        Verdict.NO_VERDICT,
        Kind.CONSOLE_DAMAGED,
        "damaged twice, frame",
    ),
    ({"fault": "echo"}, Verdict.NO_VERDICT, Kind.CONSOLE_DAMAGED, "does the line echo?"),
    ({"fault": "noise", "rate": 0.02}, Verdict.NO_VERDICT, Kind.CONSOLE_DAMAGED, "check cable"),
    ({"fault": "restart"}, Verdict.FAULT, Kind.BOARD_RESTARTED, "check its supply"),
    ({"fault": "restart", "count": 99}, Verdict.FAULT, Kind.BOARD_RESTARTED, "brown-out"),
    ({"fault": "stops"}, Verdict.HANG, Kind.GUEST_SILENT, "said nothing for 1 s"),
    (
        {"fault": "not flashed"},
        Verdict.NO_VERDICT,
        Kind.WRONG_PROGRAM,
        "another program image (none)",
    ),
    ({"fault": "cable"}, Verdict.INFRA, Kind.BOARD_LOST, "is the cable in place?"),
    ({"fault": "power"}, Verdict.INFRA, Kind.BOARD_UNREACHABLE, "its power stays off"),
    ({"fault": "slow flash"}, Verdict.INFRA, Kind.BOARD_UNREACHABLE, "flashing it took too long"),
    ({"fault": "flash fails"}, Verdict.INFRA, Kind.BOARD_UNREACHABLE, "does not find the board"),
]


# Of the faults that only a limit ends; the others must not depend on how busy this machine is.
LIMITS = {
    "silent": {"answer_seconds": 1.0},
    "not flashed": {"answer_seconds": 4.0},
    "noise": {"answer_seconds": 4.0},
    "stops": {"stall": 1.0},
    "slow flash": {"flash_seconds": 1.0},
}


@pytest.mark.parametrize(
    ("planted", "verdict", "kind", "text"),
    FAULTS,
    ids=[f"{row[0]['fault']}{row[0].get('count', '')}" for row in FAULTS],
)
def test_a_fault_of_hardware_is_told(
    bench: Bench,
    tmp_path: Path,
    planted: Mapping[str, Any],
    verdict: Verdict,
    kind: Kind,
    text: str,
) -> None:
    bench.plant(planted)
    late = LIMITS.get(str(planted["fault"]), {})
    transcript = bench.run(tmp_path / "run", **{"host": 60.0, **late})
    cause = found(bench, transcript)
    assert cause is not None
    assert cause[:2] == (verdict, kind)
    assert text in cause[2]
    assert not list((tmp_path / "run" / "work").glob("s*-*.bin"))


def test_a_byte_lost_once_costs_a_second_run_and_no_verdict(
    bench: Bench, undisturbed: Transcript, tmp_path: Path
) -> None:
    bench.plant({"fault": "lost"})
    transcript = bench.run(tmp_path / "run")
    assert found(bench, transcript) is None
    assert b"hil: the serial line was damaged, frame" in transcript.console()
    assert output(transcript) == output(undisturbed)


def test_other_firmware_in_flash_is_told(bench: Bench, tmp_path: Path) -> None:
    """Another build of the runner, which runs the program as well."""
    build = bytes.fromhex(bench.firmware.build_id)
    other = tmp_path / "other.elf"
    other.write_bytes(bench.firmware.elf.read_bytes().replace(build, build[::-1]))
    bench.plant({"elf": str(other)})
    cause = found(bench, bench.run(tmp_path / "run"))
    assert cause is not None
    assert cause[:2] == (Verdict.NO_VERDICT, "wrong_firmware")


def test_noise_never_gives_other_outputs(
    bench: Bench, undisturbed: Transcript, tmp_path: Path
) -> None:
    """A run that nothing speaks against has the right output, at rates where some runs come through
    at once, some in the second try and some not at all."""
    bench.plant({"fault": "noise", "seed": 0, "rate": 0.5})
    lab = bench.folder / "lab-stm32f405.yaml"
    text = lab.read_text()
    draw = random.Random(1)
    kinds: dict[str, int] = {}
    for number in range(RUNS):
        rate = 10 ** draw.uniform(-5, -2)
        lab.write_text(
            text.replace("rate: 0.5", f"rate: {rate:f}").replace("seed: 0", f"seed: {number}")
        )
        transcript = bench.run(tmp_path / f"run{number}", stall=4.0, answer_seconds=4.0)
        cause = found(bench, transcript)
        again = b"runs once more" in transcript.console()
        kinds_of = "in the second try" if cause is None and again else str(cause and cause[1])
        kinds[kinds_of] = kinds.get(kinds_of, 0) + 1
        assert transcript.ending.stop is Stop.EXITED
        if cause is None:
            assert output(transcript) == output(undisturbed)
        else:
            assert cause[0] is Verdict.NO_VERDICT, cause
    print(kinds)


def test_one_run_at_a_time_has_the_board(bench: Bench, tmp_path: Path) -> None:
    runs = [
        threading.Thread(target=bench.run, args=(tmp_path / f"run{number}",)) for number in range(2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    outputs = {(tmp_path / f"run{number}/work/s0-0.bin").read_bytes() for number in range(2)}
    assert len(outputs) == 1


def test_a_board_that_is_in_use_is_told(bench: Bench, tmp_path: Path) -> None:
    lab = bench.folder / "lab-stm32f405.yaml"
    folder = state_dir() / "boards"
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / f"{str(lab.resolve()).replace('/', '_')}-main.lock"
    with (
        filelock.FileLock(lock),
        pytest.raises(InfraError, match="in use by another run for 0 s") as error,
    ):
        bench.run(tmp_path / "run", wait=0.1)
    assert error.value.kind == "board_busy"


def test_an_environment_without_a_way_to_flash_is_told(bench: Bench, tmp_path: Path) -> None:
    lab = bench.folder / "lab-stm32f405.yaml"
    lab.write_text("targets: {main: {resources: {RawSerialPort: {port: /dev/null}}}}\n")
    cause = found(bench, bench.run(tmp_path / "run"))
    assert cause is not None
    assert cause[1] == Kind.BOARD_UNREACHABLE
    assert "has no driver that flashes" in cause[2]


def test_a_role_that_the_environment_has_not_is_told(bench: Bench, tmp_path: Path) -> None:
    (bench.folder / "lab-stm32f405.yaml").write_text("targets: {other: {}}\n")
    cause = found(bench, bench.run(tmp_path / "run"))
    assert cause is not None
    assert "has no target 'main'" in cause[2]


def test_a_missing_environment_is_told(bench: Bench, tmp_path: Path) -> None:
    (bench.folder / "lab-stm32f405.yaml").unlink()
    with pytest.raises(NotThere, match="there is no labgrid environment"):
        bench.run(tmp_path / "run")


def test_labgrid_is_an_extra(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(ToolMissing) as error:
        SIMULATOR.require(bench.target())
    assert error.value.hint == install_command("board")


def test_figures_of_a_board_are_accepted_by_themselves(bench: Bench) -> None:
    """The same target on QEMU has other firmware, and other figures in the same reference."""
    target = load_target(str(bench.folder / "boards" / "an505.yaml"))
    on_qemu, on_board = (
        make_plan(pick(target, name).target, {}).toolchain_id for name in ("qemu", "board")
    )
    assert on_board == f"{on_qemu} serial"


def test_what_is_missing_to_drive_a_board(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert what_board_lacks(bench.target()) == ()
    lab = bench.folder / "lab-stm32f405.yaml"
    lab.write_text("port: /dev/ttyACM77\ndrivers: {}\n  OpenOCDDriver: {}\n")
    monkeypatch.setenv("PATH", "")
    assert what_board_lacks(bench.target()) == (
        "/dev/ttyACM77 is not there: plug the board in",
        "openocd is not installed",
    )
    lab.unlink()
    (missing,) = what_board_lacks(bench.target())
    assert missing.startswith("there is no labgrid environment ")


@pytest.mark.parametrize("name", ["nucleo-f446re", "nucleo-h563zi"])
def test_files_of_hardware_are_whole(name: str) -> None:
    """Nobody here has them: their memory map holds together, and there is an environment."""
    target = load_target(str(EXAMPLE / "boards" / f"{name}.yaml"))
    board = target.simulators.board
    assert board is not None
    assert board.stand_in is None
    text = (EXAMPLE / "boards" / board.labgrid).read_text()
    assert "NEVER RUN" in text
    assert board.flash or "OpenOCDDriver" in text


@pytest.mark.parametrize(("said", "seen"), [(0, 0), (1, 1), (255, 255), (256, 255), (-256, 255)])
def test_a_status_that_wait_cannot_show_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: int, seen: int
) -> None:
    """The board's runner names it in a frame; of the process that drives the board 8 bits count."""
    (tmp_path / "job.json").write_text("{}")
    board = SimpleNamespace(target=SimpleNamespace(cleanup=lambda: None))
    monkeypatch.setattr("harness.sim.lab.checked", lambda *_: SimpleNamespace(linux=None))
    monkeypatch.setattr("harness.sim.lab.LabBoard", lambda *_: board)
    monkeypatch.setattr("harness.sim.lab.run", lambda *_: said)
    before = signal.getsignal(signal.SIGALRM)
    try:
        assert lab.main(str(tmp_path / "job.json"), "1") == seen
    finally:
        signal.signal(signal.SIGALRM, before)
