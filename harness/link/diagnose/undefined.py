"""Why a symbol is undefined: from the objects of the link and the tree around them, else from
common knowledge of the symbol."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

from harness.formats.demangle import base, demangled, mangled_base, qualified
from harness.link.diagnose.symbols import (
    SymbolFact,
    Undefined,
    because,
    behind_option,
    blamed_on_options,
    common_knowledge,
    known_fact,
    of_device,
)
from harness.link.diagnose.tree import (
    SourceDefinition,
    Tree,
    conditions_around,
    target_in,
    toolchain_archives,
)
from harness.link.diagnose.trial import GROUP, LINKS, Trial, told
from harness.link.diagnose.zephyr import BuildCondition, ZephyrBuild, below
from harness.link.failure import CodePlace, Failure, LinkCause, archive_of, file_name
from harness.link.index import Definition, LinkIndex
from harness.link.kconfig import RefusedOption

_SPELT_ALIKE = 0.85
# A condition that only one option of Kconfig decides.
_ONE_OPTION = re.compile(r"#if(?:def)?\s+(?:defined|IS_ENABLED)?\s*\(?\s*CONFIG_(\w+)\s*\)?")
_ZEPHYRS_KERNEL = "zephyr/kernel/libkernel.a"
_MOST_DEFINERS = 3


@dataclass(frozen=True)
class _Wanted:
    """``symbol``: as in the symbol table; ``shown``: for people. ``named``: the objects that the
    linker's message names, which are those it has loaded. ``known``: what to do about this symbol
    where a condition in its source leaves it out."""

    symbol: str
    shown: str
    index: LinkIndex
    tree: Tree | None
    named: Collection[str]
    uses: Sequence[CodePlace]
    known: Undefined | None
    linker: str

    @property
    def archive(self) -> str:
        """The archive of the object that needs the symbol; "" for an object by itself."""
        first = (self.uses[0].object if self.uses else None) or ""
        archive = archive_of(first)
        return archive if archive != first else ""


def explain_undefined(
    failure: Failure,
    index: LinkIndex,
    tree: Tree | None = None,
    refused: Sequence[RefusedOption] = (),
    trial: Trial | None = None,
) -> Failure:
    """Adds the places that need the symbol, those that could define it, and a fix. A log alone has
    an index without units; ``refused`` are then the options that Kconfig's warnings name."""
    symbol, shown = _names(failure.symbol or "", index)
    named = {place.object for place in failure.places if place.object}
    uses = index.uses(symbol, named) or failure.places
    zephyr = tree.zephyr if tree is not None else None
    line = [each.word for each in index.call.inputs]
    is_zephyr = zephyr is not None or any(word.endswith(_ZEPHYRS_KERNEL) for word in line)
    own = known_fact(shown, "", zephyr.values if zephyr else {}) if is_zephyr else None
    known = None if own is None else own.undefined()
    fact = known_fact(shown, failure.linker)
    if fact is not None and _lacks(fact, symbol, index):
        fact = None
    found = replace(failure, mangled=symbol, demangled=shown, places=uses)
    wanted = _Wanted(symbol, shown, index, tree, named, uses, known, failure.linker)
    read = bool(index.units)
    causes = chain(
        _on_the_line(wanted),
        _not_exported(wanted),
        _in_the_tree(wanted),
        (find(wanted) for find in (_another_name, _local, _in_sources)),
        (of_device(symbol, tree), known),
        (common_knowledge(fact, shown, line, failure.linker, read) if fact else None,),
        () if is_zephyr else _toolchain(wanted),
        (find(wanted) for find in (_misspelt, _unknown)),
    )
    cause = _first_that_helps(filter(None, causes), found, trial)
    cause = blamed_on_options(cause, zephyr.refused_options() if zephyr else refused)
    if tree is not None and not cause.definitions and tree.cut:
        cause = replace(cause, cause=f"{cause.cause} {tree.cut}")
    return replace(
        found,
        definitions=cause.definitions,
        binding=failure.binding or (uses[0].binding if uses else None),
        cause_kind=cause.kind,
        cause=f"{shown} is {f'needed by {uses[0]}' if uses else 'not defined'}. {cause.cause}",
        fix=cause.fix,
    )


