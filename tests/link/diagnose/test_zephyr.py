"""Protects what is read from a build directory of Zephyr's: the option that compiles a source, why
an option is n, and the node that a device belongs to. The files have the form of Zephyr 4.1.0's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.link.command import LinkerCall
from harness.link.diagnose.symbols import behind_option, of_device
from harness.link.diagnose.tree import Tree
from harness.link.diagnose.undefined import explain_undefined
from harness.link.diagnose.zephyr import BuildCondition, ZephyrBuild, zephyr_build
from harness.link.failure import Failure, FailureKind
from harness.link.index import LinkIndex

_NODES = """\
/*
 * Node dependency ordering (ordinal and path):
 *   0   /
 *   7   /soc/i2c@9200000
 *   8   /soc/spi@9300000
 *   9   /soc/clock@1
 */
 * Devicetree node: /soc/i2c@9200000
 *
 * Binding (compatible = arm,versatile-i2c):
#define DT_N_S_soc_S_i2c_9200000_STATUS_okay 1
 * Devicetree node: /soc/spi@9300000
 *
 * Binding (compatible = arm,pl022):
#define DT_N_S_soc_S_spi_9300000_STATUS_disabled 1
 * Devicetree node: /soc/clock@1
#define DT_N_S_soc_S_clock_1_STATUS_okay 1
"""
_CHAIN = """\
if HW
config COPIES
\tbool "Copies"
\tdepends on NET && !DMA && (SPI || SHELL) && \\
\t           ENGINE
\thelp
\t  It also
\t  depends on NOTHING
endif
config ENGINE
\tbool "Engine"
\tdepends on DMA && !NET
config DMA
\tbool "DMA"
config HW
\tbool
\tdefault y
\tdepends on DT_HAS_PROBE_HW_ENABLED
config HIDDEN
\tbool
config USES_HIDDEN
\tbool "Uses it"
\tdepends on HIDDEN
config SELECTS
\tbool "Selects"
\tselect HIDDEN if NET
if SOC_FAMILY
config GPIO
\tdefault y
endif
menuconfig GPIO
\tbool "GPIO"
config GPIO_SBCON
\tbool "GPIO driver"
\tdepends on GPIO
config ALONE
\tbool
config USES_ALONE
\tbool "Uses it"
\tdepends on ALONE
"""
_FILES = {
    "build/CMakeCache.txt": "CMAKE_HOME_DIRECTORY:INTERNAL={root}/app\n"
    "CONF_FILE:STRING={root}/app/prj.conf;{root}/app/more.conf\n"
    "Zephyr_DIR:PATH={root}/zephyr/share/zephyr-package/cmake\n",
    "build/zephyr/.config": "CONFIG_NET=y\nCONFIG_SIZE=4\n# CONFIG_DMA is not set\n"
    "CONFIG_DT_HAS_ARM_VERSATILE_I2C_ENABLED=y\n",
    "build/zephyr/kconfig/sources.txt": "{root}/zephyr/Kconfig\n"
    "{root}/zephyr/Kconfig.i2c\n{root}/zephyr/Kconfig.chain\n{root}/zephyr/modules/cmsis-nn/Kconfig\n"
    "{root}/build/Kconfig/Kconfig.dts\n",
    "build/Kconfig/Kconfig.dts": "DT_COMPAT_PROBE_HW := probe,hw\nconfig DT_HAS_PROBE_HW_ENABLED\n"
    "\tdef_bool $(dt_compat_enabled,$(DT_COMPAT_PROBE_HW))\n"
    "config DT_HAS_ARM_VERSATILE_I2C_ENABLED\n\tdef_bool y\n",
    "build/zephyr/include/generated/zephyr/devicetree_generated.h": _NODES,
    "app/prj.conf": "CONFIG_IO=y\nCONFIG_NET=y\n",
    "app/more.conf": "\nCONFIG_CMSIS_NN=y\nCONFIG_NESTED=y\n",
    "zephyr/Kconfig": "config IO\n\tbool\n\tdepends on NET && (DMA || SPI) && !SIZE\n"
    'menuconfig I2C\n\tbool "I2C"\nif I2C\nrsource "./Kconfig.i2c"\nendif\n'
    'if SHELL\nconfig NESTED\n\tbool\nendif\nconfig SHELL\n\tbool "Shell"\n'
    'if 0\nosource "modules/*/Kconfig"\nendif\nsource "Kconfig.chain"\n',
    "zephyr/Kconfig.i2c": 'config I2C_SBCON\n\tbool "Driver"\n'
    "\tdepends on DT_HAS_ARM_VERSATILE_I2C_ENABLED\n",
    "zephyr/Kconfig.chain": _CHAIN,
    "zephyr/modules/cmsis-nn/Kconfig": "menuconfig CMSIS_NN\n\tbool\n",
    "zephyr/lib/CMakeLists.txt": "add_subdirectory_ifdef(CONFIG_CPP cpp)\nadd_subdirectory(net)\n",
    "zephyr/lib/cpp/CMakeLists.txt": "zephyr_sources_ifdef(\n  CONFIG_STATIC_INIT\n  dtors.c)\n",
    "zephyr/lib/net/CMakeLists.txt": "if(CONFIG_NET)\n  zephyr_sources(a.c)  # if(CONFIG_X)\n"
    "  if(CONFIG_IO)\n    zephyr_sources(src/io.c)\n  else()\n    zephyr_sources(b.c)\n  endif()\n"
    "endif()\n",
}


@pytest.fixture
def zephyr(tmp_path: Path) -> ZephyrBuild:
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace("{root}", str(tmp_path)))
    found = zephyr_build(tmp_path / "build")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("source", "option", "where"),
    [
        ("lib/cpp/dtors.c", "CPP", "lib/CMakeLists.txt:1"),  # the outermost brings the others
        ("lib/net/src/io.c", "IO", "lib/net/CMakeLists.txt:3"),
        ("lib/net/a.c", None, ""),
        ("lib/net/b.c", None, ""),
        ("lib/net/unknown.c", None, ""),
    ],
)
def test_the_option_that_compiles_a_source(
    zephyr: ZephyrBuild, source: str, option: str | None, where: str
) -> None:
    gate = zephyr.gate(zephyr.base / source)
    if option is None:
        assert gate is None
        return
    assert gate is not None
    assert gate.option == option
    assert f"{gate.file}:{gate.line}" == str(zephyr.base / where)


def test_why_what_was_set_is_n(zephyr: ZephyrBuild) -> None:
    why = {option.symbol: option for option in zephyr.refused_options()}
    assert set(why) == {"IO", "CMSIS_NN", "NESTED"}  # NET is y
    assert why["IO"].unmet == ("(DMA || SPI)",)  # !SIZE holds: it is no y
    assert why["IO"].defined == "Kconfig:1"
    assert why["NESTED"].unmet == ("SHELL",)
    assert "CONFIG_SHELL=y" in why["NESTED"].fix
    assert "a module is missing" in why["CMSIS_NN"].why
    assert "west update" in why["CMSIS_NN"].fix
    gate = zephyr.gate(zephyr.base / "lib/net/src/io.c")
    assert gate is not None
    said = behind_option(gate, "io.c:1", "it", zephyr)
    assert "app/prj.conf:1 sets it to y, but it stayed n" in said.cause


@pytest.mark.parametrize(
    ("option", "why", "fix"),
    [
        (
            "COPIES",
            "CONFIG_ENGINE: it depends on DMA and !NET, which is n (Kconfig.chain:10)",
            'Enable a devicetree node with `compatible = "probe,hw"` (in an overlay). Set the '
            "options of `(SPI || SHELL)` so that it holds. Set CONFIG_DMA=y and "
            "CONFIG_NET=n and CONFIG_ENGINE=y and CONFIG_COPIES=y in prj.conf.",
        ),
        (
            "USES_HIDDEN",
            "it depends on HIDDEN, which is n",
            "Set CONFIG_SELECTS=y in prj.conf, which selects CONFIG_HIDDEN. "
            "Set CONFIG_USES_HIDDEN=y in prj.conf.",
        ),
        (
            "USES_ALONE",
            "it depends on ALONE, which is n",
            "Have CONFIG_ALONE selected by another option: it has no prompt (Kconfig.chain:",
        ),
        ("NESTED", "it depends on SHELL, which is n", "Set CONFIG_SHELL=y in prj.conf."),
        # Each family of SoCs gives GPIO a default in a definition of its own, without a prompt.
        ("GPIO_SBCON", "it depends on GPIO, which is n", "Set CONFIG_GPIO=y and CONFIG_GPIO_SBCON"),
    ],
)
def test_the_chain_that_keeps_an_option_n(
    zephyr: ZephyrBuild, option: str, why: str, fix: str
) -> None:
    """To its end: also what is around the definition."""
    refusal = zephyr.refusal(option)
    assert why in refusal.why
    assert fix in refusal.fix_if_unset


def test_an_option_that_nobody_set_is_reported_with_what_it_needs(zephyr: ZephyrBuild) -> None:
    said = behind_option(
        BuildCondition("ENGINE", Path("CMakeLists.txt"), 3), "io.c:1", "it", zephyr
    )
    assert "which is n: it depends on DMA and !NET" in said.cause
    assert said.fix == "Set CONFIG_DMA=y and CONFIG_NET=n and CONFIG_ENGINE=y in prj.conf."


def test_a_device_without_a_driver(zephyr: ZephyrBuild) -> None:
    tree = Tree(zephyr.build)
    driver = of_device("__device_dts_ord_7", tree)
    assert driver is not None
    assert "/soc/i2c@9200000 (compatible arm,versatile-i2c); its driver (CONFIG_I2C_SBCON)" in (
        driver.cause
    )
    assert "CONFIG_I2C_SBCON: it depends on I2C, which is n (Kconfig.i2c:1)" in driver.cause
    assert driver.fix == "Set CONFIG_I2C=y and CONFIG_I2C_SBCON=y in prj.conf."
    disabled = of_device("__device_dts_ord_8", tree)
    assert disabled is not None
    assert 'status = "okay"' in disabled.fix
    none = of_device("__device_dts_ord_9", tree)
    assert none is not None
    assert "no option of this Zephyr has a driver" in none.cause
    assert of_device("__device_dts_ord_55", tree) is None
    assert of_device("main", tree) is None


@pytest.mark.parametrize(
    ("region", "node"),
    [("RAM", "&dtcm (app.overlay:3)"), ("DDR4", "memory@60000000"), ("ROM", None)],
)
def test_the_node_of_a_memory_region(zephyr: ZephyrBuild, region: str, node: str | None) -> None:
    """The devicetree line that sets the region's size is named, where Zephyr gives it."""
    (zephyr.build / "zephyr" / "zephyr.dts").write_text(
        "/ {\n\tchosen {\n\t\tzephyr,sram = &dtcm;\n\t};\n\tdtcm: dtcm@30000000 {\n"
        '\t\tcompatible = "zephyr,memory-region";\n'
        "\t\treg = < 0x30000000 0x1000 >;   /* in app.overlay:3 */\n\t};\n"
        "\tmemory@60000000 {\n\t\treg = < 0x60000000 0x10 >;\n"
        '\t\tzephyr,memory-region = "DDR4";\n\t};\n};\n'
    )
    assert zephyr.memory_node(region) == node


