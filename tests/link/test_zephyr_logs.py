"""Protects that every log of our corpus is explained: logs that real `west build`s of our sample
wrote (Zephyr 4.1.0, west 1.5.0, CMake 3.25, GCC 12.2), shortened by record_zephyr_logs.py. "Its log
does not say why" is said of none."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.firmware.step import FailedStep, LinkFailed, StepFailed, diagnose
from harness.link.build_failure import BuildFailureKind, build_failure
from harness.link.diagnose.explain import explain
from tests.link.record_zephyr_logs import LOGS
from tests.link.zephyr_plants import PLANTS, ZephyrPlant
from tests.link.zephyr_stops import STOPS, ZephyrStop

# Causes that only a link's own files show; of such a plant the log tells kind and message.
_OF_FILES = {
    "flash_overflow",
    "ram_overflow",
    "itcm_overflow",
    "ddr_overflow",
    "option_not_set",
    "whole_archive_twice",
    "driver_not_enabled",
    "weak_default_not_compiled",
    "sbrk_missing",
    "cxx_pure_virtual",
    "cxx_operator_new",
    "cxx_dso_handle",
    "float_abi_mixed",
    "picolibc_gettimeofday",
    "stayed_n",
    "two_arenas",
}


def _quiet(_message: str) -> None:
    pass


def _log(name: str) -> Path:
    return LOGS / f"{name}.log"


def test_the_corpus_is_complete_and_small() -> None:
    names = {plant.name for plant in PLANTS} | {stop.name for stop in STOPS}
    assert names == {file.stem for file in LOGS.glob("*.log")}
    assert max(file.stat().st_size for file in LOGS.glob("*.log")) < 10_000


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_a_build_that_stopped_before_the_link(stop: ZephyrStop) -> None:
    assert_stop_explained(stop, _log(stop.name).read_text())
    explanation = explain(_log(stop.name), _quiet)
    assert not explanation.failures
    assert explanation.stopped is not None
    assert explanation.stopped.kind == stop.kind


def assert_stop_explained(stop: ZephyrStop, log: str) -> None:
    found = build_failure(log)
    assert found is not None
    assert found.kind == stop.kind, found
    assert found.where.endswith(stop.where), found
    assert log.splitlines()[found.line - 1].split()[0] in found.text
    for words in stop.in_cause:
        assert words in found.cause, found
    for words in stop.in_fix:
        assert words in found.fix, found


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
def test_the_error_of_a_build_says_it_too(stop: ZephyrStop) -> None:
    error = diagnose(_log(stop.name).read_text(), FailedStep("build", Path("b.log"), "t", 1))
    assert isinstance(error, StepFailed)
    assert "does not say why" not in error.message
    assert error.log_line is not None
    if stop.kind != BuildFailureKind.COMPILE:
        assert all(words in error.message for words in stop.in_cause)
        assert error.stop is not None
        assert error.stop["kind"] == stop.kind
        assert error.hint is not None
        assert all(words in error.hint for words in stop.in_fix)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_failed_link(plant: ZephyrPlant) -> None:
    """From the log alone: kind, cause and fix, of which the objects may say more."""
    log = _log(plant.name).read_text()
    assert plant.message in log
    failures = explain(_log(plant.name), _quiet).failures
    failure = next((f for f in failures if plant.message in f.text), failures[0])
    assert failure.kind == plant.kind
    assert failure.cause
    assert failure.fix
    if plant.name not in _OF_FILES:
        assert failure.cause_kind == plant.cause_kind
        assert all(words in failure.cause for words in plant.in_cause), failure.cause
        assert all(words in failure.fix for words in plant.in_fix), failure.fix
    error = diagnose(log, FailedStep("build", Path("b.log"), "t", 1))
    assert isinstance(error, LinkFailed)
    assert error.failures


def test_an_option_that_stayed_n_is_named_from_the_log_alone() -> None:
    """Kconfig only warned of it; it is why the symbol is undefined."""
    failure = explain(_log("stayed_n"), _quiet).failures[0]
    assert failure.cause_kind == "option_not_taken"
    assert "CONFIG_PROBE_IO was set to y and got n" in failure.cause
    assert "depends on DMA, which is n" in failure.cause
    assert "CONFIG_DMA=y" in failure.fix


@pytest.mark.parametrize(
    "name", ["cxx_pure_virtual", "cxx_operator_new", "cxx_dso_handle", "sbrk_missing"]
)
def test_what_zephyr_has_behind_an_option_is_not_a_library_to_link(name: str) -> None:
    """Elsewhere the fix is `-lstdc++` or `--specs=nosys.specs`; Zephyr links neither."""
    plant = next(p for p in PLANTS if p.name == name)
    failure = next(f for f in explain(_log(name), _quiet).failures if plant.message in f.text)
    assert failure.cause_kind == "option_not_set"
    assert plant.in_fix[0] in failure.fix
    assert "-lstdc++" not in failure.fix


def test_a_build_that_went_well_has_not_stopped() -> None:
    """A binding that is no YAML is only warned of where no node needs it."""
    warned = (
        "WARNING: '/p/io.yaml' appears in binding directories but isn't valid YAML: while parsing "
        'a flow node\ndid not find expected node content\n  in "/p/io.yaml", line 5, column 1\n'
        "-- Configuring done\n"
    )
    assert build_failure(warned) is None
    found = build_failure(f"{warned}main.c:3:1: error: 'DT_N_S_probe_P_size' undeclared\n")
    assert found is not None
    assert found.where == "/p/io.yaml:5"


def test_a_system_call_that_came_with_an_option_set_later() -> None:
    """Zephyr 4.1.0 does not make its header in a tree that is there (CONFIG_POSIX_TIMERS)."""
    found = build_failure(
        "In file included from /z/lib/posix/options/clock.c:8:\n"
        "/z/lib/posix/options/posix_clock.h:17:10: fatal error: zephyr/syscalls/posix_clock.h: "
        "No such file or directory\n   17 | #include <zephyr/syscalls/posix_clock.h>\n"
        "ninja: build stopped: subcommand failed.\n"
    )
    assert found is not None
    assert found.kind == BuildFailureKind.COMPILE
    assert "the option that brings this one was set later" in found.cause
    assert found.fix == "Build from scratch: `west build -p always`."
