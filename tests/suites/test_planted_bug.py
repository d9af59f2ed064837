"""A bug in one kernel is found, and only by the tests of what that kernel does.

These build a runner and export with torch: half a minute.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.firmware import step
from harness.firmware.sources.bundled import _cmake_options, build, make_plan
from harness.suites.results import Selection
from harness.suites.run import SuiteOptions, run_suite
from harness.system.progress import silent
from tools.clone import project_root

_QUANTIZED_ADD = "targets/runner/kernels/quantized_add_helium.h"
_OFFSET = "scale_out(sum), stage.offset"
# Of sub what uses quantized_add: a negative alpha. The control: mul, and a sub that does not.
_CHOSEN = "implementation and ((sub and (alpha_negative or inplace)) or (mul and rank_1))"


def built_with_a_bug(directory: Path) -> Path:
    """The bundled runner, in which quantized_add's output offset is three too large.

    Only for this build the source is another: a file that is mounted in its place. So all paths are
    as usual, and ccache knows what does not include it."""
    source = project_root() / _QUANTIZED_ADD
    text = source.read_text()
    assert _OFFSET in text
    planted = directory / source.name
    planted.write_text(text.replace(_OFFSET, f"{_OFFSET} + 3"))
    tree = directory / "build"
    walls = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    walls += ["--ro-bind", str(planted), str(source), "--"]
    environment = {**os.environ, **step.ccache(tree)}
    plan = make_plan(load_target("corstone-300-m55"), {})
    options = {"CMAKE_RUNTIME_OUTPUT_DIRECTORY": str(tree), **_cmake_options(plan)}
    configure = step.cmake(plan.sources, tree, options)
    for words in (configure, ["ninja", "-C", str(tree), "-j", "2", "executor_runner"]):
        subprocess.run([*walls, *words], check=True, capture_output=True, env=environment)
    return tree / "executor_runner"


@pytest.mark.thorough
def test_a_bug_in_quantized_add_fails_what_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Protects the claim that a user's own runner is put to the test: without the bug all of them
    pass, with it the one that is concerned does not, although all is in the cache by then."""
    monkeypatch.setattr("harness.suites.store.cache_dir", lambda kind: tmp_path / kind)
    elfs = build(load_target("corstone-300-m55")).elf, built_with_a_bug(tmp_path)
    options = SuiteOptions(Selection(_CHOSEN), workers=1)
    sound, report = (run_suite("cortex-m", replace(options, elf=elf), silent) for elf in elfs)
    assert {test.result for test in sound.tests if test.simulated} == {"passed"}
    assert sound.on_target == 3
    (failed,) = (test for test in report.tests if test.result == "failed")
    assert failed.id.endswith("test_implementation_sub[cortex-m55-alpha_negative]")
    assert failed.cause.startswith("mismatch: ")
    others = [test.result for test in report.tests if test.simulated and test != failed]
    assert others == ["passed"] * 2
    assert report.simulated_again == 2
