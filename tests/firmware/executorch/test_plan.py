"""Protects which targets a checkout has a runner for, what its build is told, and what makes two
firmwares the same: nothing of where things lie, all of what they are made from."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.core.errors import UsageError
from harness.core.simulator_name import SimulatorName
from harness.firmware.checkout import PartMissing, find_checkout
from harness.firmware.executorch import plan as checkout_plan
from harness.firmware.executorch.overlay import Overlay
from harness.firmware.executorch.plan import configure, make_plan, operators
from harness.sim.simulator import pick
from harness.system import paths, toolchain
from harness.system.paths import executorch_package
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.small import OPS, commit, edit, git, sdk_platform

BOARDS = (
    "corstone-300-m55",
    "corstone-300-u55-128",
    "corstone-300-u65-256",
    "corstone-320-u85-256",
)


@pytest.mark.parametrize("name", ["mps2-m4", "host"])
def test_a_target_without_a_runner(read_only: Source, name: str) -> None:
    target = load_target(name)
    with pytest.raises(UsageError, match=f"{name} on .* is neither") as caught:
        make_plan(target, SimulatorName.QEMU, read_only.find())
    assert caught.value.target == name
    assert "--firmware bundled" in str(caught.value.hint)


def test_only_an_fvp_and_qemu_are_the_board(read_only: Source) -> None:
    """Of another simulator nobody knows what would start the program there."""
    checkout = read_only.find(core_platform=sdk_platform(read_only.folder))
    with pytest.raises(UsageError, match="corstone-300-m55 on host is neither"):
        make_plan(load_target("corstone-300-m55"), SimulatorName.HOST, checkout)


@pytest.mark.parametrize("name", BOARDS)
def test_an_fvp_is_started_by_the_sdks_platform(read_only: Source, name: str) -> None:
    target = pick(load_target(name), "fvp").target
    with pytest.raises(PartMissing, match="needs the Ethos-U core platform") as caught:
        make_plan(target, SimulatorName.FVP, read_only.find())
    assert "setup.sh" in caught.value.command
    platform = sdk_platform(read_only.folder)
    plan = make_plan(target, SimulatorName.FVP, read_only.find(core_platform=platform))
    assert (plan.platform, plan.relinked) == (None, False)


@pytest.mark.parametrize("name", BOARDS)
def test_linux_asks_for_nothing_of_a_board_without_it(read_only: Source, name: str) -> None:
    """There is no core driver in it; a board of Cortex-M is told at once what it lacks."""
    parts = {n: p for n, p in read_only.parts.items() if n not in ("core_driver", "cmsis_6")}
    checkout = find_checkout(read_only.root, parts)
    linux = load_target("corstone-1000-a320")
    assert make_plan(linux, SimulatorName.QEMU, checkout).is_linux
    with pytest.raises(PartMissing, match="needs the Ethos-U core driver, CMSIS 6") as caught:
        make_plan(pick(load_target(name), "qemu").target, SimulatorName.QEMU, checkout)
    assert caught.value.parts == ("core_driver", "cmsis_6")


def test_the_sdk_of_the_checkout_itself(small: Source) -> None:
    """Where ExecuTorch's setup.sh puts it: nothing needs to be given."""
    sdk_platform(small.root / "examples" / "arm" / "arm-scratch" / "ethos-u")
    target = pick(load_target("corstone-300-u55-128"), "fvp").target
    assert make_plan(target, SimulatorName.FVP, small.find()).platform is None


@pytest.mark.parametrize("name", BOARDS)
def test_what_the_build_is_given(read_only: Source, name: str) -> None:
    plan = read_only.plan(name)
    npu = load_target(name).npu
    assert plan.options["HIL_NPU"] == ("OFF" if npu is None else "ON")
    wanted = "ethos-u55-128" if npu is None else f"ethos-{npu.product}-{npu.macs}"
    assert plan.options["ETHOSU_TARGET_NPU_CONFIG"] == wanted
    assert plan.options["TARGET_CPU"] == ("cortex-m85" if "u85" in name else "cortex-m55")
    assert plan.relinked == ("u85" in name)
    assert plan.notes[0] == (
        "started by the harness's own platform code, not ethos-u-core-platform's"
    )
    assert ("linked for QEMU's memory map, not Corstone-320's" in plan.notes) == plan.relinked


