"""A run's directory -> one file that anybody can run again.

The folders of the machine that made it are left out: what the record says of them is replaced by
names inside the bundle, and what still names one is refused. A target's facts stay as they are.
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
from harness.run.bundle.archive import (
    EXPECTED,
    FIRMWARE,
    INPUTS,
    OUTPUTS,
    PROGRAM,
    REPRO,
    TARGET,
    Manifest,
    content_of,
    packed,
)
from harness.run.directory import kept_expectations
from harness.run.record import RECORD, RunRecord, load_record
from harness.run.seal import SealBroken
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
_DEEP = re.compile(r"^(?:/[^/]+){2,}$")  # a folder of one machine; "/usr" is on every one


class RunIncomplete(UsageError):
    """``missing``: what a bundle needs and the run does not have any more."""

    kind = "run_incomplete"

    def __init__(self, run_dir: Path, missing: str) -> None:
        self.missing = missing
        super().__init__(
            f"{run_dir} cannot be bundled: {missing}", hint="run the case again", path=run_dir
        )


class PathInside(UsageError):
    """``member`` of the bundle would hold ``found``, a path or name of this machine."""

    kind = "path_inside"

    def __init__(self, member: str, found: str) -> None:
        self.member, self.found = member, found
        super().__init__(
            f"{member} of the bundle would hold {found}, which only this machine has",
            hint="build it without (-ffile-prefix-map=DIR=.), or keep it with --keep-paths",
        )


@dataclass(frozen=True)
class Packed:
    path: Path
    bytes: int
    manifest: Manifest


@dataclass(frozen=True)
class _Run:
    """A run with all that it was made of. ``roots``: folders of this machine, longest first."""

    directory: Path
    record: RunRecord
    kept: Program
    firmware: Firmware
    target: Target
    roots: tuple[str, ...]

    def without_roots(self, text: str) -> str:
        for root in self.roots:
            text = text.replace(f"{root}/", "").replace(root, ".")
        return text


def pack(run_dir: Path, out: Path, *, keep_paths: bool = False) -> Packed:
    """Write the bundle of a run. ``keep_paths``: paths of this machine stay in it.

    Raises UsageError for what is no run, SealBroken for one that was changed since, RunIncomplete,
    PathInside, DiskError.
    """
    run = _whole(run_dir, keep_paths=keep_paths)
    record = _in_bundle(run)
    members = _members(run, record)
    if not keep_paths:
        _check_nothing_inside(members, run.roots)
    assert record.simulator is not None  # of a whole run
    manifest = Manifest(
        case=record.case.id,
        verdict=str(record.verdict),
        simulator=f"{record.simulator.name} {record.simulator.version}",
        made_by=f"executorch-hil {importlib.metadata.version('executorch-hil')}",
        files={name: content_of(data) for name, data in sorted(members.items())},
    )
    data = packed(manifest, members, executable=frozenset((REPRO, _ELF)))
    with disk_errors("writing the bundle"):
        write_whole(out, data)
    return Packed(out, len(data), manifest)


def target_fields(target: Target) -> dict[str, Any]:
    """A target as data, without where its file is."""
    return {**target.to_fields(), "file": f"{target.name}.yaml"}


def _whole(run_dir: Path, *, keep_paths: bool) -> _Run:
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
    target = load_target(record.case.target)
    roots = () if keep_paths else _roots(run_dir, record, target)
    return _Run(run_dir, record, kept, firmware, target, roots)


def _roots(run_dir: Path, record: RunRecord, target: Target) -> tuple[str, ...]:
    """Folders that only this machine has, as far as a run can have met them."""
    assert record.program is not None
    assert record.firmware is not None
    facts = (record.firmware.checkout, record.program.exporter)
    paths: tuple[Path | str | None, ...] = (
        run_dir.absolute(),
        record.run_dir,
        state_dir(),
        data_root(),
        Path.home(),
        Path.cwd(),
        Path(record.firmware.elf).parent,
        Path(record.program.pte).absolute().parent,
        target.file.parent,
        *(None if fact is None else fact.path for fact in facts),
    )
    roots = {str(path) for path in paths if path is not None}
    deep = (root for root in roots if _DEEP.match(root) or root == str(Path.home()) != "/root")
    return tuple(sorted(deep, key=lambda root: (-len(root), root)))


def _in_bundle(run: _Run) -> RunRecord:
    """The record with the names of the bundle, and without what only this machine has."""
    record = run.record
    assert record.simulator is not None
    assert record.program is not None
    assert record.firmware is not None
    checkout, exporter = record.firmware.checkout, record.program.exporter
    argv = [word.replace(record.firmware.elf, _ELF) for word in record.simulator.argv]
    argv[0] = Path(argv[0]).name
    return replace(
        record,
        case=replace(record.case, target=run.target.name, model=record.case.name),
        run_dir=".",
        host="",
        program=replace(
            record.program,
            pte=program_name(Path(record.program.pte)),
            exporter=None if exporter is None else replace(exporter, path=Path(exporter.path).name),
        ),
        firmware=replace(
            record.firmware,
            elf=_ELF,
            checkout=None if checkout is None else replace(checkout, path=Path(checkout.path).name),
        ),
        simulator=replace(record.simulator, argv=tuple(argv), environment={}),
    )


def _members(run: _Run, record: RunRecord) -> dict[str, bytes]:
    assert run.record.program is not None
    assert record.program is not None
    pte = record.program.pte
    elf = _without_roots(read_regular(run.firmware.elf), run.roots)
    stamp = {**stamp_of(run.firmware), "elf_sha256": content_of(elf).sha256}
    described = replace(run.kept, pte=pte, delegates=(), sets=tuple(_sets(run.kept)))
    linker_map = run.firmware.map.read_bytes().decode("latin-1")
    places = (Path(run.record.program.pte), run.directory / WORK / pte)
    members = {
        CONSOLE: read_regular(run.directory / CONSOLE),
        RECORD: run.without_roots(_json(record.to_fields())).encode(),
        PROGRAM: run.without_roots(_json(described.to_fields())).encode(),
        TARGET: _json(target_fields(run.target)).encode(),
        REPRO: run.without_roots(_script(run, record)).encode(),
        _ELF: elf,
        f"{FIRMWARE}/{run.firmware.map.name}": run.without_roots(linker_map).encode("latin-1"),
        f"{FIRMWARE}/{STAMP}": run.without_roots(_json(stamp)).encode(),
        pte: _found(run, places, run.record.program.sha256),
        **dict(_inputs(run)),
        **dict(_expected(run)),
        **dict(_outputs(run)),
    }
    stripped = run.firmware.directory / STRIPPED
    if stripped.is_file():
        members[f"{FIRMWARE}/{STRIPPED}"] = read_regular(stripped)
    return members


def _json(fields: object) -> str:
    return json.dumps(fields, indent=1, sort_keys=True) + "\n"


def _sets(kept: Program) -> Iterator[InputSet]:
    for k, input_set in enumerate(kept.sets):
        yield InputSet(
            tuple(f"{INPUTS}/{input_name(k, n)}" for n in range(len(input_set.inputs))),
            tuple(f"{EXPECTED}/{name}" for name in input_set.expected),
            tuple(f"{EXPECTED}/{name}" for name in input_set.by_design),
        )


def _inputs(run: _Run) -> Iterator[tuple[str, bytes]]:
    """What the guest was given: of the cache, or as it is still in the guest's directory."""
    assert run.record.program is not None
    exported, digests = Path(run.record.program.pte).parent, run.record.program.input_sha256
    for k, (input_set, of_set) in enumerate(zip(run.kept.sets, digests, strict=True)):
        for n, (file, digest) in enumerate(zip(input_set.inputs, of_set, strict=True)):
            name = input_name(k, n)
            places = (exported / file, run.directory / WORK / name)
            yield f"{INPUTS}/{name}", _found(run, places, digest)


