"""Built once, cached by content; a failed build is an error and is not cached."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import InfraError, ToolMissing
from harness.npu import kernel_library
from harness.npu.kernel_library import check_layout
from harness.system import toolchain
from harness.system.files import DiskError


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Sources and a cache of the test's own."""
    sources = tmp_path / "kernel"
    sources.mkdir()
    (sources / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(tiny LANGUAGES CXX)\n"
        "add_library(hil_npu SHARED tiny.cpp)\n"
    )
    (sources / "tiny.cpp").write_text('extern "C" int hil_npu_run() { return 1; }\n')
    monkeypatch.setattr(kernel_library, "SOURCES", sources)
    monkeypatch.setattr(kernel_library, "declared", lambda library: library)
    monkeypatch.setattr(kernel_library, "check_layout", lambda library: None)
    monkeypatch.setattr(kernel_library.paths, "cache_dir", lambda kind: tmp_path / kind)
    return sources


def test_a_build_is_kept_by_content(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = kernel_library.load.__wrapped__
    first = load()
    assert first.hil_npu_run() == 1
    with monkeypatch.context() as patch:
        patch.setattr(kernel_library, "_build", lambda _: pytest.fail("it was there"))
        assert load()._name == first._name
    (fresh / "tiny.cpp").write_text('extern "C" int hil_npu_run() { return 2; }\n')
    second = load()
    assert second.hil_npu_run() == 2


def test_what_cannot_be_built_is_said(fresh: Path) -> None:
    (fresh / "tiny.cpp").write_text("this is no C++\n")
    with pytest.raises(InfraError, match="cannot be built: ") as raised:
        kernel_library.load.__wrapped__()
    assert "this is no C++" in Path(str(raised.value).split(": ")[1]).read_text()


def test_a_build_that_failed_is_tried_again(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk, or a compiler that was killed, is no property of the sources: it must not be
    kept in the cache for them."""
    load, compiler = kernel_library.load.__wrapped__, fresh.parent / "g++"
    compiler.write_text("#!/bin/sh\necho 'fatal error: No space left on device' >&2\nexit 1\n")
    compiler.chmod(0o755)
    locate = toolchain.locate
    with monkeypatch.context() as patch:
        broken = {"g++": compiler}
        patch.setattr(toolchain, "locate", lambda name: broken.get(name) or locate(name))
        with pytest.raises(DiskError, match="arithmetic: No space left on device") as raised:
            load()
    assert raised.value.hint == "free some space, or point HIL_HOME at another disk"
    compiler.unlink()
    assert load().hil_npu_run() == 1


def test_a_missing_tool_is_named(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> toolchain.Tool:
        raise ToolMissing("nothing here", tool=name, package=name)

    monkeypatch.setattr(kernel_library.toolchain, "require", missing)
    with pytest.raises(ToolMissing, match="nothing here"):
        kernel_library.load.__wrapped__()


def test_both_sides_have_the_same_idea_of_a_job() -> None:
    check_layout(kernel_library.load())


def test_another_layout_is_noticed() -> None:
    class Other:
        def hil_npu_job_bytes(self) -> int:
            return 8

        def hil_npu_memory_bytes(self) -> int:
            return 8

    with pytest.raises(AssertionError, match=r"kernel_library\.py misreads kernel/jobs\.h"):
        check_layout(Other())  # type: ignore[arg-type]
