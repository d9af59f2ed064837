"""Protects that the checks of the C++ find what they are for and never pass unseen."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from harness.core.errors import ToolMissing
from tools import cpp
from tools.clone import project_root

ROOT = project_root()
TIDY = ("--quiet", f"--config-file={ROOT / '.clang-tidy'}")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one source file with the real .clang-format."""
    (tmp_path / "targets" / "runner").mkdir(parents=True)
    shutil.copyfile(ROOT / ".clang-format", tmp_path / ".clang-format")
    monkeypatch.setattr(cpp, "project_root", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(("text", "passes"), [("int f();\n", True), ("int  f( );\n", False)])
def test_another_layout_fails(
    project: Path, text: str, passes: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (project / "targets" / "runner" / "a.cpp").write_text(text)
    with (tmp_path_factory.mktemp("format") / "output").open("w") as output:
        assert cpp.check_format(output) is passes


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("#include <cstddef>\nint* f() { return nullptr; }\n", True),
        ("int* f() { return 0; }\n", False),
        ("int f(int* p) { if (p == nullptr) return *p; return 0; }\n", False),
    ],
    ids=["good", "a number for a pointer", "a null pointer is followed"],
)
def test_clang_tidy_finds_what_its_checks_are_for(tmp_path: Path, text: str, passes: bool) -> None:
    (tmp_path / "a.cpp").write_text(text)
    file = str(tmp_path / "a.cpp")
    command = [*cpp.tidy_command(), *TIDY, file, "--"]
    output = io.StringIO()
    assert cpp.run_quietly(command, output) is passes, output.getvalue()


def test_a_missing_tool_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpp.sysconfig, "get_path", lambda _name: str(tmp_path))
    with pytest.raises(ToolMissing, match="clang-format is not in"):
        cpp.check_format(io.StringIO())


def test_own_sources_are_checked_once_and_generated_ones_never() -> None:
    runner, kernel = ROOT / "targets" / "runner", ROOT / "harness" / "npu" / "kernel"
    own = [f"{kernel}/pool.cpp", f"{runner}/runner.cpp"]
    others = [f"{runner}/tests/runner_test.cpp", "/build/kernels/registry.cpp"]
    assert cpp.tidy_files([{"file": file} for file in (*own, *others, *own)]) == own


def test_the_npu_model_s_sources_have_the_layout_too() -> None:
    assert ROOT / "harness" / "npu" / "kernel" / "pool.cpp" in cpp.formatted_files()
