"""Packs a run into one file (``pack``), and runs it again elsewhere (``replay``).

``replay`` says what is the same. A bundle is a tar archive (POSIX.1-2017, "ustar") in one Zstandard
frame (RFC 8878): the run's directory with its firmware. ``manifest.json`` has the sha256 of every
other member, all regular files: console.log, record.json, target.json and repro.sh. Its folders are
``expected`` (program.json, set<k>/expected<n>.bin, set<k>/by_design<n>.bin), ``firmware``
(executor_runner, its linker map, firmware.json) and ``work`` (program.pte or .bpte, inputs
s<k>i<n>.bin, outputs s<k>-<n>.bin).

Folders of the machine that made it are left out of what is text. Reading takes the file to be
hostile: all of it is checked before anything is used."""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import re
import shlex
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from harness.config.loading import load_target
from harness.config.schema import checked
from harness.config.target import Target
from harness.core.errors import HarnessError, Unknown, UsageError
from harness.core.verdict import ExitCode
from harness.export.program import Program
from harness.firmware.cache import read_firmware
from harness.firmware.source import RUNNER, STAMP, STRIPPED, Firmware
from harness.run.directory import (
    EXPECTED,
    RECORD,
    judged_files,
    kept_expectations,
    load_record,
    new_run_dir,
)
from harness.run.judging import RunPlan, static_metrics
from harness.run.pipeline import run_planned
from harness.run.record import RunRecord
from harness.sim.run_files import (
    WORK,
    input_name,
    output_base,
    output_name,
    program_name,
    read_output,
)
from harness.sim.simulator import pick
from harness.size.memory_plan import require_sound_plan
from harness.system.files import (
    MALFORMED,
    disk_errors,
    parsed,
    read_json,
    read_regular,
    regular,
    whole_folder,
    write_whole,
)
from harness.system.paths import data_root, state_dir
from harness.system.progress import Progress, silent

FORMAT = 3  # raised when members or fields mean something else
MANIFEST, TARGET, REPRO, FIRMWARE = "manifest.json", "target.json", "repro.sh", "firmware"
MAX_BYTES = 1 << 30  # that a bundle may unpack to
MAX_TEXT = 4 << 20  # of a JSON file: what Python makes of one takes up to 30 times as much
MAX_MEMBERS = 10_000  # a run of 2,000 input sets with two inputs and two outputs each
_ELF = f"{FIRMWARE}/{RUNNER}"
_ALONE = Path(__file__).with_name("repro.sh.in")  # the script of what needs the simulator alone
_FOLDER = rf"(?:{FIRMWARE}|{EXPECTED}(?:/set\d+)?|{WORK})/"
_NAME = re.compile(rf"(?:{_FOLDER})?[A-Za-z0-9][A-Za-z0-9_.-]{{0,79}}")
_TEXT = re.compile(rf"{RECORD}|{REPRO}|.*/[^/]+\.(?:json|map)")


class BadBundle(UsageError):
    """Raised for a file that is not a sound bundle."""

    kind = "bad_bundle"

    def __init__(self, path: Path, problem: str) -> None:
        hint = "`hil bundle RUN_DIR` makes one; copy it again, or ask for a new one"
        super().__init__(f"{path} is not a sound bundle: {problem}", hint=hint, path=path)


class RunIncomplete(UsageError):
    kind = "run_incomplete"

    def __init__(self, run_dir: Path, missing: str) -> None:
        message = f"{run_dir} cannot be bundled: {missing}"
        super().__init__(message, hint="run the case again", path=run_dir)


