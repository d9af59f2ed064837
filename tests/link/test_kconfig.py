"""Protects what is read of Kconfig: its warnings, its files, and names like one that is unknown."""

from __future__ import annotations

from pathlib import Path

from harness.link.kconfig import RefusedOption, definitions, refused_options, similar_options, terms

_FILE = """\
if ARM
config NPU
	bool "The NPU"
	depends on DMA && \\
		(SPI || I2C)
	help
		depends on nothing that is written here
endif
menuconfig NPU
	default y
config NPU_LOG
	bool "Its log"
"""


def test_each_definition_with_what_it_depends_on() -> None:
    conditions = (" ARM", " DMA &&  \t\t(SPI || I2C)")
    assert list(definitions(_FILE, "NPU")) == [(2, conditions, True), (9, (), False)]


def test_terms_are_split_outside_of_parentheses() -> None:
    assert terms("A && (B && C || D) && !E") == ["A", "(B && C || D)", "!E"]


def test_a_warning_names_what_is_unmet() -> None:
    """The first of its values is what was asked for."""
    said = (
        "warning: NPU (defined at drivers/Kconfig:9, soc/Kconfig:2) was assigned the value 'y' but "
        "got the value 'n'. Check these unsatisfied dependencies: DMA (=n), (A || B) (=n). See h"
    )
    (refused,) = refused_options(["warning: another", said])
    assert refused == RefusedOption("NPU", "y", "n", "drivers/Kconfig:9", ("DMA", "(A || B)"))
    (alone,) = refused_options([said.partition(" Check")[0]])
    assert alone.unmet == ()


def test_names_like_one_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "Kconfig.npu").write_text(
        "config ARM_ETHOS_U\n\tbool\nmenuconfig SHELL\n\tbool\nconfig MAIN_STACK_SIZE\n\tint\n"
    )
    assert similar_options("ETHOS_U", tmp_path) == ("ARM_ETHOS_U",)
    assert similar_options("MAIN_STAK_SIZE", tmp_path) == ("MAIN_STACK_SIZE",)
    assert similar_options("SHLEL", tmp_path) == ("SHELL",)
    assert similar_options("BLUETOOTH", tmp_path) == ()
    assert similar_options("SHELL", tmp_path) == ()  # it is there: its name is not at fault
