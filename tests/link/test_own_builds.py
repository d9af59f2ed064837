"""Protects that a failed link of the runner itself says why, in the error and from the build
directory that is kept, and that reduce works on that directory."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.core.errors import LinkError
from harness.firmware.sources.bundled import build
from harness.link.diagnose.explain import explain
from harness.link.reduce import reduce_build

LISTS = (
    "add_library(hil_kernels STATIC registry.cpp)\n"
    "target_link_libraries(hil_kernels PUBLIC hil_options hil_core)\n"
)
REGISTRY = """\
#include "core/kernel.h"
namespace hil {
Error op_forgotten(KernelContext& context, Args args);
static constexpr KernelEntry kKernels[] = {{"aten::forgotten.out", op_forgotten}};
Span<const KernelEntry> kernel_table() { return {kKernels, 1}; }
const KernelEntry* find_kernel(const char*) { return kKernels; }
}
"""
OPERATOR = """\
#include "core/kernel.h"
namespace hil {
Error op_forgotten(KernelContext&, Args) { return Error::Ok; }
}
"""


def _quiet(_message: str) -> None:
    pass


def forgetful_kernels(directory: Path, lists: str = LISTS) -> Path:
    kernels = directory / "kernels"
    kernels.mkdir()
    for name, text in (("CMakeLists.txt", lists), ("registry.cpp", REGISTRY)):
        (kernels / name).write_text(text)
    (kernels / "op_forgotten.cpp").write_text(OPERATOR)
    return kernels


def test_a_kernel_file_that_the_build_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = forgetful_kernels(tmp_path)
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    with pytest.raises(LinkError, match=r"undefined reference to .hil::op_forgotten") as caught:
        build(load_target("corstone-300-m55"), options={"HIL_KERNELS_DIR": str(kernels)})
    error = caught.value
    assert error.hint is not None
    assert "registry.cpp" in error.hint
    failure = error.facts["failures"][0]
    assert failure["kind"] == "undefined_symbol"
    assert failure["symbol"].startswith("hil::op_forgotten")
    json.dumps(error.facts)
    tree = Path(error.facts["log"]).parent / "build"
    explained = explain(tree, _quiet).failures[0]
    assert explained.demangled == failure["demangled"]
    reduced = reduce_build(tree, tmp_path / "reduced", _quiet)
    assert len(reduced.objects) + bool(reduced.stubs) <= 3
    done = subprocess.run(
        ["sh", str(tmp_path / "reduced" / "repro.sh")], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "undefined reference to `hil::op_forgotten" in done.stdout + done.stderr
    assert explained.cause_kind == "source_not_compiled"
    assert "op_forgotten.cpp:3" in explained.cause
