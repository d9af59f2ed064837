"""A run's directory -> the file of a bundle, which anybody can run again.

Folders of the machine that made it are left out, and what still names one is refused. A target's
facts stay as they are.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.config.loading import Target, load_target
from harness.core.errors import UsageError
from harness.export.program import InputSet, Program
from harness.firmware.firmware import RUNNER, STAMP, STRIPPED, Firmware, read_firmware, stamp_of
from harness.formats.elf import SHF_ALLOC, SHT_NOBITS, SHT_NULL, ElfFile
from harness.run.bundle import (
    EXPECTED,
    FIRMWARE,
    INPUTS,
    MANIFEST,
    OUTPUTS,
    PROGRAM,
    REPRO,
    TARGET,
    Manifest,
    archived,
    sha256,
)
from harness.run.directory import RECORD, SealBroken, kept_expectations, load_record
from harness.run.record import RunRecord
from harness.sim.run_files import (
    CONSOLE,
    WORK,
    input_name,
    output_base,
    output_name,
    program_name,
    read_output,
)
from harness.system.files import disk_errors, read_regular, write_whole
from harness.system.paths import data_root, state_dir

_ELF = f"{FIRMWARE}/{RUNNER}"
_BINARY = re.compile(rf"{TARGET}|{CONSOLE}|.*\.(?:bin|b?pte|stripped)")  # stay as they are
_DEEP = re.compile(r"^(?:/[^/]+){2,}$")  # a folder of one machine; "/usr" is on every one
_SHF_COMPRESSED = 0x800  # System V ABI, chapter 4


class RunIncomplete(UsageError):
    """``missing``: what a bundle needs and the run does not have any more."""

    kind = "run_incomplete"

    def __init__(self, run_dir: Path, missing: str) -> None:
        self.missing = missing
        super().__init__(
            f"{run_dir} cannot be bundled: {missing}", hint="run the case again", path=run_dir
        )


class PathInside(UsageError):
    """``member`` of the bundle would hold ``path``, a path or name of this machine."""

    kind = "path_inside"

    def __init__(self, member: str, path: str) -> None:
        self.member = member
        super().__init__(
            f"{member} of the bundle would hold {path}, which only this machine has",
            hint="build it without (-ffile-prefix-map=DIR=.), or keep it with --keep-paths",
        )


@dataclass(frozen=True)
class Packed:
    path: Path
    bytes: int
    manifest: Manifest


@dataclass(frozen=True)
class _Run:
    """A run with all that it was made of."""

    directory: Path
    record: RunRecord
    kept: Program
    firmware: Firmware
    target: Target


def pack(run_dir: Path, out: Path, *, keep_paths: bool = False) -> Packed:
    """Writes the bundle of a run: the same bytes whenever and wherever it is made. ``keep_paths``:
    paths of this machine stay in it.

    Raises UsageError for what is no run, SealBroken for one that was changed since, RunIncomplete,
    PathInside, DiskError.
    """
    run = _whole(run_dir)
    roots = () if keep_paths else _roots(run)
    record = _in_bundle(run)
    simulator, case = record["simulator"], record["case"]
    manifest = Manifest(
        case=f"{case['target']}/{case['model']}",
        verdict=str(run.record.verdict),
        simulator=f"{simulator['name']} {simulator['version']}",
        made_by=f"executorch-hil {importlib.metadata.version('executorch-hil')}",
    )
    elf = _without_roots(read_regular(run.firmware.elf), roots)
    stamp = {**stamp_of(run.firmware), "elf_sha256": sha256(elf)}
    members = {
        **dict(_files(run)),
        _ELF: elf,
        f"{FIRMWARE}/{STAMP}": _json(stamp),
        RECORD: _json(record),
        REPRO: _script(run, manifest, record).encode(),
    }
    for name in members:
        if name != _ELF and not _BINARY.fullmatch(name):
            for root in map(str.encode, roots):
                members[name] = members[name].replace(root + b"/", b"").replace(root, b".")
    if not keep_paths:
        _check_nothing_inside(members, roots)
    manifest = replace(manifest, files={name: sha256(data) for name, data in members.items()})
    listed = {MANIFEST: manifest.text().encode(), **dict(sorted(members.items()))}
    packed = archived(listed, executable=(REPRO, _ELF))
    with disk_errors("writing the bundle"):
        write_whole(out, packed)
    return Packed(out, len(packed), manifest)


def target_fields(target: Target) -> dict[str, Any]:
    """A target as data, without where its file is."""
    return {**target.to_fields(), "file": f"{target.name}.yaml"}


def _whole(run_dir: Path) -> _Run:
    record = load_record(run_dir, whole=True)
    kept = kept_expectations(run_dir)
    if record.program is None or record.firmware is None or record.expectation is None:
        raise RunIncomplete(run_dir, "it ended before its program ran")
    if kept is None or record.ending is None or record.simulator is None:
        raise RunIncomplete(run_dir, "it does not hold a whole run")
    if len(record.program.input_sha256) != len(kept.sets):
        raise RunIncomplete(run_dir, "its record is of a version that did not keep its inputs")
    firmware = read_firmware(Path(record.firmware.elf).parent)
    expected = record.firmware.build_id, record.firmware.sha256
    if firmware is None or (firmware.build_id, firmware.elf_sha256) != expected:
        raise RunIncomplete(run_dir, f"its firmware {record.firmware.elf} is not there any more")
    if firmware.root is not None:
        raise RunIncomplete(run_dir, "its runner needs shared libraries, which no bundle holds")
    return _Run(run_dir, record, kept, firmware, load_target(record.case.target))


def _roots(run: _Run) -> tuple[str, ...]:
    """Folders that only this machine has, as far as a run can have met them, longest first."""
    record = run.record
    assert record.program is not None
    checkouts = (run.firmware.checkout, record.program.exporter)
    paths: tuple[Path | str | None, ...] = (
        run.directory.absolute(),
        record.run_dir,
        state_dir(),
        data_root(),
        Path.home(),
        Path.cwd(),
        run.firmware.directory,
        Path(record.program.pte).absolute().parent,
        run.target.file.parent,
        *(None if checkout is None else checkout.path for checkout in checkouts),
    )
    roots = {str(path) for path in paths if path is not None}
    deep = (root for root in roots if _DEEP.match(root) or root == str(Path.home()) != "/root")
    return tuple(sorted(deep, key=lambda root: (-len(root), root)))


def _in_bundle(run: _Run) -> dict[str, Any]:
    """The record with the names of the bundle, and without what only this machine has."""
    fields = run.record.to_fields()
    program, firmware, simulator = fields["program"], fields["firmware"], fields["simulator"]
    argv = [word.replace(firmware["elf"], _ELF) for word in simulator["argv"]]
    fields["simulator"] = {
        **simulator,
        "argv": [Path(argv[0]).name, *argv[1:]],
        "environment": {},
    }
    program["pte"], firmware["elf"] = program_name(Path(program["pte"])), _ELF
    for checkout in (program["exporter"], firmware["checkout"]):
        if checkout is not None:
            checkout["path"] = Path(checkout["path"]).name
    case = {"target": run.target.name, "model": run.record.case.name}
    return {**fields, "case": {**fields["case"], **case}, "run_dir": ".", "host": ""}


def _json(fields: object) -> bytes:
    return f"{json.dumps(fields, indent=1, sort_keys=True)}\n".encode()


def _files(run: _Run) -> Iterator[tuple[str, bytes]]:
    """All members but those that ``pack`` makes itself. Raises RunIncomplete, SealBroken."""
    facts = run.record.program
    assert facts is not None
    exported, work, pte = (
        Path(facts.pte).parent,
        run.directory / WORK,
        program_name(Path(facts.pte)),
    )
    sets = []
    for k, (input_set, digests) in enumerate(zip(run.kept.sets, facts.input_sha256, strict=True)):
        inputs = [input_name(k, n) for n in range(len(input_set.inputs))]
        for name, file, digest in zip(inputs, input_set.inputs, digests, strict=True):
            yield f"{INPUTS}/{name}", _matching(run, digest, exported / file, work / name)
        for name in (*input_set.expected, *input_set.by_design):
            yield f"{EXPECTED}/{name}", read_regular(run.kept.directory / name)
        sets.append(
            InputSet(
                tuple(f"{INPUTS}/{name}" for name in inputs),
                tuple(f"{EXPECTED}/{name}" for name in input_set.expected),
                tuple(f"{EXPECTED}/{name}" for name in input_set.by_design),
            )
        )
    for k, digests in enumerate(run.record.output_sha256):
        for n, digest in enumerate(digests):
            name = output_name(output_base(k), n)
            output = read_output(work / name, run.kept.outputs[n].nbytes)
            if output is None or sha256(output[0]) != digest:
                raise SealBroken(run.directory, (f"{WORK}/{name}",))
            yield f"{OUTPUTS}/{name}", output[0]
    yield pte, _matching(run, facts.sha256, Path(facts.pte), work / pte)
    described = replace(run.kept, pte=pte, delegates=(), sets=tuple(sets))
    yield PROGRAM, _json(described.to_fields())
    yield TARGET, _json(target_fields(run.target))
    yield CONSOLE, read_regular(run.directory / CONSOLE)
    yield f"{FIRMWARE}/{run.firmware.map.name}", read_regular(run.firmware.map)
    stripped = run.firmware.directory / STRIPPED
    if stripped.is_file():
        yield f"{FIRMWARE}/{STRIPPED}", read_regular(stripped)


def _matching(run: _Run, digest: str, *places: Path) -> bytes:
    """The file as the run had it: of the cache, or as it still is in the guest's directory."""
    for place in places:
        try:
            data = read_regular(place)
        except OSError:
            continue
        if sha256(data) == digest:
            return data
    raise RunIncomplete(run.directory, f"{places[0]} is not there any more, or is another")


