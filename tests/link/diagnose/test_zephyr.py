"""Protects what is read from a build directory of Zephyr's: the option that compiles a source, why
an option is n, and the node that a device belongs to. The files have the form of Zephyr 4.1.0's."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.link.diagnose.symbols import behind_option, of_device
from harness.link.diagnose.tree import Tree
from harness.link.diagnose.zephyr import ZephyrBuild, similar_options, zephyr_build

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
_FILES = {
    "build/CMakeCache.txt": "CMAKE_HOME_DIRECTORY:INTERNAL={root}/app\n"
    "CONF_FILE:STRING={root}/app/prj.conf;{root}/app/more.conf\n"
    "Zephyr_DIR:PATH={root}/zephyr/share/zephyr-package/cmake\n",
    "build/zephyr/.config": "CONFIG_NET=y\nCONFIG_SIZE=4\n# CONFIG_DMA is not set\n",
    "build/zephyr/kconfig/sources.txt": "{root}/zephyr/Kconfig\n"
    "{root}/zephyr/modules/cmsis-nn/Kconfig\n{root}/build/Kconfig/Kconfig.dts\n",
    "build/Kconfig/Kconfig.dts": "config DT_HAS_ARM_VERSATILE_I2C_ENABLED\n\tdef_bool y\n",
    "build/zephyr/include/generated/zephyr/devicetree_generated.h": _NODES,
    "app/prj.conf": "CONFIG_IO=y\nCONFIG_NET=y\n",
    "app/more.conf": "\nCONFIG_CMSIS_NN=y\nCONFIG_NESTED=y\n",
    "zephyr/Kconfig": "config IO\n\tbool\n\tdepends on NET && (DMA || SPI) && !SIZE\n"
    "config I2C_SBCON\n\tbool\n\tdepends on DT_HAS_ARM_VERSATILE_I2C_ENABLED\n"
    "if SHELL\nconfig NESTED\n\tbool\nendif\n",
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


def test_a_device_without_a_driver(zephyr: ZephyrBuild) -> None:
    tree = Tree(zephyr.build)
    driver = of_device("__device_dts_ord_7", tree)
    assert driver is not None
    assert "/soc/i2c@9200000 (compatible arm,versatile-i2c); its driver (CONFIG_I2C_SBCON)" in (
        driver.cause
    )
    assert "Enable CONFIG_I2C_SBCON" in driver.fix
    disabled = of_device("__device_dts_ord_8", tree)
    assert disabled is not None
    assert 'status = "okay"' in disabled.fix
    none = of_device("__device_dts_ord_9", tree)
    assert none is not None
    assert "no option of this Zephyr has a driver" in none.cause
    assert of_device("__device_dts_ord_55", tree) is None
    assert of_device("main", tree) is None


def test_names_like_one_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "Kconfig.npu").write_text(
        "config ARM_ETHOS_U\n\tbool\nmenuconfig SHELL\n\tbool\nconfig MAIN_STACK_SIZE\n\tint\n"
    )
    assert similar_options("ETHOS_U", tmp_path) == ("ARM_ETHOS_U",)
    assert similar_options("MAIN_STAK_SIZE", tmp_path) == ("MAIN_STACK_SIZE",)
    assert similar_options("BLUETOOTH", tmp_path) == ()


def test_another_build_directory_is_not_zephyrs(tmp_path: Path) -> None:
    assert zephyr_build(tmp_path) is None
    (tmp_path / "zephyr").mkdir()
    (tmp_path / "zephyr" / ".config").write_text("")
    assert zephyr_build(tmp_path) is None  # nothing says which Zephyr
