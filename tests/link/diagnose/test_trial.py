"""A fix that can be tried is tried before it is told, and the message's own cause stays: small
bare-metal links, each explained from its log and from its build directory."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.link.diagnose.explain import Explanation, explain
from harness.link.failure import FailureKind
from tests.link.diagnose.test_causes import needs_gcc

MACHINE = "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard"
CMAKE = """\
cmake_minimum_required(VERSION 3.20)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
project(tried C CXX)
add_compile_options({machine} -Os)
add_link_options({options} -nostartfiles -Wl,-e,main)
add_executable(app {sources})
target_link_libraries(app {libraries})
"""
_INLINE = "inline int clip(int v) { return v > 9 ? 9 : v; }\n"


@dataclass(frozen=True)
class Case:
    """``in_fix``: of the build directory's answer. ``both``: words of the cause in both answers."""

    files: Mapping[str, str]
    both: str
    in_fix: str
    options: str = f"{MACHINE} -nostdlib"
    libraries: str = ""
    in_archive: str = ""  # the source that is one of a library
    not_told: str = "It was never told."


CASES = {
    "system calls of newlib": Case(
        {"main.c": "#include <stdlib.h>\nchar *volatile p;\nint main(void) { p = malloc(3); }\n"},
        "newlib's system calls",
        "Tried: with --specs=nosys.specs the program links.",
        options=MACHINE,
        not_told="gloss",
    ),
    "a guarded static variable": Case(
        {
            "main.cpp": "struct R { R(); int v; };\nR::R() : v(3) {}\n"
            'extern "C" int main() { static R r; return r.v; }\n'
        },
        "static variable inside a C++ function",
        "Tried: with -fno-threadsafe-statics the program links.",
        not_told="Add -lstdc++",
    ),
    "no main, and CMake's probes have one": Case(
        {
            "main.c": "int app_main(void) { return 0; }\n",
            "e.c": "int main(void);\nint (*f)(void) = main;\n",
        },
        "belongs to the application",
        "add the application's sources",
        not_told="CompilerId",
    ),
    "a division": Case(
        {"main.c": "volatile long long a = 9, b = 2;\nint main(void) { return (int)(a / b); }\n"},
        "the compiler's helper library",
        "Tried: with -lgcc the program links.",
    ),
    "printf without a C library": Case(
        {"main.c": '#include <stdio.h>\nint main(void) { printf("%d", 3); return 0; }\n'},
        "belongs to the C library",
        "Tried: without -nostdlib and with --specs=nosys.specs the program links.",
    ),
    "an archive for another way to pass floats": Case(
        {
            "main.c": "float s(float);\nint main(void) { return (int)s(1.f); }\n",
            "s.c": "float s(float a) { return a * 2; }\n",
        },
        "s.c.obj",
        "Rebuild",
        libraries="-lgcc)\nset_source_files_properties(s.c PROPERTIES COMPILE_OPTIONS "
        "-mfloat-abi=soft",
    ),
    "a thread-local variable without a thread pointer": Case(
        {"main.c": "__thread int n;\nint main(void) { return n++; }\n"},
        "thread-local variables",
        "define __aeabi_read_tp",
        not_told="-lgcc",
    ),
    "an atomic that no library has": Case(
        {"main.c": "long long v;\nint main(void) { return (int)__atomic_fetch_add(&v, 1, 5); }\n"},
        "libatomic",
        "Provide the functions in the application",
        not_told="add -latomic",
    ),
    "a link that is called for another core": Case(
        {"main.c": '#include <stdlib.h>\nint main(void) { return (int)atof("1"); }\n'},
        "was built for another machine",
        f"Tried: with {MACHINE} the program links.",
        options="--specs=nosys.specs",
        not_told="Rebuild",
    ),
    "thread-local here, ordinary there": Case(
        {"main.c": "extern int n;\nint main(void) { return n; }\n", "n.c": "__thread int n;\n"},
        "thread-local in one of",
        "Declare n in one header",
    ),
    "inline as C99 has it": Case(
        {
            "main.c": '#include "clip.h"\nint (*volatile p)(int) = clip;\n'
            "int main(void) { return p(1); }\n",
            "clip.h": _INLINE,
        },
        "clip is needed by",
        "Write `static inline` in",
    ),
    "a header that defines it under a condition": Case(
        {
            "main.c": '#include "part.h"\nint main(void) { return part(1); }\n',
            "part.h": "int part(int);\n#ifdef PART_HERE\nint part(int a) { return a; }\n#endif\n",
        },
        "part is needed by",
        "Make `#ifdef PART_HERE` hold in one source file",
    ),
    "an instance of a template": Case(
        {
            "main.cpp": "template <class T> int f(T);\nint main() { return f<float>(2); }\n",
            "f.cpp": "template <class T> int f(T a) { return (int)a; }\n"
            "template int f<int>(int);\n",
        },
        "int f<float>(float) is needed by",
        "Add `template` with the declaration of int f<float>(float)",
    ),
    "a section that the script throws away": Case(
        {
            "main.c": '__attribute__((section("registry"))) int n = 1;\n'
            "int main(void) { return *(volatile int *)&n; }\n",
            "app.ld": "SECTIONS { .text : { *(.text*) } .data : { *(.data*) }\n"
            "  /DISCARD/ : { *(registry) *(.ARM.*) } }\n",
        },
        "throws away",
        "Tried: with registry : { KEEP(*(registry)) } the program links.",
        options=f"{MACHINE} -nostdlib -T ${{CMAKE_SOURCE_DIR}}/app.ld",
    ),
    "a warning that is fatal, and what names it": Case(
        {
            "main.c": "int volatile n = 1;\nint main(void) { return n; }\n",
            "app.ld": "SECTIONS { .all : { *(.text*) *(.data*) *(.bss*) } }\n",
        },
        "takes warnings for errors",
        "Tried: with -Wl,--no-warn-rwx-segments the program links.",
        options=f"{MACHINE} -nostdlib -Wl,--fatal-warnings,--warn-rwx-segments "
        "-T ${CMAKE_SOURCE_DIR}/app.ld",
    ),
    "another warning that is fatal": Case(
        {
            "main.c": "void gets_(void);\nint main(void) { gets_(); return 0; }\n",
            "g.c": 'char w[] __attribute__((section(".gnu.warning.gets_"))) = "never use gets_";\n'
            "void gets_(void) {}\n",
        },
        "takes warnings for errors",
        "Tried: with -Wl,--no-fatal-warnings the program links.",
        options=f"{MACHINE} -nostdlib -Wl,--fatal-warnings",
    ),
    "an entry that nothing defines": Case(
        {"main.c": "int main(void) { return 0; }\n"},
        "is to begin at Reset_Handler",
        "Correct the name of the entry",
        options=f"{MACHINE} -nostdlib -Wl,--fatal-warnings",
        libraries="-Wl,-e,Reset_Handler",
    ),
    "a section with a C name that --gc-sections takes": Case(
        {
            "main.c": "extern int __start_kernels, __stop_kernels;\n"
            "int main(void) { return &__stop_kernels - &__start_kernels; }\n",
            "k.c": '__attribute__((section("kernels"), used)) static int n = 1;\n',
        },
        "--gc-sections took it",
        "Tried: with -Wl,-z,nostart-stop-gc the program links.",
        options=f"{MACHINE} -nostdlib -Wl,--gc-sections -Wl,-z,start-stop-gc",
    ),
    "a registry that is empty without KEEP": Case(
        {
            "main.c": "int main(void) { return 0; }\n",
            "k.c": '__attribute__((section(".kernels"), used)) static int n = 1;\n',
            "app.ld": "SECTIONS { .text : { *(.text*) }\n"
            "  .registry : { kernels_begin = .; *(SORT(.kernels*)) kernels_end = .; } }\n"
            'ASSERT(kernels_end > kernels_begin, "no kernel is registered")\n',
        },
        "no kernel is registered",
        "Tried: with KEEP(*(SORT(.kernels*))) the program links.",
        options=f"{MACHINE} -nostdlib -Wl,--gc-sections -T ${{CMAKE_SOURCE_DIR}}/app.ld",
    ),
    "a registry whose archive is not linked whole": Case(
        {
            "main.c": "int main(void) { return 0; }\n",
            "k.c": '__attribute__((section(".kernels"), used)) static int n = 1;\n',
            "app.ld": "SECTIONS { .text : { *(.text*) } .registry : { *(.kernels) } }\n"
            'ASSERT(SIZEOF(.registry) >= 4, "no kernel is registered")\n',
        },
        "no kernel is registered",
        "-Wl,--whole-archive",
        options=f"{MACHINE} -nostdlib -Wl,--gc-sections -T ${{CMAKE_SOURCE_DIR}}/app.ld",
        in_archive="k.c",
    ),
    "a name that differs in capitals": Case(
        {
            "main.c": "int Scale(int);\nint main(void) { return Scale(1); }\n",
            "s.c": "int scale(int a) { return a; }\n",
        },
        "Scale is needed by",
        "Write scale instead of Scale",
    ),
}


