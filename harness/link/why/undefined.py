"""Why a symbol is undefined, from the objects of the link and the tree around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.formats.demangle import base, demangled, mangled_base, qualified
from harness.link.failure import Failure, Place
from harness.link.model.index import Definition, LinkIndex
from harness.link.why import advice
from harness.link.why.tree import Found, SourceFound, Tree, toolchain_archives


@dataclass(frozen=True)
class Cause:
    kind: str
    cause: str
    fix: str
    definitions: tuple[Place, ...] = ()


def explain_undefined(failure: Failure, index: LinkIndex, tree: Tree | None) -> Failure:
    """The failure with who needs the symbol, who could define it, and what to do."""
    symbol, shown = _names(failure.symbol or "", index)
    uses = index.uses(symbol) or failure.places
    cause = (
        _on_the_line(symbol, shown, index)
        or _in_the_tree(symbol, shown, index, tree)
        or _another_name(symbol, shown, index, tree)
        or _local(symbol, shown, index)
        or _in_sources(symbol, shown, tree, uses)
        or _wrapped(symbol)
        or _toolchain(shown, symbol, index)
        or unknown(shown, uses)
    )
    needed = f"{shown} is needed by {uses[0]}. " if uses else ""
    return replace(
        failure,
        mangled=symbol,
        demangled=shown,
        places=uses,
        binding=failure.binding or (uses[0].binding if uses else None),
        definitions=cause.definitions,
        cause_kind=cause.kind,
        cause=needed + cause.cause,
        fix=cause.fix,
    )


def _names(printed: str, index: LinkIndex) -> tuple[str, str]:
    """(name in the symbol table, name for people) of what the linker printed."""
    if printed in index.references:
        return printed, demangled([printed])[printed]
    last = base(printed)
    likely = [n for n in index.references if n.startswith("_Z") and last.lstrip("~") in n]
    for name, said in demangled(likely or index.references).items():
        if said == printed:
            return name, said
    return printed, printed


def _on_the_line(symbol: str, shown: str, index: LinkIndex) -> Cause | None:
    definitions = index.definitions.get(symbol, [])
    places = tuple(d.place() for d in definitions)
    archived = [d for d in definitions if d.unit.input.is_archive and not d.unit.input.whole]
    if archived:
        return replace(_order(symbol, shown, archived[0], index), definitions=places)
    hidden = [d for d in definitions if _is_hidden(d)]
    if hidden:
        return Cause("hidden", f"{hidden[0].unit.name} defines it, but as a hidden symbol.",
                     f"Give {shown} default visibility where it is defined.", places)  # fmt: skip
    return None


def _local(symbol: str, shown: str, index: LinkIndex) -> Cause | None:
    """A definition for its own file only: said so in the source, or made so afterwards."""
    local = index.local(symbol)
    if local is None:
        return None
    if _is_hidden(local):
        return Cause("hidden", f"{local.unit.name} defines it, but as a hidden symbol that was "
                     "made local when its file was linked or copied.",
                     f"Give {shown} default visibility where it is defined.",
                     (local.place(),))  # fmt: skip
    return Cause(
        "static", f"{local.unit.name} defines it as static, for that file only.",
        f"Remove `static` from the definition of {shown}, or call it from that file only.",
        (local.place(),),
    )  # fmt: skip


def _wrapped(symbol: str) -> Cause | None:
    if not symbol.startswith("__wrap_"):
        return None
    return Cause("wrap", f"--wrap={symbol[7:]} sends every call of {symbol[7:]} to {symbol}, "
                 "which nothing defines.",
                 f"Define {symbol}, or remove --wrap={symbol[7:]} from the link.")  # fmt: skip


def _is_hidden(definition: Definition) -> bool:
    return definition.symbol.visibility in ("hidden", "internal")


def _order(symbol: str, shown: str, definition: Definition, index: LinkIndex) -> Cause:
    archive = definition.unit.input
    users = [u for u in index.references.get(symbol, ()) if u.input.index != archive.index]
    taken = None if index.not_modelled else set(index.prediction.loaded)
    behind = [u for u in users if u.input.index > archive.index]
    late = [u for u in behind if taken is None or u.name in taken] or users
    user = late[-1] if late else None
    after = user.input.word if user else "what needs it"
    whole = " (under --whole-archive)" if user and user.input.whole else ""
    return Cause(
        "archive_order",
        f"{definition.unit.name} defines it, but {archive.word} stands on the line before "
        f"{after}{whole}; the linker reads an archive once, from left to right, and had no use for "
        "that member yet.",
        f"Move {archive.word} after {after} on the link line (in CMake: let the library that needs "
        f"{shown} link it with target_link_libraries), or put both between -Wl,--start-group and "
        "-Wl,--end-group.",
    )


def _in_the_tree(symbol: str, shown: str, index: LinkIndex, tree: Tree | None) -> Cause | None:
    if tree is None:
        return None
    on_line = [i.path for i in index.line.inputs if i.path]
    found = tree.definers(symbol, on_line)
    if not found:
        return None
    best = min(found, key=lambda f: (f.path.suffix != ".a", len(str(f.path))))
    places = tuple(Place(object=f.member, binding=f.symbol.binding) for f in found[:4])
    if best.path.suffix == ".a":
        users = tree.users_of(best.path)
        also = f" ({', '.join(users[:3])} of the same build has it)" if users else ""
        return Cause(
            "library_not_linked",
            f"{best.member} defines it, but {_near(best, tree)} is not on the link line{also}.",
            _link_it(best, shown, tree, index),
            places,
        )
    return Cause(
        "object_not_linked",
        f"{_near(best, tree)} defines it, but that object is not on the link line.",
        f"Add the source of {best.path.name} to the target that is linked, or link the target it "
        "belongs to.",
        places,
    )


def _near(found: Found, tree: Tree) -> str:
    try:
        return str(found.path.relative_to(tree.build))
    except ValueError:
        return str(found.path)


def _link_it(found: Found, shown: str, tree: Tree, index: LinkIndex) -> str:
    name = tree.target_of_file(str(found.path)) or re.sub(r"^lib|\.a$", "", found.path.name)
    program = tree.program(i.path for i in index.line.inputs if i.path)
    return (
        f"Link {found.path.name}, after everything that uses {shown} (in CMake: "
        f"target_link_libraries({program or '<program>'} PRIVATE {name}))."
    )


def _another_name(symbol: str, shown: str, index: LinkIndex, tree: Tree | None) -> Cause | None:
    """C against C++ linkage, or the same name with other parameters."""
    wanted = mangled_base(symbol) or symbol
    candidates = {n: d[0] for n, d in index.definitions.items() if _base(n) == wanted}
    candidates.pop(symbol, None)
    said = demangled(candidates)
    for name, definition in candidates.items():
        place = (definition.place(),)
        if name == wanted and symbol.startswith("_Z"):
            return _linkage(shown, definition.unit.name, "C", "C++", place)
        if (
            name.startswith("_Z")
            and not symbol.startswith("_Z")
            and said[name].split("(")[0] == wanted
        ):
            return _linkage(said[name], definition.unit.name, "C++", "C", place)
    for name, definition in candidates.items():
        if symbol.startswith("_Z") and qualified(said[name]) == qualified(shown):
            return Cause(
                "signature",
                f"{definition.unit.name} defines {said[name]}, which has the same name and other "
                "parameters.",
                f"Make declaration and definition agree: {shown} is called, {said[name]} is "
                "defined.",
                (definition.place(),),
            )  # fmt: skip
    return None


def _base(name: str) -> str:
    return (mangled_base(name) or name) if name.startswith("_Z") else name


def _linkage(
    shown: str, where: str, defined: str, declared: str, place: tuple[Place, ...]
) -> Cause:
    return Cause(
        "language_linkage",
        f"{where} defines it with {defined} linkage, and it is needed with {declared} linkage.",
        f'Declare {base(shown)} extern "C" in a header that both sides include (guarded by '
        "#ifdef __cplusplus).",
        place,
    )


def _in_sources(symbol: str, shown: str, tree: Tree | None, uses: Sequence[Place]) -> Cause | None:
    if tree is None:
        return None
    name = mangled_base(symbol) or symbol
    found = tree.in_sources(name)
    if not found:
        return None
    best = min(found, key=lambda f: (f.compiled, not f.weak, len(str(f.path))))
    place = (Place(source=str(best.path), line=best.line, binding="weak" if best.weak else None),)
    what = "a weak default of it" if best.weak else "it"
    where = f"{best.path}:{best.line}"
    if not best.compiled:
        kind = "weak_default_not_compiled" if best.weak else "source_not_compiled"
        user = tree.target_of_file(_archive(uses)) if _archive(uses) else None
        needs = f"target {user}, which" if user else "the target that"
        return Cause(kind, f"{where} defines {what}, but no target of this build compiles that "
                     "file.", f"Add {best.path.name} to the sources of {needs} needs "
                     f"{shown} (target_sources or add_library), and link that target.",
                     place)  # fmt: skip
    owner = tree.target_of_file(str(best.path))
    return replace(_compiled_elsewhere(best, where, what, shown, owner), definitions=place)


def _archive(uses: Sequence[Place]) -> str:
    """The archive that holds what needs the symbol; "" when an object outside of one does."""
    first = uses[0].object if uses else None
    return first.split("(")[0] if first and "(" in first else ""


def _compiled_elsewhere(
    best: SourceFound, where: str, what: str, shown: str, owner: str | None
) -> Cause:
    target = f"target {owner}" if owner else f"the target that compiles {best.path.name}"
    if best.object is not None and not best.object.is_file():
        return Cause("object_missing", f"{where} defines {what}; its object {best.object.name} has "
                     "not been built.", f"Build and link {target}.")  # fmt: skip
    return Cause(
        "configured_out",
        f"{where} defines {what} and is compiled, but its object does not define it: a "
        "preprocessor condition or a template leaves it out.",
        f"Set the option that the definition in {best.path.name} depends on, or instantiate "
        f"{shown} explicitly.",
    )


def _toolchain(shown: str, symbol: str, index: LinkIndex) -> Cause | None:
    used = [i.path for i in index.line.inputs if i.path]
    path = toolchain_archives(index.line.search, used, symbol)
    if path is None:
        return None
    option = "-l" + re.sub(r"^lib|\.a$", "", path.name)
    return Cause("library_not_linked", f"The toolchain's {path.name} defines it, and {option} is "
                 "not on the link line.", f"Add {option} after everything that uses {shown}.",
                 (Place(object=path.name),))  # fmt: skip


def unknown(shown: str, uses: Sequence[Place], line: Sequence[str] = ()) -> Cause:
    """Without a definition in sight: common knowledge, or what to look for."""
    known = advice.known(shown)
    if known is None:
        return Cause("no_definition", "Nothing that could be looked at defines it.",
                     f"Find the source or library that defines {shown} and link it after "
                     f"{uses[0].object if uses and uses[0].object else 'what needs it'}, or remove "
                     "the call.")  # fmt: skip
    archives = [Path(word).name for word in line]
    present = [n for n in archives if known.library and re.fullmatch(known.library, n)]
    if present:
        return Cause("archive_order", f"It belongs to {known.home}; {present[0]} is on the link "
                     "line, but too early or without that member.", known.fix)  # fmt: skip
    kind = "library_not_linked" if known.library else "no_definition"
    if "weak default" in known.home and "source file of its own" in known.home:
        kind = "weak_default_not_compiled"
    return Cause(kind, f"It belongs to {known.home}, and nothing on the link line defines it.",
                 known.fix)  # fmt: skip
