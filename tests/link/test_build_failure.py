"""Protects that a build which Kconfig aborts is explained by the warning above the abort, and that
what CMake only reports on the way is no cause."""

from __future__ import annotations

import pytest

from harness.link.build_failure import build_failure

# Zephyr 4.1.0 printed these lines in a workspace without dtc and without the module cmsis.
_WITHOUT_DTC = """\
-- Could NOT find Dtc (missing: DTC) (Required is at least version "1.4.6")
-- Found BOARD.dts: /zephyr/boards/arm/mps3/mps3_corstone300_an547.dts

{warning}

Parsing /zephyr/Kconfig
Merged configuration '/app/prj.conf'

error: Aborting due to Kconfig warnings

CMake Error at /zephyr/cmake/modules/kconfig.cmake:396 (message):
  command failed with return code: 1
Call Stack (most recent call first):
  /zephyr/cmake/modules/zephyr_default.cmake:134 (include)
  CMakeLists.txt:12 (find_package)
"""
_MISSING_MODULE = """\
warning: HAS_CMSIS_CORE (defined at modules/cmsis/Kconfig:7) has direct dependencies 0 with value \
n, but is currently being y-selected by the following symbols:
 - CPU_CORTEX_M (defined at arch/arm/core/Kconfig:6), with value y, direct dependencies ARM"""
_NO_TYPE = (
    "warning: I2C_TARGET_BUFFER_MODE (defined at drivers/i2c/Kconfig.it8xxx2:69) defined without "
    "a type"
)


@pytest.mark.parametrize(
    ("warning", "where", "cause", "fix"),
    [
        (
            _MISSING_MODULE,
            "modules/cmsis/Kconfig:7",
            "CPU_CORTEX_M selects HAS_CMSIS_CORE",
            "west update",
        ),
        (
            _NO_TYPE,
            "drivers/i2c/Kconfig.it8xxx2:69",
            "gives it a type",
            "defines I2C_TARGET_BUFFER_MODE",
        ),
    ],
)
def test_the_warning_that_kconfig_aborts_for_is_the_cause(
    warning: str, where: str, cause: str, fix: str
) -> None:
    failure = build_failure(_WITHOUT_DTC.format(warning=warning))
    assert failure is not None
    assert (failure.kind, failure.where) == ("kconfig", where)
    assert cause in failure.cause
    assert fix in failure.fix


def test_a_package_that_is_only_looked_for_is_no_cause() -> None:
    """Zephyr builds without dtc."""
    assert (
        build_failure('-- Could NOT find Dtc (missing: DTC) (Required is at least "1.4.6")') is None
    )


def test_a_package_that_is_required_is_the_cause() -> None:
    failure = build_failure(
        "CMake Error at /usr/share/cmake-3.25/Modules/FindPackageHandleStandardArgs.cmake:230 "
        "(message):\n  Could NOT find Dtc (missing: DTC)\nCall Stack (most recent call first):\n"
        "  CMakeLists.txt:12 (find_package)\n"
    )
    assert failure is not None
    assert "Dtc" in failure.cause
