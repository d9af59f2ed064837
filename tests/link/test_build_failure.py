"""Protects that a build which Kconfig aborts is explained by the warning above the abort, that what
CMake only reports on the way is no cause, and that a missing header is told with its one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.link.build_failure import build_failure
from tests.link.stopped_builds import STOPPED_BUILDS

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


def test_a_package_that_is_only_looked_for_is_not_a_cause() -> None:
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


@pytest.mark.parametrize("name", STOPPED_BUILDS)
def test_what_stops_a_build_has_cause_and_fix(name: str) -> None:
    text, kind, fix = STOPPED_BUILDS[name]
    failure = build_failure(text)
    assert failure is not None
    assert (failure.kind, fix in failure.fix) == (kind, True), failure


def _wrong_type(overlay: Path) -> str:
    return (
        f"-- Found devicetree overlay: {overlay}\n"
        "devicetree.dtlib.DTError: expected property 'current-speed' on /soc/uart@1 in "
        "/z/misc/empty_file.c to be assigned with 'current-speed = < (number) >;', not "
        "'current-speed = \"fast\";'\n"
    )


@pytest.mark.parametrize(
    ("text", "kind", "cause", "fix"),
    [
        (
            "GEN keys.c\nkeygen: no template in /p\nMakefile:8: recipe for target 'keys.c' failed\n"
            "make[1]: *** [Makefile:8: keys.c] Error 2\nmake: *** [all] Error 2\n",
            "not_known",
            "make[1]: *** [Makefile:8: keys.c] Error 2 (above it: keygen: no template in /p)",
            "",
        ),
        (
            "FATAL ERROR: no board file in /b\nPlease check board.path in /w/config\n",
            "workspace",
            "no board file in /b",
            "Do what the message says: check board.path in /w/config.",
        ),
        (
            "CMake Error: Generator: execution of make failed.\n\n"
            "make: *** No rule to make target 'all'.  Stop.\n",
            "cmake",
            "Generator: execution of make failed.",
            "",
        ),
        ("fatal: refusing to fetch into branch 'ab1'\n", "not_known", "'ab1'", ""),
        ("fatal: ab1^commit: not a valid SHA1\n", "not_known", "ab1^commit", ""),
        ("Error: image of 9 bytes is too large for its slot\n", "not_known", "9 bytes", ""),
        ("CMake Generate step failed.\n", "not_known", "CMake Generate step failed", ""),
        (
            "CC a.o\npack: bad header\nscons: *** [fw.bin] Error 22\n",
            "not_known",
            "(above it: pack: bad header)",
            "",
        ),
    ],
    ids=(
        *("a step", "advice of its own", "CMake before make", "git", "git on Windows", "a tool"),
        *("CMake's last line", "scons"),
    ),
)
def test_what_no_rule_explains_is_quoted(text: str, kind: str, cause: str, fix: str) -> None:
    failure = build_failure(text)
    assert failure is not None
    assert (failure.kind, failure.fix) == (kind, fix)
    assert cause in failure.cause


def test_a_property_of_the_wrong_type_is_found_in_the_overlay(tmp_path: Path) -> None:
    """Where it alone can be meant."""
    overlay = tmp_path / "app.overlay"
    overlay.write_text('&uart0 {\n\tcurrent-speed = "fast";\n};\n')
    failure = build_failure(_wrong_type(overlay))
    assert failure is not None
    assert failure.where == f"{overlay}:2"
    assert "Write `current-speed = < (number) >;` in the node /soc/uart@1" in failure.fix
    overlay.write_text(overlay.read_text() * 2)
    twice = build_failure(_wrong_type(overlay))
    assert twice is not None
    assert twice.where == ""


def test_a_value_out_of_its_range_is_found_in_the_configuration(tmp_path: Path) -> None:
    """Not at the option's definition, which may be one board's of many."""
    conf = tmp_path / "prj.conf"
    conf.write_text("CONFIG_A=y\nCONFIG_NUM=400\n")
    failure = build_failure(
        f"Merged configuration '{conf}'\n\n"
        "warning: user value 400 on the int symbol NUM (defined at soc/x/Kconfig.defconfig:23, "
        "kernel/Kconfig:52) ignored due to being outside the active range ([0, 127]) -- falling "
        "back on defaults\n\nerror: Aborting due to Kconfig warnings\n"
    )
    assert failure is not None
    assert failure.where == f"{conf}:2"
    assert failure.fix.startswith("Give CONFIG_NUM a value from 0 to 127")


_ERROR = "{source}:2:10: fatal error: {header}: No such file or directory\n"


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """With the folder of Zephyr's headers beside it."""
    for name in (
        "app/CMakeLists.txt",
        "app/src/main.c",
        "app/src/util.h",
        "app/inc/proto.h",
        "app/lib/codec.h",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "zephyr" / "include" / "zephyr" / "drivers").mkdir(parents=True)
    (tmp_path / "zephyr" / "include" / "zephyr" / "drivers" / "gpio.h").write_text("")
    return tmp_path / "app"


