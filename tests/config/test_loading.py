"""Target files: what is accepted, and that every mistake is told with its file and line."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from harness.config.loading import load_target, load_targets, target_directories
from harness.core.errors import TargetError, Unknown, UsageError

GOOD = """\
description: a board
marker: board
compile_target: cortex-m55
port: cortex_m
cpu: cortex-m55
toolchain: arm-none-eabi-gcc
cmake:
  # of the system counter
  HIL_BASE: "0x58100000"
memory:
  - {name: ITCM, origin: 0x10000000, size: 0x80000}
  - {name: DTCM, origin: 0x30000000, size: 0x80000}
limits:
  host: 60
  stall: 10.5
simulators:
  auto: [fvp, qemu]
  fvp:
    executable: FVP_X
    package: x.tgz
    # a comment is no key
    semihosting:
      enable: cpu0.e
      cwd: cpu0.w
      command_line: cpu0.c
      command_line_limit: 256
    parameters:
      a.b: 1
  qemu:
    executable: qemu-system-arm
    machine: mps3-an547
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "board.yaml").write_text(GOOD)
    return tmp_path


def test_good_file_is_data(folder: Path) -> None:
    """The template that the tests below break is itself accepted, with its values."""
    target = load_target("board", (folder,))
    assert target.name == "board"
    assert target.memory[0].origin == 0x10000000
    assert target.limits.stall == 10.5
    assert target.simulators.names == ("fvp", "qemu")
    assert target.simulators.fvp is not None
    assert target.cmake == {"HIL_BASE": "0x58100000"}


def test_targets_are_frozen(folder: Path) -> None:
    """Stages pass a Target on; nobody may change it on the way."""
    target = load_target("board", (folder,))
    with pytest.raises(FrozenInstanceError):
        target.cpu = "cortex-m85"  # type: ignore[misc]


