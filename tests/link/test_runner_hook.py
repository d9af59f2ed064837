"""Protects that arm_ethos_io_memcpy is a hook in the runner itself: with the Ethos-U backend its
weak default can be overridden, the counting build does override it, and without the backend the
symbol is nowhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from test_own_builds import LISTS, forgetful_kernels

from harness.build_plan import executorch_package
from harness.link.check import check
from harness.paths import project_root

HOOK = "arm_ethos_io_memcpy"


def _quiet(_message: str) -> None:
    pass


def _built(root: Path, *options: str) -> Path:
    kernels = forgetful_kernels(
        root, LISTS.replace("registry.cpp", "registry.cpp op_forgotten.cpp")
    )
    runner, build = project_root() / "targets" / "runner", root / "build"
    toolchain = project_root() / "cmake" / "toolchains" / "cortex-m.cmake"
    configure = [
        "cmake", "-S", str(runner), "-B", str(build), "-G", "Ninja", "-DHIL_PORT=cortex_m",
        f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DHIL_KERNELS_DIR={kernels}",
        f"-DHIL_SCHEMA_DIR={executorch_package() / 'schema'}", *options,
    ]  # fmt: skip
    for argv in (configure, ["ninja", "-C", str(build), "-j2", "executor_runner"]):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build


@pytest.fixture(scope="module")
def with_backend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(tmp_path_factory.mktemp("ethosu"), "-DHIL_ETHOSU=ON")


def test_the_default_can_be_overridden(with_backend: Path) -> None:
    found = check(with_backend, [HOOK], _quiet)
    assert found.holds, found.text()
    assert {f.check for f in found.findings} == {
        "default_is_weak", "default_is_alone", "called_across_files", "not_inlined", "strong_wins",
    }  # fmt: skip
    assert any("io_memcpy.cpp" in f.text for f in found.findings)


def test_the_counting_build_overrides_it(tmp_path: Path) -> None:
    build = _built(tmp_path, "-DHIL_ETHOSU=ON", "-DHIL_ETHOSU_COUNT_IO=ON")
    found = check(build, [HOOK], _quiet)
    symbols = subprocess.run(["arm-none-eabi-nm", str(build / "ports/cortex_m/executor_runner")],
                             capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert f" T {HOOK}\n" in symbols
    assert found.holds, found.text()
    assert any("io_count.cpp" in f.text for f in found.findings if f.check == "strong_wins")


def test_without_the_backend_there_is_no_hook(tmp_path: Path) -> None:
    found = check(_built(tmp_path), [HOOK], _quiet)
    assert [f.check for f in found.findings] == ["in_program"]
    assert not found.holds  # nothing was proven
