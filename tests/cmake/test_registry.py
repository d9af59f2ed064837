"""targets/runner/kernels/registry.cmake: the table of kernels is made of HIL_OPERATOR lines.

Protects that an operator is a file and no list: a line that is there gives an entry, also one
that was changed or added after the first build, and a file without a good line is refused; and that
a kernel whose line stays costs no configuration and no new table."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tools.clone import project_root

KERNELS = project_root() / "targets" / "runner" / "kernels"
LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(planted CXX)
add_library(hil_options INTERFACE)
add_library(hil_core INTERFACE)
add_subdirectory(kernels)
"""
GOOD = 'namespace hil {\nError op_a(KernelContext&, Args);\nHIL_OPERATOR("n::a.out", op_a);\n}\n'


class Planted:
    """A project of operator files, with the build of the real ones, and what comes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.build = folder / "kernels", folder / "build"
        self.folder.mkdir()
        (folder / "CMakeLists.txt").write_text(LISTS)
        for name in ("CMakeLists.txt", "choice.cmake", "registry.cmake", "registry.cpp.in"):
            shutil.copy(KERNELS / name, self.folder)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def make(self) -> str:
        """What the build of the table says. Raises CalledProcessError where it fails."""
        if not self.build.is_dir():
            self._cmake(
                "-S",
                self.folder.parent,
                "-B",
                self.build,
                "-G",
                "Ninja",
                "-DCMAKE_CXX_COMPILER_FORCED=ON",
            )
        return self._cmake("--build", self.build, "-t", "kernels/registry.cpp")

    def _cmake(self, *words: str | Path) -> str:
        return subprocess.run(
            ["cmake", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        ).stdout

    @property
    def table(self) -> Path:
        return self.build / "kernels" / "registry.cpp"

    def entries(self) -> list[str]:
        lines = self.table.read_text().splitlines()
        return [line.strip(" ,") for line in lines if line.startswith("    {")]


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def test_every_line_is_an_entry_and_every_kernel_is_declared_once(planted: Planted) -> None:
    planted.write("op_a.cpp", GOOD + 'HIL_OPERATOR("n::a_too.out",\n             op_a);\n')
    planted.write("op_b.cpp", '// HIL_OPERATOR("n::no.out", op_no);\nHIL_OPERATOR("n::b", op_b);\n')
    planted.make()
    assert planted.entries() == ['{"n::a.out", op_a}', '{"n::a_too.out", op_a}', '{"n::b", op_b}']
    made = planted.table.read_text()
    assert made.count("Error op_a(KernelContext& ctx, Args args);") == 1


def test_the_next_build_sees_a_new_file_and_a_changed_line(planted: Planted) -> None:
    planted.write("op_a.cpp", GOOD)
    planted.make()
    planted.write("op_a.cpp", GOOD.replace("n::a.out", "n::renamed.out"))
    planted.write("op_b.cpp", '\nHIL_OPERATOR("n::b.out", op_b);\n')
    planted.make()
    assert planted.entries() == ['{"n::renamed.out", op_a}', '{"n::b.out", op_b}']
    (planted.folder / "op_b.cpp").unlink()
    planted.make()
    assert planted.entries() == ['{"n::renamed.out", op_a}']


def test_a_changed_kernel_configures_nothing_and_leaves_the_table(planted: Planted) -> None:
    planted.write("op_a.cpp", GOOD)
    assert "Configuring done" not in planted.make()
    before = planted.table.stat().st_mtime_ns
    planted.write("op_a.cpp", GOOD + "// edited\n")
    said = planted.make()
    assert "Generating registry.cpp" in said
    assert "Configuring done" not in said
    assert planted.table.stat().st_mtime_ns == before
    assert "no work to do" in planted.make()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("namespace hil {}\n", "has no line HIL_OPERATOR"),
        ("\nHIL_OPERATOR(op_b);\n", "not a name and a kernel"),
        ('\nHIL_OPERATOR("n::a.out", op_b);\n', "operator n::a.out has a kernel already"),
    ],
)
def test_a_file_that_registers_nothing_good_is_refused(
    planted: Planted, text: str, reason: str
) -> None:
    planted.write("op_a.cpp", GOOD)
    planted.write("op_b.cpp", text)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        planted.make()
    said = " ".join(caught.value.output.split())
    assert reason in said
    assert "op_b.cpp" in said


@pytest.mark.parametrize(
    ("kernel", "compiles"),
    [("Error op_x(KernelContext&, Args)", True), ("int op_x(KernelContext&, Args)", False)],
)
def test_what_is_not_a_kernel_does_not_compile(tmp_path: Path, kernel: str, compiles: bool) -> None:
    source = tmp_path / "op_x.cpp"
    source.write_text(
        f'#include "kernels/operator.h"\nnamespace hil {{\n{kernel};\n'
        'HIL_OPERATOR("n::x.out", op_x);\n}\n'
    )
    command = ["c++", "-std=c++17", "-fsyntax-only", f"-I{KERNELS.parent}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == compiles, done.stderr
    assert compiles or "n::x.out: a kernel is" in done.stderr