def _first_that_helps(
    causes: Iterable[Undefined], failure: Failure, trial: Trial | None
) -> Undefined:
    """The first cause whose fix was tried and gets the link further, or cannot be tried. Where no
    fix helps, the first cause that is known of the symbol, without its fix."""
    tried: list[Undefined] = []
    for cause in causes:
        results = [trial.result(failure, change) for change in cause.tries] if trial else []
        helpful = sorted((r for r in results if r is not None), key=lambda r: not r.endswith(LINKS))
        if not cause.tries or trial is None:
            break
        if helpful:
            return replace(cause, fix=told(cause.fix, helpful[0]))
        tried.append(cause)
    if cause.kind is not LinkCause.NO_DEFINITION or not tried:
        return cause
    options = " and ".join(dict.fromkeys(" ".join(each.tries[0]) for each in tried))
    fix = f"{tried[0].otherwise or cause.fix} Tried, and it gets no further: {options}."
    return replace(tried[0], fix=fix, definitions=())


def _lacks(fact: SymbolFact, symbol: str, index: LinkIndex) -> bool:
    """Whether the toolchain's library that usually defines a symbol does not have it."""
    if not (index.units and fact.gnu and fact.library):
        return False
    there = any(
        re.fullmatch(fact.library, path.name)
        for folder in index.call.search
        for path in folder.glob("lib*.a")
    )
    return there and not toolchain_archives(index.call.search, (), symbol, fact.library)


def _names(printed: str, index: LinkIndex) -> tuple[str, str]:
    """(name in the symbol table, name for people) of what the linker printed."""
    if printed in index.references:
        return printed, demangled([printed])[printed]
    last = base(printed)
    likely = [n for n in index.references if n.startswith("_Z") and last.lstrip("~") in n]
    for name, readable in demangled(likely or index.references).items():
        if readable == printed:
            return name, readable
    return printed, printed


def _on_the_line(wanted: _Wanted) -> Iterator[Undefined]:
    definitions = wanted.index.definitions.get(wanted.symbol, [])
    places = tuple(d.place() for d in definitions)
    archived = [d for d in definitions if d.unit.is_member and not d.unit.input.whole]
    if archived:
        unit = archived[0].unit
        references = wanted.index.references.get(wanted.symbol, ())
        users = [u for u in references if u.input.index != unit.input.index]
        behind = [u for u in users if u.input.index > unit.input.index]
        loaded = set(map(file_name, wanted.named))
        late = [u for u in behind if file_name(u.name) in loaded] or behind or users
        name = late[-1].input.word if late else "what needs it"
        whole = " (under --whole-archive)" if late and late[-1].input.whole else ""
        order = because("archive order", places, unit=unit, user=name, whole=whole)
        yield replace(order, tries=((GROUP,),))
    elif hidden := [d for d in definitions if _is_hidden(d)]:
        yield because("hidden", places, unit=hidden[0].unit.name, symbol=wanted.shown)


def _not_exported(wanted: _Wanted) -> Iterator[Undefined]:
    """A shared object on the line has it for itself alone."""
    symbol, tree = wanted.symbol, wanted.tree
    for unit in wanted.index.units:
        if ".so" not in unit.input.word or symbol.encode() not in unit.object.data:
            continue
        if any(s.name == symbol and s.bind == 0 and s.defined for s in unit.object.symbols):
            script = tree.version_script(unit.name) if tree is not None else ""
            words = {"unit": unit.name, "script": script or "the version script of its link"}
            yield because("not exported", symbol=wanted.shown, **words)


def _local(wanted: _Wanted) -> Undefined | None:
    """A definition that only its own file can use: static, or made local after it was compiled."""
    local = wanted.index.local(wanted.symbol)
    if local is None:
        return None
    name = local.unit.name
    reason = "static in assembler" if re.search(r"\.[sS]\.o(?:bj)?\)?$", name) else "static"
    reason = "hidden and local" if _is_hidden(local) else reason
    return because(reason, (local.place(),), unit=name, symbol=wanted.shown)


