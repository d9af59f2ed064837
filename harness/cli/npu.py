"""``hil npu``: the functional Ethos-U model without a runner."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from harness.cli.verb import EXISTING_FILE, PATH, Answer, echo, progress_shown, verb
from harness.config.npu import defects
from harness.core.errors import InfraError, MalformedFile, ToolMissing, UsageError
from harness.core.safe_text import counted
from harness.core.verdict import ExitCode
from harness.export.localise import MOST_TRIES, newest_vela
from harness.export.program import Program
from harness.judge.pte_contents import npu_streams
from harness.npu.blob import find_blobs, read_actions, read_blob
from harness.npu.model import Network, Stats
from harness.npu.stream import disassemble
from harness.run.subjects import ReducedProgram, program_of, reduce_program
from harness.system.files import read_regular


@click.group()
def npu() -> None:
    """Run, list and measure Ethos-U command streams without an NPU.

    FILE is a .pte with Ethos-U delegates or a bare Vela stream; MODEL a name or a .py file.
    """


_delegate_option = click.option(
    "-d",
    "--delegate",
    default=0,
    show_default=True,
    help="Which delegate of a .pte, in the order in which they run.",
)


@npu.command("run")
@click.argument("file", type=EXISTING_FILE)
@click.option("-i", "--input", "inputs", type=EXISTING_FILE, multiple=True, help="Raw input bytes.")
@click.option("-o", "--output", "base", default="out", help="Outputs go to BASE-0.bin and so on.")
@_delegate_option
@verb
def run_(file: Path, inputs: tuple[Path, ...], base: str, delegate: int) -> Answer:
    """Run one delegate: hil npu run add.pte -i a.bin -i b.bin -o sum"""
    network = Network(_delegate(file, delegate))
    outputs, stats = network.run([read_regular(path) for path in inputs])
    names = [f"{base}-{index}.bin" for index in range(len(outputs))]
    for name, content in zip(names, outputs, strict=True):
        Path(name).write_bytes(content)
        echo(f"{name}  {len(content)} bytes")
    return {"outputs": names, **_as_dict(stats)}, ExitCode.PASSED


@npu.command()
@click.argument("file", type=EXISTING_FILE)
@_delegate_option
@verb
def disasm(file: Path, delegate: int) -> Answer:
    """List the command stream: hil npu disasm add.pte"""
    actions = read_actions(read_blob(_delegate(file, delegate)).commands)
    lines = list(disassemble(actions))
    echo("\n".join(lines))
    return {"npu": actions.config.name, "lines": lines}, ExitCode.PASSED


_subject = click.argument("subject", type=PATH, metavar="FILE.pte|MODEL")
_target = click.option("--target", help="For a model: the target that it is exported for.")


@npu.command()
@click.argument("subject", type=PATH, metavar="FILE|MODEL")
@_target
@click.option("--cycles", is_flag=True, help="Also Vela's estimate of the time.")
@verb
def stats(subject: Path, target: str | None, cycles: bool) -> Answer:
    """Operations, MACs, bytes moved, with zeros as input, and memory: hil npu stats model.pte

    Memory by class: commands, weights, scratch, and for direct drive (COP2) the regions of inputs
    and outputs and the cache in the NPU's SRAM. A MODEL is exported for --target.

    --cycles shows Vela's summary and its operators: an estimate, not a measurement. It needs a
    program that hil exported, or a MODEL.
    """
    file, program = subject, None
    if cycles or not subject.is_file() or subject.suffix == ".py":
        with progress_shown() as progress:
            program = program_of(subject, target, "hil npu stats", progress)
        file = program.pte_path
    found = []
    for index, blob in enumerate(_blobs(file)):
        network = Network(blob)
        _, result = network.run([bytes(t.size) for t in network.blob.inputs])
        found.append(_as_dict(result))
        _print(index, result)
    if not cycles or program is None:
        return {"delegates": found}, ExitCode.PASSED
    return {"delegates": found, "estimates": _estimates(program)}, ExitCode.PASSED


def _estimates(program: Program) -> list[dict[str, Any]]:
    """Print and return Vela's estimates. Raises UsageError."""
    if (cost := program.npu_cost) is None:
        raise UsageError(
            f"there is no estimate for {program.pte_path}",
            hint="it needs a program for an Ethos-U, and the tables of Vela 5.1.0",
        )
    for index, estimate in enumerate(cost.estimates):
        echo(f"delegate {index}: {estimate.text()}")
        for operator in estimate.operators:
            echo(f"  {operator.cycles:>14,} cycles{operator.macs:>14,} MACs  {operator.title}")
    return [asdict(estimate) for estimate in cost.estimates]


