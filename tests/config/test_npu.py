"""Ethos-U targets as data: what is legal, what each memory mode puts where, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.loading import load_target, load_targets, npu, target_directories
from harness.config.matrix import CaseSelection, default_cases
from harness.config.target import Region, Target
from harness.core.errors import TargetError, Unknown, UsageError
from harness.formats.ethosu import MACS, PRODUCTS
from harness.system.paths import data_root

DIRECTORIES = target_directories({})
ALL = {t.name: t for t in load_targets(DIRECTORIES) if t.npu and not t.zephyr}
FILES = {name: target for name, target in ALL.items() if not target.direct_drive}
DIRECT = {name: target for name, target in ALL.items() if target.direct_drive}
BOARDS = {"corstone-300-u55": "u55", "corstone-300-u65": "u65", "corstone-320-u85": "u85"}
DEDICATED = (
    "Dedicated_Sram",
    "Dedicated_Sram_256KB",
    "Dedicated_Sram_384KB",
    "Dedicated_Sram_512KB",
)


def load(name: str) -> Target:
    return load_target(name, DIRECTORIES)


def modes(target: Target) -> tuple[str, ...]:
    assert target.npu is not None
    return target.npu.memory_modes


VARIATIONS = [f"{name}@{mode}" for name, target in FILES.items() for mode in modes(target)]


def test_every_product_and_mac_count_is_a_target() -> None:
    expected = {f"{board}-{macs}" for board, name in BOARDS.items() for macs in MACS[name]}
    assert set(FILES) == expected


def test_every_mac_count_is_driven_by_linux() -> None:
    """Direct drive: the Corstone-1000 with its driver's own memory, whatever the mode; and one as
    a native program."""
    boards = {f"corstone-1000-u85-{macs}": macs for macs in MACS["u85"]}
    assert set(DIRECT) == {*boards, "host-u85-256"}
    for name, macs in boards.items():
        target = load(f"{name}@Dedicated_Sram")
        assert (target.marker, target.compile_target) == ("corstone1000", f"ethos-u85-{macs}")
        assert target.cmake == {"HIL_ETHOSU": "ON"}
        assert target.default_pools == {}, "Linux places the NPU's memory"
        fvp = target.simulators.fvp
        assert fvp is not None
        assert fvp.parameters["host.ethosu.num_macs"] == macs


def test_no_driver_of_linux_has_a_u55(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: corstone-1000-a320\nnpu: {product: u55, macs: 128}\n")
    with pytest.raises(TargetError, match=r"mine.yaml:2: no driver of Linux .* Ethos-U55") as e:
        load_target("mine", (*DIRECTORIES, tmp_path))
    assert e.value.hint == "under Linux there is an Ethos-U85"


def test_products_are_those_of_command_streams() -> None:
    """What ``products.yaml`` and ``formats/ethosu.py`` both name."""
    products = npu.products().products
    assert tuple(products) == PRODUCTS
    for name, facts in products.items():
        assert facts.macs == MACS[name]
        assert facts.default_macs in facts.macs


@pytest.mark.parametrize("name", FILES)
def test_the_name_says_what_the_target_is(name: str) -> None:
    """Marker, compile target and the FVP's MAC count cannot contradict the name."""
    target = load(name)
    board, _, macs = name.rpartition("-")
    product = board.rpartition("-")[2]
    assert (target.marker, target.compile_target) == (product, f"ethos-{product}-{macs}")
    fvp = target.simulators.fvp
    assert fvp is not None
    assert fvp.npu == f"ethos-{product}"
    assert fvp.macs is not None
    assert fvp.parameters[fvp.macs] == int(macs)


def test_defaults_are_executorchs() -> None:
    """backends/arm/ethosu/compile_spec.py of ExecuTorch 1.5.1."""
    said = {
        "u55": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
        "u65": ("Ethos_U65_High_End", "Dedicated_Sram_384KB"),
        "u85": ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
    }
    for target in FILES.values():
        assert target.npu is not None
        assert (target.npu.system_config, target.npu.memory_mode) == said[target.npu.product]


@pytest.mark.parametrize("name", VARIATIONS)
@pytest.mark.parametrize("simulator", ["fvp", "qemu"])
def test_pools_fit_where_the_mode_puts_them(name: str, simulator: str) -> None:
    """The sum of the pools of a region is no more than the region has, on board and stand-in."""
    target = load(name).on(simulator)
    assert target.npu is not None
    used = {"SRAM": target.npu.mode.fast_scratch, "DDR": 4096}  # DDR: the stand-in's mailbox
    for pool in ("METHOD_POOL", "TEMP_POOL", "FILE_POOL"):
        key = pool.removesuffix("_POOL").lower()
        used[target.cmake[f"HIL_{pool}_PLACE"]] += target.default_pools.get(key, 0x2000000)
    sizes = {region.name: region.size for region in target.memory}
    assert all(used[region] <= sizes[region] for region in used), used