def _misspelt(wanted: _Wanted) -> Undefined | None:
    """Nothing has it, and something has one that differs in capitals alone, or the archive that
    needs it, or an object of the program, has one that is spelt almost so."""
    symbol, archive = wanted.symbol, wanted.archive
    units = {name: found[0].unit for name, found in wanted.index.definitions.items()}
    same = [name for name in units if name.lower() == symbol.lower()]
    near = (n for n, u in units.items() if not u.is_member or archive_of(u.name) == archive)
    alike = same or get_close_matches(symbol, near, 1, _SPELT_ALIKE)
    if not alike:
        return None
    words = {"unit": units[alike[0]].name, "alike": alike[0], "user": wanted.uses[0]}
    return because("misspelt", symbol=symbol, **words)


def _unknown(wanted: _Wanted) -> Undefined:
    """Without a definition in sight and without common knowledge: what to look for."""
    user = wanted.uses[0].object if wanted.uses else None
    after = f" after {user or 'what needs it'}" if wanted.linker == "gnu" else ""  # read in order
    return because("unknown", symbol=wanted.shown, after=after)


def _is_hidden(definition: Definition) -> bool:
    return definition.symbol.visibility in ("hidden", "internal")


def _in_the_tree(wanted: _Wanted) -> Iterator[Undefined]:
    if (tree := wanted.tree) is None:
        return
    inputs = wanted.index.call.inputs
    definitions = tree.definers(wanted.symbol, [i.path for i in inputs if i.path])
    definitions.sort(key=lambda d: (d.path.suffix != ".a", len(str(d.path))))
    places = tuple(CodePlace(object=d.member, binding=d.symbol.binding) for d in definitions[:4])
    for best in definitions[:_MOST_DEFINERS]:
        near = below(best.path, tree.build)
        if best.path.suffix != ".a":
            cause = because("object not linked", places, object=near, name=best.path.name)
        else:
            users = tree.users_of(best.path)
            program = next(filter(None, (target_in(str(each.path)) for each in inputs)), None)
            cause = because(
                "archive not linked",
                places,
                member=best.member,
                archive=near,
                users=f" ({', '.join(users[:3])} of the same build has it)" if users else "",
                library=best.path.name,
                program="app" if tree.zephyr else program or "<program>",
                target=tree.target_of(best.path.name) or _library_name(near),
            )
        yield replace(cause, tries=((str(best.path),),))


def _library_name(archive: str) -> str:
    """The name by which CMake's target or -l knows an archive; its path outside of the build."""
    return archive if Path(archive).is_absolute() else re.sub(r"^lib|\.a$", "", Path(archive).name)


def _another_name(wanted: _Wanted) -> Undefined | None:
    """C instead of C++ linkage or the reverse, or the same name with other parameters."""
    symbol, shown, plain = wanted.symbol, wanted.shown, mangled_base(wanted.symbol)
    plain, is_cpp = plain or symbol, symbol.startswith("_Z")
    every = wanted.index.definitions.items()
    candidates = {n: d[0] for n, d in every if (mangled_base(n) or n) == plain}
    candidates.pop(symbol, None)
    readable = demangled(candidates)
    for name, definition in candidates.items():
        place, words = (definition.place(),), {"unit": definition.unit.name}
        if name == plain and is_cpp:
            words |= {"defined": "C", "needed": "C++", "symbol": base(shown)}
            return because("other language", place, **words)
        if name.startswith("_Z") and not is_cpp and readable[name].split("(")[0] == plain:
            words |= {"defined": "C++", "needed": "C", "symbol": base(readable[name])}
            return because("other language", place, **words)
    for name, definition in candidates.items():
        same = is_cpp and qualified(readable[name]) == qualified(shown)
        if same and "<" not in shown:  # an instance of a template is another function
            words = {"unit": definition.unit.name, "defined": readable[name], "symbol": shown}
            return because("other parameters", (definition.place(),), **words)
    return None


