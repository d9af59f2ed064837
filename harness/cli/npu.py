"""``hil npu``: the functional Ethos-U model by itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import echo, verb
from harness.errors import UsageError
from harness.errors.verdict import ExitCode
from harness.errors.words import counted
from harness.ethosu.blob import find_blobs, read_actions, read_blob
from harness.ethosu.disasm import disassemble
from harness.ethosu.model import Network, Stats

if TYPE_CHECKING:
    from harness.export.program import Program
    from harness.run.smaller import Reduced

_File = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def npu() -> None:
    """Run, list and measure Ethos-U command streams without an NPU.

    FILE is a .pte with Ethos-U delegates or a bare Vela stream; MODEL a name or a .py file.
    """


@npu.command("run")
@click.argument("file", type=_File)
@click.option("-i", "--input", "inputs", type=_File, multiple=True, help="Raw input bytes.")
@click.option("-o", "--output", "base", default="out", help="Outputs go to BASE-0.bin and so on.")
@click.option("-d", "--delegate", default=0, show_default=True, help="Which delegate of a .pte.")
@verb
def run_(
    file: Path, inputs: tuple[Path, ...], base: str, delegate: int, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Run one delegate: hil npu run add.pte -i a.bin -i b.bin -o sum"""
    network = Network(_delegate(file, delegate))
    outputs, stats = network.run([path.read_bytes() for path in inputs])
    names = [f"{base}-{index}.bin" for index in range(len(outputs))]
    for name, content in zip(names, outputs, strict=True):
        Path(name).write_bytes(content)
    if not as_json:
        for name, content in zip(names, outputs, strict=True):
            echo(f"{name}  {len(content)} bytes")
    return {"outputs": names, **_as_dict(stats)}, ExitCode.PASSED


