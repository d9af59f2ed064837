"""What lies beside a program with shared libraries: all that it loads, of the right CPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.core.errors import BuildError
from harness.firmware.sources.wheel import describe_cpu, lay_out
from harness.formats.elf import read_elf
from harness.system.toolchain import require

pytestmark = [
    pytest.mark.corstone1000,
    pytest.mark.skipif(
        not shutil.which("aarch64-linux-gnu-g++"), reason="needs aarch64-linux-gnu-g++"
    ),
]


def compiled(folder: Path, name: str, text: str, *words: str | Path) -> Path:
    source = folder / f"{name}.cpp"
    source.write_text(text)
    out = folder / name
    argv = ["aarch64-linux-gnu-g++", str(source), "-o", str(out), *map(str, words)]
    subprocess.run(argv, check=True, timeout=120)
    return out


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A program, and the library that it needs, which alone needs the C++ library and libm."""
    folder = tmp_path_factory.mktemp("planted")
    text = "#include <cmath>\n#include <iostream>\nint told(double x) "
    text += "{ std::cout << std::tgamma(x) << std::endl; return 0; }\n"
    library = compiled(
        folder, "libplanted.so", text, "-shared", "-fPIC", "-Wl,-soname,libplanted.so"
    )
    main = "int told(double); int main(int n, char **) { return told(n + 3.0); }\n"
    return compiled(folder, "program", main, library, "-Wl,-rpath,/lib"), library


def test_everything_that_is_loaded_is_there(planted: tuple[Path, Path], tmp_path: Path) -> None:
    """So that it runs where nothing else is: shown by QEMU with this root alone."""
    program, library = planted
    lay_out(program, [library], require("aarch64-linux-gnu-g++").path, tmp_path / "root")
    there = {path.name for path in (tmp_path / "root" / "lib").iterdir()}
    assert {"libplanted.so", "libc.so.6", "libm.so.6", "libstdc++.so.6"} <= there
    loader = read_elf(program).interpreter
    assert loader is not None
    assert Path(loader).name in there
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is not None:
        argv = [emulator, "-L", str(tmp_path / "root"), str(program)]
        done = subprocess.run(argv, capture_output=True, check=True, timeout=60)
        assert done.stdout == b"6\n"


def test_a_library_that_nobody_has_is_named(planted: tuple[Path, Path], tmp_path: Path) -> None:
    """And who wants it; the guest's loader would only say so when the program starts."""
    with pytest.raises(BuildError, match=r"program wants libplanted.so, which aarch64-") as e:
        lay_out(planted[0], [], require("aarch64-linux-gnu-g++").path, tmp_path / "root")
    assert (e.value.library, e.value.wanted_by) == ("libplanted.so", "program")
    assert "hil doctor" in str(e.value.hint)


def test_the_cpu_is_the_one_that_is_emulated(tmp_path: Path) -> None:
    """XNNPACK takes its kernels by it. An unknown one has no part number rather than a wrong."""
    describe_cpu("cortex-a35", tmp_path / "known")
    text = (tmp_path / "known" / "proc" / "cpuinfo").read_text()
    assert "CPU part\t: 0xd04\n" in text
    assert (tmp_path / "known/sys/devices/system/cpu/possible").read_text() == "0\n"
    describe_cpu("cortex-a999", tmp_path / "unknown")
    assert (tmp_path / "unknown/proc/cpuinfo").read_text() == "processor\t: 0\n"
