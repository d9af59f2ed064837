"""Why a symbol is undefined: from the objects of the link and the tree around them, else from
common knowledge of the symbol."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
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
    in_zephyr,
    known_fact,
    needed_by,
    of_device,
    unknown,
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
    known = in_zephyr(shown, zephyr.values if zephyr else {}) if is_zephyr else None
    fact = known_fact(shown, failure.linker)
    if fact is not None and _lacks(fact, symbol, index):
        fact = None
    found = replace(failure, mangled=symbol, demangled=shown, places=uses)
    causes = chain(
        _on_the_line(symbol, shown, index, named),
        _not_exported(symbol, shown, index, tree),
        _in_the_tree(symbol, shown, index, tree),
        _given(_another_name(symbol, shown, index, tree)),
        _given(_local(symbol, shown, index)),
        _given(_in_sources(symbol, shown, tree, uses, known)),
        _given(of_device(symbol, tree)),
        _given(known),
        _given(
            common_knowledge(fact, shown, line, failure.linker, bool(index.units)) if fact else None
        ),
        () if is_zephyr else _toolchain(shown, symbol, index),
        _given(_misspelt(symbol, index, uses)),
        (unknown(shown, uses, failure.linker),),
    )
    cause = _first_that_helps(causes, found, trial)
    cause = blamed_on_options(cause, zephyr.refused_options() if zephyr else refused)
    if tree is not None and not cause.definitions and tree.cut:
        cause = replace(cause, cause=f"{cause.cause} {tree.cut}")
    return replace(
        found,
        definitions=cause.definitions,
        binding=failure.binding or (uses[0].binding if uses else None),
        cause_kind=cause.kind,
        cause=f"{needed_by(shown, uses)} {cause.cause}",
        fix=cause.fix,
    )


def _given(cause: Undefined | None) -> Iterator[Undefined]:
    if cause is not None:
        yield cause


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


def _on_the_line(
    symbol: str, shown: str, index: LinkIndex, named: Collection[str]
) -> Iterator[Undefined]:
    definitions = index.definitions.get(symbol, [])
    places = tuple(d.place() for d in definitions)
    archived = [d for d in definitions if d.unit.is_member and not d.unit.input.whole]
    if archived:
        order = _order(symbol, shown, archived[0], index, named)
        yield replace(order, definitions=places, tries=((GROUP,),))
    elif hidden := [d for d in definitions if _is_hidden(d)]:
        yield because("hidden", places, unit=hidden[0].unit.name, symbol=shown)


def _not_exported(
    symbol: str, shown: str, index: LinkIndex, tree: Tree | None
) -> Iterator[Undefined]:
    """A shared object on the line has it for itself alone."""
    shared = (u for u in index.units if ".so" in u.input.word and symbol.encode() in u.object.data)
    for unit in shared:
        if any(s.name == symbol and s.bind == 0 and s.defined for s in unit.object.symbols):
            script = tree.version_script(unit.name) if tree is not None else ""
            words = {"unit": unit.name, "script": script or "the version script of its link"}
            yield because("not exported", symbol=shown, **words)


def _local(symbol: str, shown: str, index: LinkIndex) -> Undefined | None:
    """A definition that only its own file can use: static, or made local after it was compiled."""
    local = index.local(symbol)
    if local is None:
        return None
    name = local.unit.name
    reason = "static in assembler" if re.search(r"\.[sS]\.o(?:bj)?\)?$", name) else "static"
    reason = "hidden and local" if _is_hidden(local) else reason
    return because(reason, (local.place(),), unit=name, symbol=shown)


def _misspelt(symbol: str, index: LinkIndex, uses: Sequence[CodePlace]) -> Undefined | None:
    """Nothing has it, and something has one that differs in capitals alone, or the archive that
    needs it, or an object of the program, has one that is spelt almost so."""
    archive = _archive(uses)
    firsts = {name: definitions[0] for name, definitions in index.definitions.items()}
    same = [name for name in firsts if name.lower() == symbol.lower()]
    near = (n for n, d in firsts.items() if _is_of_program(d, archive))
    alike = same or get_close_matches(symbol, near, 1, _SPELT_ALIKE)
    if not alike:
        return None
    unit = firsts[alike[0]].unit.name
    return because("misspelt", unit=unit, alike=alike[0], symbol=symbol, user=uses[0])


def _is_of_program(definition: Definition, archive: str) -> bool:
    unit = definition.unit
    return not unit.is_member or (bool(archive) and archive_of(unit.name) == archive)


def _is_hidden(definition: Definition) -> bool:
    return definition.symbol.visibility in ("hidden", "internal")


def _order(
    symbol: str, shown: str, definition: Definition, index: LinkIndex, named: Collection[str]
) -> Undefined:
    """``named``: the objects that the linker's message names, which are those it has loaded."""
    archive = definition.unit.input
    users = [u for u in index.references.get(symbol, ()) if u.input.index != archive.index]
    behind = [u for u in users if u.input.index > archive.index]
    loaded = set(map(file_name, named))
    late = [u for u in behind if file_name(u.name) in loaded] or behind or users
    user = late[-1] if late else None
    return because(
        "archive order",
        member=definition.unit.name,
        archive=archive.word,
        user=user.input.word if user else "what needs it",
        whole=" (under --whole-archive)" if user and user.input.whole else "",
        symbol=shown,
    )


