"""Protects the promise that a program with an operator the runner lacks is refused, by name,
before a simulator starts; and that no other program is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.config.models import find_model
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.firmware.names import source_names
from harness.firmware.operators import (
    Needs,
    RunnerLacks,
    missing_names,
    needs_of,
    require,
)
from harness.firmware.source import source_named
from harness.firmware.sources.bundled import build
from tests.cli.conftest import Hil, hil

__all__ = ["hil"]  # a fixture

TABLE = '"cortex_m::quantized_add.out", "aten::view_copy.out"'


def _compiled(directory: Path, source: str, *, link: bool = False) -> Path:
    (directory / "k.c").write_text(source)
    options = ["-nostdlib", "-Wl,-e,kernels"] if link else ["-c"]
    argv = ["arm-none-eabi-gcc", "-O2", "-mcpu=cortex-m55", *options, "k.c", "-o", "k.elf"]
    subprocess.run(argv, cwd=directory, check=True)
    return directory / "k.elf"


@pytest.fixture(scope="module")
def add(hil_export_process: ExportProcess) -> Program:
    return export([ExportRequest(find_model("add"))], process=hil_export_process)[0].unwrap()


def test_a_missing_kernel_is_named(tmp_path: Path) -> None:
    names = '"cortex_m::quantized_add.out", "aten::view_copy.out"'
    (tmp_path / "k.c").write_text(f"const char *const kernels[] = {{ {names} }};\n")
    subprocess.run(["arm-none-eabi-gcc", "-c", "k.c", "-o", "k.o"], cwd=tmp_path, check=True)
    wanted = ["aten::view_copy.out", "aten::view_copy", "cortex_m::quantized_mul.out"]
    missing = missing_names(tmp_path / "k.o", wanted)
    assert missing == ("aten::view_copy", "cortex_m::quantized_mul.out")


def test_a_name_that_shares_the_end_of_another_is_found(tmp_path: Path) -> None:
    """The linker merges the tails of strings; refusing such a program would be wrong."""
    table = 'const char *const kernels[] = { "xxxxaten::add.out", "aten::add.out" };\n'
    elf = _compiled(tmp_path, table, link=True)
    assert elf.read_bytes().count(b"aten::add.out\0") == 1  # merged, or the test shows nothing
    assert missing_names(elf, ["aten::add.out", "aten::add"]) == ("aten::add",)


def test_all_missing_operators_are_named_with_what_to_do(tmp_path: Path) -> None:
    elf = _compiled(tmp_path, f"const char *const kernels[] = {{ {TABLE} }};\n")
    with pytest.raises(RunnerLacks, match=r"no kernel for operators a::b\.out, c::d\.out") as e:
        require(
            [elf], Needs(("a::b.out", "aten::view_copy.out", "c::d.out")), source_named("bundled")
        )
    assert e.value.operators == ("a::b.out", "c::d.out")
    assert e.value.hint is not None
    assert "HIL_OPERATOR" in e.value.hint
    assert (e.value.verdict, e.value.kind) == ("NO_VERDICT", "runner_lacks")


def test_of_a_checkout_the_hint_is_about_its_own_list(tmp_path: Path) -> None:
    """Our kernels have nothing to do with what a checkout links."""
    elf = _compiled(tmp_path, f"const char *const kernels[] = {{ {TABLE} }};\n")
    with pytest.raises(RunnerLacks, match=r"^ExecuTorch's runner has no kernel for") as e:
        require([elf], Needs(("a::b.out",)), source_named("executorch"))
    assert "the checkout's list of operators" in str(e.value.hint)
    assert "targets/runner" not in str(e.value.hint)
    assert e.value.facts["source"] == "executorch"
    assert (e.value.verdict, e.value.kind) == ("LINK_ERROR", "operator_missing")


def test_a_file_names_its_operators_itself(add: Program, tmp_path: Path) -> None:
    assert needs_of(add.pte_path) == Needs(add.operators)
    for damaged in (b"", b"not a program", add.pte_path.read_bytes()[:40]):
        (tmp_path / "bad.pte").write_bytes(damaged)
        assert needs_of(tmp_path / "bad.pte") == Needs()


def test_the_runner_has_every_operator_of_a_program_that_runs(add: Program) -> None:
    assert missing_names(build(load_target("host")).elf, add.operators) == ()


def test_backends_are_named_in_one_breath_with_operators(tmp_path: Path) -> None:
    """Nobody wants to mend a model once for each name."""
    table = 'const char *const names[] = { "aten::add.out", "TestBackend" };\n'
    elf = _compiled(tmp_path, table)
    require([elf], Needs(("aten::add.out",), ("TestBackend",)), source_named("bundled"))
    both = Needs(("aten::add.out", "a::b.out"), ("TestBackend", "XnnpackBackend", "VulkanBackend"))
    said = r"no kernel for operator a::b\.out and no backends XnnpackBackend, VulkanBackend"
    with pytest.raises(RunnerLacks, match=said) as e:
        require([elf], both, source_named("bundled"))
    assert e.value.facts["backends"] == ("XnnpackBackend", "VulkanBackend")
    assert "HIL_OPERATOR" in str(e.value.hint)
    assert "HIL_BACKENDS" in str(e.value.hint)
    assert "--firmware wheel" in str(e.value.hint), "XNNPACK is to be had"
    for source in map(source_named, source_names()):
        with pytest.raises(RunnerLacks, match=r"has no backend VulkanBackend$") as one:
            require([elf], Needs((), ("VulkanBackend",)), source)
        own = source.name == "bundled"
        assert one.value.kind == ("runner_lacks" if own else "backend_missing")
        assert "HIL_OPERATOR" not in str(one.value.hint)


def test_what_any_of_the_files_has_is_not_missing(tmp_path: Path) -> None:
    """A firmware with shared libraries: its kernels are in these."""
    for name, table in (("program", '"aten::add.out"'), ("library", '"a::b.out", "c::d.out"')):
        (tmp_path / name).mkdir()
        _compiled(tmp_path / name, f"const char *const kernels[] = {{ {table} }};\n")
    images = [tmp_path / name / "k.elf" for name in ("program", "library")]
    require(images, Needs(("aten::add.out", "a::b.out", "c::d.out")), source_named("wheel"))
    with pytest.raises(RunnerLacks, match=r"no kernel for operator cortex_m::pad.out") as e:
        require(images, Needs(("a::b.out", "cortex_m::pad.out")), source_named("wheel"))
    assert "TARGET@portable-fp32" in str(e.value.hint)
    assert e.value.path == str(images[0])


def test_a_delegate_is_refused_by_a_runner_without_its_backend(
    hil: Hil, hil_export_process: ExportProcess
) -> None:
    """Neither `hil run` nor `hil exec` starts a simulator for a program that cannot be loaded."""
    request = ExportRequest(find_model("add"), "ethos-u55-128")
    pte = export([request], process=hil_export_process)[0].unwrap().pte_path
    for words in (["run", "host", "add", "--pte", pte], ["exec", "host", pte]):
        done = hil(*words, "--json")
        assert done.code == 1, done.err
        assert "the runner has no backend EthosUBackend" in done.out + done.err
        assert '"runner_lacks"' in done.out


def test_a_run_is_refused_before_the_simulator_starts(
    add: Program, hil: Hil, tmp_path: Path
) -> None:
    """What has no run directory was not simulated."""
    content = add.pte_path.read_bytes()
    assert content.count(b"cortex_m::quantized_add\0") == 1
    bad = tmp_path / "bad.pte"
    bad.write_bytes(content.replace(b"cortex_m::quantized_add\0", b"cortex_m::quantized_axe\0"))
    done = hil("run", "host", "add", "--pte", bad, "--json")
    assert done.code == 1, done.err
    assert "quantized_axe" in done.out
    said = json.dumps(done.json)
    assert '"NO_VERDICT"' in said
    assert '"runner_lacks"' in said
    assert '"operators": ["cortex_m::quantized_axe.out"]' in said
    assert '"run_dir": null' in said
    assert '"simulator": null' in said
