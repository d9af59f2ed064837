"""Why a symbol is undefined: from the objects of the link and the tree around them, else from what
is common knowledge of such a symbol.

Sources of the latter: ExecuTorch's CMake files (runtime, backends/arm, kernels), CMSIS-NN,
ethos-u-core-driver, TFLite Micro, Zephyr's devicetree and syscall generators, newlib, GCC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.formats.demangle import base, demangled, mangled_base, qualified
from harness.link.failure import CodePlace, Failure, LinkCause, archive_of
from harness.link.model.index import Definition, LinkIndex
from harness.link.why.tree import Found, SourceFound, Tree, toolchain_archives


@dataclass(frozen=True)
class Undefined:
    """Why, in sentences too, and what defines the symbol after all."""

    kind: LinkCause
    cause: str
    fix: str
    definitions: tuple[CodePlace, ...] = ()


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
        or unknown(shown, uses, linker=failure.linker)
    )
    needed = f"{shown} is needed by {uses[0]}. " if uses else ""
    return replace(
        failure, mangled=symbol, demangled=shown, places=uses, definitions=cause.definitions,
        binding=failure.binding or (uses[0].binding if uses else None),
        cause_kind=cause.kind, cause=needed + cause.cause, fix=cause.fix,
    )  # fmt: skip


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


def _on_the_line(symbol: str, shown: str, index: LinkIndex) -> Undefined | None:
    definitions = index.definitions.get(symbol, [])
    places = tuple(d.place() for d in definitions)
    archived = [d for d in definitions if d.unit.input.is_archive and not d.unit.input.whole]
    if archived:
        return replace(_order(symbol, shown, archived[0], index), definitions=places)
    hidden = [d for d in definitions if _is_hidden(d)]
    if hidden:
        why = f"{hidden[0].unit.name} defines it, but as a hidden symbol."
        fix = f"Give {shown} default visibility where it is defined."
        return Undefined(LinkCause.HIDDEN, why, fix, places)
    return None


def _local(symbol: str, shown: str, index: LinkIndex) -> Undefined | None:
    """A definition for its own file only: said so in the source, or made so afterwards."""
    local = index.local(symbol)
    if local is None:
        return None
    place = (local.place(),)
    if _is_hidden(local):
        why = (f"{local.unit.name} defines it, but as a hidden symbol that was made local when its "
               "file was linked or copied.")  # fmt: skip
        fix = f"Give {shown} default visibility where it is defined."
        return Undefined(LinkCause.HIDDEN, why, fix, place)
    why = f"{local.unit.name} defines it as static, for that file only."
    fix = f"Remove `static` from the definition of {shown}, or call it from that file only."
    return Undefined(LinkCause.STATIC, why, fix, place)


def _wrapped(symbol: str) -> Undefined | None:
    if not symbol.startswith("__wrap_"):
        return None
    name = symbol.removeprefix("__wrap_")
    why = f"--wrap={name} sends every call of {name} to {symbol}, which nothing defines."
    fix = f"Define {symbol}, or remove --wrap={name} from the link."
    return Undefined(LinkCause.WRAP, why, fix)


def _is_hidden(definition: Definition) -> bool:
    return definition.symbol.visibility in ("hidden", "internal")


def _order(symbol: str, shown: str, definition: Definition, index: LinkIndex) -> Undefined:
    archive = definition.unit.input
    users = [u for u in index.references.get(symbol, ()) if u.input.index != archive.index]
    taken = None if index.not_modelled else set(index.prediction.loaded)
    behind = [u for u in users if u.input.index > archive.index]
    late = [u for u in behind if taken is None or u.name in taken] or users
    user = late[-1] if late else None
    after = user.input.word if user else "what needs it"
    whole = " (under --whole-archive)" if user and user.input.whole else ""
    return Undefined(
        LinkCause.ARCHIVE_ORDER,
        f"{definition.unit.name} defines it, but {archive.word} stands on the line before "
        f"{after}{whole}; the linker reads an archive once, from left to right, and had no use for "
        "that member yet.",
        f"Move {archive.word} after {after} on the link line (in CMake: let the library that needs "
        f"{shown} link it with target_link_libraries), or put both between -Wl,--start-group and "
        "-Wl,--end-group.",
    )


def _in_the_tree(symbol: str, shown: str, index: LinkIndex, tree: Tree | None) -> Undefined | None:
    if tree is None:
        return None
    on_line = [i.path for i in index.line.inputs if i.path]
    found = tree.definers(symbol, on_line)
    if not found:
        return None
    best = min(found, key=lambda f: (f.path.suffix != ".a", len(str(f.path))))
    places = tuple(CodePlace(object=f.member, binding=f.symbol.binding) for f in found[:4])
    if best.path.suffix == ".a":
        users = tree.users_of(best.path)
        also = f" ({', '.join(users[:3])} of the same build has it)" if users else ""
        return Undefined(
            LinkCause.LIBRARY_NOT_LINKED,
            f"{best.member} defines it, but {_near(best, tree)} is not on the link line{also}.",
            _link_it(best, shown, tree, index),
            places,
        )
    return Undefined(
        LinkCause.OBJECT_NOT_LINKED,
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


def _another_name(symbol: str, shown: str, index: LinkIndex, tree: Tree | None) -> Undefined | None:
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
            return Undefined(
                LinkCause.SIGNATURE,
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
    shown: str, where: str, defined: str, declared: str, place: tuple[CodePlace, ...]
) -> Undefined:
    return Undefined(
        LinkCause.LANGUAGE_LINKAGE,
        f"{where} defines it with {defined} linkage, and it is needed with {declared} linkage.",
        f'Declare {base(shown)} extern "C" in a header that both sides include (guarded by '
        "#ifdef __cplusplus).",
        place,
    )


def _in_sources(
    symbol: str, shown: str, tree: Tree | None, uses: Sequence[CodePlace]
) -> Undefined | None:
    if tree is None:
        return None
    name = mangled_base(symbol) or symbol
    found = tree.in_sources(name)
    if not found:
        return None
    best = min(found, key=lambda f: (f.compiled, not f.weak, len(str(f.path))))
    weak = "weak" if best.weak else None
    place = (CodePlace(source=str(best.path), line=best.line, binding=weak),)
    what = "a weak default of it" if best.weak else "it"
    where = f"{best.path}:{best.line}"
    if not best.compiled:
        kind = LinkCause.WEAK_DEFAULT_NOT_COMPILED if best.weak else LinkCause.SOURCE_NOT_COMPILED
        user = tree.target_of_file(_archive(uses)) if _archive(uses) else None
        needs = f"target {user}, which" if user else "the target that"
        return Undefined(kind, f"{where} defines {what}, but no target of this build compiles that "
                     "file.", f"Add {best.path.name} to the sources of {needs} needs "
                     f"{shown} (target_sources or add_library), and link that target.",
                     place)  # fmt: skip
    owner = tree.target_of_file(str(best.path))
    return replace(_compiled_elsewhere(best, where, what, shown, owner), definitions=place)


def _archive(uses: Sequence[CodePlace]) -> str:
    """The archive that holds what needs the symbol; "" when an object outside of one does."""
    first = (uses[0].object if uses else None) or ""
    archive = archive_of(first)
    return archive if archive != first else ""


def _compiled_elsewhere(
    best: SourceFound, where: str, what: str, shown: str, owner: str | None
) -> Undefined:
    target = f"target {owner}" if owner else f"the target that compiles {best.path.name}"
    if best.object is not None and not best.object.is_file():
        missing = f"{where} defines {what}; its object {best.object.name} has not been built."
        return Undefined(LinkCause.OBJECT_MISSING, missing, f"Build and link {target}.")
    return Undefined(
        LinkCause.CONFIGURED_OUT,
        f"{where} defines {what} and is compiled, but its object does not define it: a "
        "preprocessor condition or a template leaves it out.",
        f"Set the option that the definition in {best.path.name} depends on, or instantiate "
        f"{shown} explicitly.",
    )


def _toolchain(shown: str, symbol: str, index: LinkIndex) -> Undefined | None:
    used = [i.path for i in index.line.inputs if i.path]
    path = toolchain_archives(index.line.search, used, symbol)
    if path is None:
        return None
    option = "-l" + re.sub(r"^lib|\.a$", "", path.name)
    why = f"The toolchain's {path.name} defines it, and {option} is not on the link line."
    fix = f"Add {option} after everything that uses {shown}."
    return Undefined(LinkCause.LIBRARY_NOT_LINKED, why, fix, (CodePlace(object=path.name),))


def unknown(
    shown: str, uses: Sequence[CodePlace], line: Sequence[str] = (), linker: str = "gnu"
) -> Undefined:
    """Without a definition in sight: common knowledge, or what to look for."""
    if version := _VERSIONED.search(shown):
        return _newer(version, uses)
    known = _known(shown)
    if known is None:
        user = uses[0].object if uses and uses[0].object else "what needs it"
        after = f" after {user}" if linker in _IN_ORDER else ""
        return Undefined(LinkCause.NO_DEFINITION, "Nothing that could be looked at defines it.",
                         f"Find the source or library that defines {shown} and link it{after}, or "
                         "remove the call.")  # fmt: skip
    if known.gnu and linker in _NOT_GNU:  # which library it is there, and how it is named, differs
        return Undefined(LinkCause.NO_DEFINITION, f"It is a name of {known.home}; nothing that "
                         "could be looked at defines it.", "")  # fmt: skip
    archives = [Path(word).name for word in line]
    present = [n for n in archives if known.library and re.fullmatch(known.library, n)]
    if present:
        return Undefined(LinkCause.ARCHIVE_ORDER, f"It belongs to {known.home}; {present[0]} is on "
                     "the link line, but too early or without that member.", known.fix)  # fmt: skip
    return Undefined(known.kind, f"It belongs to {known.home}, and nothing on the link line "
                     "defines it.", known.fix)  # fmt: skip


@dataclass(frozen=True)
class _Advice:
    symbols: re.Pattern[str]
    library: str  # a regular expression for the archive's file name; "" when there is none
    home: str  # the archive that has them, who makes it
    fix: str
    kind: LinkCause  # when no such archive is on the link line
    gnu: bool  # the library is of GNU's toolchain, and the fix is for its drivers


def _advice(
    symbols: str, library: str, home: str, fix: str, kind: LinkCause | None = None,
    *, gnu: bool = False,
) -> _Advice:  # fmt: skip
    usual = LinkCause.LIBRARY_NOT_LINKED if library else LinkCause.NO_DEFINITION
    return _Advice(re.compile(symbols), library, home, fix, kind or usual, gnu)


_IN_ORDER = ("gnu", "gold")  # linkers that read an archive once, from left to right
_NOT_GNU = ("armlink", "iar", "apple", "msvc", "ti")
_VERSIONED = re.compile(r"@{1,2}(?P<library>[A-Z]\w*?)_(?P<version>\d[\d.]*)$")


def _newer(version: re.Match[str], uses: Sequence[CodePlace]) -> Undefined:
    """``symbol@GLIBC_2.38``: no source is missing, a library on the line is too new."""
    user = uses[0].object if uses and uses[0].object else "What needs it"
    needs = f"{version['library']} {version['version']}"
    return Undefined(
        LinkCause.NEWER_LIBRARY,
        f"{user} was linked against {needs}, and the one that is found here is older.",
        f"Take a build of {user} for this system, or link against {needs} or newer.",
    )


_KNOWN = (
    _advice(r"^arm_ethos_io_memcpy$", r"libexecutorch_delegate_ethos_u\.a",
            "the Ethos-U backend's overridable copy hook; its weak default is in a source file of "
            "its own in the backend",
            "Add the file with the weak default of arm_ethos_io_memcpy to the Ethos-U backend's "
            "sources in this build, or define arm_ethos_io_memcpy in the application.",
            LinkCause.WEAK_DEFAULT_NOT_COMPILED),
    _advice(r"^et_pal_\w+", r"libexecutorch_core\.a|libexecutorch\.a",
            "ExecuTorch's platform layer (weak defaults in libexecutorch_core)",
            "Link libexecutorch_core after everything that uses it, or define the et_pal function "
            "in the application."),
    _advice(r"^executorch::(?:runtime|ET_RUNTIME)|BoxedEvalueList|torch::executor::Method\b"
            r"|^executorch::runtime::",
            r"libexecutorch_core\.a|libexecutorch\.a", "libexecutorch_core",
            "Put libexecutorch_core.a after the archives that use it, those under "
            "--whole-archive included; the linker reads an archive once, from left to right."),
    _advice(r"^executorch::extension::", r"libextension_\w+\.a", "an ExecuTorch extension library",
            "Link the ExecuTorch extension library that the name belongs to."),
    _advice(r"^torch::executor::(?:native|function)", r"lib(?:portable|optimized)\w*\.a",
            "a kernel library of ExecuTorch", "Link the kernel library (portable_kernels)."),
    _advice(r"^(?:cortex_m::|arm_cortex_m)", r"libcortex_m\w*\.a", "ExecuTorch's Cortex-M kernels",
            "Link the Cortex-M kernel library, under --whole-archive where it registers itself."),
    _advice(r"^arm_(?:convolve|depthwise|fully_connected|softmax|elementwise|nn_|avgpool|max_pool"
            r"|transpose|pad|lstm|svdf|concatenation|batch_matmul|minimum|maximum)\w*",
            r"libcmsis[-_]nn\.a", "CMSIS-NN", "Link CMSIS-NN after the kernels that call it."),
    _advice(r"^(?:ethosu_(?!target)\w+|ETHOSU_PMU_\w+)$", r"libethosu_core_driver\.a",
            "the Ethos-U core driver", "Link libethosu_core_driver.a after the Ethos-U backend."),
    _advice(r"^EthosU::", r"libethosu\.(?:a|so)", "the Ethos-U driver library for Linux",
            "Link libethosu after what uses it."),
    _advice(r"^HAL_\w+", "", "STM32's HAL", "Compile the stm32..._hal_*.c of that peripheral, and "
            "enable its HAL_..._MODULE_ENABLED in stm32..._hal_conf.h."),
    _advice(r"^nrfx_\w+", "", "Nordic's nrfx drivers", "Enable the driver: its CONFIG_NRFX_ option "
            "in Zephyr, its NRFX_..._ENABLED elsewhere."),
    _advice(r"^Driver_[A-Z]\w+", "", "a CMSIS-Driver", "Add the CMSIS-Driver component that has "
            "this instance, and enable the instance in RTE_Device.h."),
    _advice(r"^ethosu_target\w+", r"libethosu_target\w*\.a", "the Ethos-U core platform",
            "Link the core platform's target library."),
    _advice(r"^tflite::", r"lib(?:tflm|tensorflow-microlite)\.a", "TensorFlow Lite Micro",
            "Link the TensorFlow Lite Micro library after the application."),
    _advice(r"^__device_dts_ord_\d+", "", "a Zephyr device: nothing was built for its devicetree "
            "node", "Enable the node (status = \"okay\") and the Kconfig option of its driver; "
            "devicetree_generated.h in the build directory says which node the number is."),
    _advice(r"^z_(?:impl|mrsh|vrfy)_\w+", "", "the implementation of a Zephyr system call",
            "Enable the Kconfig option of the subsystem that implements the system call."),
    _advice(r"^(?:__gxx_personality_v0|_Unwind_\w+|__cxa_(?:begin_catch|end_catch|throw|rethrow"
            r"|end_cleanup|allocate_exception)|__aeabi_unwind_cpp_pr\d)$",
            r"lib(?:stdc\+\+|supc\+\+|gcc)\w*\.a",
            "the C++ exception runtime", "Compile with -fno-exceptions, or link with g++ so that "
            "libstdc++ and libgcc are there.",
            gnu=True),
    _advice(r"^(?:operator (?:new|delete)|vtable for __cxxabiv1::|std::|__cxa_\w+|_Zn[wa]|_Zd[la]"
            r"|__dso_handle)", r"lib(?:stdc\+\+|supc\+\+)\w*\.a", "the C++ runtime library",
            "Link with g++ in place of gcc, or add -lstdc++.",
            gnu=True),
    _advice(r"^(?:_sbrk|_write|_read|_close|_lseek|_fstat|_isatty|_exit|_kill|_getpid|_open"
            r"|_gettimeofday|_times|_unlink|_link|_stat|_fork|_wait|_execve)$",
            r"lib(?:nosys|rdimon)\.a",
            "newlib's system calls", "Link with --specs=nosys.specs or --specs=rdimon.specs, or "
            "define the system calls.",
            gnu=True),
    _advice(r"^(?:_sys_\w+|_ttywrch|__use_no_semihosting\w*)$", "",
            "the semihosting functions of Arm's C library, which __use_no_semihosting forbids",
            "Define the function for this board (retarget it), or take __use_no_semihosting out."),
    _advice(r"^_{0,2}(?:[se](?:text|data|bss|rodata|stack)|sidata|estack|end|(?:bss|data)_(?:start|end)"
            r"_{0,2}|(?:Stack|Heap)(?:Top|Limit|Base)|initial_sp|heap_(?:base|limit|start|end)"
            r"|copy_table_(?:start|end)_{0,2}|zero_table_(?:start|end)_{0,2}"
            r"|[a-z_]+_(?:ram|rom)_(?:start|end|size))$", "",
            "the linker script or scatter file, which defines it as an address",
            "Link with the script of this board, or define the symbol in the script that is used "
            "(armlink takes Image$$ names in its place)."),
    _advice(r"^__atomic_\w+|^__sync_\w+", r"libatomic\.a", "libatomic", "Add -latomic, or provide "
            "the functions: this core has no such instructions.",
            gnu=True),
    _advice(r"^(?:sinf?|cosf?|tanf?|expf?|logf?|log10f?|log2f?|powf?|sqrtf?|tanhf?|roundf?|floorf?"
            r"|ceilf?|fmodf?|fabsf?|lrintf?|nearbyintf?|truncf?|erff?|exp2f?)$", r"libm\w*\.a",
            "the mathematics library", "Add -lm after the objects that use it.",
            gnu=True),
    _advice(r"^__aeabi_\w+|^__(?:u?div|u?mod|mul|ashl|lshr|add|sub)\w+[sd]i3$", r"libgcc\.a",
            "the compiler's helper library", "Link with the compiler driver, or add -lgcc last.",
            gnu=True),
    _advice(r"^(?:malloc|free|calloc|realloc|printf|puts|memcpy|memset|memmove|memcmp|strlen|strcmp"
            r"|snprintf|vsnprintf|fprintf|abort|exit|_impure_ptr|__errno|__assert_func|fopen|fwrite"
            r"|fread|fclose|strncmp|strcpy|strncpy|strchr|strstr|atoi|qsort)$", r"libc\w*\.a",
            "the C library", "Link the C library (-lc) after everything that uses it; -nostdlib "
            "and -nodefaultlibs leave it out.",
            gnu=True),
    _advice(r"^main$", "", "the application", "The object that defines main is not linked: add the "
            "application's sources to the target."),
)  # fmt: skip

_VTABLE = re.compile(r"^(?:vtable|typeinfo|VTT) for (?P<class>.+)$")


def _known(symbol: str) -> _Advice | None:
    """What is generally known of a symbol, given as the linker prints it."""
    found = next((advice for advice in _KNOWN if advice.symbols.search(symbol)), None)
    vtable = _VTABLE.match(symbol)
    if found is None and vtable:
        return _advice(
            "^vtable", "", f"the file with the key function of class {vtable['class']}",
            f"Define and link the first non-inline virtual function of {vtable['class']}; the "
            "compiler emits its vtable there.",
        )  # fmt: skip
    return found