def pack(run_dir: Path, out: Path) -> dict[str, Any]:
    """Write the bundle of a run: the same bytes whenever and wherever it is made.

    Returns its manifest: ``files`` are the sha256 by name, ``naming`` the binary files that name a
    folder of this machine. Raises what ``load_record`` does, RunIncomplete, DiskError."""
    record = load_record(run_dir, whole=True)
    firmware = _firmware(run_dir, record)
    target = load_target(record.case.target)
    fields = _record_fields(record, target)
    simulator = f"{fields['simulator']['name']} {fields['simulator']['version']}"
    title = f"{target.name}/{record.case.name}, {record.verdict} on {simulator}"
    built = firmware.directory
    members = {
        **_run_files(run_dir, record),
        **{
            f"{FIRMWARE}/{file.name}": read_regular(file)
            for file in (firmware.elf, firmware.map, built / STAMP, built / STRIPPED)
            if file.is_file()
        },
        RECORD: _json(fields),
        TARGET: _json(target_fields(target)),
        REPRO: _script(title, target, firmware, fields).encode(),
    }
    folders = _folders(fields, target)
    for name in filter(_TEXT.fullmatch, members):
        for folder in folders:
            members[name] = members[name].replace(folder + b"/", b"").replace(folder, b".")
    names = sorted(members)
    manifest = {
        "format": FORMAT,
        "run": title,
        "made_by": f"executorch-hil {importlib.metadata.version('executorch-hil')}",
        "files": {name: sha256(members[name]) for name in names},
        "naming": [name for name in names if any(folder in members[name] for folder in folders)],
    }
    with disk_errors("writing the bundle"):
        listed = {MANIFEST: _json(manifest), **{name: members[name] for name in names}}
        write_whole(out, _archived(listed))
    return manifest


def target_fields(target: Target) -> dict[str, Any]:
    """Return a target as JSON has it, without where its file is."""
    fields = {**asdict(target), "file": f"{target.name}.yaml"}
    return dict(json.loads(json.dumps(fields)))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _firmware(run_dir: Path, record: RunRecord) -> Firmware:
    if record.program is None or record.firmware is None or record.expectation is None:
        raise RunIncomplete(run_dir, "it ended before its program ran")
    firmware = read_firmware(Path(record.firmware.elf).parent)
    expected = record.firmware.build_id, record.firmware.sha256
    if firmware is None or (firmware.build_id, firmware.elf_sha256) != expected:
        raise RunIncomplete(run_dir, f"its firmware {record.firmware.elf} is not there any more")
    if firmware.root is not None:
        raise RunIncomplete(run_dir, "its runner needs shared libraries, which no bundle holds")
    return firmware


def _record_fields(record: RunRecord, target: Target) -> dict[str, Any]:
    """Without what only this machine has."""
    fields = asdict(record)
    fields["simulator"]["environment"] = {}
    fields["case"] |= {"target": target.name, "model": record.case.name}
    return {**fields, "run_dir": ".", "host": ""}


def _json(fields: object) -> bytes:
    return f"{json.dumps(fields, indent=1, sort_keys=True)}\n".encode()


def _run_files(run_dir: Path, record: RunRecord) -> dict[str, bytes]:
    """Return the files of the run directory.

    Program and inputs are those of the cache or, if they are gone there, as the guest left them.
    Raises RunIncomplete."""
    facts, kept = record.program, kept_expectations(run_dir)
    assert facts is not None
    if kept is None or record.ending is None or len(kept.sets) != len(facts.input_sha256):
        raise RunIncomplete(run_dir, "it does not hold a whole run")
    pte = Path(facts.pte)
    # name, sha256, bytes, in the cache
    wanted = [(program_name(pte), facts.sha256, MAX_BYTES, pte)]
    for k, (input_set, digests) in enumerate(zip(kept.sets, facts.input_sha256, strict=True)):
        for n, (name, digest) in enumerate(zip(input_set.inputs, digests, strict=True)):
            wanted.append((input_name(k, n), digest, MAX_BYTES, pte.parent / name))
    for k, digests in enumerate(record.output_sha256):
        for n, digest in enumerate(digests):
            name = output_name(output_base(k), n)
            wanted.append((name, digest, kept.outputs[n].nbytes, run_dir / WORK / name))
    files = {name: read_regular(run_dir / name) for name in judged_files(run_dir)}
    for name, digest, size, cached in wanted:
        for found in filter(None, (read_output(p, size) for p in (cached, run_dir / WORK / name))):
            if sha256(found[0]) == digest:
                files[f"{WORK}/{name}"] = found[0]
        if f"{WORK}/{name}" not in files:
            raise RunIncomplete(run_dir, f"{cached} is not there any more, or is another")
    return files