def _without_roots(elf: bytes, roots: tuple[str, ...]) -> bytes:
    """Folders of this machine are overwritten in the debug information, with as many bytes; what
    is loaded stays as it is. Raises PathInside for what cannot be looked into."""
    new = bytearray(elf)
    for section in ElfFile(elf, _ELF).sections:
        if section.flags & SHF_ALLOC or section.type in (SHT_NULL, SHT_NOBITS):
            continue
        if roots and section.flags & _SHF_COMPRESSED:
            raise PathInside(_ELF, f"compressed debug information ({section.name})")
        span = slice(section.offset, section.offset + section.size)
        for root in map(str.encode, roots):
            new[span] = new[span].replace(root, b"_" * len(root))
    return bytes(new)


def _check_nothing_inside(members: Mapping[str, bytes], roots: tuple[str, ...]) -> None:
    """Raises PathInside."""
    private = [re.escape(root.encode()) for root in roots]
    host = socket.gethostname()
    if len(host) > 3 and host != "localhost":  # a shorter name is part of many words
        private.append(rb"(?<![\w-])" + re.escape(host.encode()) + rb"(?![\w-])")
    pattern = re.compile(b"|".join(private))
    for name, data in members.items():
        if match := pattern.search(data):
            raise PathInside(name, match[0].decode("utf-8", "replace"))


