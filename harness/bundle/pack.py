"""A run's directory -> one file that anybody can run again: the same bytes, whenever it is made."""

from __future__ import annotations

import importlib.metadata
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zstandard

from harness.build.firmware import RUNNER, STAMP, STRIPPED, Firmware, load_firmware, stamp_of
from harness.bundle import scrub
from harness.bundle.errors import RunIncomplete
from harness.bundle.manifest import (
    EXPECTED,
    FIRMWARE,
    INPUTS,
    MANIFEST,
    OUTPUTS,
    PROGRAM,
    REPRO,
    TARGET,
    Manifest,
    content_of,
)
from harness.bundle.repro import script
from harness.export.program import InputSet, Program
from harness.run.directory import kept_expectations
from harness.run.record import RECORD, FirmwareFacts, ProgramFacts, RunRecord, load_record
from harness.run.seal import SealBroken
from harness.simulate.guest_files import (
    input_name,
    output_base,
    output_name,
    program_name,
    read_output,
)
from harness.simulate.transcript import CONSOLE, WORK
from harness.system.files import disk_errors, read_regular, write_whole
from harness.system.paths import data_root, state_dir
from harness.target.loading import Target, load_target

_LEVEL = 10
_MODE, _EXECUTABLE = 0o644, 0o755
_DEEP = re.compile(r"^(?:/[^/]+){2,}$")  # a folder nobody else has; "/usr" is everybody's


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
    program: ProgramFacts
    facts: FirmwareFacts
    kept: Program
    firmware: Firmware
    target: Target


def pack(run_dir: Path, out: Path, *, keep_paths: bool = False) -> Packed:
    """Write the bundle of a run. ``keep_paths``: what names this machine is no reason not to.

    Raises UsageError for what is no run, SealBroken for one that was changed since, RunIncomplete,
    PathInside, DiskError.
    """
    run = _whole(run_dir)
    members = _members(run, () if keep_paths else _roots(run))
    if not keep_paths:
        scrub.check_nothing_inside(members, _roots(run))
    simulator = run.record.simulator
    manifest = Manifest(
        case=run.record.case.id if keep_paths else scrub.without_folders(run.record.case.id),
        verdict=str(run.record.verdict),
        simulator="" if simulator is None else f"{simulator.name} {simulator.version}",
        made_by=f"executorch-hil {importlib.metadata.version('executorch-hil')}",
        files={name: content_of(data) for name, data in sorted(members.items())},
    )
    data = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(
        _archive({MANIFEST: manifest.text().encode(), **dict(sorted(members.items()))})
    )
    with disk_errors("writing the bundle"):
        write_whole(out, data)
    return Packed(out, len(data), manifest)


