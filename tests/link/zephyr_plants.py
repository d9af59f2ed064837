"""Link failures planted in a small Zephyr application of our own, each with the edit that removes
it; for `west build` in a real workspace (tests/link/real_zephyr.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Edits = Mapping[str, str]

LISTS = """\
cmake_minimum_required(VERSION 3.20)
list(APPEND EXTRA_ZEPHYR_MODULES ${CMAKE_CURRENT_LIST_DIR}/module)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(probe)
"""
SOURCES = "target_sources(app PRIVATE src/main.c)\n"
MODULE = """\
if(CONFIG_PROBE_BACKEND)
  zephyr_library_named(probe_backend)
  zephyr_library_sources(backend.c io_default.c)
endif()
"""
CONF = "CONFIG_FPU=y\nCONFIG_MINIMAL_LIBC=y\nCONFIG_PROBE_BACKEND=y\n"
PICOLIBC = CONF.replace("MINIMAL_LIBC", "PICOLIBC")
KCONFIG = 'config PROBE_BACKEND\n\tbool "Backend of the probe"\n'
MAIN = """\
#include <zephyr/sys/printk.h>

int probe_execute(char *to, const char *from);
char probe_output[64];
const char probe_model[512] = {1};

int main(void) {
  printk("probe %d\\n", probe_execute(probe_output, probe_model));
  return 0;
}
"""
FILES: Edits = {
    "CMakeLists.txt": LISTS + SOURCES,
    "prj.conf": CONF,
    "app.overlay": "/* Nothing yet. */\n",
    "src/main.c": MAIN,
    "module/zephyr/module.yml": "name: probe\nbuild:\n  cmake: .\n  kconfig: Kconfig\n",
    "module/Kconfig": KCONFIG,
    "module/CMakeLists.txt": MODULE,
    "module/backend.c": """\
void arm_ethos_io_memcpy(void *to, const void *from, unsigned size);
int probe_execute(char *to, const char *from);
int probe_execute(char *to, const char *from) {
  arm_ethos_io_memcpy(to, from, 16);
  return to[0];
}
""",
    "module/io_default.c": """\
