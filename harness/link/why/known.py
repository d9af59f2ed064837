"""What is common knowledge of a symbol that nothing in sight defines.

Sources: ExecuTorch's CMake files (runtime, backends/arm, kernels), CMSIS-NN, ethos-u-core-driver,
TFLite Micro, Zephyr's devicetree and syscall generators and its lib/cpp and lib/libc, newlib,
GCC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.link.failure import CodePlace, LinkCause


@dataclass(frozen=True)
class Undefined:
    """Why, in sentences too, and what defines the symbol after all."""

    kind: LinkCause
    cause: str
    fix: str
    definitions: tuple[CodePlace, ...] = ()


def unknown(
    shown: str,
    uses: Sequence[CodePlace],
    line: Sequence[str] = (),
    linker: str = "gnu",
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


def in_zephyr(shown: str) -> Undefined | None:
    """What in a link of Zephyr's an option brings, or nothing does, where elsewhere a library of
    the toolchain has it."""
    known = next((advice for advice in _ZEPHYR if advice.symbols.search(shown)), None)
    if known is None:
        return None
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


_ZEPHYR = (
    _advice(
        r"^(?:operator (?:new|delete)|vtable for __cxxabiv1::|std::terminate|__cxa_\w+|_Zn[wa]"
        r"|_Zd[la]|__dso_handle|__aeabi_atexit)",
        "",
        "the C++ runtime, which Zephyr has with CONFIG_CPP alone",
        "Set CONFIG_CPP=y in prj.conf (and CONFIG_REQUIRES_FULL_LIBCPP=y for the standard "
        "library).",
        LinkCause.OPTION_NOT_SET,
    ),
    _advice(
        r"^(?:_sbrk|_write|_read|_close|_lseek|_fstat|_isatty|_exit|_kill|_getpid|_open"
        r"|_gettimeofday)$",
        "",
        "newlib's system calls, which Zephyr has with CONFIG_NEWLIB_LIBC alone",
        "Build what needs it for the C library of this build, or set CONFIG_NEWLIB_LIBC=y, or "
        "define it in the application.",
        LinkCause.OPTION_NOT_SET,
    ),
    _advice(
        r"^_?(?:times|unlink|link|stat|fork|wait|execve)$",
        "",
        "system calls of a C library that Zephyr does not have",
        "Define it in the application (to fail with ENOSYS), or take away what calls it.",
    ),
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
