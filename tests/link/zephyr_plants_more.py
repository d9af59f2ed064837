"""More link failures planted in the sample of zephyr_plants.py, as people make them: a source or a
library that is not linked, options of Zephyr's subsystems, registries, what the C library lacks."""

from __future__ import annotations

from tests.link.zephyr_plants import (
    CONF,
    LISTS,
    MAIN,
    MODULE,
    SOURCES,
    Edits,
    ZephyrPlant,
    calling,
)


def _plant(
    name: str,
    cause_kind: str | None,
    symbol: str,
    in_cause: tuple[str, ...],
    in_fix: tuple[str, ...],
    wrong: Edits,
    right: Edits,
    *,
    conf: bool = False,
    log_kind: str | None = None,
) -> ZephyrPlant:
    message = f"undefined reference to `{symbol}'"
    return ZephyrPlant(
        name,
        "undefined_symbol",
        cause_kind,
        message,
        in_cause,
        in_fix,
        wrong,
        right,
        conf,
        log_kind=log_kind,
    )


def _option(name: str, symbol: str, option: str, header: str, call: str) -> ZephyrPlant:
    main = calling(f"#include <{header}>\nstatic char room[64];", call)
    return _plant(
        name,
        "option_not_set",
        symbol,
        (option,),
        (f"{option}=y",),
        {"src/main.c": main},
        {"prj.conf": CONF + f"{option}=y\n"},
        conf=True,
        log_kind="no_definition",
    )


def _two(declaration: str, call: str, other: str, lists: str = "src/main.c src/util.c") -> Edits:
    return {
        "CMakeLists.txt": LISTS + SOURCES.replace("src/main.c", lists),
        "src/main.c": calling(declaration, call),
        "src/util.c": other,
    }


_SCALE = "int scale(int a);\nint scale(int a) { return a * 3; }\n"
_REGISTRY = """\
#include <zephyr/sys/iterable_sections.h>
struct op { int (*run)(int); };
static int twice(int a) { return 2 * a; }
STRUCT_SECTION_ITERABLE(op, op_twice) = {twice};"""
_LOG = "#include <zephyr/logging/log.h>\nLOG_MODULE_{}(probe);"
_ERRNO = "#include <errno.h>\nint scale(int a);\nint scale(int a) { errno = a; return a * 3; }\n"
_WALK = "int n = 0; STRUCT_SECTION_FOREACH(op, o) { n += o->run(n); } return n;"

