"""Protects what was measured with bugs that ExecuTorch had: on the commit before the fix the
harness names the cause, on the fix it has nothing to say.

Only where ``$EXECUTORCH_ROOT`` is a clone that has these commits; the worktree is the one of
``borrowed``, the user's files are not touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.core.errors import UsageError
from harness.core.verdict import Verdict
from harness.export.checkout import find_exporter
from harness.export.exporter import ExporterChoice
from harness.firmware.choice import FirmwareChoice, choose
from harness.firmware.source import source_named
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.suites.suites import SUITES, check_core
from harness.system.git import GitFailed, Worktree, borrowed, git
from harness.system.settings import ROOT_VARIABLE
from tests.suites.test_runner import compiled

SCRATCH_AHEAD_OF_TIME = "b581615fa86dd2357d866064427a0b93b2ad947f"  # pull request 19636
RUNNER_OF_EACH_TARGET = "5c6938ec9f683fecff3db5815ce0f32add36acbb"  # 20048
# Scratch of 2,359,296 bytes; the runner's temporary pool has 2 MiB.
DECODER = """
import torch
torch.manual_seed(0)
ModelUnderTest = torch.nn.ConvTranspose2d(512, 512, 3, stride=2).eval()
ModelInputs = (torch.randn(1, 512, 4, 4),)
"""


@pytest.fixture(scope="module")
def worktree() -> Iterator[Worktree]:
    root = os.environ.get(ROOT_VARIABLE)
    if not root:
        pytest.skip(f"no real checkout: ${ROOT_VARIABLE} is not set")
    for commit in (SCRATCH_AHEAD_OF_TIME, RUNNER_OF_EACH_TARGET):
        try:
            git(Path(root), "cat-file", "-e", f"{commit}~1^{{commit}}")
        except GitFailed:
            pytest.skip(f"the checkout's history has no {commit[:10]}")
    with borrowed(Path(root), "history") as found:
        yield found


def stand_at(worktree: Worktree, commit: str) -> Path:
    """These revisions are pinned to torch 2.12; a name in them is one that torch 2.13 dropped."""
    import torch  # the others of this folder start without it

    worktree.stand_at(commit)
    if not hasattr(torch.ops.aten.transpose, "Dimname"):
        file = worktree.folder / "backends/arm/quantizer/quantization_annotator.py"
        file.write_text(file.read_text().replace("    torch.ops.aten.transpose.Dimname,\n", ""))
    return worktree.folder


def run(folder: Path, model: Path) -> RunRecord:
    parts = choose("executorch", folder, ()).parts
    firmware = FirmwareChoice((source_named("executorch"),), folder, parts)
    options = RunOptions("qemu", firmware=firmware, exporter=ExporterChoice(folder))
    (record,) = run_cases([Case("corstone-300-m55", str(model))], options)
    return record


def test_scratch_that_does_not_fit_into_the_temporary_pool(
    worktree: Worktree, tmp_path: Path
) -> None:
    """Until 19636 a kernel asked for its scratch when it ran; since then it is planned memory,
    and a program that loads has it."""
    model = tmp_path / "decoder.py"
    model.write_text(DECODER)
    before = run(stand_at(worktree, f"{SCRATCH_AHEAD_OF_TIME}~1"), model)
    assert before.verdict is Verdict.FAULT, before.cause
    assert before.cause is not None
    assert before.cause.kind == "allocation_failed"
    assert before.cause.facts == {
        "kernel": "quantized_transpose_conv2d_out",
        "pool": "output scratch buffer",
        "needed": "2359296",
    }
    after = run(stand_at(worktree, SCRATCH_AHEAD_OF_TIME), model)
    assert after.verdict is Verdict.PASS, after.cause
    assert after.metrics["method_allocator_planned"] > 2359296


_PICKED = """
from executorch.backends.arm.test.runner_utils import get_elf_path
from executorch.backends.cortex_m.test.tester import CortexMTester
import torch
stage = CortexMTester(torch.nn.ReLU(), (torch.ones(1),)).stage_classes
from executorch.backends.test.harness.stages import StageType
suffix = getattr(stage[StageType.SERIALIZE](), "build_dir_suffix", None)
print(get_elf_path("corstone-300", *([] if suffix is None else [False, suffix])))
"""


def picked(folder: Path, place: Path) -> Path:
    """What the checkout's tests run a Cortex-M55's program on, after its build script was used for
    a Cortex-M55 and then for a Cortex-M0+: the script says where, the tests look it up."""
    script = (folder / "backends/cortex_m/test/build_test_runner.sh").read_text()
    (line,) = (one for one in script.splitlines() if one.startswith("build_root_test_dir="))
    for core, how in (("m55", "-mfloat-abi=hard"), ("m0plus", "-mfloat-abi=soft")):
        environ = {"target": f"cortex-{core}", "et_root_dir": str(place)}
        tell = ["bash", "-c", f'{line}; echo -n "$build_root_test_dir"']
        told = subprocess.run(tell, env=environ, capture_output=True, text=True, check=True)
        Path(told.stdout).mkdir(parents=True, exist_ok=True)
        elf = compiled(place, f"-mcpu=cortex-{core}", how)
        shutil.move(elf, Path(told.stdout) / "arm_executor_runner")
    path = os.pathsep.join(
        [str(find_exporter(folder).environment), os.environ.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, "-c", _PICKED],
        capture_output=True,
        text=True,
        check=True,
        cwd=place,
        env={**os.environ, "PYTHONPATH": path, "EXECUTORCH_ROOT": str(place)},
    )
    return Path(done.stdout.splitlines()[-1])


def test_a_runner_that_was_built_for_another_target(worktree: Worktree, tmp_path: Path) -> None:
    """Until 20048 there was one place for the runners of all cores: the last one was run."""
    before, after = tmp_path / "before", tmp_path / "after"
    for place in (before, after):
        place.mkdir()
    elf = picked(stand_at(worktree, f"{RUNNER_OF_EACH_TARGET}~1"), before)
    with pytest.raises(UsageError, match="built for Armv6S-M without Helium"):
        check_core(SUITES["cortex-m"], elf)
    check_core(SUITES["cortex-m"], picked(stand_at(worktree, RUNNER_OF_EACH_TARGET), after))