def _found(run: _Run, places: tuple[Path, ...], digest: str) -> bytes:
    """The file as the run had it. Raises RunIncomplete."""
    for place in places:
        try:
            data = read_regular(place)
        except OSError:
            continue
        if content_of(data).sha256 == digest:
            return data
    raise RunIncomplete(run.directory, f"{places[0]} is not there any more, or is another")


def _expected(run: _Run) -> Iterator[tuple[str, bytes]]:
    for input_set in run.kept.sets:
        for name in (*input_set.expected, *input_set.by_design):
            yield f"{EXPECTED}/{name}", read_regular(run.kept.directory / name)


def _outputs(run: _Run) -> Iterator[tuple[str, bytes]]:
    """What the run wrote. Raises SealBroken for a file that it did not write so."""
    for k, digests in enumerate(run.record.output_sha256):
        written = []
        for n, spec in enumerate(run.kept.outputs):
            name = output_name(output_base(k), n)
            output = read_output(run.directory / WORK / name, spec.nbytes)
            if output is not None:
                written.append(content_of(output[0]).sha256)
                yield f"{OUTPUTS}/{name}", output[0]
        if tuple(written) != digests:
            raise SealBroken(run.directory, (WORK,))


def _without_roots(elf: bytes, roots: tuple[str, ...]) -> bytes:
    """Folders of this machine are overwritten in the debug information, with as many bytes; what
    is loaded stays as it is. Raises PathInside for what cannot be looked into."""
    new = bytearray(elf)
    for section in ElfFile(elf, _ELF).sections:
        if section.flags & SHF_ALLOC or section.type in (SHT_NULL, SHT_NOBITS):
            continue
        if roots and section.flags & 0x800:  # SHF_COMPRESSED (System V ABI, chapter 4)
            raise PathInside(_ELF, f"compressed debug information ({section.name})")
        span = slice(section.offset, section.offset + section.size)
        for root in map(str.encode, roots):
            new[span] = new[span].replace(root, b"_" * len(root))
    return bytes(new)


