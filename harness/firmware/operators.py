"""Finds the kernels and backends of a program that a firmware's ELF files lack, before a run.

Runners register a kernel under the operator's full name ("cortex_m::quantized_add.out"), and a
backend under its id ("EthosUBackend"), so the name is a string of the ELF, in ExecuTorch's runners
and the harness's. A name that is only the end of another string counts too: then the runner itself
reports what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.config.target import Target
from harness.core.errors import HarnessError, MalformedFile
from harness.core.verdict import ExitCode, Verdict
from harness.firmware.names import BUNDLED, source_names
from harness.firmware.source import BuildRequest, Firmware, FirmwareSource, source_named
from harness.formats.elf import SHF_ALLOC, read_elf
from harness.formats.flatbuffer import Table
from harness.formats.pte import operator_names, plans_of
from harness.system.files import read_regular
from harness.system.progress import Progress, silent


@dataclass(frozen=True)
class Needs:
    """A program's needs: operators ("namespace::name.overload"), and backends by id."""

    operators: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()


class RunnerLacks(HarnessError):
    """The firmware lacks kernels for some operators, or some backends, or both. If the firmware is
    the harness's own, that says nothing of the program: nothing is proven. For a runner under test
    it is a failure. ``layers``: where each operator comes from and who left it, if known."""

    exit_code = ExitCode.FAILED

    def __init__(
        self,
        path: Path,
        missing: Needs,
        source: FirmwareSource,
        origins: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        own = source.name == BUNDLED
        self.verdict = Verdict.NO_VERDICT if own else Verdict.LINK_ERROR
        kind = "runner_lacks" if own else "operator_missing"
        self.operators = missing.operators
        self.backends = missing.backends
        self.source = source.name
        parts = [
            f"no {word}{'s' if len(names) > 1 else ''} {', '.join(names)}"
            for word, names in (
                ("kernel for operator", missing.operators),
                ("backend", missing.backends),
            )
            if names
        ]
        hints = [source.kernel_hint] if missing.operators else []
        hints += [source.backend_hint] if missing.backends else []
        hints[:0] = [
            f"{other.offer}: --firmware {other.name}"
            for other in map(source_named, source_names())
            if other is not source and set(missing.backends) & set(other.extra_backends)
        ]
        named = {name: origins.get(name.partition(".")[0]) for name in missing.operators}
        self.layers = {name: str(origin) for name, origin in named.items() if origin}
        where = "".join(f"; {name} comes from {layer}" for name, layer in self.layers.items())
        super().__init__(
            f"{source.runner} has {' and '.join(parts)}{where}",
            hint="; ".join(hints),
            path=path,
            kind=kind if missing.operators or own else "backend_missing",
        )

    @property
    def facts(self) -> dict[str, Any]:
        return {name: value for name, value in super().facts.items() if name != "verdict"}


def equipped(
    firmware: Firmware, request: BuildRequest, pte: Path, progress: Progress = silent
) -> Firmware:
    """The firmware, or one of ``request`` with the missing kernels or memory, if its source can add
    them. Raises what ``require`` does, and DoesNotFit."""
    source, needs = firmware.source, needs_of(pte)
    added = {
        **source.options_for(_lacking(firmware.images, needs).operators),
        **source.larger_pools(firmware.options, request.target, pte),
    }
    if added:
        request = replace(request, options={**request.options, **added})
        firmware = source.build(request, progress)
    require(firmware.images, needs, source)
    return firmware


def require_possible(
    source: FirmwareSource,
    target: Target,
    pte: Path,
    origins: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Raises RunnerLacks or DoesNotFit, before any build, for a program that no firmware of
    the source can run on the target. ``origins``: those of a Program."""
    if missing := source.without_kernel(needs_of(pte).operators, target):
        raise RunnerLacks(pte, Needs(missing), source, origins)
    source.larger_pools({}, target, pte)


def require(images: Sequence[Path], needs: Needs, source: FirmwareSource) -> None:
    """Raises RunnerLacks, with all names, for kernels and backends in none of a firmware's ELF
    files (its program first)."""
    missing = _lacking(images, needs)
    if missing != Needs():
        raise RunnerLacks(images[0], missing, source)


def _lacking(images: Sequence[Path], needs: Needs) -> Needs:
    for image in images:
        needs = Needs(*(missing_names(image, names) for names in (needs.operators, needs.backends)))
    return needs


def missing_names(elf: Path, wanted: Iterable[str]) -> tuple[str, ...]:
    """The names that end no string of the ELF file's loaded sections: the linker lets a string
    share the end of a longer one."""
    wanted = tuple(dict.fromkeys(wanted))
    if not wanted:
        return ()
    program = read_elf(elf)
    loaded = [program.content(section) for section in program.sections if section.flags & SHF_ALLOC]
    return tuple(
        name for name in wanted if not any(name.encode() + b"\0" in content for content in loaded)
    )


def needs_of(pte: Path) -> Needs:
    """The operators and backends of a ``.pte``; nothing for a file that violates the format, as the
    runner refuses it with a better message."""
    operators: list[str] = []
    backends: list[str] = []
    try:
        for plan in plans_in(pte):
            operators += operator_names(plan)
            backends += [delegate.get("id") or "" for delegate in plan.items("delegates")]
    except MalformedFile:
        return Needs()
    return Needs(tuple(dict.fromkeys(operators)), tuple(dict.fromkeys(backends)))


def plans_in(pte: Path) -> Sequence[Table]:
    """The execution plans of a ``.pte``; none for another file. Raises MalformedFile; reading the
    plans may raise it too."""
    content = read_regular(pte)
    return plans_of(content) if content[4:6] == b"ET" else ()