@npu.command()
@click.argument("file", type=_File)
@click.option("-d", "--delegate", default=0, show_default=True, help="Which delegate of a .pte.")
@verb
def disasm(file: Path, delegate: int, as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """List the command stream: hil npu disasm add.pte"""
    actions = read_actions(read_blob(_delegate(file, delegate)).commands)
    lines = list(disassemble(actions))
    if not as_json:
        echo("\n".join(lines))
    return {"npu": actions.config.name, "lines": lines}, ExitCode.PASSED


_subject = click.argument("subject", type=click.Path(path_type=Path), metavar="FILE.pte|MODEL")
_target = click.option("--target", help="For a model: the target that it is exported for.")


@npu.command()
@click.argument("subject", type=click.Path(path_type=Path), metavar="FILE|MODEL")
@_target
@click.option("--cycles", is_flag=True, help="Also Vela's estimate of the time, per operator.")
@verb
def stats(
    subject: Path, target: str | None, cycles: bool, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Operations, MACs, bytes moved, with zeros as input, and memory: hil npu stats model.pte

    Memory by class: commands, weights, scratch, and for direct drive (COP2) the regions of inputs
    and outputs and the cache in the NPU's SRAM. A MODEL is exported for --target.

    --cycles compiles the same stream once more and reads what Vela expects it to take: an estimate,
    no measurement. It needs a program that hil exported, or a MODEL.
    """
    from harness.run.exports import program_of

    file, program = subject, None
    if cycles or not subject.is_file() or subject.suffix == ".py":
        with progress_shown(as_json) as progress:
            program = program_of(subject, target, "hil npu stats", progress)
        file = program.pte_path
    found = []
    for index, blob in enumerate(_blobs(file)):
        network = Network(blob)
        _, result = network.run([bytes(t.size) for t in network.blob.inputs])
        found.append(_as_dict(result))
        if not as_json:
            _print(index, result)
    if not cycles or program is None:
        return {"delegates": found}, ExitCode.PASSED
    return {"delegates": found, "estimates": _estimates(program, as_json)}, ExitCode.PASSED


def _estimates(program: Program, as_json: bool) -> list[dict[str, Any]]:
    from harness.export.estimates import of_program
    from harness.report.console import Terminal
    from harness.report.estimates import fields, print_layers

    found = of_program(program)
    if not as_json:
        for index, estimate in enumerate(found):
            print_layers(Terminal(), index, estimate)
    return [fields(one) for one in found]


@npu.command()
@_subject
@_target
@click.option("--page", type=click.Path(path_type=Path), help="Also write a page with a plot.")
@verb
def compare(
    subject: Path, target: str | None, page: Path | None, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """One model on every MAC count and in every memory mode of its Ethos-U, as Vela estimates it.

    Nothing is measured: cycles, time and traffic are what Vela's compiler expects of an NPU whose
    memories are those of its system configuration.

    \b
    Examples:
      hil npu compare ds_cnn --target corstone-300-u55-128
      hil npu compare my_model.py --target corstone-320-u85-256 --page u85.html
    """
    from harness.export.estimates import choices_of, compare
    from harness.report.console import Terminal
    from harness.report.estimates import fields, print_comparison, write_page
    from harness.run.exports import program_of

    with progress_shown(as_json) as progress:
        program = program_of(subject, target, "hil npu compare", progress)
        choices = choices_of(program)
        found = []
        for estimate in compare(program, choices):
            found.append(estimate)
            progress(f"{program.model}: compiled {len(found)}/{len(choices)}")
    if not as_json:
        print_comparison(Terminal(), program.model, found)
    if page is not None:
        write_page(page, program.model, found)
        if not as_json:
            echo(f"written: {page}")
    return {"model": program.model, "estimates": [fields(one) for one in found]}, ExitCode.PASSED


@npu.command()
@_subject
@_target
@click.option("-o", "--output", "base", default="smaller", help="Files are BASE.tosa and so on.")
@click.option(
    "--tries",
    type=click.IntRange(min=1),
    default=300,
    show_default=True,
    help="At most so many compilations by Vela.",
)
@verb
def reduce(
    subject: Path, target: str | None, base: str, tries: int, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Shrink a program that the NPU computes wrongly to the smallest that still is wrong.

    FILE.pte is one that hil exported; a MODEL, by name or as a .py file, is exported for --target.
    Writes the TOSA graph, its inputs and Vela's stream, and says whether the defect is known.

    \b
    Examples:
      hil npu reduce my_model.py --target corstone-300-u55-128
      hil npu reduce smaller.pte -o defect
    """
    from harness.run.exports import program_of
    from harness.run.smaller import reduce_program

    with progress_shown(as_json) as progress:
        program = program_of(subject, target, "hil npu reduce", progress)
        found = reduce_program(program, Path(base), tries)
    if found is None:
        if not as_json:
            echo("nothing to reduce: every delegate computes what TOSA means")
        return {"reduced": None}, ExitCode.PASSED
    if not as_json:
        _print_reduced(found)
    summary = {
        "delegate": found.delegate,
        "input_set": found.input_set,
        "trouble": found.smallest.trouble,
        "operators": list(found.smallest.operators),
        "whole": found.smallest.whole,
        "defect": found.defect or None,
        "files": list(found.files),
    }
    return {"reduced": summary}, ExitCode.FAILED


def _print_reduced(found: Reduced) -> None:
    from harness.target.defects import defects

    smallest = found.smallest
    echo(f"delegate {found.delegate}, input set {found.input_set}: {smallest.trouble}")
    echo(
        f"{len(smallest.operators)} of {smallest.whole} operators are left "
        f"({counted(smallest.tries, 'compilation')}):"
    )
    for line in found.text:
        echo(f"  {line}")
    known = defects().defects.get(found.defect)
    if known is None:
        echo("no known defect of Vela fits")
    else:
        echo(f"known defect `{found.defect}` of Vela: {known.what}")
        if known.instead:
            echo(f"what helps: {known.instead}")
    echo(f"written: {', '.join(found.files)}")


def _blobs(file: Path) -> list[bytes]:
    blobs = find_blobs(file.read_bytes())
    if not blobs:
        raise UsageError(
            f"{file} has no Ethos-U delegate",
            hint="export the model for a target with an NPU: `hil targets`",
            path=file,
        )
    return blobs


def _delegate(file: Path, index: int) -> bytes:
    blobs = _blobs(file)
    if not 0 <= index < len(blobs):
        raise UsageError(
            f"{file} has {counted(len(blobs), 'delegate')}, there is no {index}",
            hint="they are counted from 0; `hil npu stats FILE` shows each",
            path=file,
        )
    return blobs[index]


def _as_dict(result: Stats) -> dict[str, Any]:
    return {"npu": result.config.name, **{k: v for k, v in asdict(result).items() if k != "config"}}


def _print(index: int, result: Stats) -> None:
    name, macs, arithmetic = result.config.name, result.macs, result.arithmetic
    echo(f"delegate {index}: {name}, {macs} MACs; the model's arithmetic: {arithmetic}")
    for name, count in result.operations.items():
        echo(f"  {name:<12} {count:>10}")
    for region, kinds in result.moved.items():
        for kind, count in kinds.items():
            echo(f"  {region:<12} {kind:<10} {count:>10} bytes")
    for kind, count in result.memory.items():
        echo(f"  {'memory':<12} {kind:<10} {count:>10} bytes")
