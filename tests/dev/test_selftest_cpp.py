"""Protects that the steps for the C++ find what they are for, and pass over nothing in silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.dev import selftest
from harness.system import paths, toolchain

ROOT = paths.project_root()
TIDY = ("--quiet", f"--config-file={ROOT / '.clang-tidy'}")


def _tool(name: str) -> toolchain.Tool:
    tool = toolchain.find(name)
    if tool is None or tool.version.split(".")[0] != str(selftest.LLVM):
        pytest.skip(f"{name} {selftest.LLVM} is not installed (docker/packages.txt has it)")
    return tool


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one source file with the real .clang-format."""
    (tmp_path / "targets" / "runner").mkdir(parents=True)
    shutil.copyfile(ROOT / ".clang-format", tmp_path / ".clang-format")
    monkeypatch.setattr(selftest, "project_root", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(("text", "held"), [("int f();\n", True), ("int  f( );\n", False)])
def test_a_file_that_is_laid_out_otherwise_fails(project: Path, text: str, held: bool) -> None:
    _tool("clang-format")
    (project / "targets" / "runner" / "a.cpp").write_text(text)
    assert selftest.layout() is held


@pytest.mark.parametrize(
    ("text", "held"),
    [("int* f() { return nullptr; }\n", True), ("int* f() { return 0; }\n", False),
     ("int f(int* p) { if (p == nullptr) return *p; return 0; }\n", False)],
    ids=["good", "a number for a pointer", "a null pointer is followed"],
)  # fmt: skip
def test_what_the_list_of_checks_is_for_fails(tmp_path: Path, text: str, held: bool) -> None:
    (tmp_path / "a.cpp").write_text(text)
    argv = [str(_tool("clang-tidy").path), *TIDY, str(tmp_path / "a.cpp"), "--"]
    assert selftest._clean(argv) is held


@pytest.mark.parametrize("name", ["clang-format", "clang-tidy"])
def test_another_version_says_that_nothing_was_checked(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Debian 13 has LLVM 19, which lays out a little differently."""
    newer = toolchain.Tool(name, Path("/nowhere"), "19.1.7", name)
    monkeypatch.setattr(toolchain, "require", lambda _name: newer)
    assert selftest.layout() if name == "clang-format" else selftest.lint()
    assert f"not checked: {name} 19.1.7 is not of LLVM 14" in capsys.readouterr().err


def test_our_own_sources_are_linted_once() -> None:
    runner, kernel = ROOT / "targets" / "runner", ROOT / "harness" / "ethosu" / "kernel"
    own = [f"{kernel}/pool.cpp", f"{runner}/runner.cpp"]
    others = [f"{runner}/tests/runner_test.cpp", "/build/kernels/registry.cpp"]
    assert selftest.linted([{"file": file} for file in (*own, *others, *own)]) == own


def test_the_npu_s_kernel_is_laid_out_too() -> None:
    assert ROOT / "harness" / "ethosu" / "kernel" / "pool.cpp" in selftest._laid_out()
