"""What of a program a firmware's ELF files lack, kernels and backends, before anything is run.

Runners register a kernel under the operator's full name ("cortex_m::quantized_add.out"), and a
backend under its id ("EthosUBackend"), so the name is in the ELF as a string of its own;
ExecuTorch's and ours do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.build.plan import executorch_package
from harness.build.source import FirmwareSource
from harness.errors import LinkError
from harness.formats.damage import DamagedFile
from harness.system import remembered

if TYPE_CHECKING:
    from harness.formats.elf import ElfFile, Section

_KERNEL_HINTS = {
    FirmwareSource.BUNDLED: "add the kernel to targets/runner/kernels (a file op_*.cpp with its "
    "HIL_OPERATOR line), link the library that registers it, or lower the model differently; for a "
    "target with Linux ExecuTorch's own kernels are there: --firmware wheel",
    FirmwareSource.EXECUTORCH: "the checkout's list of operators, or the kernel libraries that its "
    "runner links, lack it: add it there, or lower the model differently",
    FirmwareSource.WHEEL: "ExecuTorch's wheel has the operators of its portable and optimised "
    "kernels and quantized_decomposed ones; a target's lowerings (`hil targets`) make programs of "
    "these: TARGET@portable-fp32",
}
_BACKEND_HINTS = {
    FirmwareSource.BUNDLED: "run it on a target that has the backend, or name the backend's folder "
    "in the target's `cmake: {HIL_BACKENDS: ...}`",
    FirmwareSource.EXECUTORCH: "the checkout's runner is built without the backend: run it on a "
    "target that has it",
    FirmwareSource.WHEEL: "ExecuTorch's wheel has XNNPACK's alone",
}
_SCHEMA = "schema/program.fbs"  # by which a program is read
_OF_WHEEL = ("XnnpackBackend",)  # no runner that is one file has it


@dataclass(frozen=True)
class Needs:
    """What a program asks of a runner: operators ("namespace::name.overload"), backends by id."""

    operators: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()


class RunnerLacks(LinkError):
    """The linked program has no kernel for some operators, or has not some backends; or both."""

    def __init__(self, elf: Path, missing: Needs, source: FirmwareSource) -> None:
        self.operators = missing.operators
        self.backends = missing.backends
        self.source = source
        whose = "the runner" if source is FirmwareSource.BUNDLED else "ExecuTorch's runner"
        parts = [
            f"no {word}{'s' if len(names) > 1 else ''} {', '.join(names)}"
            for word, names in (
                ("kernel for operator", missing.operators), ("backend", missing.backends)
            )
            if names
        ]  # fmt: skip
        hints = [_KERNEL_HINTS[source]] if missing.operators else []
        hints += [_BACKEND_HINTS[source]] if missing.backends else []
        if source is not FirmwareSource.WHEEL and set(missing.backends) & set(_OF_WHEEL):
            hints.insert(
                0, "ExecuTorch's own runtime for targets with Linux has XNNPACK: --firmware wheel"
            )
        super().__init__(f"{whose} has {' and '.join(parts)}", hint="; ".join(hints), path=elf)


class OperatorMissing(RunnerLacks):
    kind = "operator_missing"


class BackendMissing(RunnerLacks):
    """Only backends."""

    kind = "backend_missing"


def require(
    images: Sequence[Path], needs: Needs, source: FirmwareSource = FirmwareSource.BUNDLED
) -> None:
    """Raises RunnerLacks, with all their names, when none of the ELF files of a firmware, its
    program first, has a kernel or a backend."""
    asked = _asked(images, needs)
    if asked is not None and remembered.answer("has", asked) is not None:
        return
    missing = needs
    for image in images:
        missing = Needs(
            *(missing_names(image, names) for names in (missing.operators, missing.backends))
        )
    if missing.operators:
        raise OperatorMissing(images[0], missing, source)
    if missing.backends:
        raise BackendMissing(images[0], missing, source)
    if asked is not None:
        remembered.remember("has", asked, "all of it")


def _asked(images: Sequence[Path], needs: Needs) -> str | None:
    """What the answer depends on; None while a file may change unseen, or is not there."""
    stamps = _stamps(images)
    return None if stamps is None else f"{needs}\0{stamps}"


def _stamps(files: Sequence[Path]) -> str | None:
    """Of the files, and of ours that read them."""
    formats = Path(__file__).parents[1] / "formats"
    readers = [formats / f"{name}.py" for name in ("elf", "flatbuffer", "schema")]
    try:
        return remembered.stamps(map(str, (*files, *readers, Path(__file__))))
    except OSError:
        return None


def missing_names(elf: Path, wanted: Iterable[str]) -> tuple[str, ...]:
    """Those of ``wanted`` that no loaded section names."""
    wanted = tuple(wanted)
    if not wanted:
        return ()
    from harness.formats.elf import SHF_ALLOC, read_elf

    program = read_elf(elf)
    loaded = [(s, program.content(s)) for s in program.sections if s.flags & SHF_ALLOC]
    return tuple(
        name for name in dict.fromkeys(wanted) if not _is_named(name.encode(), program, loaded)
    )


def _is_named(name: bytes, program: ElfFile, loaded: Sequence[tuple[Section, bytes]]) -> bool:
    """The name as a whole string; or as the tail of one to which something points, for the
    linker lets a string share the end of a longer one."""
    text = name + b"\0"
    for section, content in loaded:
        at = content.find(text)
        while at >= 0:
            if at == 0 or content[at - 1] == 0:
                return True
            if _is_pointed_to(section.address + at, program, loaded):
                return True
            at = content.find(text, at + 1)
    return False


def _is_pointed_to(address: int, program: ElfFile, loaded: Sequence[tuple[Section, bytes]]) -> bool:
    size = program.bits // 8
    pointer = address.to_bytes(size, program.byte_order)
    return any(
        (section.address + content.find(pointer)) % size == 0
        for section, content in loaded
        if pointer in content
    )


def needs_of(pte: Path, sha256: str | None = None) -> Needs:
    """What a ``.pte`` calls; nothing for a file that does not keep to the format, of which the
    runner says more. ``sha256``: of the file, where that is known; then it is looked into once."""
    stamps = None if sha256 is None else _stamps([executorch_package() / _SCHEMA])
    if stamps is None:
        return _read(pte)
    asked = f"{sha256}\0{stamps}"
    said = remembered.answer("needs", asked)
    if said is not None:
        operators, backends = json.loads(said)
        return Needs(tuple(operators), tuple(backends))
    found = _read(pte)
    remembered.remember("needs", asked, json.dumps([found.operators, found.backends]))
    return found


def _read(pte: Path) -> Needs:
    from harness.formats.flatbuffer import FlatBuffer
    from harness.formats.schema import PTE, load_schema

    content = pte.read_bytes()
    if content[4:6] != b"ET":
        return Needs()
    operators: list[str] = []
    backends: list[str] = []
    try:
        program = FlatBuffer(memoryview(content), load_schema(PTE), len(content)).root()
        for plan in program.items("execution_plan"):
            for operator in plan.items("operators"):
                overload = operator.get("overload")
                name = (operator.get("name") or "") + (f".{overload}" if overload else "")
                operators.append(name)
            backends += [delegate.get("id") or "" for delegate in plan.items("delegates")]
    except DamagedFile:
        return Needs()
    return Needs(tuple(dict.fromkeys(operators)), tuple(dict.fromkeys(backends)))