MISTAKES = [
    # (text to replace, replacement, line of the error, part of the message)
    ("cpu: cortex-m55", "cpu: cortex-m55\ncpuu: 1", 6, "unknown key 'cpuu'"),
    ("cpu: cortex-m55", "cpu: cortex-m55\ncpu: a", 6, "duplicate key 'cpu', first used in line 5"),
    ("  host: 60", "  host: 60\n  host: 61", 15, "duplicate key 'host', first used in line 14"),
    ("cpu: cortex-m55", "cpu: 55", 5, "cpu: a string is wanted, in quotes (it is 55)"),
    ("  host: 60", "  host: sixty", 14, "limits.host: a number is wanted"),
    ("  host: 60", '  host: "60"', 14, "limits.host: a number is wanted"),
    ("  host: 60", "  host: true", 14, "limits.host: a number is wanted"),
    ("cpu: cortex-m55", f"cpu: cortex-m55\n{'y' * 900}: 1", 6, f"unknown key '{'y' * 287}..."),
    ("  host: 60", f"  host: {'z' * 900}", 14, f"a number is wanted (it is {'z' * 261}..."),
    ("  host: 60", "  host: -1", 14, "limits.host: it must be greater than 0 (it is -1)"),
    ("  host: 60", "  host: .inf", 14, "'.inf' is not a number"),
    ("  host: 60", "  host: .nan", 14, "'.nan' is not a number"),
    ("  host: 60\n", "", 13, "required key 'limits.host' is missing"),
    ("marker: board\n", "", 1, "required key 'marker' is missing"),
    ("package: x.tgz", "package: 11.30", 20, "a string is wanted, in quotes (it is 11.30)"),
    ("marker: board", "marker: Board-1", 2, "marker: it must match"),
    ("port: cortex_m", "port: linus", 4, "port: 'cortex_m', 'host', 'linux' or"),
    ("auto: [fvp, qemu]", "auto: [fvp, host]", 16, "`auto` names 'host'"),
    ("auto: [fvp, qemu]", "auto: [fvp, qmu]", 17, "'fvp', 'qemu', 'qemu_user', 'host' or 'board'"),
    ("auto: [fvp, qemu]", "auto: []", 17, "at least 1 item"),
    ("origin: 0x30000000", "origin: 0x10040000", 10, "ITCM (ends at 0x10080000) overlaps DTCM"),
    ("name: DTCM", "name: ITCM", 10, "two regions are called ITCM"),
    ("origin: 0x30000000", "origin: 0xFFFFFFFF", 10, "DTCM reaches beyond 32 bits"),
    ("size: 0x80000}\nlimits", "size: 0}\nlimits", 12, "memory.1.size: it must be greater"),
    ("size: 0x80000}\nlimits", "size: 4k}\nlimits", 12, "memory.1.size: a whole number is wanted"),
    ("a.b: 1", "a.b: [1]", 28, "parameters.a.b: a string is wanted"),
    ("a.b: 1", "a.b: null", 28, "parameters.a.b: a string is wanted, in quotes (it is null)"),
    ("  HIL_BASE:", "  hil-base:", 9, "cmake.hil-base: this name is not allowed here"),
    ("description: a board", "description: &x a board", 1, "anchors and aliases (&x)"),
    ("description: a board", "description: 2026-01-02", 1, "means something else in YAML 1.1"),
    ("description: a board", "1: a board", 1, "the key 1 is not a string"),
    ("description: a board", "name: other", 1, "a target is named after its file"),
    ("marker: board", "marker: [board", 3, "not valid YAML"),
    ("marker: board", "marker: !!int board", 2, "tags (tag:yaml.org,2002:int)"),
    ("marker: board", "marker: b\x07", 2, "not valid YAML"),
    ("marker: board", "marker: b\n---\nx: 1", 3, "not valid YAML"),
    (GOOD, "", 1, "the file must be a mapping"),
    (GOOD, "\n\n- 1\n", 3, "the file must be a mapping"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES)
def test_mistake_has_file_and_line(
    folder: Path, old: str, new: str, line: int, message: str
) -> None:
    """One planted mistake each: the error begins with file:line and says what is wrong."""
    path = folder / "board.yaml"
    assert GOOD.count(old) == 1
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(TargetError) as caught:
        load_target("board", (folder,))
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert caught.value.exit_code == 2


def test_not_utf8_is_reported_with_its_line(folder: Path) -> None:
    path = folder / "board.yaml"
    path.write_bytes(GOOD.encode().replace(b"marker: board", b"marker: b\xff"))
    with pytest.raises(TargetError, match=r"board\.yaml:2: byte 0xff is not UTF-8"):
        load_target("board", (folder,))


def test_every_mistake_is_reported(folder: Path) -> None:
    """The first one, by line, is the message; the others are in the hint, and all are data."""
    path = folder / "board.yaml"
    path.write_text(GOOD.replace("  host: 60", "  host: x").replace("cpu: cortex-m55", "cpu: 5"))
    with pytest.raises(TargetError, match=r"board\.yaml:5: .*and 1 more") as caught:
        load_target("board", (folder,))
    assert caught.value.errors is not None
    assert [error.split()[0] for error in caught.value.errors] == [f"{path}:5:", f"{path}:14:"]
    assert "board.yaml:14: limits.host" in str(caught.value.hint)


def test_extends_lays_over_the_base(folder: Path) -> None:
    """Mappings merge key by key, sequences are replaced."""
    (folder / "big.yaml").write_text(
        "extends: board\nlimits: {host: 600}\n"
        "memory:\n  - {name: SRAM, origin: 0x31000000, size: 0x1000}\n"
    )
    big = load_target("big", (folder,))
    assert big.name == "big"
    assert (big.limits.host, big.limits.stall) == (600, 10.5)
    assert [region.name for region in big.memory] == ["SRAM"]
    assert big.marker == "board"


def test_what_is_extended_may_extend(folder: Path) -> None:
    """As a user's target does that is one of ours with other limits."""
    (folder / "big.yaml").write_text("extends: board\nlimits: {host: 600}\nmarker: big\n")
    (folder / "mine.yaml").write_text("extends: big\nmarker: mine\n")
    mine = load_target("mine", (folder,))
    assert (mine.limits.host, mine.limits.stall, mine.marker) == (600, 10.5, "mine")


@pytest.mark.parametrize("macs", [None, 256])
def test_an_npu_of_ours_with_something_of_ones_own(tmp_path: Path, macs: int | None) -> None:
    """What our file says over the product stays, unless the NPU is another."""
    npu = "" if macs is None else f"npu: {{product: u55, macs: {macs}}}\n"
    (tmp_path / "mine.yaml").write_text(f"extends: corstone-300-u55-128\nmarker: mine\n{npu}")
    mine = load_target("mine", (*target_directories({}), tmp_path))
    theirs = load_target(f"corstone-300-u55-{macs or 128}", target_directories({}))
    own = {one: getattr(theirs, one) for one in ("name", "file", "description", "marker")}
    assert replace(mine, **own) == theirs
    assert mine.marker == "mine"


def test_what_a_base_says_over_its_npu_stays(tmp_path: Path) -> None:
    """The product is laid under the file that names the NPU, and not again under one above it."""
    (tmp_path / "base.yaml").write_text("extends: corstone-300-u55-128\nmarker: base\n")
    (tmp_path / "mine.yaml").write_text("extends: base\n")
    assert load_target("mine", (*target_directories({}), tmp_path)).marker == "base"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("extends: board\ncpu: 5\n", "big.yaml:2", "cpu: a string"),
        ("extends: board\nlimits:\n  hosts: 5\n", "big.yaml:3", "unknown key 'limits.hosts'"),
        ("extends: big\n", "big.yaml:1", "not another target"),
        ("extends: bord\n", "big.yaml:1", "extends 'bord', which is not another target"),
        ("extends: [board]\n", "big.yaml:1", "not another target"),
        ("extends: {}\n", "big.yaml:1", "not another target"),
        ("extends: null\n", "big.yaml:1", "not another target"),
        ("extends: child\n", "child.yaml:1", "extends 'big', which extends this one"),
    ],
)
def test_mistake_in_extension(folder: Path, text: str, place: str, message: str) -> None:
    """The line is the one of the file that holds the mistake, also under ``extends``."""
    (folder / "child.yaml").write_text("extends: big\n")
    (folder / "big.yaml").write_text(text)
    with pytest.raises(TargetError) as caught:
        load_target("big", (folder,))
    assert caught.value.message.startswith(f"{folder}/{place}: ")
    assert message in caught.value.message