def _folders(record: dict[str, Any], target: Target) -> tuple[bytes, ...]:
    """Those that only this machine has, as far as a run can have met them, longest first."""
    checkouts = filter(None, (record["firmware"]["checkout"], record["program"]["exporter"]))
    paths = {Path.home(), Path.cwd(), state_dir(), data_root(), target.file.parent}
    paths |= {Path(checkout["path"]) for checkout in checkouts}
    own = (str(path).encode() for path in paths if len(path.parts) > 2)  # /usr is on every one
    return tuple(sorted(own, key=lambda folder: (-len(folder), folder)))


def _script(title: str, target: Target, firmware: Firmware, record: dict[str, Any]) -> str:
    """``repro.sh`` for /bin/sh: the simulator alone, or why that is not enough."""
    lacking = ""
    if target.npu is not None:
        lacking = "the model of the NPU is the harness's"
    elif firmware.one_set_per_process:
        lacking = "its runner is started once for each input set, with help from outside"
    elif target.linux is not None:
        lacking = "the guest's Linux is made by the harness"
    shown = title.replace("\n", " ")
    script = f"#!/bin/sh\n# {shown}. `hil replay` of the bundle checks and compares everything.\n"
    if lacking:
        message = shlex.quote(f"repro.sh: {lacking}; use `hil replay` of the bundle")
        return f"{script}echo {message} >&2\nexit 2\n"
    simulator, *words = record["simulator"]["argv"]
    elf, pte = str(firmware.elf), program_name(Path(record["program"]["pte"]))
    argv = (f'"$here"/{_ELF}' if word == elf else shlex.quote(word) for word in words)
    return script + _ALONE.read_text().format(
        pte=pte, command=" ".join([Path(simulator).name, *argv])
    )


