"""``hil npu``: the functional Ethos-U model by itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from harness.cli.verb import echo, verb
from harness.errors import UsageError
from harness.errors.verdict import ExitCode
from harness.ethosu.blob import find_blobs, read_actions, read_blob
from harness.ethosu.disasm import disassemble
from harness.ethosu.model import Network, Stats

_File = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def npu() -> None:
    """Run, list and measure Ethos-U command streams without an NPU.

    FILE is a .pte with Ethos-U delegates or a bare Vela stream.
    """


@npu.command("run")
@click.argument("file", type=_File)
@click.option("-i", "--input", "inputs", type=_File, multiple=True, help="Raw input bytes.")
@click.option("-o", "--output", "base", default="out", help="Outputs go to BASE-0.bin and so on.")
@click.option("-d", "--delegate", default=0, show_default=True, help="Which delegate of a .pte.")
@verb
def run_(
    file: Path, inputs: tuple[Path, ...], base: str, delegate: int, as_json: bool
) -> tuple[object, ExitCode]:
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
def disasm(file: Path, delegate: int, as_json: bool) -> tuple[object, ExitCode]:
    """List the command stream: hil npu disasm add.pte"""
    actions = read_actions(read_blob(_delegate(file, delegate)).commands)
    lines = list(disassemble(actions))
    if not as_json:
        echo("\n".join(lines))
    return {"npu": actions.config.name, "lines": lines}, ExitCode.PASSED


@npu.command()
@click.argument("file", type=_File)
@verb
def stats(file: Path, as_json: bool) -> tuple[object, ExitCode]:
    """Operations, MACs and bytes moved, with zeros as input: hil npu stats model.pte"""
    found = []
    for index, blob in enumerate(_blobs(file)):
        network = Network(blob)
        _, result = network.run([bytes(t.size) for t in network.blob.inputs])
        found.append(_as_dict(result))
        if not as_json:
            _print(index, result)
    return {"delegates": found}, ExitCode.PASSED


def _blobs(file: Path) -> list[bytes]:
    blobs = find_blobs(file.read_bytes())
    if not blobs:
        raise UsageError(f"{file} has no Ethos-U delegate", path=file)
    return blobs


def _delegate(file: Path, index: int) -> bytes:
    blobs = _blobs(file)
    if not 0 <= index < len(blobs):
        raise UsageError(f"{file} has {len(blobs)} delegates, there is no {index}", path=file)
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
