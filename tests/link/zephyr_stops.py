"""Builds that stop before the link: what is wrong in the sample of zephyr_plants.py, in how it is
built or in what is around it, and what must be said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.link.zephyr_plants import CONF, KCONFIG, LISTS, PICOLIBC, SOURCES, Edits, calling


@dataclass(frozen=True)
class ZephyrStop:
    """``where``: the end of file:line that is named; "" when no file is to blame. ``options`` are
    for CMake, ``environment`` is added to that of the build. ``right``: what the fix changes, where
    it is tried too."""

    name: str
    kind: str
    where: str
    in_cause: tuple[str, ...]
    in_fix: tuple[str, ...]
    wrong: Edits = field(default_factory=dict)
    options: tuple[str, ...] = ()
    board: str = "mps3/corstone300/an547"
    environment: Mapping[str, str] = field(default_factory=dict)
    right: Edits = field(default_factory=dict)


def _conf(name: str, line: str, where: str, cause: str, fix: str) -> ZephyrStop:
    return ZephyrStop(name, "kconfig", where, (cause,), (fix,), {"prj.conf": CONF + line + "\n"})


def _kconfig(name: str, text: str, line: int, cause: str, fix: str) -> ZephyrStop:
    where = f"module/Kconfig:{line}" if line else "module/Kconfig"
    return ZephyrStop(name, "kconfig", where, (cause,), (fix,), {"module/Kconfig": KCONFIG + text})


def _overlay(name: str, text: str, where: str, cause: str, fix: str) -> ZephyrStop:
    return ZephyrStop(name, "devicetree", where, (cause,), (fix,), {"app.overlay": text})


def _binding(name: str, kind: str, text: str, where: str, cause: str, fix: str) -> ZephyrStop:
    node = '/ { probe { compatible = "probe,io"; }; };\n'
    head = 'description: io\ncompatible: "probe,io"\n'
    return ZephyrStop(
        name,
        kind,
        where,
        (cause,),
        (fix,),
        {"app.overlay": node, "dts/bindings/probe,io.yaml": head + text},
    )


def _lists(name: str, kind: str, text: str, where: str, cause: str, fix: str) -> ZephyrStop:
    return ZephyrStop(name, kind, where, (cause,), (fix,), {"CMakeLists.txt": text})


def _around(name: str, kind: str, cause: str, fix: str, **environment: str) -> ZephyrStop:
    return ZephyrStop(name, kind, "", (cause,), (fix,), environment=environment)


def _board(name: str, board: str, cause: str, fix: str) -> ZephyrStop:
    return ZephyrStop(name, "board", "", (cause,), (fix,), board=board)


def _attached(name: str, option: str, cause: str, fix: str) -> ZephyrStop:
    return ZephyrStop(name, "board", "", (cause,), (fix,), options=(option,))


STOPS = (
    _conf(
        "kconfig_renamed",
        "CONFIG_ETHOS_U=y",
        "prj.conf:4",
        "sets CONFIG_ETHOS_U, and no Kconfig file",
        "Correct CONFIG_ETHOS_U in",
    ),
    _conf(
        "kconfig_bad_value",
        "CONFIG_MAIN_STACK_SIZE=y",
        "",
        "CONFIG_MAIN_STACK_SIZE is set to y, and it is of the type int",
        "Give CONFIG_MAIN_STACK_SIZE a value of the type int",
    ),
    _conf(
        "kconfig_malformed",
        "CONFIG_SHELL y",
        "prj.conf:4",
        "is not an assignment: `CONFIG_SHELL y`",
        "CONFIG_NAME=value",
    ),
    _conf(
        "kconfig_promptless",
        "CONFIG_HAS_CMSIS_CORE=y",
        "",
        "has no prompt: other options decide it (modules/cmsis/Kconfig:7)",
        "Take CONFIG_HAS_CMSIS_CORE out of the configuration file",
    ),
    _kconfig("kconfig_syntax", "confg PROBE_IO\n", 3, "`confg PROBE_IO` (syntax error)", "Correct"),
    _kconfig(
        "kconfig_unterminated",
        'config PROBE_IO\n\tbool "Copies\n',
        4,
        "unterminated string",
        "Correct",
    ),
    _kconfig("kconfig_no_endif", "if PROBE_BACKEND\n", 0, "has no endif", "Add endif"),
    _kconfig("kconfig_rsource", 'rsource "Kconfig.io"\n', 3, "there is no file", "osource"),
    _kconfig(
        "kconfig_dependency_loop",
        'config PROBE_A\n\tbool "a"\n\tdepends on PROBE_B\n'
        'config PROBE_B\n\tbool "b"\n\tdepends on PROBE_A\n',
        3,
        "PROBE_A",
        "circle",
    ),
    ZephyrStop(
        "kconfig_range",
        "kconfig",
        "",
        ("PROBE_SIZE is set to 99", "1 to 16", "module/Kconfig:3"),
        ("Give CONFIG_PROBE_SIZE a value from 1 to 16",),
        {
            "module/Kconfig": KCONFIG + 'config PROBE_SIZE\n\tint "size"\n\trange 1 16\n',
            "prj.conf": CONF + "CONFIG_PROBE_SIZE=99\n",
        },
    ),
    ZephyrStop(
        "kconfig_select_unmet",
        "kconfig",
        "module/Kconfig:6",
        ("PROBE_SEL selects PROBE_DEP", "DMA is not met"),
        ("Set DMA too",),
        {
            "module/Kconfig": KCONFIG + 'config PROBE_SEL\n\tbool "s"\n\tselect PROBE_DEP\n'
            'config PROBE_DEP\n\tbool "d"\n\tdepends on DMA\n',
            "prj.conf": CONF + "CONFIG_PROBE_SEL=y\n",
        },
    ),
    ZephyrStop(
        "conf_file_missing",
        "kconfig",
        "probe/debug.conf",
        ("does not exist",),
        ("CONF_FILE",),
        options=("-DCONF_FILE=debug.conf",),
    ),
    _overlay(
        "overlay_syntax",
        '&ddr4 {\n  status = "okay"\n};\n',
        "app.overlay:3",
        "expected ';' or ','",
        "the end of the line before",
    ),
    _overlay(
        "overlay_label",
        '\n&ddr7 { status = "okay"; };\n',
        "app.overlay:2",
        "node label ddr7",
        "zephyr.dts",
    ),
    _overlay(
        "overlay_phandle",
        "/ { chosen { zephyr,sram = &ddr9; }; };\n",
        "",
        "/chosen refers to the node label ddr9",
        "Correct the label",
    ),
    _overlay(
        "overlay_include", "#include <npu.dtsi>\n", "app.overlay:1", "includes npu.dtsi", "#include"
    ),
    _overlay(
        "overlay_property_missing",
        '/ { probe { compatible = "zephyr,memory-region"; reg = <0x0 0x1000>; }; };\n',
        "dts/bindings/base/zephyr,memory-region.yaml",
        "The node /probe has no property zephyr,memory-region",
        "Give the node /probe",
    ),
    _overlay(
        "overlay_property_type",
        "&ddr4 { zephyr,memory-region = <4>; };\n",
        "",
        "a value of another type: `zephyr,memory-region = < 0x4 >;`",
        '= "string";',
    ),
    ZephyrStop(
        "overlay_missing",
        "devicetree",
        "npu.overlay",
        ("DTC_OVERLAY_FILE",),
        ("Correct npu.overlay in",),
        options=("-DDTC_OVERLAY_FILE=npu.overlay",),
    ),
    _binding(
        "binding_required",
        "devicetree",
        "properties:\n  size:\n    type: int\n    required: true\n",
        "dts/bindings/probe,io.yaml",
        "has no property size",
        "the property size",
    ),
    _binding(
        "binding_type",
        "binding",
        "properties:\n  size:\n    type: integer\n",
        "dts/bindings/probe,io.yaml",
        "gives size the type integer",
        "one of these types: ",
    ),
    _binding(
        "binding_include",
        "binding",
        "include: [npu-base.yaml]\n",
        "",
        "includes npu-base.yaml",
        "include:",
    ),
    ZephyrStop(
        "binding_yaml",
        "binding",
        "dts/bindings/probe,io.yaml:3",
        ("is not valid YAML",),
        ("Correct",),
        {
            "app.overlay": '/ { probe: probe { compatible = "probe,io"; size = <1>; }; };\n',
            "dts/bindings/probe,io.yaml": 'compatible: "probe,io"\nproperties: [\n',
            "src/main.c": calling(
                "#include <zephyr/devicetree.h>", "return DT_PROP(DT_NODELABEL(probe), size);"
            ),
        },
    ),
    ZephyrStop(
        "dt_label_in_c",
        "devicetree",
        "src/main.c:11",
        ("the devicetree node label no_such_node",),
        ("overlay",),
        {
            "src/main.c": calling(
                "#include <zephyr/device.h>\n",
                "return (int)DEVICE_DT_GET(DT_NODELABEL(no_such_node));",
            )
        },
    ),
    ZephyrStop(
        "header_missing",
        "compile",
        "src/main.c:3",
        ("includes ethosu_driver.h",),
        ("Add the folder that has ethosu_driver.h",),
        {"src/main.c": calling("#include <ethosu_driver.h>\n", "")},
    ),
    _board(
        "board_unknown",
        "mps3/corstone300/an548",
        "mps3 has no variant `corstone300/an548`",
        "mps3/corstone300/an547",
    ),
    _board("board_without_variant", "mps3", "has no variant", "mps3/corstone300/an547"),
    _board("board_unknown_name", "mps9", "no board mps9", "BOARD_ROOT"),
    _attached("shield_unknown", "-DSHIELD=npu_hat", "no shield npu_hat", "SHIELD"),
    _attached("snippet_unknown", "-DSNIPPET=npu-console", "no snippet npu-console", "SNIPPET"),
    _around(
        "toolchain_missing",
        "toolchain",
        "GNUARMEMB_TOOLCHAIN_PATH is '/opt/gcc'",
        "has bin/",
        GNUARMEMB_TOOLCHAIN_PATH="/opt/gcc",
    ),
    _around(
        "toolchain_unset",
        "toolchain",
        "GNUARMEMB_TOOLCHAIN_PATH does not say where",
        "Set GNUARMEMB_TOOLCHAIN_PATH",
        GNUARMEMB_TOOLCHAIN_PATH="",
    ),
    _around(
        "toolchain_variant",
        "toolchain",
        "ZEPHYR_TOOLCHAIN_VARIANT is gccarm",
        "gnuarmemb",
        ZEPHYR_TOOLCHAIN_VARIANT="gccarm",
    ),
    _around(
        "sdk_missing",
        "toolchain",
        "The Zephyr SDK",
        "west sdk install",
        ZEPHYR_TOOLCHAIN_VARIANT="zephyr",
    ),
    ZephyrStop(
        "python_package_missing",
        "python",
        "",
        ("no package west",),
        ("pip install west",),
        options=("-DWEST_PYTHON=/usr/bin/python3", "-DPython3_EXECUTABLE=/usr/bin/python3"),
    ),
    ZephyrStop(
        "newlib_without_locking",
        "toolchain",
        "",
        ("built without retargetable locking",),
        ("CONFIG_PICOLIBC=y",),
        {"prj.conf": CONF.replace("MINIMAL_LIBC", "NEWLIB_LIBC")},
        right={"prj.conf": PICOLIBC},
    ),
    _lists(
        "package_missing",
        "package",
        LISTS + SOURCES + "find_package(executorch REQUIRED)\n",
        "CMakeLists.txt:6",
        "needs the CMake package executorch",
        "-Dexecutorch_DIR=",
    ),
    _lists(
        "cmake_too_old",
        "version",
        "cmake_minimum_required(VERSION 9.1)\n" + LISTS,
        "CMakeLists.txt:1",
        "asks for CMake 9.1 or newer",
        "newer CMake",
    ),
    _lists(
        "zephyr_too_old",
        "version",
        LISTS.replace("Zephyr REQUIRED", "Zephyr 9.9 REQUIRED"),
        "CMakeLists.txt:3",
        "asks for Zephyr 9.9",
        "west update",
    ),
    _lists(
        "module_path_wrong",
        "module",
        LISTS.replace("/module)", "/modul)") + SOURCES,
        "",
        "is not a Zephyr module",
        "module.yml",
    ),
    _lists(
        "cmake_source_missing",
        "cmake",
        LISTS + SOURCES.replace("main.c", "main.c src/gone.c"),
        "",
        "the source src/gone.c",
        "Correct src/gone.c where",
    ),
    _lists("cmake_no_sources", "cmake", LISTS, "", "app has no source file", "target_sources(app"),
    _lists(
        "cmake_syntax",
        "cmake",
        LISTS + "target_sources(app PRIVATE src/main.c\n",
        "CMakeLists.txt:5",
        "is not valid CMake",
        "not finished",
    ),
    _lists(
        "cmake_unknown_command",
        "cmake",
        LISTS + SOURCES + "executorch_sources(x)\n",
        "CMakeLists.txt:6",
        "calls executorch_sources()",
        "Correct executorch_sources in",
    ),
    _lists(
        "cmake_target_missing",
        "cmake",
        LISTS + SOURCES + "target_link_libraries(application PRIVATE m)\n",
        "CMakeLists.txt:6",
        "the target application",
        "`app`",
    ),
    _lists(
        "cmake_subdirectory",
        "cmake",
        LISTS + SOURCES + "add_subdirectory(npu)\n",
        "CMakeLists.txt:6",
        "the folder npu",
        "Correct the path",
    ),
    _lists(
        "cmake_include",
        "cmake",
        LISTS + SOURCES + "include(cmake/npu.cmake)\n",
        "CMakeLists.txt:6",
        "includes cmake/npu.cmake",
        "Correct the path",
    ),
)