def _archive(members: Mapping[str, bytes]) -> bytes:
    """Nothing in it tells when, where and by whom it was made."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = _EXECUTABLE if name in (REPRO, f"{FIRMWARE}/{RUNNER}") else _MODE
            archive.addfile(member, io.BytesIO(data))
    return made.getvalue()


def _whole(run_dir: Path) -> _Run:
    record = load_record(run_dir, whole=True)
    kept = kept_expectations(run_dir)
    if record.program is None or record.firmware is None or record.expectation is None:
        raise RunIncomplete(run_dir, "it ended before its program ran")
    if kept is None or record.ending is None or record.simulator is None:
        raise RunIncomplete(run_dir, "it does not hold a whole run")
    if len(record.program.input_sha256) != len(kept.sets):
        raise RunIncomplete(run_dir, "its record is of a version that did not keep its inputs")
    firmware = load_firmware(Path(record.firmware.elf).parent)
    if firmware is None or firmware.build_id != record.firmware.build_id:
        raise RunIncomplete(run_dir, f"its firmware {record.firmware.elf} is not there any more")
    if firmware.root is not None:
        raise RunIncomplete(run_dir, "its runner needs shared libraries, which no bundle holds")
    target = load_target(record.case.target)
    return _Run(run_dir, record, record.program, record.firmware, kept, firmware, target)


def _members(run: _Run, roots: tuple[str, ...]) -> dict[str, bytes]:
    """``roots``: folders of this machine, which nothing may name."""
    pte = program_name(Path(run.program.pte))
    plain = scrub.plain_fields if roots else _as_it_is
    elf = read_regular(run.firmware.elf)
    if roots:
        elf = scrub.scrubbed_elf(f"{FIRMWARE}/{RUNNER}", elf, roots)
    stamp = {**stamp_of(run.firmware), "elf_sha256": content_of(elf).sha256}
    linker_map = run.firmware.map.read_bytes().decode("latin-1")
    described = replace(run.kept, pte=pte, delegates=(), sets=tuple(_sets(run.kept)))
    found = {
        CONSOLE: scrub.overwritten(read_regular(run.directory / CONSOLE), roots),
        RECORD: _json(plain(_in_bundle(run, pte).to_fields())),
        PROGRAM: _json(plain(described.to_fields())),
        TARGET: _json(plain(target_fields(run.target))),
        REPRO: script(_in_bundle(run, pte), run.firmware, run.target, plain).encode(),
        f"{FIRMWARE}/{RUNNER}": elf,
        f"{FIRMWARE}/{run.firmware.map.name}": plain(linker_map).encode("latin-1"),
        f"{FIRMWARE}/{STAMP}": _json(plain(stamp)),
        pte: _found(run, (Path(run.program.pte), run.directory / WORK / pte), run.program.sha256),
        **dict(_inputs(run)),
        **dict(_expected(run)),
        **dict(_outputs(run)),
    }
    stripped = run.firmware.directory / STRIPPED
    if stripped.is_file():
        found[f"{FIRMWARE}/{STRIPPED}"] = read_regular(stripped)
    return found


def _as_it_is(value: Any) -> Any:
    return value


def _json(fields: object) -> bytes:
    return (json.dumps(fields, indent=1, sort_keys=True) + "\n").encode()


def target_fields(target: Target) -> dict[str, Any]:
    """A target as data, without where its file is."""
    return {**target.to_fields(), "file": f"{target.name}.yaml"}


def _in_bundle(run: _Run, pte: str) -> RunRecord:
    """The record, with the names of the bundle and without that of the host."""
    record = run.record
    assert record.simulator is not None  # of a whole run
    elf = f"{FIRMWARE}/{RUNNER}"
    argv = tuple(word.replace(run.facts.elf, elf) for word in record.simulator.argv)
    return replace(
        record,
        case=replace(record.case, target=run.target.name, model=record.case.name),
        run_dir=".",
        host="",
        program=replace(run.program, pte=pte),
        firmware=replace(run.facts, elf=elf),
        simulator=replace(record.simulator, argv=argv, environment={}),
    )


def _sets(kept: Program) -> Iterator[InputSet]:
    for k, one in enumerate(kept.sets):
        yield InputSet(
            tuple(f"{INPUTS}/{input_name(k, n)}" for n in range(len(one.inputs))),
            tuple(f"{EXPECTED}/{name}" for name in one.expected),
            tuple(f"{EXPECTED}/{name}" for name in one.by_design),
        )


def _inputs(run: _Run) -> Iterator[tuple[str, bytes]]:
    """What the guest was given: of the cache, or as it is still in the guest's directory."""
    exported = Path(run.program.pte).parent
    for k, (one, digests) in enumerate(zip(run.kept.sets, run.program.input_sha256, strict=True)):
        for n, (said, digest) in enumerate(zip(one.inputs, digests, strict=True)):
            name = input_name(k, n)
            places = (exported / said, run.directory / WORK / name)
            yield f"{INPUTS}/{name}", _found(run, places, digest)


def _found(run: _Run, places: tuple[Path, ...], digest: str) -> bytes:
    """The file that is what the run had. Raises RunIncomplete."""
    for place in places:
        try:
            data = read_regular(place)
        except OSError:
            continue
        if content_of(data).sha256 == digest:
            return data
    raise RunIncomplete(run.directory, f"{places[0]} is not there any more, or is another")


def _expected(run: _Run) -> Iterator[tuple[str, bytes]]:
    for one in run.kept.sets:
        for name in (*one.expected, *one.by_design):
            yield f"{EXPECTED}/{name}", read_regular(run.kept.directory / name)


def _outputs(run: _Run) -> Iterator[tuple[str, bytes]]:
    """Those that the run wrote. Raises SealBroken for one that it did not write so."""
    for k, digests in enumerate(run.record.output_sha256):
        found = []
        for n, spec in enumerate(run.kept.outputs):
            name = output_name(output_base(k), n)
            there = read_output(run.directory / WORK / name, spec.nbytes)
            if there is not None:
                found.append(content_of(there[0]).sha256)
                yield f"{OUTPUTS}/{name}", there[0]
        if tuple(found) != digests:
            raise SealBroken(run.directory, (WORK,))


def _roots(run: _Run) -> tuple[str, ...]:
    """Folders that only this machine has, as far as a run can have met them."""
    checkout = None if run.facts.checkout is None else run.facts.checkout.path
    exporter = None if run.program.exporter is None else run.program.exporter.path
    known = scrub.folders(
        (run.directory.absolute(), run.record.run_dir, state_dir(), data_root(), Path.home(),
         Path.cwd(), Path(run.facts.elf).parent, Path(run.program.pte).absolute().parent,
         run.target.file.parent, checkout, exporter)
    )  # fmt: skip
    return tuple(root for root in known if _DEEP.match(root) or root == str(Path.home()))