def _fix(application: Path, header: str) -> str:
    source = str(application / "src" / "main.c")
    calls = [f"cc -I{application.parent}/zephyr/include -I{application}/lib -c {source}"]
    failure = build_failure(_ERROR.format(source=source, header=header), calls)
    assert failure is not None
    return failure.fix


def test_a_header_of_zephyr_that_has_moved(application: Path) -> None:
    assert _fix(application, "drivers/gpio.h") == (
        f"Write #include <zephyr/drivers/gpio.h> in {application}/src/main.c:2, in place of "
        "drivers/gpio.h."
    )


def test_a_name_that_is_spelt_almost_right(application: Path) -> None:
    assert "Correct utils.h" in _fix(application, "utils.h")
    assert f"there is util.h in {application}/src" in _fix(application, "utils.h")
    assert f"there is codec.h in {application}/lib" in _fix(application, "codecs.h")


def test_a_folder_of_the_application_that_is_not_an_include_folder(application: Path) -> None:
    assert "target_include_directories(TARGET PRIVATE inc)" in _fix(application, "proto.h")
    (application / "other").mkdir()
    (application / "other" / "proto.h").write_text("")
    fix = _fix(application, "proto.h")
    assert fix.startswith("Add the folder that has proto.h")  # which of the two is not known


def test_a_header_that_a_custom_command_writes(application: Path) -> None:
    """CMake keeps no rule for what no target of that folder has among its sources."""
    (application / "CMakeLists.txt").write_text(
        "\nadd_custom_command(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/model_pte.h COMMAND x)\n"
    )
    fix = _fix(application, "model_pte.h")
    assert f"which {application}/CMakeLists.txt:2 generates, to the sources of the target" in fix


def test_a_header_that_is_nowhere(application: Path) -> None:
    assert _fix(application, "vendor/sdk.h").startswith("Add the folder that has vendor/sdk.h")


def test_a_log_with_the_compilers_call_says_so(application: Path) -> None:
    """And a directory, whose calls are known though its compiler does not print them."""
    source = application / "src" / "main.c"
    call = f"FAILED: main.o\ncc -I{application.parent}/zephyr/include -o main.o -c {source}\n"
    error = _ERROR.format(source=source, header="drivers/gpio.h")
    for failure in (build_failure(call + error), build_failure(error, [call])):
        assert failure is not None
        assert failure.fix.startswith("Write #include <zephyr/drivers/gpio.h>")
    alone = build_failure(error)
    assert alone is not None
    assert alone.fix.startswith(
        "If it is a header of Zephyr, write #include <zephyr/drivers/gpio.h>"
    )


def test_a_brace_that_is_not_closed_is_looked_for_in_the_last_overlay() -> None:
    failure = build_failure(
        "-- Found devicetree overlay: /a/one.overlay\n-- Found devicetree overlay: /a/b.overlay\n"
        "devicetree error: /z/misc/empty_file.c:1 (column 1): parse error: expected '}'\n"
    )
    assert failure is not None
    assert failure.where == "/a/b.overlay"
