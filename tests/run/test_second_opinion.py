"""Protects the comparison of two runners and of two simulators, end to end: each case once by both.

The checkout is the small one of tests/firmware/executorch, built and run for real; and the one that
$EXECUTORCH_ROOT names, where there is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.config.case import Case
from harness.core.errors import UsageError
from harness.core.verdict import Verdict
from harness.firmware.choice import FirmwareChoice, choose
from harness.firmware.source import Arithmetic, source_named
from harness.report.terminal import print_differentials
from harness.run.directory import load_record
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from tests.firmware.executorch.conftest import WITHOUT, Source, home, pristine, small
from tests.firmware.executorch.small import KERNEL, edit

__all__ = ["home", "pristine", "small"]
BOTH = (source_named("bundled"), source_named("executorch"))


@pytest.fixture(autouse=True)
def _shared_programs(
    home: Callable[[str], Path], shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state directory of the test's own, with the session's exports and bundled runner."""
    monkeypatch.setenv("HIL_HOME", shared_hil_home)


def both(
    choice: FirmwareChoice, target: str, *models: str, oracle: Arithmetic | None = None
) -> list[RunRecord]:
    options = RunOptions(firmware=replace(choice, sources=BOTH), oracle=oracle)
    return run_cases([Case(target, model) for model in models], options)


def test_the_same_kernels_agree(small: Source) -> None:
    choice = FirmwareChoice(BOTH, small.root, small.parts)
    own, other = both(choice, "corstone-300-m55", "deep_autoencoder")
    assert [own.source, other.source] == [source.name for source in BOTH]
    assert own.verdict.passed, own.cause
    assert other.verdict.passed, other.cause
    assert own.differential is None
    found = other.differential
    assert found is not None
    assert (found.agree, len(found.tensors), found.first) == (3, 3, None)
    ours, theirs = found.figures["method_allocator_planned"]
    assert ours == theirs == other.metrics["method_allocator_planned"]
    assert load_record(Path(other.run_dir or "")).differential == found


def test_a_planted_bug_is_found_in_its_operator(small: Source) -> None:
    edit(small.root / KERNEL, "0, n.output[0], ", "0, n.output[0] + 1, ")
    choice = FirmwareChoice(BOTH, small.root, small.parts)
    own, other = both(choice, "corstone-300-m55", "resnet8")
    assert own.verdict.passed, own.cause
    assert other.verdict is Verdict.MISMATCH
    found = other.differential
    assert found is not None
    assert found.first is not None
    assert found.first.operator == "cortex_m::quantized_add.out"
    assert found.agree < len(found.tensors)
    assert other.cause is not None
    assert (
        f"first: instruction {found.first.instruction} (cortex_m::quantized_add" in other.cause.text
    )
    assert (other.cause.facts or {})["culprit"] == "ExecuTorch's kernel"
    shown = StringIO()
    print_differentials(Console(file=shown, width=200), [own, other])
    assert f"they first differ at instruction {found.first.instruction}" in shown.getvalue()
    assert "method_allocator_planned" in shown.getvalue()


# An FVP that is QEMU, of whose first output a bit is wrong where there is a file "wrong" beside it.
FVP = """#!/bin/sh
here=${0%/*}
[ "$1" = --version ] && { echo "Fast Models [11.27.42 (Dec  9 2024)]"; exit 0; }
for word in "$@"; do
  case $word in
    *.semihosting-cwd=*) cd "${word#*=}" ;;
    *.semihosting-cmd_line=*) line=${word#*=} ;;
    *.elf | */executor_runner) elf=$word ;;
  esac
done
for word in $line; do arguments=$arguments,arg=$word; done
qemu-system-arm -M mps3-an547 -nographic -monitor none -serial none -icount shift=5 \\
  -semihosting-config "enable=on,target=native$arguments" -kernel "$elf" || exit
[ -f "$here/wrong" ] || exit 0
byte=$(od -An -tu1 -N1 s0-0.bin)
printf "\\\\$(printf %o $((byte ^ 64)))" | dd of=s0-0.bin bs=1 conv=notrunc 2>/dev/null
"""


@pytest.mark.parametrize("wrong", [False, True])
def test_two_simulators(wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run compares them, and says from where on one of them is wrong."""
    model = tmp_path / "FVP_Corstone_SSE-300_Ethos-U55"
    model.write_text(FVP)
    model.chmod(0o755)
    if wrong:
        (tmp_path / "wrong").touch()
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    options = RunOptions(simulator="qemu", beside="fvp", strict=False)
    own, other = run_cases([Case("corstone-300-m55", "add")], options)
    assert own.verdict.passed, own.cause
    assert (other.verdict is Verdict.MISMATCH) == wrong, other.cause
    found = other.differential
    assert found is not None
    assert found.between == ("qemu", "fvp")
    assert found.agree == len(found.tensors) - wrong
    assert (found.first is None) == (not wrong)
    shown = StringIO()
    print_differentials(Console(file=shown, width=200), [own, other])
    assert f"{found.agree} of {len(found.tensors)} outputs are as on qemu" in shown.getvalue()
    assert ("they first differ at instruction" in shown.getvalue()) == wrong
    assert load_record(Path(other.run_dir or "")).differential == found


def test_only_two_runs_are_compared() -> None:
    with pytest.raises(UsageError, match="two runs of a case are compared"):
        run_cases([], RunOptions(simulator="qemu", beside="fvp", firmware=FirmwareChoice(BOTH)))


def test_a_real_checkout(shared_hil_home: str) -> None:
    """ExecuTorch of August 2026 and the bundled runner give the same bytes. Against Python's
    definitions each difference has a name, and the two part at the operator that it names."""
    if not os.environ.get("EXECUTORCH_ROOT"):
        pytest.skip(WITHOUT)
    choice = choose("both", None, ())
    models = ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder")
    named = {
        "avg-pool-half-away": "cortex_m::quantized_avg_pool2d.out",
        "quantize-fused": "cortex_m::quantize_per_tensor.out",
    }
    for target in ("corstone-300-m55", "corstone-300-u55-128", "corstone-320-u85-256"):
        for oracle in (None, Arithmetic.PYTHON):
            records = both(choice, target, *models, oracle=oracle)
            assert [r.title for r in records if not r.verdict.passed] == []
            for record in records[1::2]:
                found = record.differential
                assert found is not None
                if found.agree == len(found.tensors):
                    continue
                assert oracle is Arithmetic.PYTHON
                assert found.first is not None
                assert named[found.by_design[0]] == found.first.operator
