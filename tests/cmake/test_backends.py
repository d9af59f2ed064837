"""A backend is a folder: nothing else of the runner has to know it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.firmware.step import launchers
from harness.system import toolchain
from harness.system.paths import executorch_package
from tools.clone import project_root

SOURCE = """
#include "core/backend.h"

namespace hil::planted {
namespace {

class Planted final : public Backend {
 public:
  Error init(DelegateSetup&, void**) override { return Error::NotSupported; }
  Error execute(void*, Span<Value* const>, Arena&) override { return Error::NotSupported; }
  void destroy(void*) override {}
};

}  // namespace

BackendEntry entry() {
  static Planted instance;
  return {"PlantedBackend", &instance};
}

}  // namespace hil::planted
"""
CMAKE = """
add_library(hil_planted STATIC backend.cpp)
target_link_libraries(hil_planted PUBLIC hil_core)
"""


def test_a_folder_is_all_a_backend_needs(tmp_path: Path) -> None:
    """Named by its path, it is in the runner that is built, beside none or others."""
    folder, build = tmp_path / "planted", tmp_path / "build"
    folder.mkdir()
    (folder / "backend.cpp").write_text(SOURCE)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    compiler = str(toolchain.locate("g++"))
    # so that the compiler's cache has most of it
    as_firmware = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": compiler,
        "HIL_RUNTIME_CHECKS": "ON",
        **launchers("CXX"),
    }
    subprocess.run(
        [
            "cmake",
            "-S",
            project_root() / "targets" / "runner",
            "-B",
            build,
            "-G",
            "Ninja",
            "-DHIL_PORT=host",
            "-DBUILD_TESTING=OFF",
            f"-DHIL_BACKENDS={folder}",
            f"-DHIL_SCHEMA_DIR={executorch_package() / 'schema'}",
            *(f"-D{name}={value}" for name, value in as_firmware.items()),
        ],
        check=True,
        capture_output=True,
    )
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    (runner,) = build.rglob("executor_runner")
    assert b"PlantedBackend" in runner.read_bytes()
