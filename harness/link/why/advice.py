"""Symbols whose home is common knowledge, for logs that come without their objects.

Each entry: symbols, the archive that has them, who makes it, what to do. Sources: ExecuTorch's
CMake files (runtime, backends/arm, kernels), ethos-u-core-driver, CMSIS-NN, TFLite Micro, Zephyr's
devicetree and syscall generators, newlib and GCC documentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    symbols: re.Pattern[str]
    library: str  # a regular expression for the archive's file name; "" when there is none
    home: str
    fix: str


def _advice(symbols: str, library: str, home: str, fix: str) -> Advice:
    return Advice(re.compile(symbols), library, home, fix)


KNOWN = (
    _advice(r"^arm_ethos_io_memcpy$", r"libexecutorch_delegate_ethos_u\.a",
            "the Ethos-U backend's overridable copy hook; its weak default is in a source file of "
            "its own in the backend",
            "Add the file with the weak default of arm_ethos_io_memcpy to the Ethos-U backend's "
            "sources in this build, or define arm_ethos_io_memcpy in the application."),
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
    _advice(r"^ethosu_(?!target)\w+", r"libethosu_core_driver\.a", "the Ethos-U core driver",
            "Link libethosu_core_driver.a after the Ethos-U backend."),
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
            "libstdc++ and libgcc are there."),
    _advice(r"^(?:operator (?:new|delete)|vtable for __cxxabiv1::|std::|__cxa_\w+|_Zn[wa]|_Zd[la]"
            r"|__dso_handle)", r"lib(?:stdc\+\+|supc\+\+)\w*\.a", "the C++ runtime library",
            "Link with g++ in place of gcc, or add -lstdc++."),
    _advice(r"^(?:_sbrk|_write|_read|_close|_lseek|_fstat|_isatty|_exit|_kill|_getpid|_open"
            r"|_gettimeofday|_times|_unlink|_link|_stat|_fork|_wait|_execve)$",
            r"lib(?:nosys|rdimon)\.a",
            "newlib's system calls", "Link with --specs=nosys.specs or --specs=rdimon.specs, or "
            "define the system calls."),
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
            "the functions: this core has no such instructions."),
    _advice(r"^(?:sinf?|cosf?|tanf?|expf?|logf?|log10f?|log2f?|powf?|sqrtf?|tanhf?|roundf?|floorf?"
            r"|ceilf?|fmodf?|fabsf?|lrintf?|nearbyintf?|truncf?|erff?|exp2f?)$", r"libm\w*\.a",
            "the mathematics library", "Add -lm after the objects that use it."),
    _advice(r"^__aeabi_\w+|^__(?:u?div|u?mod|mul|ashl|lshr|add|sub)\w+[sd]i3$", r"libgcc\.a",
            "the compiler's helper library", "Link with the compiler driver, or add -lgcc last."),
    _advice(r"^(?:malloc|free|calloc|realloc|printf|puts|memcpy|memset|memmove|memcmp|strlen|strcmp"
            r"|snprintf|vsnprintf|fprintf|abort|exit|_impure_ptr|__errno|__assert_func|fopen|fwrite"
            r"|fread|fclose|strncmp|strcpy|strncpy|strchr|strstr|atoi|qsort)$", r"libc\w*\.a",
            "the C library", "Link the C library (-lc) after everything that uses it; -nostdlib "
            "and -nodefaultlibs leave it out."),
    _advice(r"^main$", "", "the application", "The object that defines main is not linked: add the "
            "application's sources to the target."),
)  # fmt: skip

_VTABLE = re.compile(r"^(?:vtable|typeinfo|VTT) for (?P<class>.+)$")


def known(symbol: str) -> Advice | None:
    """What is generally known of a symbol, given as the linker prints it."""
    found = next((advice for advice in KNOWN if advice.symbols.search(symbol)), None)
    vtable = _VTABLE.match(symbol)
    if found is None and vtable:
        return Advice(
            re.compile("^vtable"), "", f"the file with the key function of class {vtable['class']}",
            f"Define and link the first non-inline virtual function of {vtable['class']}; the "
            "compiler emits its vtable there.",
        )  # fmt: skip
    return found
