"""Each source is one object: found by the name of its module, complete, and the same everywhere."""

from __future__ import annotations

import copy
import pickle
import re
import shutil
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.firmware.choice import FirmwareChoice, sources_of
from harness.firmware.names import firmware_words, source_names
from harness.firmware.source import BuildRequest, source_named
from harness.nightly import store
from harness.run.pipeline import RunOptions
from harness.sim.simulator import pick
from harness.system.paths import cache_dir
from tests.firmware.executorch.small import small_checkout
from tests.firmware.wheel.wheels import plant

TARGETS = {
    "bundled": "host",
    "executorch": "corstone-300-m55",
    "wheel": "corstone-1000-a320",
}
needs_compilers = pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-g++") and shutil.which("arm-none-eabi-gcc")),
    reason="needs aarch64-linux-gnu-g++ and arm-none-eabi-gcc",
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of its own, and a wheel that pip can get."""
    plant(tmp_path / "index")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return tmp_path


def options_of(name: str, folder: Path) -> RunOptions:
    source = source_named(name)
    root, parts = small_checkout(folder / "src") if source.needs_checkout else (None, {})
    return RunOptions(firmware=FirmwareChoice((source,), root, parts))


@pytest.mark.parametrize("name", source_names())
def test_a_source_says_what_to_do(name: str) -> None:
    source = source_named(name)
    assert (source.name, str(source)) == (name, name)
    assert source.kernel_hint
    assert source.backend_hint


@pytest.mark.parametrize("name", source_names())
def test_a_copy_is_the_same_object(name: str) -> None:
    """Of workers in other processes, too."""
    source = source_named(name)
    assert copy.deepcopy(source) is source
    assert pickle.loads(pickle.dumps(source)) is source


def test_a_name_that_no_source_has() -> None:
    with pytest.raises(ValueError, match="no source of firmware is called 'os'"):
        source_named("os")


def test_each_source_can_run_alone_and_beside_the_bundled_one() -> None:
    words = firmware_words()
    assert {"bundled", "executorch", "wheel", "both", "bundled+wheel"} <= set(words)
    assert sources_of("both") == (source_named("bundled"), source_named("executorch"))
    assert all(sources_of(word) for word in words)


@needs_compilers
@pytest.mark.parametrize("name", TARGETS)
def test_a_night_can_share_the_firmware_of_every_source(name: str, home: Path) -> None:
    """`hil nightly run --store` with `firmware: wheel` ended in an AssertionError."""
    options = options_of(name, home)
    program, firmware = store.entries_of(Case(TARGETS[name], "add"), options)
    assert (program.kind, firmware.kind) == ("programs", "firmware")
    assert re.fullmatch("[0-9a-f]{32}", firmware.key)
    assert firmware.place() is None


@needs_compilers
@pytest.mark.parametrize("name", TARGETS)
def test_the_build_tree_is_known_before_the_build(name: str, home: Path) -> None:
    checkout = options_of(name, home).firmware.checkout()
    chosen = pick(load_target(TARGETS[name]))
    tree = source_named(name).tree(BuildRequest(chosen.target, chosen.name, checkout))
    kind = "executorch" if checkout is not None else "firmware"
    assert tree.parent.parent == cache_dir(kind)
    assert not tree.exists()