def _check_nothing_inside(members: Mapping[str, bytes], roots: tuple[str, ...]) -> None:
    """Raises PathInside."""
    wanted = [re.escape(root.encode()) for root in roots]
    host = socket.gethostname()
    if len(host) > 3 and host != "localhost":  # a shorter name is part of many words
        wanted.append(rb"(?<![\w-])" + re.escape(host.encode()) + rb"(?![\w-])")
    pattern = re.compile(b"|".join(wanted))
    for name, data in members.items():
        if found := pattern.search(data):
            raise PathInside(name, found[0].decode("utf-8", "replace"))


_HEAD = """\
#!/bin/sh
# {title}: {verdict} on {simulator}.
# Runs it again here and compares: unpack the bundle (tar --zstd -xf), then
#   sh repro.sh           with the harness: `hil` of $PATH, or $HIL
#   sh repro.sh --plain   {plain}
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
if [ "${{1-}}" != --plain ]; then
  exec "${{HIL:-hil}}" replay "$here" "$@"
fi
"""
_NO_PLAIN = "echo {why} >&2\nexit 2\n"
_PLAIN = """\
work=$(mktemp -d)
cp "$here"/{pte} "$here"/inputs/* "$work"
cd "$work"
{command} || echo "repro.sh: it ended with status $?"
for output in "$here"/outputs/*; do
  cmp "$output" "$(basename "$output")" && echo "$(basename "$output"): the same"
done
"""


def _script(run: _Run, record: RunRecord) -> str:
    """``repro.sh`` for /bin/sh: with the harness, or with the simulator alone where that can."""
    assert record.simulator is not None
    assert record.program is not None
    why = _why_not_plain(run.firmware, run.target)
    head = _HEAD.format(
        title=record.case.id.replace("\n", " "),
        verdict=record.verdict,
        simulator=f"{record.simulator.name} {record.simulator.version}",
        plain=why or "without it and its sandbox: the program runs with your rights",
    )
    if why:
        return head + _NO_PLAIN.format(why=shlex.quote(f"repro.sh: {why}; use `hil replay`"))
    argv = map(run.without_roots, record.simulator.argv)
    command = " ".join(f'"$here"/{_ELF}' if w == _ELF else shlex.quote(w) for w in argv)
    return head + _PLAIN.format(pte=record.program.pte, command=command)


def _why_not_plain(firmware: Firmware, target: Target) -> str:
    """What the simulator lacks and the harness adds; "" when it is enough."""
    if target.npu is not None:
        return "the model of the NPU is the harness's"
    if firmware.one_set_per_process:
        return "its runner is started once for each input set, with help from outside"
    if target.linux is not None:
        return "the guest's Linux is made by the harness"
    return ""
