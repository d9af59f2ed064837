"""What a real Zephyr says when it fails, under both of its usual ways to log: the right verdict,
with symbol and source line where the ELF is at hand.

The consoles in zephyr/consoles are those of zephyr/ on QEMU's mps3-an547, built with Zephyr 4.1.0
and GCC 12.2; without a workspace these are judged. With one that $ZEPHYR_BASE names, the same
firmware is built and run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.config.target import Limits
from harness.judge.console_log import judge_file
from harness.log.parser import parse_console
from harness.run.pipeline import RunOptions, run_case
from harness.sim.simulator import pick
from tests.endings import zephyr_plants
from tests.link.workspace import needs_real_zephyr
from tools.doubles import FakeFirmware, double_program

CONSOLES = Path(__file__).parent / "zephyr" / "consoles"
LOGGING = ("deferred", "minimal")
# way: kind of the fault, the function it happened in
FAULTS = {
    "overflow": ("stack_overflow", "deeper"),
    "assert": ("zephyr_fatal", "fail_an_assertion"),
    "mpu": ("mpu_fault", "write_to_code"),
    "usage": ("usage_fault", "run_nonsense"),
    "panic": ("zephyr_fatal", "panic"),
    "oops": ("zephyr_fatal", "oops"),
}
EVERY = [(logging, way) for logging in LOGGING for way in FAULTS]


@pytest.mark.parametrize(("logging", "way"), EVERY)
def test_a_fatal_error_of_zephyr_has_its_kind(logging: str, way: str) -> None:
    judged = judge_file(CONSOLES / f"{logging}-{way}.log")
    cause = judged.judgement.cause
    assert cause is not None
    assert (judged.judgement.verdict, cause.kind) == ("FAULT", FAULTS[way][0])
    facts = cause.facts or {}
    assert facts["pc"].startswith("0x1000")
    if way == "assert":
        assert facts["assertion"] == "one == 2"
        assert facts["place"].endswith("src/ways.c:19")


@pytest.mark.parametrize("logging", LOGGING)
def test_lines_of_the_log_thread_among_others_hide_nothing(logging: str) -> None:
    """The end marker is found; the sample runs no inference."""
    cause = judge_file(CONSOLES / f"{logging}-interleave.log").judgement.cause
    assert cause is not None
    assert cause.kind == "no_inference"


@pytest.mark.parametrize("logging", LOGGING)
def test_an_end_marker_that_another_thread_cut_is_none(logging: str) -> None:
    """Half of it on one line and half on the next: nobody knows what else is missing."""
    judged = judge_file(CONSOLES / f"{logging}-cut.log")
    assert judged.judgement.verdict == "NO_VERDICT"


def test_a_late_banner_is_read_and_what_came_before_it() -> None:
    """CONFIG_BOOT_DELAY, and a line printed while drivers started."""
    found = parse_console((CONSOLES / "minimal-interleave.log").read_bytes())
    assert found.versions == {"zephyr": "4.1.0"}
    assert found.completed


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("planted")
    return {logging: zephyr_plants.build(folder, logging) for logging in LOGGING}


@needs_real_zephyr
@pytest.mark.parametrize(("logging", "way"), EVERY)
def test_the_real_thing_is_a_fault_in_its_function(
    logging: str, way: str, built: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    board = load_target("zephyr-corstone-300", target_directories({}))
    target = replace(board, limits=Limits(host=5.0, stall=1.0))
    elf = zephyr_plants.told(built[logging], way, tmp_path / "planted.elf")
    program = double_program(tmp_path / "program")
    record = run_case(
        Case(target.name, "add"),
        pick(target, "qemu"),
        program,
        FakeFirmware(elf),  # type: ignore[arg-type]
        RunOptions(),
    )
    kind, function = FAULTS[way]
    cause = record.cause
    assert cause is not None
    assert (record.verdict, cause.kind) == ("FAULT", kind), cause
    facts = cause.facts or {}
    # an assertion's own handler is where the exception was raised
    place = "lr" if way == "assert" else "pc"
    assert facts[f"{place}_symbol"].split("+")[0] == function
    assert facts[f"{place}_source"].startswith("ways.c:")


@needs_real_zephyr
def test_a_deadlock_names_the_threads_that_wait(
    built: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    board = load_target("zephyr-corstone-300", target_directories({}))
    target = replace(board, limits=Limits(host=30.0, stall=2.0))
    elf = zephyr_plants.told(built["minimal"], "deadlock", tmp_path / "planted.elf")
    record = run_case(
        Case(target.name, "add"),
        pick(target, "qemu"),
        double_program(tmp_path / "program"),
        FakeFirmware(elf),  # type: ignore[arg-type]
        RunOptions(),
    )
    assert record.cause is not None
    assert record.cause.kind == "stall"
    assert "thread main waits for second, which worker holds, in lock_both+" in record.cause.text
    assert "thread worker waits for first, which main holds" in record.cause.text
