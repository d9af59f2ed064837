"""Protects the devicetree overlays of our sample: the devicetree compiler takes each without a
warning, on a tree with the labels that it names, and the runner's pools lie where the targets have
them. Where ZEPHYR_BASE names a real workspace, its bindings agree."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.link.workspace import REAL, needs_real_zephyr
from tools.clone import project_root

BOARDS = project_root() / "targets/runner/ports/zephyr/sample/boards"
# Labels and nodes as Zephyr's boards have them, as far as an overlay names one.
BOARD = """\
/dts-v1/;
#define DT_SIZE_M(x) ((x) * 1024 * 1024)
/ {
	#address-cells = <1>;
	#size-cells = <1>;
	isram: sram@31000000 {
		compatible = "zephyr,memory-region";
		reg = <0x31000000 DT_SIZE_M(4)>;
		zephyr,memory-region = "ISRAM";
	};
	ddr4: memory@60000000 {
		compatible = "zephyr,memory-region";
		reg = <0x60000000 DT_SIZE_M(256)>;
		zephyr,memory-region = "DDR4";
	};
};
"""
MIB = 1 << 20
REGIONS = {  # of the targets zephyr-corstone-300, on QEMU and on its FVP, and -320
    "mps3_corstone300_an547": {"HIL_SRAM": (0x60000000, 2), "HIL_DDR": (0x70000000, 256)},
    "mps3_corstone300_fvp": {"HIL_SRAM": (0x31000000, 2), "HIL_DDR": (0x70000000, 256)},
    "mps4_corstone320_fvp": {"HIL_SRAM": (0x31000000, 4), "HIL_DDR": (0x70000000, 256)},
}
_READ = """\
import sys
from devicetree import edtlib
edt = edtlib.EDT(sys.argv[1], sys.argv[2:])
for node in edt.compat2nodes["zephyr,memory-region"]:
    print(node.props["zephyr,memory-region"].val, *map(hex, (node.regs[0].addr, node.regs[0].size)))
"""


@pytest.fixture(params=REGIONS)
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    text = BOARD
    if "320" in request.param:  # its own nodes are not known here
        text = text.replace("isram: ", "").replace("sram@31000000", "memory@21000000")
        text = text.replace("0x31000000", "0x21000000")
    source = text + (BOARDS / f"{request.param}.overlay").read_text()
    done = subprocess.run(
        ["cpp", "-x", "assembler-with-cpp", "-undef", "-P", "-nostdinc", "-"],
        input=source,
        capture_output=True,
        text=True,
        check=True,
    )
    (tmp_path / "board.dts").write_text(done.stdout)
    return request.param, tmp_path / "board.dts"


def test_every_board_has_its_overlay() -> None:
    assert {file.stem for file in BOARDS.glob("*.overlay")} == set(REGIONS)


@pytest.mark.skipif(shutil.which("dtc") is None, reason="needs dtc")
def test_the_devicetree_compiler_takes_it(tree: tuple[str, Path]) -> None:
    board, source = tree
    done = subprocess.run(
        ["dtc", "-I", "dts", "-O", "dts", source], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for name, (origin, mebibytes) in REGIONS[board].items():
        node = done.stdout.split(f'zephyr,memory-region = "{name}"')[0].rsplit("{", 1)[1]
        assert f"reg = <{origin:#x} {mebibytes * MIB:#x}>" in node


@needs_real_zephyr
def test_the_real_bindings_take_it(tree: tuple[str, Path]) -> None:
    board, source = tree
    library = Path(str(REAL)) / "scripts" / "dts" / "python-devicetree" / "src"
    bindings = Path(str(REAL)) / "dts" / "bindings"
    done = subprocess.run(
        [sys.executable, "-c", _READ, source, bindings],
        env={"PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, (origin, mebibytes) in REGIONS[board].items():
        assert f"{name} {origin:#x} {mebibytes * MIB:#x}" in done.stdout.splitlines()