def test_another_build_directory_is_not_zephyrs(tmp_path: Path) -> None:
    assert zephyr_build(tmp_path) is None
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / ".config").write_text("")
    assert zephyr_build(tmp_path) is None  # nothing says which Zephyr


def test_a_heap_without_a_size_is_not_told_by_its_condition(zephyr: ZephyrBuild) -> None:
    source = zephyr.build.parent / "app" / "f.c"
    source.write_text("#if K_HEAP_MEM_POOL_SIZE > 0\nint k_malloc(int n)\n{\n}\n#endif\n")
    entry = {"directory": str(source.parent), "file": str(source), "command": "cc"}
    (zephyr.build / "compile_commands.json").write_text(json.dumps([entry]))
    failure = Failure(FailureKind.UNDEFINED_SYMBOL, "gnu", 1, "", symbol="k_malloc")
    no_files = LinkIndex(LinkerCall(("ld",), zephyr.build), ())
    said = explain_undefined(failure, no_files, Tree(zephyr.build))
    assert said.fix.startswith("Set CONFIG_HEAP_MEM_POOL_SIZE=4096")


def test_newlibs_names_in_a_build_with_another_c_library(zephyr: ZephyrBuild) -> None:
    """Zephyr has them in a file for newlib alone; the option is not the first thing to set."""
    hooks = zephyr.base / "lib" / "net" / "src" / "io.c"
    hooks.parent.mkdir()
    hooks.write_text("int *__errno(void)\n{\n}\n")
    failure = Failure(FailureKind.UNDEFINED_SYMBOL, "gnu", 1, "", symbol="__errno")
    no_files = LinkIndex(LinkerCall(("ld",), zephyr.build), ())
    said = explain_undefined(failure, no_files, Tree(zephyr.build))
    assert "newlib, with whose headers something was compiled" in said.cause
    assert "lib/net/CMakeLists.txt:3 compiles it only with CONFIG_IO" in said.cause
    assert said.fix.startswith("Compile what needs it with the C library of this build")