def _archived(members: dict[str, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755 if name in (REPRO, _ELF) else 0o644
            archive.addfile(member, io.BytesIO(data))
    return zstandard.ZstdCompressor(level=10, write_checksum=True).compress(plain.getvalue())


def unpack(bundle: Path, into: Path, max_bytes: int = MAX_BYTES) -> dict[str, str]:
    """Write the members of a bundle into the new folder ``into``; return their sha256 by name.

    Memory stays flat whatever is in it. Raises BadBundle, and then leaves no file; DiskError."""
    files: dict[str, str] = {}
    with disk_errors("unpacking the bundle"), whole_folder(into) as folder:
        try:
            with regular(bundle) as (file, _):
                members = _members(_Plain(file, max_bytes))
                listed = _listed(bundle, members)
                for name, pieces in members:
                    if name not in listed:
                        raise BadBundle(bundle, f"{name!r} is not what {MANIFEST} lists")
                    with disk_errors("unpacking the bundle"):
                        files[name] = _write(folder / name, pieces)
        except (OSError, zstandard.ZstdError, tarfile.TarError, ValueError, EOFError) as error:
            raise BadBundle(bundle, f"it cannot be read ({error})") from error
        if differing := sorted(name for name in listed if listed[name] != files.get(name)):
            raise BadBundle(bundle, f"{differing[0]!r} is not what {MANIFEST} lists")
        if _ELF in files:
            (folder / _ELF).chmod(0o755)  # a native one is started
    return files


def _write(file: Path, pieces: Iterator[bytes]) -> str:
    """Its sha256."""
    digest = hashlib.sha256()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("xb") as out:
        for piece in pieces:
            digest.update(piece)
            out.write(piece)
    return digest.hexdigest()


def _listed(bundle: Path, members: Iterator[tuple[str, Iterator[bytes]]]) -> dict[str, Any]:
    """Return the sha256 by name in the manifest, which comes first. Raises BadBundle."""
    name, pieces = next(members, ("", iter(())))
    content = b"".join(pieces) if name == MANIFEST else b""
    try:
        manifest = parsed(content.decode())
        format, listed = manifest["format"], dict(manifest["files"])
    except MALFORMED as error:
        raise BadBundle(bundle, f"{MANIFEST} does not list what is in it") from error
    if format != FORMAT:
        raise BadBundle(bundle, f"its format is {format!r}, and this version reads {FORMAT}")
    return listed


_PIECE = 1 << 10  # compressed bytes at a time: RFC 8878 makes at most 32 KiB of each
_WINDOW = 8 << 20  # bytes that a decoder has to keep; RFC 8878 3.1.1.1.2 recommends this bound


class _Plain:
    """The content of the frame, as a stream. Raises ValueError for more than ``max_bytes``."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self._file = file
        self._frame = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
        self._held, self._left = b"", max_bytes
        head = file.read(18)  # RFC 8878 3.1.1: the longest header of a frame
        file.seek(0)
        if not 0 <= zstandard.frame_content_size(head) <= max_bytes:
            raise ValueError(f"no size, or it is larger than the {max_bytes} bytes accepted")

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the next ``size`` bytes. Raises EOFError at the end of the file."""
        while size:
            if not self._held and not self._more():
                raise EOFError("it is cut off")
            piece, self._held = self._held[:size], self._held[size:]
            size -= len(piece)
            yield piece

    def read(self, size: int) -> bytes:
        return b"".join(self.pieces(size))

    def finish(self) -> None:
        """Read the rest. Raises ValueError if there is anything but zeros, or more frames."""
        while self._held or self._more():
            if self._held.strip(b"\0"):
                raise ValueError("there is more after the end of the archive")
            self._held = b""

    def _more(self) -> bool:
        while not self._frame.eof and not self._held:
            if not (data := self._file.read(_PIECE)):
                raise EOFError("it is cut off")
            self._held = self._frame.decompress(data)
            self._left -= len(self._held)
            if self._left < 0:
                raise ValueError("it is larger than it says")
        if self._frame.eof and (self._frame.unused_data or self._file.read(1)):
            raise ValueError("there is more after the end of the archive")
        return bool(self._held)


def _members(plain: _Plain) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield names with contents, each to be read before the next.

    Each header is checked here, and no general reader of archives sees the file: those read
    extensions of any size before one can look. Raises ValueError, and what zstandard and tarfile
    do."""
    names: set[str] = set()
    while (head := plain.read(tarfile.BLOCKSIZE)).strip(b"\0"):
        member = tarfile.TarInfo.frombuf(head, "ascii", "backslashreplace")
        name = member.name
        if member.type != tarfile.REGTYPE or name in names or not _NAME.fullmatch(name):
            raise ValueError(f"{name[:200]!r} is not a file of a bundle")
        names.add(name)
        most = MAX_TEXT if name.endswith(".json") else MAX_BYTES
        if not 0 <= member.size <= most or len(names) > MAX_MEMBERS:
            raise ValueError(f"{name!r} has over {most} bytes, or is one of over {MAX_MEMBERS}")
        yield name, plain.pieces(member.size)
        plain.read(-member.size % tarfile.BLOCKSIZE)
    plain.finish()


@dataclass(frozen=True)
class Replay:
    """The record in the bundle and the new one: ``there`` and ``here``.

    ``differing``: values there and here by name, of verdict, cause, figures and outputs (their
    sha256)."""

    there: RunRecord
    here: RunRecord
    differing: dict[str, tuple[Any, Any]]

    @property
    def versions(self) -> tuple[str, ...]:
        """Versions of the simulator there and here."""
        return tuple(r.simulator.version for r in (self.there, self.here) if r.simulator)

    @property
    def same(self) -> bool:
        return not self.differing

    @property
    def exit_code(self) -> ExitCode:
        """0 only for a PASS that was one there, too, with the same outputs and figures."""
        if self.here.verdict.passed and not self.same:
            return ExitCode.FAILED
        return self.here.verdict.exit_code

    def summary(self) -> dict[str, Any]:
        return {
            **self.here.summary(),
            "same": self.same,
            "there": {"verdict": self.there.verdict, "cause": _facts(self.there)["cause"]},
            "differing": {name: list(pair) for name, pair in self.differing.items()},
            "simulator_versions": list(self.versions),
        }


def replay(
    bundle: Path,
    progress: Progress = silent,
    *,
    target_from_bundle: bool = False,
    limit_factor: float | None = None,
    require_confinement: bool = True,
) -> Replay:
    """Run a bundle again.

    ``target_from_bundle``: use the bundle's target, whatever is known here.
    ``require_confinement``: refuse to run it unconfined.

    Raises BadBundle, UsageError for a target that is another one here, MemoryPlanError,
    ToolMissing without the simulator, InfraError when it cannot be run."""
    run_dir = new_run_dir("replay")
    root = run_dir / "bundle"
    there, program, firmware, fields = read_bundle(bundle, root, unpack(bundle, root))
    assert there.simulator is not None
    assert there.expectation is not None
    pte = program.pte_path
    try:
        target = checked(Target, fields) if target_from_bundle else _known_target(there, fields)
        chosen = pick(target, str(there.simulator.name))
        require_sound_plan(pte)
        progress(f"{there.case.title}: simulating")
        # a bundle's program has no graphs, which the estimate is of
        cost = None if there.program is None else there.program.npu_cost
        static = static_metrics(firmware, pte, cost)
        plan = RunPlan(there.case, chosen, program, firmware, pte, there.expectation, static)
        here = run_planned(
            plan,
            run_dir,
            known=there,
            profile=bool(there.op_ticks),
            limit_factor=limit_factor,
            require_confinement=require_confinement,
        )
    except MALFORMED as error:  # of facts in it that only their use shows to be wrong
        raise BadBundle(bundle, f"what it describes cannot be run ({error!r})") from error
    differing = _differing(_facts(there), _facts(here))
    if chosen.simulator.native:  # its times are this machine's
        differing = {n: pair for n, pair in differing.items() if not n.startswith("ticks_")}
    return Replay(there, here, differing)


def read_bundle(
    bundle: Path, root: Path, names: Collection[str]
) -> tuple[RunRecord, Program, Firmware, dict[str, Any]]:
    """Read record, program, firmware and target's fields of a bundle unpacked to ``root``.

    The files that they name are in it, among ``names``. Raises BadBundle."""
    try:
        record, program = load_record(root), kept_expectations(root)
        firmware, target = read_firmware(root / FIRMWARE), read_json(root / TARGET)
        if program is None or firmware is None:
            raise ValueError(f"the {'program' if program is None else 'firmware'} is not whole")
        if (name := checked(Target, target).name) != record.case.board:
            raise ValueError(f"{TARGET} describes {name}, but the run was on {record.case.board}")
        if not (record.simulator and record.expectation and record.firmware and record.program):
            raise ValueError("its record is not that of a whole run")
        pte = program_name(Path(record.program.pte))
    except (OSError, HarnessError, *MALFORMED) as error:
        raise BadBundle(bundle, str(error)) from error
    for name in program.expected_files:
        if f"{EXPECTED}/{name}" not in names:
            raise BadBundle(bundle, f"its program names {name!r}, which is not in it")
    sets = tuple(
        replace(s, inputs=tuple(f"../{WORK}/{input_name(k, n)}" for n in range(len(s.inputs))))
        for k, s in enumerate(program.sets)
    )
    program = replace(program, delegates=(), pte=f"../{WORK}/{pte}", sets=sets)
    return record, program, firmware, target


def _known_target(there: RunRecord, fields: dict[str, Any]) -> Target:
    try:
        known = load_target(there.case.board)
        differing = _differing(fields, target_fields(known))
        problem = f"is another one here: it differs in {', '.join(differing)}" if differing else ""
    except Unknown:
        problem = "is not known here"
    if problem:
        raise UsageError(
            f"the bundle's target {there.case.board} {problem}",
            hint="`targets` of your settings names a folder with its file; or look at target.json "
            "in the bundle, and use it with --target-from-bundle",
        )
    return known


def _facts(record: RunRecord) -> dict[str, Any]:
    """Return the results of a run: verdict, cause, figures and digests of outputs."""
    outputs = {
        output_name(output_base(k), n): digest
        for k, digests in enumerate(record.output_sha256)
        for n, digest in enumerate(digests)
    }
    cause = None if record.cause is None else record.cause.kind
    return {"verdict": record.verdict, "cause": cause, **record.metrics, **outputs}


def _differing(
    there: Mapping[str, object], here: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    names = sorted({*there, *here})
    return {n: (there.get(n), here.get(n)) for n in names if there.get(n) != here.get(n)}