@pytest.mark.parametrize(
    ("mode", "weights", "arena", "scratch"),
    [
        ("Sram_Only", "SRAM", "SRAM", 0),
        ("Shared_Sram", "DDR", "SRAM", 0),
        ("Dedicated_Sram", "DDR", "DDR", 0x60000),
        ("Dedicated_Sram_256KB", "DDR", "DDR", 256 << 10),
        ("Dedicated_Sram_384KB", "DDR", "DDR", 384 << 10),
        ("Dedicated_Sram_512KB", "DDR", "DDR", 512 << 10),
    ],
)
def test_what_a_mode_means(mode: str, weights: str, arena: str, scratch: int) -> None:
    """As Vela's vela.ini has it: constants, arena and cache behind which port."""
    cmake = load(f"corstone-320-u85-256@{mode}").cmake
    assert cmake["HIL_FILE_POOL_PLACE"] == weights
    assert cmake["HIL_METHOD_POOL_PLACE"] == cmake["HIL_TEMP_POOL_PLACE"] == arena
    assert cmake["HIL_ETHOSU_FAST_SCRATCH_BYTES"] == str(scratch)


@pytest.mark.parametrize("mode", DEDICATED)
def test_a_u55_has_no_dedicated_sram(mode: str) -> None:
    with pytest.raises(Unknown, match=r"second memory.*is flash") as caught:
        load(f"corstone-300-u55-128@{mode}")
    assert (caught.value.name, caught.value.known) == (mode, ("Sram_Only", "Shared_Sram"))
    assert caught.value.hint == "it has: Sram_Only, Shared_Sram"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        (
            "corstone-300-u55-128@Sram_Onyl",
            "no memory mode 'Sram_Onyl'",
            "did you mean corstone-300-u55-128@Sram_Only?",
        ),
        ("corstone-300-u55-128@", "no memory mode ''", "it has: Sram_Only, Shared_Sram"),
        ("corstone-300-m55@Sram_Only", "has no NPU, and so no memory mode", None),
        (
            "corstone-300-u55-512",
            "unknown target 'corstone-300-u55-512'",
            "did you mean corstone-300-u55-32 or corstone-300-u55-64 or corstone-300-u55-128 or "
            "corstone-300-u55-256?",
        ),
        ("corstone-300-u56-128", "unknown target", "did you mean corstone-300-u5"),
    ],
)
def test_wrong_names(name: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load(name)
    assert str(caught.value.hint or "").startswith(hint or "")


def test_a_default_mode_is_not_part_of_the_name() -> None:
    """So that one thing has one reference run and one row in a report."""
    assert load("corstone-300-u55-128@Shared_Sram").name == "corstone-300-u55-128"
    assert load("corstone-300-u55-128@Sram_Only").name == "corstone-300-u55-128@Sram_Only"


@pytest.mark.parametrize(
    ("section", "line", "message"),
    [
        ("{product: u99, macs: 1}", 2, "no NPU is called 'u99'"),
        ("{product: u55, macs: 512}", 2, "an Ethos-U55 has 32, 64, 128, 256 MACs, not 512"),
        ("{product: u55}", 2, "wanted are product and macs"),
        ("{product: u55, macs: 32, cores: 2}", 2, "nothing else but system_config"),
        ("u55", 2, "wanted are product and macs"),
    ],
)
def test_a_wrong_section_is_reported_with_its_line(
    tmp_path: Path, section: str, line: int, message: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"extends: corstone-300-m55\nnpu: {section}\n")
    with pytest.raises(TargetError, match=message) as caught:
        load_target("mine", (*DIRECTORIES, tmp_path))
    assert caught.value.message.startswith(f"{file}:{line}: ")


def test_a_file_lays_its_own_over_what_the_npu_brings(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "extends: corstone-300-m55\nmarker: mine\n"
        "npu: {product: u65, macs: 512, system_config: Ethos_U65_Mid_End}\n"
        "simulators: {auto: [qemu]}\n"
    )
    target = load_target("mine", (*DIRECTORIES, tmp_path))
    assert target.npu is not None
    assert (target.marker, target.npu.system_config) == ("mine", "Ethos_U65_Mid_End")
    assert target.simulators.auto == ("qemu",)
    assert target.simulators.fvp is not None
    assert target.simulators.fvp.npu == "ethos-u65"


def test_broken_product_facts_are_a_target_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (data_root() / "targets" / "npu" / "products.yaml").read_text()
    file = tmp_path / "targets" / "npu" / "products.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text.replace("second_memory: flash", "second_memory: tape"))
    monkeypatch.setattr(npu, "data_root", lambda: tmp_path)
    npu.products.cache_clear()
    npu.products_file.cache_clear()
    try:
        with pytest.raises(TargetError, match=r"products\.yaml:\d+: .*'flash' or 'DRAM' is wanted"):
            npu.products()
    finally:
        npu.products.cache_clear()
        npu.products_file.cache_clear()


def test_what_the_stand_in_does_not_have_is_said() -> None:
    """In full for a board that QEMU does not have, and nothing of it for the FVP."""
    target = load("corstone-320-u85-256")
    said = " / ".join(target.differences("qemu"))
    for part in (
        "functional model: results, not time",
        "Cortex-M85; QEMU ran a Cortex-M55",
        "the SRAM is a slice of QEMU's DDR",
    ):
        assert part in said
    assert target.differences("fvp") == ()
    assert not any("CPU" in text for text in load("corstone-300-u55-128").differences("qemu"))
    assert load("corstone-300-m55").differences("qemu") == ()


def test_a_program_that_is_linked_for_the_board_has_no_moved_memory() -> None:
    """A checkout's ELF has the board's own SRAM, so nothing is said of a slice of DDR."""
    target = load("corstone-300-u55-128")
    said = target.differences("qemu", moved=False)
    assert said == tuple(text for text in target.differences("qemu") if "slice" not in text) != ()


def test_what_the_npu_shares_is_reported_by_where_it_lies() -> None:
    """Not by what a region is called: one by another name is told, the SRAM elsewhere is not."""
    target = load("corstone-320-u85-256")
    qemu = target.simulators.qemu
    assert qemu is not None
    assert qemu.shared_memory is not None
    there, size = qemu.shared_memory.origin, 0x1000
    moved = (
        Region(name="FAST", origin=there, size=size),
        Region(name="SRAM", origin=there - size, size=size),
    )
    settings = replace(target.simulators, qemu=replace(qemu, moved=moved))
    memory = (*target.memory, Region(name="FAST", origin=0, size=size))
    said = replace(target, simulators=settings, memory=memory).differences("qemu")
    assert [text for text in said if "slice" in text] == [
        "the FAST is a slice of QEMU's DDR, which the NPU's model shares"
    ]


def test_the_runner_differs_by_simulator_only_with_an_npu() -> None:
    """Doorbell and shared memory on QEMU, registers and the board's memory on an FVP."""
    target = load("corstone-300-u55-128")
    on = {name: target.on(name) for name in ("qemu", "fvp")}
    drivers = {name: t.cmake["HIL_ETHOSU_DRIVER"] for name, t in on.items()}
    assert drivers == {"qemu": "doorbell", "fvp": "registers"}
    sram = {name: {r.name: r.origin for r in t.memory}["SRAM"] for name, t in on.items()}
    assert sram == {"qemu": 0x60000000, "fvp": 0x31000000}
    plain = load("corstone-300-m55")
    assert plain.on("qemu") == plain.on("fvp") == plain


MODELS = ("add", "ds_cnn", "linear")


def count(marker: str, extent: CaseSelection) -> list[str]:
    found = default_cases(FILES.values(), MODELS, extent)
    return [case.id for case, target in found if target.marker == marker]


def test_all_cases_are_every_mode_and_every_mac_count() -> None:
    """On the default MAC count all models in all modes, on each other one case."""
    assert len(count("u55", "all")) == 2 * 3 + 3
    assert len(count("u65", "all")) == 6 * 3 + 1
    assert len(count("u85", "all")) == 6 * 3 + 4
    assert "corstone-320-u85-2048/ds_cnn" in count("u85", "all")
    assert "corstone-300-u55-128@Sram_Only/linear" in count("u55", "all")


def test_a_sample_has_one_mode_of_each_placement() -> None:
    found = count("u85", "sample")
    assert found == [
        "corstone-320-u85-1024/ds_cnn",
        "corstone-320-u85-128/ds_cnn",
        "corstone-320-u85-2048/ds_cnn",
        "corstone-320-u85-256/add",
        "corstone-320-u85-256/ds_cnn",
        "corstone-320-u85-256/linear",
        "corstone-320-u85-256@Shared_Sram/ds_cnn",
        "corstone-320-u85-256@Dedicated_Sram/ds_cnn",
        "corstone-320-u85-512/ds_cnn",
    ]
    assert set(found) <= set(count("u85", "all"))