@pytest.mark.parametrize(
    ("condition", "why", "fix"),
    [
        ("#ifdef CONFIG_SHELL", "only with CONFIG_SHELL, which is n", "Set CONFIG_SHELL=y in prj."),
        ("#if defined(CONFIG_IO)", "app/prj.conf:1 sets it to y, but it stayed n", "(DMA || SPI)"),
        ("#ifdef CONFIG_MINE", "no Kconfig file of this build defines", "Take that condition out"),
        (
            "#if SIZE > 4",
            "it stands in `#if SIZE > 4`",
            "Set what `#if SIZE > 4` in f.c",
        ),
        (
            "#ifndef __ARM",
            "it stands in `#ifndef __ARM`",
            "Set what `#ifndef __ARM` in f.c",
        ),
        ("", "a macro or a template leaves it out", "Instantiate hook explicitly"),
    ],
)
def test_a_definition_that_a_condition_leaves_out(
    zephyr: ZephyrBuild, condition: str, why: str, fix: str
) -> None:
    source, made = zephyr.build.parent / "app" / "f.c", zephyr.build / "f.o"
    source.write_text(f"{condition}\nint hook(void)\n{{\n  return 1;\n}}\n#endif\n")
    made.write_bytes(b"")
    entry = {"directory": str(made.parent), "file": str(source), "command": "cc -o f.o"}
    (zephyr.build / "compile_commands.json").write_text(json.dumps([entry]))
    failure = Failure(FailureKind.UNDEFINED_SYMBOL, "gnu", 1, "", symbol="hook")
    no_files = LinkIndex(LinkerCall(("ld",), zephyr.build), ())
    said = explain_undefined(failure, no_files, Tree(zephyr.build))
    assert why in said.cause
    assert fix in said.fix
