"""targets/runner/kernels/registry.cmake: the table of kernels is made of HIL_OPERATOR lines.

Protects that an operator is a file and no list: a line that is there gives an entry, also one
that was changed or added after the first build, and a file without a good line is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.system.paths import project_root

KERNELS = project_root() / "targets" / "runner" / "kernels"
LISTS = f"""\
cmake_minimum_required(VERSION 3.20)
project(planted NONE)
include({KERNELS}/registry.cmake)
file(GLOB operators CONFIGURE_DEPENDS op_*.cpp)
hil_operator_registry("${{CMAKE_BINARY_DIR}}/registry.cpp" ${{operators}})
add_custom_target(all_of_it ALL)
"""
GOOD = 'namespace hil {\nError op_a(KernelContext&, Args);\nHIL_OPERATOR("n::a.out", op_a);\n}\n'


class Planted:
    """A project of operator files and what CMake makes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.build = folder, folder / "build"
        (folder / "CMakeLists.txt").write_text(LISTS)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def configure(self) -> subprocess.CompletedProcess[str]:
        return self.run("cmake", "-S", str(self.folder), "-B", str(self.build), "-G", "Ninja")

    def entries(self) -> list[str]:
        lines = (self.build / "registry.cpp").read_text().splitlines()
        return [line.strip(" ,") for line in lines if line.startswith("    {")]


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def test_every_line_is_an_entry_and_every_kernel_is_declared_once(planted: Planted) -> None:
    planted.write("op_a.cpp", GOOD + 'HIL_OPERATOR("n::a_too.out",\n             op_a);\n')
    planted.write("op_b.cpp", '// HIL_OPERATOR("n::no.out", op_no);\nHIL_OPERATOR("n::b", op_b);\n')
    assert planted.configure().returncode == 0
    assert planted.entries() == ['{"n::a.out", op_a}', '{"n::a_too.out", op_a}', '{"n::b", op_b}']
    made = (planted.build / "registry.cpp").read_text()
    assert made.count("Error op_a(KernelContext& ctx, Args args);") == 1


def test_the_next_build_sees_a_new_file_and_a_changed_line(planted: Planted) -> None:
    planted.write("op_a.cpp", GOOD)
    assert planted.configure().returncode == 0
    planted.write("op_a.cpp", GOOD.replace("n::a.out", "n::renamed.out"))
    planted.write("op_b.cpp", '\nHIL_OPERATOR("n::b.out", op_b);\n')
    done = planted.run("cmake", "--build", str(planted.build))
    assert done.returncode == 0, done.stderr
    assert planted.entries() == ['{"n::renamed.out", op_a}', '{"n::b.out", op_b}']


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
    done = planted.configure()
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert reason in said
    assert "op_b.cpp" in said


@pytest.mark.parametrize(
    ("kernel", "compiles"),
    [("Error op_x(KernelContext&, Args)", True), ("int op_x(KernelContext&, Args)", False)],
)
def test_what_is_no_kernel_does_not_compile(tmp_path: Path, kernel: str, compiles: bool) -> None:
    source = tmp_path / "op_x.cpp"
    source.write_text(
        f'#include "kernels/operator.h"\nnamespace hil {{\n{kernel};\n'
        'HIL_OPERATOR("n::x.out", op_x);\n}\n'
    )
    command = ["c++", "-std=c++17", "-fsyntax-only", f"-I{KERNELS.parent}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == compiles, done.stderr
    assert compiles or "n::x.out: a kernel is" in done.stderr
