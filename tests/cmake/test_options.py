"""cmake/options.cmake: what the compiler refuses in the runner's sources.

Protects that an error dropped, a name that hides another and a number cut off do not compile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.clone import project_root

LISTS = f"""\
cmake_minimum_required(VERSION 3.20)
project(planted CXX)
include({project_root()}/cmake/options.cmake)
add_library(planted OBJECT planted.cpp)
target_link_libraries(planted PRIVATE hil_options)
target_include_directories(planted PRIVATE {project_root()}/targets/runner)
"""
FAULTS = {
    "": "",
    "fail();": "unused-result",
    "{ int x = y; int z = x; { int x = z; y = x; } }": "shadow",
    "signed char c = y; y = c;": "conversion",
}


@pytest.mark.parametrize("fault", FAULTS, ids=["nothing", *list(FAULTS.values())[1:]])
def test_a_planted_fault_does_not_compile(fault: str, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(LISTS)
    (tmp_path / "planted.cpp").write_text(
        f'#include "core/error.h"\nhil::Error fail();\nint f(int y) {{ {fault} return y; }}\n'
    )
    commands = (
        ["-S", str(tmp_path), "-B", str(tmp_path / "b"), "-G", "Ninja"],
        ["--build", str(tmp_path / "b")],
    )
    for command in commands:
        done = subprocess.run(["cmake", *command], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (fault == ""), done.stdout
    assert FAULTS[fault] in done.stdout