@pytest.fixture(params=CASES)
def answers(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[Case, Explanation, Explanation]:
    """The case, and what its log and its build directory give."""
    case = CASES[request.param]
    source, build = tmp_path / "source", tmp_path / "source" / "build"
    source.mkdir()
    words = {
        "sources": " ".join(
            n for n in case.files if not n.endswith((".h", ".ld")) and n != case.in_archive
        ),
        "machine": MACHINE,
    }
    libraries = f"archived {case.libraries}" if case.in_archive else case.libraries
    text = CMAKE.format(**words, options=case.options, libraries=libraries)
    if case.in_archive:
        text += f"add_library(archived STATIC {case.in_archive})\n"
    for name, content in {"CMakeLists.txt": text, **case.files}.items():
        (source / name).write_text(content)
    subprocess.run(
        ["cmake", "-G", "Ninja", "-S", source, "-B", build], check=True, capture_output=True
    )
    done = subprocess.run(["cmake", "--build", build], capture_output=True, text=True, check=False)
    assert done.returncode != 0, done.stdout
    log = tmp_path / "build.log"
    log.write_text(done.stdout.replace(str(source), "/elsewhere"))
    return case, explain(log, lambda _: None), explain(build, lambda _: None)


@needs_gcc
def test_log_and_directory_do_not_contradict_each_other(
    answers: tuple[Case, Explanation, Explanation],
) -> None:
    case, from_log, from_directory = answers
    said, found = from_log.failures[0], from_directory.failures[0]
    assert case.both in said.cause, said.cause
    assert case.both in found.cause, found.cause
    assert said.kind in (found.kind, FailureKind.UNKNOWN)  # only the script shows an ASSERT
    assert case.in_fix in found.fix, found.fix
    assert case.not_told not in found.fix
    assert len(from_directory.failures) == 1, "messages of one cause are one failure"