MORE_PLANTS = (
    _plant(
        "static_elsewhere",
        "static",
        "scale",
        ("util.c", "static"),
        ("static",),
        _two(
            "int scale(int);",
            "return scale(2);",
            "static int scale(int a) { return a * 3; }\nint (*volatile used)(int) = scale;\n",
        ),
        {"src/util.c": _SCALE},
    ),
    _plant(
        "capitals",
        "no_definition",
        "Scale",
        ("scale",),
        ("Write scale",),
        _two("int Scale(int);", "return Scale(2);", _SCALE),
        {"src/main.c": calling("int scale(int);", "return scale(2);")},
    ),
    _plant(
        "source_not_compiled",
        "source_not_compiled",
        "scale",
        ("util.c:",),
        ("Add util.c",),
        _two("int scale(int);", "return scale(2);", _SCALE, "src/main.c"),
        {"CMakeLists.txt": LISTS + SOURCES.replace("src/main.c", "src/main.c src/util.c")},
        log_kind="no_definition",
    ),
    ZephyrPlant(
        "defined_in_a_header",
        "duplicate_symbol",
        None,
        "multiple definition of `scale'",
        ("from the header", "util.h"),
        ("static inline",),
        {
            **_two('#include "util.h"', "return scale(2);", '#include "util.h"\n'),
            "src/util.h": _SCALE,
        },
        {"src/util.h": "static inline int scale(int a) { return a * 3; }\n"},
    ),
    _plant(
        "c99_inline",
        "no_definition",
        "scale",
        ("util.h",),
        ("static inline",),
        {
            **_two('#include "util.h"', "return used(2);", ""),
            "src/util.h": "inline int scale(int a) { return a * 3; }\n"
            "static int (*volatile used)(int) = scale;\n",
        },
        {
            "src/util.h": "static inline int scale(int a) { return a * 3; }\n"
            "static int (*volatile used)(int) = scale;\n"
        },
    ),
    _plant(
        "heap_without_pool",
        "no_definition",
        "k_malloc",
        ("system heap",),
        ("CONFIG_HEAP_MEM_POOL_SIZE=",),
        {"src/main.c": calling("#include <zephyr/kernel.h>", "return k_malloc(8) != 0;")},
        {"prj.conf": CONF + "CONFIG_HEAP_MEM_POOL_SIZE=4096\n"},
        conf=True,
        log_kind="no_definition",
    ),
    _option(
        "base64",
        "base64_encode",
        "CONFIG_BASE64",
        "zephyr/sys/base64.h",
        "size_t n; return base64_encode((uint8_t *)room, 64, &n, (const uint8_t *)probe_model, 4);",
    ),
    _option(
        "json",
        "json_obj_encode_buf",
        "CONFIG_JSON_LIBRARY",
        "zephyr/data/json.h",
        "return json_obj_encode_buf(0, 0, probe_output, room, 64);",
    ),
    _plant(
        "library_not_linked",
        "library_not_linked",
        "scale",
        ("libscaling.a",),
        ("target_link_libraries(app",),
        {
            **_two("int scale(int);", "return scale(2);", _SCALE, "src/main.c"),
            "CMakeLists.txt": LISTS
            + SOURCES
            + "add_library(scaling STATIC src/util.c)\nadd_dependencies(app scaling)\n"
            + "target_link_libraries(scaling PRIVATE zephyr_interface)\n",
        },
        {
            "CMakeLists.txt": LISTS
            + SOURCES
            + "add_library(scaling STATIC src/util.c)\ntarget_link_libraries(app PRIVATE scaling)\n"
            + "target_link_libraries(scaling PRIVATE zephyr_interface)\n"
        },
        log_kind="no_definition",
    ),
    _plant(
        "registry_without_section",
        "no_definition",
        "_op_list_start",
        ("iterable objects of struct op",),
        ("ITERABLE_SECTION_",),
        {"src/main.c": calling(_REGISTRY, _WALK)},
        {
            "src/ops.ld": "#include <zephyr/linker/iterable_sections.h>\n"
            "ITERABLE_SECTION_RAM(op, 4)\n",
            "CMakeLists.txt": LISTS + SOURCES + "zephyr_linker_sources(DATA_SECTIONS src/ops.ld)\n",
        },
    ),
    _plant(
        "log_module_not_registered",
        "no_definition",
        "log_const_probe",
        ("declares the log module probe",),
        ("LOG_MODULE_REGISTER(probe)",),
        {
            "prj.conf": CONF + "CONFIG_LOG=y\n",
            "src/main.c": calling(_LOG.format("DECLARE"), 'LOG_INF("probe");'),
        },
        {"src/main.c": calling(_LOG.format("REGISTER"), 'LOG_INF("probe");')},
    ),
    _plant(
        "ethos_u_driver",
        "option_not_set",
        "ethosu_reserve_driver",
        ("the Ethos-U core driver",),
        ("CONFIG_ARM_ETHOS_U=y",),
        {
            "src/main.c": calling(
                "void *ethosu_reserve_driver(void);", "return ethosu_reserve_driver() != 0;"
            )
        },
        {"prj.conf": CONF + "CONFIG_ARM_ETHOS_U=y\nCONFIG_HEAP_MEM_POOL_SIZE=4096\n"},
        conf=True,
    ),
    _plant(
        "newlibs_errno",
        "option_not_set",
        "__errno",
        ("newlib, with whose headers",),
        ("C library of this build",),
        {
            **_two("int scale(int);", "return scale(2);", "", "src/main.c"),
            "CMakeLists.txt": LISTS
            + SOURCES
            + "target_link_libraries(app PUBLIC ${CMAKE_SOURCE_DIR}/scale.o)\n",
            "scale.c": "/* -mfloat-abi=hard */\n" + _ERRNO,
        },
        _two("int scale(int);", "return scale(2);", _ERRNO),
    ),
    _plant(
        "thread_local",
        "no_definition",
        "__aeabi_read_tp",
        ("thread",),
        ("Take __thread",),
        {"src/main.c": calling("static __thread int n;", "return n++;")},
        {"src/main.c": calling("static int n;", "return n++;")},
    ),
    _plant(
        "wide_atomic",
        "library_not_linked",
        "__atomic_fetch_add_8",
        ("libatomic",),
        ("application",),
        {"src/main.c": calling("static long long n;", "return (int)__atomic_fetch_add(&n, 1, 5);")},
        {"src/main.c": calling("static int n;", "return __atomic_fetch_add(&n, 1, 5);")},
    ),
    _plant(
        "sine_without_a_library",
        "option_not_set",
        "sinf",
        ("sinf",),
        ("CONFIG_",),
        {"src/main.c": calling("float sinf(float);", "return (int)sinf((float)probe_output[0]);")},
        {"prj.conf": CONF.replace("MINIMAL_LIBC", "PICOLIBC")},
        conf=True,
    ),
    _plant(
        "module_library_twice_removed",
        "weak_default_not_compiled",
        "arm_ethos_io_memcpy",
        ("io_default.c",),
        ("io_default.c",),
        {
            "module/CMakeLists.txt": MODULE.replace("backend.c io_default.c", "backend.c"),
            "src/main.c": MAIN.replace("[512]", "[256]"),
        },
        {"module/CMakeLists.txt": MODULE},
    ),
)