_MOST_DEFINERS = 3


def _in_the_tree(
    symbol: str, shown: str, index: LinkIndex, tree: Tree | None
) -> Iterator[Undefined]:
    if tree is None:
        return
    on_line = [i.path for i in index.call.inputs if i.path]
    definitions = tree.definers(symbol, on_line)
    definitions.sort(key=lambda d: (d.path.suffix != ".a", len(str(d.path))))
    places = tuple(CodePlace(object=d.member, binding=d.symbol.binding) for d in definitions[:4])
    for best in definitions[:_MOST_DEFINERS]:
        near = below(best.path, tree.build)
        if best.path.suffix != ".a":
            cause = because("object not linked", places, object=near, name=best.path.name)
        else:
            users = tree.users_of(best.path)
            cause = because(
                "archive not linked",
                places,
                member=best.member,
                archive=near,
                users=f" ({', '.join(users[:3])} of the same build has it)" if users else "",
                library=best.path.name,
                program=_program(tree, index),
                target=tree.target_of(best.path.name) or _library_name(best.path),
            )
        yield replace(cause, tries=((str(best.path),),))


def _program(tree: Tree, index: LinkIndex) -> str:
    """The target of CMake that is linked."""
    targets = (target_in(str(each.path)) for each in index.call.inputs)
    return "app" if tree.zephyr else next(filter(None, targets), "<program>")


def _library_name(archive: Path) -> str:
    return re.sub(r"^lib|\.a$", "", archive.name)


def _another_name(symbol: str, shown: str, index: LinkIndex, tree: Tree | None) -> Undefined | None:
    """C instead of C++ linkage or the reverse, or the same name with other parameters."""
    wanted = mangled_base(symbol) or symbol
    candidates = {n: d[0] for n, d in index.definitions.items() if (mangled_base(n) or n) == wanted}
    candidates.pop(symbol, None)
    readable = demangled(candidates)
    for name, definition in candidates.items():
        if name == wanted and symbol.startswith("_Z"):
            return _linkage(shown, definition, "C", "C++")
        if (
            name.startswith("_Z")
            and not symbol.startswith("_Z")
            and readable[name].split("(")[0] == wanted
        ):
            return _linkage(readable[name], definition, "C++", "C")
    for name, definition in candidates.items():
        same = symbol.startswith("_Z") and qualified(readable[name]) == qualified(shown)
        if same and "<" not in shown:  # an instance of a template is another function
            return because(
                "other parameters",
                (definition.place(),),
                unit=definition.unit.name,
                defined=readable[name],
                symbol=shown,
            )
    return None


def _linkage(symbol: str, definition: Definition, defined: str, needed: str) -> Undefined:
    return because(
        "other language",
        (definition.place(),),
        unit=definition.unit.name,
        defined=defined,
        needed=needed,
        symbol=base(symbol),
    )


def _in_sources(
    symbol: str,
    shown: str,
    tree: Tree | None,
    uses: Sequence[CodePlace],
    known: Undefined | None,
) -> Undefined | None:
    """``known``: what to do about this symbol where a condition in its source leaves it out."""
    if tree is None:
        return None
    name = mangled_base(symbol) or symbol
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
        return replace(behind_option(gate, where, what, tree.zephyr), definitions=place)
    if not best.compiled:
        archive = _archive(uses)
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
    if "<" in shown and symbol.startswith("_Z"):
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


def _archive(uses: Sequence[CodePlace]) -> str:
    """The archive of the object that needs the symbol; "" for an object by itself."""
    first = (uses[0].object if uses else None) or ""
    archive = archive_of(first)
    return archive if archive != first else ""


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


def _toolchain(shown: str, symbol: str, index: LinkIndex) -> Iterator[Undefined]:
    used = [i.path for i in index.call.inputs if i.path]
    for path in toolchain_archives(index.call.search, used, symbol)[:_MOST_DEFINERS]:
        option = f"-l{_library_name(path)}"
        cause = because(
            "toolchain", (CodePlace(object=path.name),), library=path.name, option=option
        )
        yield replace(cause, tries=((option,),))