def _in_sources(wanted: _Wanted) -> Undefined | None:
    if (tree := wanted.tree) is None:
        return None
    shown, known = wanted.shown, wanted.known
    name = mangled_base(wanted.symbol) or wanted.symbol
    every = tree.in_sources(name)
    definitions = [d for d in every if not d.static]
    if not definitions:
        return _static_in_source(every) or _in_a_header(name, shown, tree)
    best = min(definitions, key=lambda d: (d.compiled, not d.weak, len(str(d.path))))
    weak = "weak" if best.weak else None
    place = (CodePlace(source=str(best.path), line=best.line, binding=weak),)
    what = "a weak default of it" if best.weak else "it"
    where = f"{best.path}:{best.line}"
    gate = tree.zephyr.gate(best.path) if tree.zephyr and not best.compiled else None
    if tree.zephyr is not None and gate is not None:
        cause = replace(behind_option(gate, where, what, tree.zephyr), definitions=place)
        if known is not None:
            return replace(cause, cause=f"{known.cause} {cause.cause}", fix=known.fix)
        return cause
    if not best.compiled:
        archive = wanted.archive
        target = tree.target_of(archive) if archive else None
        user = f"target {target}, which" if target else "the target that"
        if archive and target is None:
            user = f"{file_name(archive)}, which"
        reason = "weak default not compiled" if best.weak else "source not compiled"
        words = {"where": where, "definition": what, "symbol": shown}
        return because(reason, place, name=best.path.name, user=user, **words)
    if best.object is not None and not best.object.is_file():
        owner = target_in(str(best.object))
        target = f"target {owner}" if owner else f"the target that compiles {best.path.name}"
        return because("object missing", place, where=where, definition=what, target=target)
    if "<" in shown and wanted.symbol.startswith("_Z"):
        words = {"where": where, "symbol": shown, "name": best.path.name}
        return because("template not instantiated", place, **words)
    left_out = known or _left_out(best, where, what, shown, tree.zephyr)
    return replace(left_out, definitions=place)


def _in_a_header(name: str, shown: str, tree: Tree) -> Undefined | None:
    """Defined only in a header: inline as C99 has it, or under a condition that does not hold."""
    defined = next((d for d in tree.in_headers(name) if not d.static), None)
    if defined is None:
        return None
    where = f"{defined.path}:{defined.line}"
    place = (CodePlace(source=str(defined.path), line=defined.line),)
    if defined.inline:
        return because("inline in a header", place, where=where, symbol=shown)
    conditions = conditions_around(defined)
    guard = conditions[-1:] if conditions and conditions[-1][0].startswith("#ifndef") else []
    if len(conditions) == len(guard):
        return because("in a header", place, where=where, header=defined.path.name)
    condition = conditions[0][0]
    words = {"where": where, "condition": condition, "header": defined.path.name}
    return because("in a header by a condition", place, **words)


def _static_in_source(definitions: Sequence[SourceDefinition]) -> Undefined | None:
    """A function that the compiler inlined, so no object has it. Others may have the name, too."""
    compiled = [d for d in definitions if d.compiled]
    if len(compiled) != 1:
        return None
    only = compiled[0]
    place = CodePlace(source=str(only.path), line=only.line, binding="static")
    return because("static and inlined", (place,), where=f"{only.path}:{only.line}")


def _left_out(
    best: SourceDefinition, where: str, what: str, shown: str, zephyr: ZephyrBuild | None
) -> Undefined:
    """Compiled, and yet its object does not have it."""
    conditions = conditions_around(best)
    for condition, line in conditions:
        option = _ONE_OPTION.fullmatch(condition)
        if zephyr is not None and option and zephyr.values.get(option[1]) != "y":
            return behind_option(BuildCondition(option[1], best.path, line), where, what, zephyr)
    if not conditions:
        return because("left out by a macro", where=where, definition=what, symbol=shown)
    condition, line = conditions[0]
    place = f"{best.path}:{line}"
    words = {"condition": condition, "place": place, "name": best.path.name}
    return because("left out by a condition", where=where, definition=what, **words)


def _toolchain(wanted: _Wanted) -> Iterator[Undefined]:
    call = wanted.index.call
    used = [i.path for i in call.inputs if i.path]
    for path in toolchain_archives(call.search, used, wanted.symbol)[:_MOST_DEFINERS]:
        option, place = f"-l{_library_name(path.name)}", CodePlace(object=path.name)
        cause = because("toolchain", (place,), library=path.name, option=option)
        yield replace(cause, tries=((option,),))
