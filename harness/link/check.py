"""``hil link check``: whether sections of a program lie over each other when it runs, and, with
``--overridable``, that a weak default can be replaced, in every program of a build."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.core.errors import NotThere, UsageError
from harness.formats.demangle import demangled
from harness.formats.elf import STB_GLOBAL, STB_WEAK, read_elf
from harness.formats.elf_overlap import SectionsOverlap, overlaps
from harness.link.build import link_commands
from harness.link.command import BuildCommand, LinkerCall, linker_call
from harness.link.index import LinkIndex, load
from harness.system.progress import Progress


@dataclass(frozen=True)
class HookCheck:
    """The result of one check of one hook in one program."""

    program: str
    symbol: str
    check: str
    ok: bool
    text: str


@dataclass(frozen=True)
class Checked:
    findings: tuple[HookCheck, ...]

    @property
    def holds(self) -> bool:
        """True if every program with the symbol passes, and at least one program has it."""
        present = any(finding.check != "in_program" for finding in self.findings)
        return present and all(finding.ok for finding in self.findings)

    def summary(self) -> dict[str, Any]:
        return {"overridable": self.holds, "findings": [asdict(f) for f in self.findings]}

    def text(self) -> str:
        lines = [
            f"{'ok  ' if f.ok else 'FAIL'}  {f.program}  {f.symbol}  {f.check}: {f.text}"
            for f in self.findings
        ]
        return "\n".join([*lines, "overridable" if self.holds else "not proven overridable"])


def require_no_overlap(path: Path) -> tuple[str, ...]:
    """Every program of a build directory, or only ``path``, whose sections were looked at. Raises
    SectionsOverlap for the first that overwrites itself."""
    if not path.exists():
        raise NotThere(path, "file or directory")
    programs = [path] if path.is_file() else [c.directory / c.output for c in link_commands(path)]
    looked_at = []
    for program in programs:
        if program.is_file():
            if found := tuple(overlaps(read_elf(program))):
                raise SectionsOverlap(str(program), found)
            looked_at.append(str(program))
    return tuple(looked_at)


def check(path: Path, symbols: Sequence[str], progress: Progress) -> Checked:
    """Checks every program of a build directory, or only the program ``path``."""
    if not path.exists():
        raise NotThere(path, "file or directory")
    findings: list[HookCheck] = []
    for command in _programs(path.resolve()):
        progress(f"checking {command.output}")
        index = load(linker_call(command))
        for symbol in symbols:
            checks = _checks(index, symbol)
            findings += [HookCheck(command.output, symbol, *result) for result in checks]
    return Checked(tuple(findings))


def _programs(path: Path) -> tuple[BuildCommand, ...]:
    if path.is_dir():
        return link_commands(path)
    for build in path.parents:
        if (build / "build.ninja").is_file() or (build / "CMakeCache.txt").is_file():
            commands = [
                c for c in link_commands(build) if (c.directory / c.output).resolve() == path
            ]
            if commands:
                return tuple(commands)
    raise UsageError(
        f"no build directory above {path} says how it was linked",
        hint="give the build directory; an ELF alone cannot prove that an override would win",
        path=path,
    )


def _checks(index: LinkIndex, symbol: str) -> Iterator[tuple[str, bool, str]]:
    """Name, result and evidence of each check."""
    definitions, users = index.definitions.get(symbol, []), index.uses(symbol)
    weak = [d for d in definitions if d.symbol.bind == STB_WEAK]
    if not definitions and not users:
        yield "in_program", True, "neither defined nor called here"
        return
    if not weak:
        others = ", ".join(d.unit.name for d in definitions) or "nothing"
        yield "default_is_weak", False, f"no weak definition; defined by {others}"
        return
    default = weak[0].unit
    yield "default_is_weak", True, f"weak in {default.name}"
    beside = [s.name for s in default.object.globals if s.defined and s.name != symbol]
    text = f"with {', '.join(beside[:4])} in one file" if beside else "alone in its file"
    yield "default_is_alone", not beside, text
    text = "no file but its own refers to it"
    if users:
        name = users[0].function
        text = f"called from {replace(users[0], function=name and demangled([name])[name])}"
    yield "called_across_files", bool(users), text
    yield "not_inlined", *_not_inlined(index, symbol)
    strong = [d.unit.name for d in definitions if d not in weak]
    yield "strong_wins", *_strong_wins(index.call, symbol, default.name, strong)


def _not_inlined(index: LinkIndex, name: str) -> tuple[bool, str]:
    """Fails for a copy that the compiler made for local calls, and for LTO code."""
    clones = re.compile(rf"^{re.escape(name)}(?:\.(?:constprop|isra|part|localalias).*)?$")
    for unit in index.units:
        if any(s.name.startswith(".gnu.lto_") for s in unit.object.sections):
            return False, f"{unit.name} is LTO code: calls may be inlined at the link"
        if name.encode() in unit.object.data:
            for symbol in unit.object.symbols:
                if symbol.bind == 0 and symbol.defined and clones.match(symbol.name):
                    return False, f"{unit.name} has a copy of its own ({symbol.name})"
    return True, "no file has a copy of its own"


def _strong_wins(
    call: LinkerCall, symbol: str, default: str, strong: Sequence[str]
) -> tuple[bool, str]:
    """Links again with a strong definition; if the link has one already, its result decides.
    ``default`` and ``strong``: the files of the definitions."""
    with tempfile.TemporaryDirectory(prefix="hil-check-") as scratch:
        product = Path(scratch) / "override.elf"
        call = call.with_output(product)
        if not strong:
            override = Path(scratch) / "override.o"
            call.compile_functions([symbol], override)
            place = call.inputs[0].index
            argv = (*call.argv[:place], str(override), *call.argv[place:])
            call = replace(call, argv=argv)
        text, status = call.run()
        if status != 0:
            last = text.strip().splitlines()[-1] if text.strip() else f"status {status}"
            return False, f"the link with an override fails: {last}"
        symbols = read_elf(product).symbols
        bound = next((s.bind for s in symbols if s.name == symbol and s.defined), None)
    if bound == STB_GLOBAL:
        return True, f"{strong[0] if strong else 'an override'} replaced {default}"
    return False, "the weak default stayed" if bound == STB_WEAK else "it is not in the program"
