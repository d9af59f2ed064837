"""A bug in one kernel is found, and only by the tests of what that kernel does.

These build a runner and export with torch: a few minutes.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from harness.build.firmware import build
from harness.build.plan import make_plan
from harness.conformance.model import Selection
from harness.conformance.run import conform
from harness.system.paths import project_root
from harness.target.loading import load_target

_QUANTIZED_ADD = "targets/runner/kernels/quantized_add_helium.h"
_OFFSET = "scale_out(sum), stage.offset"


def built_with_a_bug(directory: Path) -> Path:
    """The bundled runner from a copy of its sources in which quantized_add's output offset is
    three too large. ``harness.build`` knows one source tree only, so CMake is called directly."""
    for name in ("targets", "cmake"):
        shutil.copytree(project_root() / name, directory / name)
    source = directory / _QUANTIZED_ADD
    plan = make_plan(load_target("corstone-300-m55"), "plain", {})
    text = source.read_text()
    assert _OFFSET in text
    source.write_text(text.replace(_OFFSET, f"{_OFFSET} + 3"))
    options = {**plan.options, "HIL_SCHEMA_DIR": str(plan.schemas / "schema")}
    subprocess.run(
        [
            *("cmake", "-S", directory / "targets" / "runner", "-B", directory / "out"),
            *("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"),
            f"-DCMAKE_TOOLCHAIN_FILE={plan.toolchain_file}",
            *(f"-D{name}={value}" for name, value in options.items()),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    ninja = ["ninja", "-C", directory / "out", "-j", "2", "executor_runner"]
    subprocess.run(ninja, check=True, capture_output=True)
    (elf,) = (p for p in (directory / "out").rglob("executor_runner") if p.is_file())
    return elf


def test_a_bug_in_quantized_add_fails_what_uses_it(tmp_path: Path) -> None:
    """Protects the claim that a user's own runner is put to the test; mul is the control. What
    passes of sub (broadcasts, float alphas) does not use quantized_add."""
    elf = built_with_a_bug(tmp_path)
    chosen = Selection("implementation and (test_sub or test_mul)")
    report = conform("cortex-m", elf, chosen, lambda _message: None)
    failed = [verdict for verdict in report.verdicts if verdict.result == "failed"]
    assert {verdict.group for verdict in failed} == {"sub"}
    assert all(verdict.cause.startswith("mismatch: ") for verdict in failed)
    assert {v.result for v in report.verdicts if v.group == "mul"} == {"passed"}


def test_the_bundled_runner_has_no_such_bug() -> None:
    """The other half: the same tests without the bug."""
    elf = build(load_target("corstone-300-m55")).elf
    chosen = Selection("implementation and test_sub")
    report = conform("cortex-m", elf, chosen, lambda _message: None)
    assert report.summary["failed"] == 0
    assert report.summary["passed"] > 5
