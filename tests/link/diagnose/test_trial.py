"""A fix that can be tried is tried before it is told, and the message's own cause stays: small
bare-metal links, each explained from its log and from its build directory."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.link.diagnose.explain import Explanation, explain
from tests.link.diagnose.test_causes import needs_gcc

_MACHINE = "-mcpu=cortex-m55 -mthumb -mfloat-abi=hard"
_CMAKE = """\
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
    options: str = f"{_MACHINE} -nostdlib"
    libraries: str = ""
    not_told: str = "It was never told."


CASES = {
    "system calls of newlib": Case(
        {"main.c": "#include <stdlib.h>\nchar *volatile p;\nint main(void) { p = malloc(3); }\n"},
        "newlib's system calls",
        "Tried: with --specs=nosys.specs the program links.",
        options=_MACHINE,
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
        f"Tried: with {_MACHINE} the program links.",
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
        "Take registry out of /DISCARD/ at",
        options=f"{_MACHINE} -nostdlib -T ${{CMAKE_SOURCE_DIR}}/app.ld",
    ),
    "a name that differs in capitals": Case(
        {
            "main.c": "int Scale(int);\nint main(void) { return Scale(1); }\n",
            "s.c": "int scale(int a) { return a; }\n",
        },
        "Scale is needed by",
        "Write scale in place of Scale",
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
        "sources": " ".join(n for n in case.files if not n.endswith((".h", ".ld"))),
        "machine": _MACHINE,
    }
    text = _CMAKE.format(**words, options=case.options, libraries=case.libraries)
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
    assert said.kind == found.kind
    assert case.in_fix in found.fix, found.fix
    assert case.not_told not in found.fix
    assert len(from_directory.failures) == 1, "messages of one cause are one failure"
