"""Protects a suite from a runner that was built for another core than its programs are for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.suite import suite
from harness.core.errors import UsageError
from harness.suites.suites import SUITES, check_core


def compiled(folder: Path, *how: str) -> Path:
    """An object file, which has the same attributes as a program."""
    elf = folder / "elf"
    words = ["arm-none-eabi-gcc", *how, "-mthumb", "-x", "c", "-c", "-", "-o", str(elf)]
    subprocess.run(words, check=True, input=b"int runner(void) { return 0; }")
    return elf


@pytest.mark.parametrize(
    ("how", "name"),
    [
        (("-mcpu=cortex-m0plus",), "Armv6S-M"),
        (("-mcpu=cortex-m4", "-mfloat-abi=hard"), "Armv7E-M"),
        (("-mcpu=cortex-m55+nomve", "-mfloat-abi=hard"), "cortex-m55"),
    ],
)
def test_a_runner_without_helium_is_refused(
    tmp_path: Path, how: tuple[str, ...], name: str
) -> None:
    """Before any test is collected: with it a depthwise convolution passes or fails by chance."""
    elf = compiled(tmp_path, *how)
    with pytest.raises(UsageError, match="without Helium") as error:
        check_core(SUITES["cortex-m"], elf)
    assert error.value.built_for == name
    assert "--target=cortex-m55" in str(error.value.hint)
    done = CliRunner().invoke(suite, ["cortex-m", "--elf", str(elf)])
    assert done.exit_code == 2
    assert f"was built for {name} without Helium" in done.output


@pytest.mark.parametrize("how", ["-mcpu=cortex-m55", "-march=armv8.1-m.main+mve"])
def test_a_runner_with_helium_is_taken(tmp_path: Path, how: str) -> None:
    check_core(SUITES["cortex-m"], compiled(tmp_path, how, "-mfloat-abi=hard"))


def test_an_npus_programs_need_no_helium(tmp_path: Path) -> None:
    elf = compiled(tmp_path, "-mcpu=cortex-m33")
    for name in ("ethos-u55", "ethos-u85"):
        check_core(SUITES[name], elf)


def test_what_does_not_tell_its_core_is_left_to_the_stand_in(tmp_path: Path) -> None:
    elf = compiled(tmp_path, "-mcpu=cortex-m4")
    strip = ["arm-none-eabi-objcopy", "--remove-section=.ARM.attributes", str(elf)]
    subprocess.run(strip, check=True)
    check_core(SUITES["cortex-m"], elf)
    elf.write_bytes(b"not an ELF")
    check_core(SUITES["cortex-m"], elf)