_HEAD = """\
#!/bin/sh
# {case}: {verdict} on {simulator}. `hil replay` of the bundle checks and compares everything.
"""
_ALONE = """\
# This script needs the simulator alone, and runs the program with your rights, outside a sandbox:
# unpack the bundle (tar --zstd -xf), then sh repro.sh
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
cp "$here"/{pte} "$here"/inputs/* "$work"
cd "$work"
{command} || echo "repro.sh: it ended with status $?"
for output in "$here"/outputs/*; do
  cmp "$output" "$(basename "$output")" && echo "$(basename "$output"): the same"
done
"""


def _script(run: _Run, manifest: Manifest, record: Mapping[str, Any]) -> str:
    """``repro.sh`` for /bin/sh: the simulator alone, or why that is not enough."""
    lacking = ""
    if run.target.npu is not None:
        lacking = "the model of the NPU is the harness's"
    elif run.firmware.one_set_per_process:
        lacking = "its runner is started once for each input set, with help from outside"
    elif run.target.linux is not None:
        lacking = "the guest's Linux is made by the harness"
    script = _HEAD.format(
        case=manifest.case.replace("\n", " "),
        verdict=manifest.verdict,
        simulator=manifest.simulator,
    )
    if lacking:
        message = shlex.quote(f"repro.sh: {lacking}; use `hil replay` of the bundle")
        return script + f"echo {message} >&2\nexit 2\n"
    argv = record["simulator"]["argv"]
    words = (f'"$here"/{_ELF}' if word == _ELF else shlex.quote(word) for word in argv)
    return script + _ALONE.format(pte=record["program"]["pte"], command=" ".join(words))