void arm_ethos_io_memcpy(void *to, const void *from, unsigned size);
__attribute__((weak)) void arm_ethos_io_memcpy(void *to, const void *from, unsigned size) {
  for (unsigned i = 0; i < size; ++i) ((char *)to)[i] = ((const char *)from)[i];
}
""",
}


def calling(declaration: str, call: str) -> str:
    """main.c with one more call."""
    declared = MAIN.replace("int probe", f"{declaration}\nint probe", 1)
    return declared.replace("  return 0;", f"  {call}\n  return 0;")


@dataclass(frozen=True)
class ZephyrPlant:
    """``wrong`` files replace or join FILES; ``right`` are those of them that the fix changes.
    ``message`` is what the linker says. ``conf``: the fix changes the configuration, so that all
    is compiled again; ``anew``: it brings system calls of Zephyr, whose headers its build does not
    add to a tree that is there."""

    name: str
    kind: str
    cause_kind: str | None
    message: str
    in_cause: tuple[str, ...]
    in_fix: tuple[str, ...]
    wrong: Edits = field(default_factory=dict)
    right: Edits = field(default_factory=dict)
    conf: bool = False
    anew: bool = False
    log_kind: str | None = None  # of the cause, from the log alone, where it is another one


def _undefined(symbol: str) -> str:
    return f"undefined reference to `{symbol}'"


def _placed(what: str, size: int, region: str) -> str:
    return MAIN.replace(what, f'__attribute__((section("{region}"))) char probe_output[{size}]')


def _with(sources: str) -> str:
    return LISTS + SOURCES.replace("src/main.c", f"src/main.c {sources}")


_SHAPE = """\
/* As compilers other than GCC do it: GCC's reference is weak, and the call then goes to 0. */
extern "C" void __cxa_pure_virtual();
void (*volatile shape_vtable[])() = {__cxa_pure_virtual};
extern "C" int shape_area(int a) {
  shape_vtable[0]();
  return a;
}
"""
_NEW = """\
struct Shape { int side; };
extern "C" int shape_area(int a) {
  Shape *volatile shape = new Shape{a};
  return shape->side;
}
"""
_LOG = """\
struct Log {
  int level = 3;
  ~Log() { level = 0; }
};
static Log log_;
extern "C" int shape_area(int a) { return a + log_.level; }
"""
_CALL_SHAPE = calling("int shape_area(int);", "return shape_area(3);")


def _cpp(name: str, symbol: str, text: str) -> ZephyrPlant:
    return ZephyrPlant(
        name,
        "undefined_symbol",
        "option_not_set",
        _undefined(symbol),
        ("shape.cpp", "CONFIG_CPP"),
        ("CONFIG_CPP=y",),
        {
            "CMakeLists.txt": _with("src/shape.cpp"),
            "src/main.c": _CALL_SHAPE,
            "src/shape.cpp": text,
        },
        {"prj.conf": CONF + "CONFIG_CPP=y\n"},
        conf=True,
    )


PLANTS = (
    ZephyrPlant(
        "weak_default_not_compiled",
        "undefined_symbol",
        "weak_default_not_compiled",
        _undefined("arm_ethos_io_memcpy"),
        ("libprobe_backend.a(backend.c.obj)", "probe_execute", "io_default.c:2"),
        ("Add io_default.c to the sources of",),
        {"module/CMakeLists.txt": MODULE.replace(" io_default.c", "")},
        {"module/CMakeLists.txt": MODULE},
    ),
    ZephyrPlant(
        "two_arenas",
        "duplicate_symbol",
        None,
        "multiple definition of `probe_arena'",
        (
            "libapp.a(arena.c.obj)",
            "src/arena.c:1",
            "libprobe_backend.a(arena.c.obj)",
            "module/arena.c:1",
        ),
        ("Keep one definition of probe_arena",),
        {
            "CMakeLists.txt": _with("src/arena.c"),
            "src/arena.c": "char probe_arena[4096];\n",
            "module/CMakeLists.txt": MODULE.replace("io_default.c", "io_default.c arena.c"),
            "module/arena.c": "char probe_arena[8192];\n",
        },
        {"module/CMakeLists.txt": MODULE},
    ),
    ZephyrPlant(
        "flash_overflow",
        "region_overflow",
        None,
        "region `FLASH' overflowed by",
        ("main.c.obj", "probe_model", "600000 bytes"),
        ("Move", "probe_model", "ISRAM"),
        {"src/main.c": MAIN.replace("[512]", "[600000]")},
        {
            "src/main.c": MAIN.replace(
                "const char probe_model[512]",
                '__attribute__((section("ISRAM"))) char probe_model[600000]',
            )
        },
    ),
    ZephyrPlant(
        "ram_overflow",
        "region_overflow",
        None,
        "region `RAM' overflowed by",
        ("main.c.obj", "probe_output", "600000 bytes"),
        ("Move", "probe_output", "ISRAM"),
        {"src/main.c": MAIN.replace("probe_output[64]", "probe_output[600000]")},
        {"src/main.c": _placed("char probe_output[64]", 600000, "ISRAM")},
    ),
    ZephyrPlant(
        "itcm_overflow",
        "region_overflow",
        None,
        "region `ITCM' overflowed by",
        ("main.c.obj", "600000 bytes"),
        ("Move", "main.c.obj", "ISRAM"),
        {"src/main.c": _placed("char probe_output[64]", 600000, "ITCM")},
        {"src/main.c": _placed("char probe_output[64]", 600000, "ISRAM")},
    ),
    ZephyrPlant(
        "ddr_overflow",
        "region_overflow",
        None,
        "region `DDR4' overflowed by",
        ("main.c.obj", "10000 bytes"),
        ("Move", "main.c.obj", "ISRAM"),
        {
            "app.overlay": "&ddr4 { reg = <0x60000000 0x1000>; };\n",
            "src/main.c": _placed("char probe_output[64]", 10000, "DDR4"),
        },
        {"src/main.c": _placed("char probe_output[64]", 10000, "ISRAM")},
        conf=True,
    ),
    ZephyrPlant(
        "whole_archive_twice",
        "duplicate_symbol",
        "linked_twice",
        "multiple definition of `probe_execute'",
        ("libprobe_backend.a(backend.c.obj)", "twice", "--whole-archive"),
        ("libprobe_backend.a", "once"),
        {
            "CMakeLists.txt": LISTS + SOURCES + "target_link_libraries(app PUBLIC "
            "-Wl,--whole-archive ${CMAKE_BINARY_DIR}/modules/probe/libprobe_backend.a "
            "-Wl,--no-whole-archive)\n"
        },
        {"CMakeLists.txt": LISTS + SOURCES},
    ),
    ZephyrPlant(
        "syscall_missing",
        "undefined_symbol",
        "no_definition",
        _undefined("_times"),
        ("main.c.obj", "Zephyr does not have"),
        ("Define it in the application",),
        {"src/main.c": calling("int _times(void *);", "_times(probe_output);")},
        {
            "src/main.c": calling(
                "int _times(void *p) { (void)p; return -1; }", "_times(probe_output);"
            )
        },
    ),
    ZephyrPlant(
        "sbrk_missing",
        "undefined_symbol",
        "option_not_set",
        _undefined("_sbrk"),
        ("main.c.obj", "libc-hooks.c", "CONFIG_NEWLIB_LIBC"),
        ("CONFIG_NEWLIB_LIBC=y",),
        {"src/main.c": calling("void *_sbrk(int);", "_sbrk(4);")},
        {"src/main.c": calling("void *_sbrk(int n) { (void)n; return 0; }", "_sbrk(4);")},
    ),
    ZephyrPlant(
        "picolibc_times",
        "undefined_symbol",
        "no_definition",
        _undefined("times"),
        ("libc.a(clock.c.obj)", "function clock", "Zephyr does not have"),
        ("Define it in the application",),
        {"prj.conf": PICOLIBC, "src/main.c": calling("#include <time.h>", "return (int)clock();")},
        {
            "src/main.c": calling(
                "#include <time.h>\nlong times(void *p);\n"
                "long times(void *p) { (void)p; return -1; }",
                "return (int)clock();",
            )
        },
    ),
    ZephyrPlant(
        "picolibc_gettimeofday",
        "undefined_symbol",
        "option_not_set",
        _undefined("gettimeofday"),
        (
            "libc.a(time.c.obj)",
            "function time",
            "lib/posix/options/clock.c",
            "only with CONFIG_POSIX_TIMERS",
        ),
        ("CONFIG_POSIX_TIMERS=y",),
        {"prj.conf": PICOLIBC, "src/main.c": calling("#include <time.h>", "return (int)time(0);")},
        {"prj.conf": PICOLIBC + "CONFIG_POSIX_TIMERS=y\n"},
        conf=True,
        anew=True,
    ),
    _cpp("cxx_pure_virtual", "__cxa_pure_virtual", _SHAPE),
    _cpp("cxx_operator_new", "operator new(unsigned int)", _NEW),
    _cpp("cxx_dso_handle", "__dso_handle", _LOG),
    ZephyrPlant(
        "float_abi_mixed",
        "wrong_architecture",
        None,
        "uses VFP register arguments",
        ("scale.o",),
        ("Rebuild", "-mfloat-abi"),
        {
            "CMakeLists.txt": LISTS
            + SOURCES
            + "target_link_libraries(app PUBLIC ${CMAKE_SOURCE_DIR}/scale.o)\n",
            "src/main.c": calling("float scale(float);", "return (int)scale(3.0f);"),
            "scale.c": "/* -mfloat-abi=soft */\nfloat scale(float a) { return a * 1.5f; }\n",
        },
        {"scale.c": "/* -mfloat-abi=hard */\nfloat scale(float a) { return a * 1.5f; }\n"},
    ),
    ZephyrPlant(
        "module_not_in_manifest",
        "undefined_symbol",
        "option_not_taken",
        _undefined("arm_relu_q7"),
        (
            "main.c.obj",
            "CONFIG_CMSIS_NN was set to y and got n",
            "a module is missing",
            "modules/cmsis-nn/Kconfig:7",
        ),
        ("manifest", "west update"),
        {
            "prj.conf": CONF + "CONFIG_CMSIS_NN=y\n",
            "src/main.c": calling(
                "void arm_relu_q7(signed char *, unsigned short);",
                "arm_relu_q7((signed char *)probe_output, 64);",
            ),
        },
        {"prj.conf": CONF, "src/main.c": MAIN},
    ),
    ZephyrPlant(
        "stayed_n",
        "undefined_symbol",
        "option_not_taken",
        _undefined("arm_ethos_io_memcpy"),
        ("CONFIG_PROBE_IO", "stayed n", "depends on DMA", "prj.conf:4", "module/CMakeLists.txt:4"),
        ("CONFIG_DMA=y",),
        {
            "module/Kconfig": KCONFIG + 'config PROBE_IO\n\tbool "Copies"\n\tdepends on DMA\n',
            "module/CMakeLists.txt": MODULE.replace(
                " io_default.c)", ")\n  zephyr_library_sources_ifdef(CONFIG_PROBE_IO io_default.c)"
            ),
            "prj.conf": CONF + "CONFIG_PROBE_IO=y\n",
        },
        {"prj.conf": CONF + "CONFIG_PROBE_IO=y\nCONFIG_DMA=y\n"},
        conf=True,
    ),
    ZephyrPlant(
        "option_not_set",
        "undefined_symbol",
        "option_not_set",
        _undefined("crc32_ieee"),
        ("CONFIG_CRC", "crc32_sw.c", "CMakeLists.txt"),
        ("CONFIG_CRC=y",),
        {
            "src/main.c": calling(
                "#include <zephyr/sys/crc.h>",
                "return (int)crc32_ieee((const uint8_t *)probe_model, 4);",
            )
        },
        {"prj.conf": CONF + "CONFIG_CRC=y\n"},
        conf=True,
        log_kind="no_definition",
    ),
    ZephyrPlant(
        "driver_not_enabled",
        "undefined_symbol",
        "no_driver",
        "undefined reference to `__device_dts_ord_",
        ("i2c@9200000", "arm,versatile-i2c", "not enabled"),
        ("CONFIG_I2C",),
        {
            "src/main.c": calling(
                "#include <zephyr/device.h>", "return (int)DEVICE_DT_GET(DT_NODELABEL(i2c_touch));"
            )
        },
        {"prj.conf": CONF + "CONFIG_I2C=y\n"},
        conf=True,
    ),
)
