"""Firmware of the cache is used only when every file of it is what was built for that key."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.firmware.cache import read_firmware, stamp_of
from harness.firmware.source import CheckoutFacts, Firmware, source_named
from harness.system import artifact_cache
from harness.system.files import sha256_of
from tests.firmware.sealed import load_firmware

FILES = ("executor_runner", "executor_runner.map", "executor_runner.stripped", "root/lib/libc.so")


@pytest.fixture
def built(tmp_path: Path) -> Firmware:
    """As a build leaves it: below its key, sealed."""
    return make(tmp_path / "k1", "corstone-300-m55")


def make(directory: Path, target: str) -> Firmware:
    (directory / "root" / "lib").mkdir(parents=True)
    for name in FILES:
        (directory / name).write_text(f"{name} of {target}")
    digest = sha256_of(directory / FILES[0])
    options = {"HIL_REGION_SRAM": "0x0:0x100"}
    firmware = Firmware(directory, target, directory.name, "gcc", "ab", digest, 1.0, options)
    save(firmware)
    return firmware


def save(firmware: Firmware) -> None:
    (firmware.directory / "firmware.json").write_text(json.dumps(stamp_of(firmware)))
    artifact_cache.seal(firmware.directory, firmware.key)


def test_firmware_is_loaded_as_it_was_built(built: Firmware) -> None:
    assert load_firmware(built.directory) == built


@pytest.mark.parametrize("name", FILES)
def test_an_edited_file_is_not_used(built: Firmware, name: str) -> None:
    (built.directory / name).write_text("edited")
    assert load_firmware(built.directory) is None


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_not_used(built: Firmware, name: str) -> None:
    (built.directory / name).unlink()
    assert load_firmware(built.directory) is None


def test_an_added_library_is_not_used(built: Firmware) -> None:
    """Everything below ``root`` is given to the guest."""
    (built.directory / "root" / "lib" / "libm.so").write_text("")
    assert load_firmware(built.directory) is None


def test_an_edited_description_is_not_used(built: Firmware) -> None:
    file = built.directory / "firmware.json"
    fields = json.loads(file.read_text())
    file.write_text(json.dumps({**fields, "options": {}}))
    assert load_firmware(built.directory) is None


def test_firmware_of_another_target_is_not_used(built: Firmware) -> None:
    """One target's directory at the key of another one."""
    other = make(built.directory.with_name("k2"), "corstone-300-u55-128")
    built.directory.rename(built.directory.with_name("away"))
    other.directory.rename(built.directory)
    assert load_firmware(built.directory) is None


def test_an_elf_that_was_edited_with_its_description_is_not_used(built: Firmware) -> None:
    built.elf.write_text("edited")
    file = built.directory / "firmware.json"
    fields = json.loads(file.read_text())
    file.write_text(json.dumps({**fields, "elf_sha256": sha256_of(built.elf)}))
    assert load_firmware(built.directory) is None


def test_the_description_keeps_the_checkout_and_the_source(built: Firmware) -> None:
    checkout = CheckoutFacts(
        "/src/executorch", "cff6f4dd", "main", False, "", "hil", ("linked so",)
    )
    theirs = replace(
        built, source=source_named("executorch"), checkout=checkout, notes=("from a wheel",)
    )
    save(theirs)
    found = load_firmware(built.directory)
    assert found == theirs == read_firmware(built.directory)
    assert found is not None
    assert found.one_set_per_process


@pytest.mark.parametrize("change", [{"source": "else"}, {"checkout": {"path": "/x"}}])
def test_a_damaged_description_is_no_firmware(built: Firmware, change: dict[str, object]) -> None:
    file = built.directory / "firmware.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    assert read_firmware(built.directory) is None
