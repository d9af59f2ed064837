"""Failures planted in a small Zephyr application of our own (tests/link/zephyr_probe), each with
the edit that removes it; built by `west build` in a real workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

BOARD = "mps3/corstone300/an547"
Edits = Mapping[str, str]

_LISTS = """\
cmake_minimum_required(VERSION 3.20)
list(APPEND EXTRA_ZEPHYR_MODULES ${CMAKE_CURRENT_LIST_DIR}/module)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(probe)
"""
_MODULE = """\
if(CONFIG_PROBE_BACKEND)
  zephyr_library_named(probe_backend)
  zephyr_library_sources(backend.c io_default.c)
endif()
"""
_PRJ = "CONFIG_FPU=y\nCONFIG_MINIMAL_LIBC=y\nCONFIG_PROBE_BACKEND=y\n"
_KCONFIG = """\
config PROBE_BACKEND
	bool "Backend of the probe"
"""
_MAIN = """\
#include <zephyr/sys/printk.h>

int probe_execute(char *to, const char *from);
char probe_output[64];
const char probe_model[512] = {1};

int main(void) {
  printk("probe %d\\n", probe_execute(probe_output, probe_model));
  return 0;
}
"""


def _calling(declaration: str, call: str) -> str:
    """main.c with one more call."""
    return _MAIN.replace("int probe", declaration + "\nint probe", 1).replace(
        "  return 0;", f"  {call}\n  return 0;"
    )


@dataclass(frozen=True)
class ZephyrPlant:
    """``wrong`` files replace or join those of the sample; ``right`` are the fix."""

    name: str
    wrong: Edits = field(default_factory=dict)
    right: Edits = field(default_factory=dict)
    board: str = BOARD
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


_OBJ = "target_sources(app PRIVATE src/main.c {})\n"

LINKS = (
    ZephyrPlant(
        "weak_default_not_compiled",
        {"module/CMakeLists.txt": _MODULE.replace(" io_default.c", "")},
        {"module/CMakeLists.txt": _MODULE},
    ),
    ZephyrPlant(
        "two_arenas",
        {"CMakeLists.txt": _LISTS + _OBJ.format("src/arena.c"),
         "src/arena.c": "char probe_arena[4096];\n",
         "module/CMakeLists.txt": _MODULE.replace("io_default.c", "io_default.c arena.c"),
         "module/arena.c": "char probe_arena[8192];\n"},
        {"module/CMakeLists.txt": _MODULE},
    ),
    ZephyrPlant(
        "flash_overflow",
        {"src/main.c": _MAIN.replace("[512]", "[600000]")},
        {"src/main.c": _MAIN.replace("const char probe_model[512]",
            '__attribute__((section("ISRAM"))) char probe_model[600000]')},
    ),
    ZephyrPlant(
        "ram_overflow",
        {"src/main.c": _MAIN.replace("[64]", "[600000]")},
        {"src/main.c": _MAIN.replace("char probe_output[64]",
            '__attribute__((section("ISRAM"))) char probe_output[600000]')},
    ),
    ZephyrPlant(
        "itcm_overflow",
        {"src/main.c": _MAIN.replace("char probe_output[64]",
            '__attribute__((section("ITCM"))) char probe_output[600000]')},
        {"src/main.c": _MAIN.replace("char probe_output[64]",
            '__attribute__((section("ISRAM"))) char probe_output[600000]')},
    ),
    ZephyrPlant(
        "ddr_overflow",
        {"app.overlay": "&ddr4 { reg = <0x60000000 0x1000>; };\n",
         "src/main.c": _MAIN.replace("char probe_output[64]",
            '__attribute__((section("DDR4"))) char probe_output[10000]')},
        {"src/main.c": _MAIN.replace("char probe_output[64]",
            '__attribute__((section("ISRAM"))) char probe_output[10000]')},
    ),
    ZephyrPlant(
        "whole_archive_twice",
        {"CMakeLists.txt": _LISTS + _OBJ.format("") +
            "target_link_libraries(app PUBLIC -Wl,--whole-archive "
            "${CMAKE_BINARY_DIR}/modules/probe/libprobe_backend.a -Wl,--no-whole-archive)\n"},
        {"CMakeLists.txt": _LISTS + _OBJ.format("")},
    ),
    ZephyrPlant(
        "syscall_missing",
        {"src/main.c": _calling("int _times(void *);", "_times(probe_output);")},
    ),
    ZephyrPlant(
        "sbrk_missing",
        {"src/main.c": _calling("void *_sbrk(int);", "_sbrk(4);")},
    ),
    ZephyrPlant(
        "cxx_pure_virtual",
        {"CMakeLists.txt": _LISTS + _OBJ.format("src/shape.cpp"),
         "src/main.c": _calling("int shape_area(int);", "return shape_area(3);"),
         "src/shape.cpp": "struct Shape { virtual int area() = 0; int twice() { return 2 * area(); } };\n"
         "struct Square : Shape { int side; Square(int a) : side(a) {} int area() override { return side * side; } };\n"
         "extern \"C\" int shape_area(int a) { volatile int b = a; Shape *s = new Square(b); return s->twice(); }\n"
         },
        {"prj.conf": _PRJ + "CONFIG_CPP=y\n"},
    ),
    ZephyrPlant(
        "cxx_dso_handle",
        {"CMakeLists.txt": _LISTS + _OBJ.format("src/log.cpp"),
         "src/main.c": _calling("int log_level(void);", "return log_level();"),
         "src/log.cpp": "struct Log { int level = 3; ~Log() { level = 0; } };\nstatic Log log_;\n"
         "extern \"C\" int log_level() { return log_.level; }\n"
         },
        {"prj.conf": _PRJ + "CONFIG_CPP=y\n"},
    ),
    ZephyrPlant(
        "module_not_in_manifest",
        {"prj.conf": _PRJ + "CONFIG_CMSIS_NN=y\n",
         "src/main.c": _calling("void arm_relu_q7(signed char *, unsigned short);",
                                "arm_relu_q7((signed char *)probe_output, 64);")},
    ),
    ZephyrPlant(
        "stayed_n",
        {"module/Kconfig": _KCONFIG + 'config PROBE_IO\n\tbool "Copies of the probe"\n\tdepends on DMA\n',
         "module/CMakeLists.txt": _MODULE.replace(" io_default.c)", ")\n  zephyr_library_sources_ifdef(CONFIG_PROBE_IO io_default.c)"),
         "prj.conf": _PRJ + "CONFIG_PROBE_IO=y\n"},
        {"prj.conf": _PRJ + "CONFIG_PROBE_IO=y\nCONFIG_DMA=y\n"},
    ),
    ZephyrPlant(
        "option_not_set",
        {"src/main.c": _calling("#include <zephyr/sys/reboot.h>", "sys_reboot(0);")},
        {"prj.conf": _PRJ + "CONFIG_REBOOT=y\n"},
    ),
    ZephyrPlant(
        "driver_not_enabled",
        {"src/main.c": _calling("#include <zephyr/device.h>\n",
                                "return (int)DEVICE_DT_GET(DT_NODELABEL(gpio_led0));")},
        {"prj.conf": _PRJ + "CONFIG_GPIO=y\n"},
    ),
)

STOPS = (
    ZephyrPlant("kconfig_renamed", {"prj.conf": _PRJ + "CONFIG_ETHOS_U=y\n"}, {"prj.conf": _PRJ + "CONFIG_ARM_ETHOS_U=y\n"}),
    ZephyrPlant("kconfig_syntax", {"module/Kconfig": _KCONFIG + "confg PROBE_IO\n"}),
    ZephyrPlant("kconfig_unterminated", {"module/Kconfig": _KCONFIG + 'config PROBE_IO\n\tbool "Copies\n'}),
    ZephyrPlant("kconfig_no_endif", {"module/Kconfig": "if PROBE_BACKEND\n" + _KCONFIG}),
    ZephyrPlant("kconfig_rsource", {"module/Kconfig": _KCONFIG + 'rsource "Kconfig.io"\n'}),
    ZephyrPlant("kconfig_promptless", {"prj.conf": _PRJ + "CONFIG_HAS_CMSIS_CORE=y\n"}),
    ZephyrPlant("kconfig_bad_value", {"prj.conf": _PRJ + "CONFIG_MAIN_STACK_SIZE=y\n"}),
    ZephyrPlant("kconfig_bad_bool", {"prj.conf": _PRJ + "CONFIG_SHELL=yes\n"}),
    ZephyrPlant("kconfig_malformed", {"prj.conf": _PRJ + "CONFIG_SHELL y\n"}),
    ZephyrPlant("kconfig_dependency_loop", {"module/Kconfig": _KCONFIG + "config PROBE_A\n\tbool \"a\"\n\tdepends on PROBE_B\nconfig PROBE_B\n\tbool \"b\"\n\tdepends on PROBE_A\n"}),
    ZephyrPlant("kconfig_range", {"module/Kconfig": _KCONFIG + "config PROBE_SIZE\n\tint \"size\"\n\trange 1 16\n\tdefault 4\n", "prj.conf": _PRJ + "CONFIG_PROBE_SIZE=99\n"}),
    ZephyrPlant("kconfig_choice", {"prj.conf": _PRJ + "CONFIG_SPEED_OPTIMIZATIONS=y\nCONFIG_DEBUG_OPTIMIZATIONS=y\n"}),
    ZephyrPlant("kconfig_select_unmet", {"module/Kconfig": _KCONFIG + "config PROBE_SEL\n\tbool \"s\"\n\tselect PROBE_DEP\nconfig PROBE_DEP\n\tbool \"d\"\n\tdepends on DMA\n", "prj.conf": _PRJ + "CONFIG_PROBE_SEL=y\n"}),
    ZephyrPlant("conf_file_missing", {}, options=("-DCONF_FILE=debug.conf",)),
    ZephyrPlant("extra_conf_missing", {}, options=("-DEXTRA_CONF_FILE=debug.conf",)),
    ZephyrPlant("overlay_missing", {}, options=("-DDTC_OVERLAY_FILE=npu.overlay",)),
    ZephyrPlant("overlay_syntax", {"app.overlay": "&ddr4 {\n  status = \"okay\"\n};\n"}),
    ZephyrPlant("overlay_label", {"app.overlay": "\n&ddr7 { status = \"okay\"; };\n"}),
    ZephyrPlant("overlay_include", {"app.overlay": "#include <npu.dtsi>\n"}),
    ZephyrPlant("overlay_property_missing", {"app.overlay": "/ { probe { compatible = \"zephyr,memory-region\"; reg = <0x0 0x1000>; }; };\n"}),
    ZephyrPlant("overlay_property_undeclared", {"app.overlay": "&ddr4 { speed = <4>; };\n"}),
    ZephyrPlant("overlay_property_type", {"app.overlay": "&ddr4 { zephyr,memory-region = <4>; };\n"}),
    ZephyrPlant("overlay_value_not_allowed", {"app.overlay": "&uart0 { hw-flow-control = <1>; parity = \"maybe\"; };\n"}),
    ZephyrPlant("overlay_phandle", {"app.overlay": "/ { chosen { zephyr,sram = &ddr9; }; };\n"}),
    ZephyrPlant("binding_yaml", {"dts/bindings/probe,io.yaml": "description: io\ncompatible: \"probe,io\"\nproperties:\n  size: [\n"}),
    ZephyrPlant("binding_type", {"dts/bindings/probe,io.yaml": "description: io\ncompatible: \"probe,io\"\nproperties:\n  size:\n    type: integer\n",
        "app.overlay": "/ { probe { compatible = \"probe,io\"; size = <1>; }; };\n"}),
    ZephyrPlant("binding_include", {"dts/bindings/probe,io.yaml": "description: io\ncompatible: \"probe,io\"\ninclude: [npu-base.yaml]\n",
        "app.overlay": "/ { probe { compatible = \"probe,io\"; size = <1>; }; };\n"}),
    ZephyrPlant("binding_required", {"dts/bindings/probe,io.yaml": "description: io\ncompatible: \"probe,io\"\nproperties:\n  size:\n    type: int\n    required: true\n",
        "app.overlay": "/ { probe { compatible = \"probe,io\"; }; };\n"}),
    ZephyrPlant("dt_macro", {"src/main.c": _calling("#include <zephyr/device.h>\n",
                                "return (int)DEVICE_DT_GET(DT_NODELABEL(no_such_node));")}),
    ZephyrPlant("dt_alias", {"src/main.c": _calling("#include <zephyr/devicetree.h>\n",
                                "return DT_REG_ADDR(DT_ALIAS(npu0));")}),
    ZephyrPlant("header_missing", {"src/main.c": _calling("#include <ethosu_driver.h>\n", "")}),
    ZephyrPlant("board_unknown", board="mps3/corstone300/an548"),
    ZephyrPlant("board_unknown_name", board="mps9"),
    ZephyrPlant("board_qualifier_missing", board="mps3"),
    ZephyrPlant("package_missing", {"CMakeLists.txt": _LISTS + _OBJ.format("") + "find_package(executorch REQUIRED)\n"}),
    ZephyrPlant("cmake_too_old", {"CMakeLists.txt": "cmake_minimum_required(VERSION 9.1)\n" + _LISTS + _OBJ.format("")}),
    ZephyrPlant("zephyr_too_old", {"CMakeLists.txt": _LISTS.replace("Zephyr REQUIRED", "Zephyr 4.4 REQUIRED") + _OBJ.format("")}),
    ZephyrPlant("cmake_source_missing", {"CMakeLists.txt": _LISTS + _OBJ.format("src/gone.c")}),
    ZephyrPlant("cmake_no_sources", {"CMakeLists.txt": _LISTS}),
    ZephyrPlant("cmake_syntax", {"CMakeLists.txt": _LISTS + "target_sources(app PRIVATE src/main.c\n"}),
    ZephyrPlant("cmake_unknown_command", {"CMakeLists.txt": _LISTS + _OBJ.format("") + "executorch_sources(x)\n"}),
    ZephyrPlant("cmake_target_missing", {"CMakeLists.txt": _LISTS + _OBJ.format("") + "target_link_libraries(application PRIVATE m)\n"}),
    ZephyrPlant("cmake_include", {"CMakeLists.txt": _LISTS + _OBJ.format("") + "include(cmake/npu.cmake)\n"}),
    ZephyrPlant("cmake_subdirectory", {"CMakeLists.txt": _LISTS + _OBJ.format("") + "add_subdirectory(npu)\n"}),
    ZephyrPlant("cmake_library_missing", {"CMakeLists.txt": _LISTS + _OBJ.format("") + "target_link_libraries(app PRIVATE npu_driver)\n"}),
    ZephyrPlant("module_path_wrong", {"CMakeLists.txt": _LISTS.replace("/module)", "/modul)") + _OBJ.format("")}),
    ZephyrPlant("toolchain_missing", environment={"GNUARMEMB_TOOLCHAIN_PATH": "/opt/gcc-arm-none-eabi"}),
    ZephyrPlant("toolchain_unset", environment={"GNUARMEMB_TOOLCHAIN_PATH": ""}),
    ZephyrPlant("toolchain_variant", environment={"ZEPHYR_TOOLCHAIN_VARIANT": "gccarm"}),
    ZephyrPlant("sdk_missing", environment={"ZEPHYR_TOOLCHAIN_VARIANT": "zephyr"}),
    ZephyrPlant("shield_unknown", options=("-DSHIELD=npu_hat",)),
    ZephyrPlant("snippet_unknown", options=("-DSNIPPET=npu-console",)),
)  # fmt: skip