@pytest.mark.parametrize("pools", ["enlarged", "own"])
def test_the_method_pool_is_the_sources_where_a_setting_says_so(
    small: Source, pools: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overflow that ExecuTorch's users would see is seen; enlarged, the record says so."""
    (tmp_path / "hil.toml").write_text(f'pools = "{pools}"\n')
    monkeypatch.setenv("HIL_PROJECT", str(tmp_path))
    source = small.root / "examples/arm/executor_runner/arm_executor_runner.cpp"
    with source.open("a") as file:
        file.write("\n#define ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE (60 * 1024 * 1024)\n")
    plan = small.plan("corstone-300-m55")
    name = "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE"
    assert (name in plan.options) == (pools == "enlarged")
    note = "its method pool is 80 MiB, by its sources 60 MiB (the setting `pools`)"
    assert (note in plan.notes) == (pools == "enlarged")


def test_a_users_board_has_its_own_memory(read_only: Source) -> None:
    """Regions and pools of its file, so that what does not fit is seen; no pool is enlarged."""
    plan = read_only.plan(str(paths.data_root() / "examples/board/sensor-node.yaml"))
    regions = "ITCM=0x10000000:0x20000;DTCM=0x30000000:0x10000;SRAM=0x31000000:0x60000"
    assert plan.options["HIL_REGIONS"] == regions
    assert plan.options["ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE"] == str(0xC000)
    assert "linked for the memory that sensor-node has" in plan.notes
    assert read_only.plan().options["HIL_REGIONS"] == ""


def test_only_the_overlay_is_named_to_the_build(read_only: Source, tmp_path: Path) -> None:
    """A path of the user's would be read past it, and written to."""
    overlay = Overlay(tmp_path / "o")
    argv = configure(read_only.plan("corstone-320-u85-256"), overlay, tmp_path / "b", Path("/py"))
    assert str(read_only.root) not in " ".join(argv)
    assert not any(str(place) in " ".join(argv) for place in read_only.parts.values())
    assert "-DPYTHON_EXECUTABLE=/py" in argv
    regions = "BROM=0x10000000:0x8000;ITCM=0x10008000:0x8000;BRAM=0x11000000:0x200000"
    assert f"-DHIL_REGIONS={regions}" in argv


def test_operators_are_those_that_the_checkout_has(small: Source) -> None:
    checkout = small.find()
    text = (small.root / OPS / "operators.yaml").read_text()
    own = re.findall(r"^- func: (cortex_m::[\w.]+)", text, re.MULTILINE)
    for npu in (False, True):
        named = operators(checkout, npu=npu)
        assert named[: len(own)] == tuple(own)
        assert len(set(named)) == len(named)
        assert {"executorch_prim::et_view.default", "aten::add.out"} <= set(named)
        assert "quantized_decomposed::quantize_per_tensor.out" in named
    edit(small.root / "kernels/portable/functions.yaml", "- op: add.out", "- op: plus.out")
    assert "aten::add.out" not in operators(checkout, npu=False)


def test_an_installed_flatc_that_fits_saves_making_one(small: Source) -> None:
    """One of another version writes what the checkout's headers refuse."""
    header = small.parts["flatbuffers"] / "include/flatbuffers/base.h"
    installed = toolchain.version_of(executorch_package() / "data/bin/flatc").split(".")
    text = header.read_text()
    for word, number in zip(("MAJOR", "MINOR", "REVISION"), installed, strict=True):
        define = rf"(#define FLATBUFFERS_VERSION_{word}) \d+"
        text = re.sub(define, rf"\g<1> {number}", text)
    header.write_text(text)
    fitting = small.plan().flatc
    assert fitting is not None
    assert toolchain.version_of(fitting) == ".".join(installed)
    edit(header, f"_MAJOR {installed[0]}", f"_MAJOR {int(installed[0]) + 1}")
    assert small.plan().flatc is None


def other_place(small: Source) -> Source:
    shutil.copytree(small.root, small.folder / "copy", symlinks=True)
    parts = {}
    for name, place in small.parts.items():
        git(small.folder, "clone", "-q", str(place), f"parts-{name}")
        parts[name] = small.folder / f"parts-{name}"
    return Source(small.folder / "copy", parts, small.folder)


def test_equal_content_elsewhere_is_the_same_firmware(read_only: Source) -> None:
    """But not the same build tree, whose links lead to one checkout and its parts."""
    here, there = read_only.plan(), other_place(read_only).plan()
    assert here.key() == there.key()
    assert here.tree() != there.tree()


def test_a_part_of_another_place_is_another_tree(read_only: Source) -> None:
    """ninja would compare its old files with the tree's new objects, and keep these."""
    git(read_only.folder, "clone", "-q", str(read_only.parts["cmsis-nn"]), "nn")
    moved = Source(
        read_only.root, {**read_only.parts, "cmsis-nn": read_only.folder / "nn"}, read_only.folder
    )
    assert moved.plan().key() == read_only.plan().key()
    assert moved.plan().tree() != read_only.plan().tree()


def test_the_tree_stays_when_sources_change(small: Source) -> None:
    before = small.plan()
    commit(small.root, "nothing")
    commit(small.parts["cmsis-nn"], "nothing")
    after = small.plan()
    assert after.key() != before.key()
    assert after.tree() == before.tree()


Change = Callable[[Source, pytest.MonkeyPatch], object]
INGREDIENTS: dict[str, Change] = {
    "commit": lambda small, _: commit(small.root, "nothing"),
    "new file": lambda small, _: (small.root / "runtime/core/new.h").write_text(""),
    "edit": lambda small, _: (small.root / "runtime/core/log.h").write_text(""),
    "part": lambda small, _: commit(small.parts["flatcc"], "nothing"),
    "toolchain": lambda _, patch: patch.setattr(toolchain, "toolchain_id", lambda _: "gcc 99"),
    "generators": lambda _, patch: patch.setattr(
        checkout_plan.metadata, "version", lambda _: "9.9"
    ),
    "platform": lambda small, patch: our_platform(small, patch),
}


def our_platform(small: Source, patch: pytest.MonkeyPatch) -> None:
    """Our own code for QEMU, with an edit."""
    ours = small.folder / "data"
    for name in ("cmake", "targets"):
        shutil.copytree(paths.data_root() / name, ours / name)
    edit(ours / "targets/executorch/platform/fault.cpp", "Hard fault.", "Hard  fault.")
    patch.setattr(paths, "data_root", lambda: ours)


def test_every_ingredient_is_in_the_key(small: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [small.plan().key()]
    for name, change in INGREDIENTS.items():
        change(small, monkeypatch)
        keys.append(small.plan().key())
        assert keys[-1] not in keys[:-1], name


def test_every_option_is_in_the_key(read_only: Source) -> None:
    plan = read_only.plan()
    keys = {replace(plan, options={**plan.options, name: "x"}).key() for name in plan.options}
    assert len(keys | {plan.key()}) == len(plan.options) + 1
    plans = [read_only.plan(name) for name in BOARDS]
    assert len({plan.key() for plan in plans}) == len(BOARDS)
    assert len({plan.tree() for plan in plans}) == len(BOARDS), "none disturbs another"


def test_a_change_where_nothing_is_built_is_none(small: Source) -> None:
    before = small.plan().key()
    (small.root / "docs" / "README.md").write_text("more")
    assert small.plan().key() == before


def test_the_place_of_flatc_does_not_count(read_only: Source) -> None:
    """Each virtual environment has one of its own."""
    plan = read_only.plan()
    one, other, none = (
        replace(plan, flatc=flatc).key() for flatc in (Path("/a"), Path("/b"), None)
    )
    assert one == other != none