def test_mistake_in_the_base_is_in_the_base(folder: Path) -> None:
    (folder / "board.yaml").write_text(GOOD.replace("cpu: cortex-m55", "cpu: 5"))
    (folder / "big.yaml").write_text("extends: board\nmarker: big\n")
    with pytest.raises(TargetError, match=r"board\.yaml:5: "):
        load_target("big", (folder,))


def test_unknown_target_names_the_nearest(folder: Path) -> None:
    with pytest.raises(Unknown, match="unknown target 'bord'") as caught:
        load_target("bord", (folder,))
    assert (caught.value.name, caught.value.close) == ("bord", ("board",))
    assert caught.value.hint == "did you mean board?"


def test_target_by_path(folder: Path) -> None:
    (folder / "big.yaml").write_text("extends: board\n")
    assert load_target(str(folder / "big.yaml")).name == "big"
    with pytest.raises(UsageError, match="there is no target file") as caught:
        load_target(str(folder / "absent.yaml"))
    assert caught.value.path == str(folder / "absent.yaml")


def test_other_directories(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The settings add directories; a name in two of them is an error, not a choice."""
    other = tmp_path_factory.mktemp("other")
    project = tmp_path_factory.mktemp("project")
    (project / "hil.toml").write_text(f'targets = ["{folder}", "{other}"]')
    directories = target_directories({"HIL_PROJECT": str(project)})
    assert directories[1:] == (folder, other)
    (other / "mine.yaml").write_text("extends: board\n")
    assert load_target("mine", directories).cpu == "cortex-m55"
    (other / "board.yaml").write_text(GOOD)
    with pytest.raises(TargetError, match="there is another target 'board'"):
        load_target("mine", directories)
    with pytest.raises(UsageError, match="is not a directory of targets"):
        load_targets((folder / "absent",))


def test_shipped_targets() -> None:
    """They load; the linker is given the Secure aliases of the Corstone-300."""
    targets = {target.name: target for target in load_targets(target_directories({}))}
    assert {"corstone-300-m55", "host"} <= set(targets)
    board = targets["corstone-300-m55"]
    assert {r.name: (r.origin, r.size) for r in board.memory} == {
        "ITCM": (0x10000000, 512 << 10),
        "BRAM": (0x11000000, 1 << 20),
        "DTCM": (0x30000000, 512 << 10),
        "SRAM": (0x31000000, 2 << 20),
        "DDR": (0x70000000, 256 << 20),
    }
    assert board.marker == "cortex_m55"
    assert board.simulators.auto == ("fvp", "qemu")


def test_limits_scale_together(folder: Path) -> None:
    limits = load_target("board", (folder,)).limits.scaled(2)
    assert (limits.host, limits.stall, limits.model) == (120, 21, None)


SHARED = "  qemu:\n    executable: qemu-system-arm\n    machine: mps3-an547\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "    moved: [{name: SRAM, origin: 0x60000000, size: 1}]\n",
            "names SRAM, which is not a reg",
        ),
        ("    moved: [{name: DTCM, origin: 0x10000000, size: 1}]\n", "overlaps"),
        (
            "    memory: 2G\n    shared_memory: {name: DDR, origin: 0x60000000, size: "
            "0x80000000}\n",
            "both set the memory; give one of them",
        ),
    ],
)
def test_a_simulator_moves_regions_that_are_there(folder: Path, more: str, message: str) -> None:
    path = folder / "board.yaml"
    path.write_text(GOOD.replace(SHARED, SHARED + more))
    with pytest.raises(TargetError, match=message):
        load_target("board", (folder,))
    path.write_text(
        GOOD.replace(
            SHARED,
            SHARED
            + more.replace("SRAM", "DTCM")
            .replace("0x10000000", "0x60000000")
            .replace("    memory: 2G\n", ""),
        )
    )
    assert load_target("board", (folder,)).simulators.qemu is not None


def test_the_target_on_a_simulator_has_its_memory_and_options(folder: Path) -> None:
    more = '    cmake: {HIL_X: "1"}\n    moved: [{name: DTCM, origin: 0x60000000, size: 256}]\n'
    path = folder / "board.yaml"
    path.write_text(GOOD.replace(SHARED, SHARED + more))
    board = load_target("board", (folder,))
    there = board.on("qemu")
    assert [(r.name, r.origin) for r in there.memory] == [
        ("ITCM", 0x10000000),
        ("DTCM", 0x60000000),
    ]
    assert there.cmake == {"HIL_BASE": "0x58100000", "HIL_X": "1"}
    assert board.on("fvp") == board