@npu.command()
@_subject
@_target
@click.option("-o", "--output", "base", default="smaller", help="Files are BASE.tosa and so on.")
@click.option(
    "--tries",
    type=click.IntRange(min=1),
    default=MOST_TRIES,
    show_default=True,
    help="Maximum number of compilations by Vela.",
)
@click.option(
    "--newest/--no-newest",
    default=True,
    help="Also compile what is left with the newest Vela of pip's index (default: yes).",
)
@verb
def reduce(subject: Path, target: str | None, base: str, tries: int, newest: bool) -> Answer:
    """Reduce a program that the NPU computes wrongly to the smallest part that is still wrong.

    FILE.pte is one that hil exported; a MODEL, by name or as a .py file, is exported for --target.
    Writes the TOSA graph, its inputs and Vela's stream, and says whether the defect is known.

    \b
    Examples:
      hil npu reduce my_model.py --target corstone-300-u55-128
      hil npu reduce smaller.pte -o defect
    """
    with progress_shown() as progress:
        program = program_of(subject, target, "hil npu reduce", progress)
        vela = None
        if newest and program.delegates:
            progress("looking for the newest Vela")
            try:
                vela = newest_vela()
            except InfraError as error:
                echo(f"hil: {error.message}", err=True)
        reduced = reduce_program(program, Path(base), tries, vela)
    if reduced is None:
        echo("nothing to reduce: every delegate gives the outputs of the TOSA reference model")
        return {"reduced": None}, ExitCode.PASSED
    _print_reduced(reduced)
    if reduced.smallest.newest:
        echo(f"wrong with Vela {program.versions['ethos-u-vela']}, {reduced.smallest.newest}")
    place = {"delegate": reduced.delegate, "input_set": reduced.input_set}
    return {"reduced": {**place, **asdict(reduced.smallest)}}, ExitCode.FAILED


def _print_reduced(reduced: ReducedProgram) -> None:
    smallest = reduced.smallest
    echo(f"delegate {reduced.delegate}, input set {reduced.input_set}: {smallest.trouble}")
    echo(
        f"{len(smallest.operators)} of {smallest.whole} operators are left "
        f"({counted(smallest.tries, 'compilation')}):"
    )
    for line in smallest.listing:
        echo(f"  {line}")
    known = defects().defects.get(smallest.defect)
    if known is None:
        echo("it matches no known defect of Vela")
    else:
        echo(f"known defect `{smallest.defect}` of Vela: {known.what}")
        if known.instead:
            echo(f"what helps: {known.instead}")
    echo(f"written: {', '.join(smallest.files)}")


def _blobs(file: Path) -> list[bytes]:
    content, blobs = read_regular(file), list[bytes]()
    with suppress(MalformedFile, ToolMissing):
        blobs = npu_streams(content)
    blobs = blobs or find_blobs(content)  # of something else than a program, in the file's order
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
            f"{file} has {counted(len(blobs), 'delegate')}, not a number {index}",
            hint="delegates are counted from 0; `hil npu stats FILE` shows each",
            path=file,
        )
    return blobs[index]


def _as_dict(result: Stats) -> dict[str, Any]:
    return {"npu": result.config.name, **{k: v for k, v in asdict(result).items() if k != "config"}}


def _print(index: int, result: Stats) -> None:
    echo(f"delegate {index}: {result.config.name}, {result.macs} MACs")
    for name, count in result.operations.items():
        echo(f"  {name:<12} {count:>10}")
    for region, kinds in result.moved.items():
        for kind, count in kinds.items():
            echo(f"  {region:<12} {kind:<10} {count:>10} bytes")
    for kind, count in result.memory.items():
        echo(f"  {'memory':<12} {kind:<10} {count:>10} bytes")
