"""Small bare-metal projects, each with one link failure planted and the edit that removes it.

The shape is that of an ExecuTorch runner: an application, kernels that register themselves, a
backend with an overridable copy hook, a core library, a model blob and a linker script.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Files = Mapping[str, str]

_CMAKE = """\
cmake_minimum_required(VERSION 3.20)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
project(planted C CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-mcpu=cortex-m55 -mthumb -mfloat-abi=${ABI} -Os -g -ffunction-sections
                    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
add_library(core STATIC core.c)
add_library(kernels STATIC add.c mul.c)
add_library(backend STATIC ${BACKEND})
add_executable(runner.elf ${APP})
target_link_options(runner.elf PRIVATE -mcpu=cortex-m55 -mthumb -mfloat-abi=${ABI} -nostdlib
                    -Wl,--print-memory-usage -Wl,-e,main -T ${CMAKE_SOURCE_DIR}/runner.ld)
target_link_libraries(runner.elf PRIVATE ${LIBS})
"""
_SETTINGS = {
    "ABI": "hard",
    "BACKEND": "ethos.c io_default.c",
    "APP": "main.cpp log.c model.c",
    "LIBS": "-Wl,--whole-archive kernels -Wl,--no-whole-archive backend core",
}
_FILES = {
    "runner.ld": """\
MEMORY { FLASH (rx) : ORIGIN = 0x10000000, LENGTH = 64K
         RAM (rw) : ORIGIN = 0x30000000, LENGTH = 64K
         DDR (rw) : ORIGIN = 0x70000000, LENGTH = 16M }
SECTIONS {
  .text : { *(.text*) *(.rodata*) } >FLASH
  .ARM.exidx : { *(.ARM.exidx*) } >FLASH
  .data : { *(.data*) } >RAM AT>FLASH
  .bss : { *(.bss*) *(COMMON) } >RAM
}
""",
    "core.c": "int core_allocate(int bytes) { return bytes + 4; }\n",
    "add.c": "int core_allocate(int);\nint kernel_add(int a) { return core_allocate(a); }\n",
    "mul.c": "int kernel_mul(int a) { return a * 3; }\n",
    "ethos.c": """\
void arm_ethos_io_memcpy(void *, const void *, unsigned);
int core_allocate(int);
int ethos_execute(char *to, const char *from) {
  arm_ethos_io_memcpy(to, from, 16);
  return core_allocate(1);
}
""",
    "io_default.c": """\
__attribute__((weak)) void arm_ethos_io_memcpy(void *to, const void *from, unsigned size) {
  for (unsigned i = 0; i < size; ++i) ((char *)to)[i] = ((const char *)from)[i];
}
""",
    "log.c": "int level;\nint log_line(int a) { return a + level; }\n",
    "model.c": "const char model_pte[512] = {1};\n",
    "main.cpp": """\
extern "C" {
int kernel_add(int);
int ethos_execute(char *, const char *);
int log_line(int);
extern const char model_pte[];
char output[64];
int main() { return kernel_add(ethos_execute(output, model_pte)) + log_line(3); }
}
""",
}


@dataclass(frozen=True)
class Plant:
    """``wrong`` files and ``settings`` break the project; ``right`` is the fix."""

    name: str
    kind: str
    subject: str  # the symbol or region
    cause_kind: str | None
    in_cause: tuple[str, ...]
    in_fix: tuple[str, ...]
    message: str  # in what the linker says, of the original and of the reduced link
    wrong: Files = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    right: Files = field(default_factory=dict)
    right_settings: Mapping[str, str] = field(default_factory=dict)
    foreign: bool = False  # libvendor.a was built by the host's compiler


_VENDOR = "int vendor_scale(int a) { return a * 7; }\n"
_CALL_VENDOR = (
    _FILES["main.cpp"]
    .replace("int log_line(int);", "int log_line(int); int vendor_scale(int);")
    .replace("log_line(3)", "vendor_scale(3)")
)
_UNGUARDED = "int log_line(int);\n" + _FILES["main.cpp"].replace("int log_line(int);\n", "")
_SEALED = (
    '__attribute__((visibility("hidden"))) int vendor_scale(int a) { return a * 7; }\n'
    "int vendor_version(void) { return vendor_scale(1); }\n"
)
_CALL_TUNE = (
    _FILES["main.cpp"]
    .replace('extern "C" {', 'int tune(int);\nextern "C" {', 1)
    .replace("log_line(3)", "tune(3)")
)
_FLOAT = "float scale(float a) { return a * 1.5f; }\n"
_CALL_FLOAT = (
    _FILES["main.cpp"]
    .replace("int log_line(int);", "float scale(float);")
    .replace("log_line(3)", "(int)scale(3.0f)")
)

PLANTS = (
    Plant(
        "missing_weak_default",
        "undefined_symbol",
        "arm_ethos_io_memcpy",
        "weak_default_not_compiled",
        ("libbackend.a(ethos.c.obj)", "ethos_execute", "io_default.c:1"),
        ("Add io_default.c",),
        "undefined reference to `arm_ethos_io_memcpy'",
        settings={"BACKEND": "ethos.c"},
        right_settings={"BACKEND": "ethos.c io_default.c"},
    ),
    Plant(
        "archive_order",
        "undefined_symbol",
        "core_allocate",
        "archive_order",
        ("libcore.a(core.c.obj)", "libcore.a stands", "libkernels.a (under --whole-archive)"),
        ("Move libcore.a after",),
        "undefined reference to `core_allocate'",
        settings={
            "LIBS": "core -Wl,--whole-archive kernels -Wl,--no-whole-archive",
            "APP": "main.cpp log.c model.c ethos.c io_default.c",
        },
        right_settings={"LIBS": "-Wl,--whole-archive kernels -Wl,--no-whole-archive core"},
        wrong={
            "ethos.c": _FILES["ethos.c"].replace("core_allocate(1)", "1").replace("int 1;", ""),
            "main.cpp": _FILES["main.cpp"],
        },
    ),
    Plant(
        "kernel_library_not_linked",
        "undefined_symbol",
        "kernel_add",
        "library_not_linked",
        ("libkernels.a(add.c.obj)", "main.cpp.obj", "function main"),
        ("Link libkernels.a",),
        "undefined reference to `kernel_add'",
        settings={"LIBS": "backend core"},
        right_settings={"LIBS": "kernels backend core"},
    ),
    Plant(
        "pte_in_orphan_section",
        "region_overflow",
        "RAM",
        "orphan_section",
        ("network_model_sec", "200000 bytes", "model.c.obj"),
        ("output section for network_model_sec",),
        "region `RAM' overflowed by",
        wrong={
            "model.c": '__attribute__((section("network_model_sec"))) '
            "char model_pte[200000] = {1};\n"
        },
        right={
            "runner.ld": _FILES["runner.ld"].replace(
                "  .bss :", "  network_model_sec : { *(network_model_sec) } >DDR\n  .bss :"
            )
        },
    ),
    Plant(
        "archive_of_another_architecture",
        "wrong_architecture",
        "libvendor.a",
        None,
        ("x86-64", "Arm (32 bit)"),
        ("Rebuild", "libvendor.a"),
        "file format not recognized",
        wrong={"main.cpp": _CALL_VENDOR, "vendor.c": _VENDOR},
        foreign=True,
        settings={"LIBS": _SETTINGS["LIBS"] + " ${CMAKE_SOURCE_DIR}/libvendor.a"},
    ),
    Plant(
        None,
        "duplicate_symbol",
        "log_line",
        None,
        ("log.c.obj", "trace.c.obj"),
        ("Keep one definition of log_line",),
        "multiple definition of `log_line'",
        wrong={"trace.c": "int log_line(int a) { return a; }\n"},
        settings={"APP": "main.cpp log.c trace.c model.c"},
        right={"trace.c": "__attribute__((weak)) int log_line(int a) { return a; }\n"},
    ),
    Plant(
        "whole_archive_twice",
        "duplicate_symbol",
        "kernel_",
        "linked_twice",
        ("libkernels.a", "twice under --whole-archive"),
        ("libkernels.a once",),
        "multiple definition of `kernel_",
        settings={
            "LIBS": "-Wl,--whole-archive kernels ${CMAKE_BINARY_DIR}/libkernels.a "
            "-Wl,--no-whole-archive backend core"
        },
        right_settings={"LIBS": _SETTINGS["LIBS"]},
    ),
    Plant(
        "c_against_cpp_linkage",
        "undefined_symbol",
        "log_line(int)",
        "language_linkage",
        ("log.c.obj", "C linkage"),
        ('extern "C"',),
        "undefined reference to `log_line(int)'",
        wrong={"main.cpp": _UNGUARDED},
        right={"main.cpp": _FILES["main.cpp"]},
    ),
    Plant(
        "same_name_other_parameters",
        "undefined_symbol",
        "tune(int)",
        "signature",
        ("tune.cpp.obj", "defines tune(float)", "function main"),
        ("declaration and definition agree", "tune(int) is called", "tune(float) is defined"),
        "undefined reference to `tune(int)'",
        wrong={"main.cpp": _CALL_TUNE, "tune.cpp": "int tune(float a) { return (int)a; }\n"},
        settings={"APP": "main.cpp log.c model.c tune.cpp"},
        right={"tune.cpp": "int tune(int a) { return a; }\n"},
    ),
    Plant(
        "static_definition",
        "undefined_symbol",
        "log_line",
        "static",
        ("log.c.obj", "static", "function main"),
        ("Remove `static`", "log_line"),
        "undefined reference to `log_line'",
        wrong={"log.c": "__attribute__((used)) static int log_line(int a) { return a; }\n"},
        right={"log.c": _FILES["log.c"]},
    ),
    Plant(
        "hidden_and_made_local",
        "undefined_symbol",
        "vendor_scale",
        "hidden",
        ("sealed.o", "hidden", "function main"),
        ("default visibility", "vendor_scale"),
        "undefined reference to `vendor_scale'",
        wrong={"main.cpp": _CALL_VENDOR, "sealed.c": _SEALED},
        settings={"APP": "main.cpp log.c model.c ${CMAKE_SOURCE_DIR}/sealed.o"},
        right={"sealed.c": _SEALED.replace("hidden", "default")},
    ),
    Plant(
        "wrapped_without_a_wrapper",
        "undefined_symbol",
        "__wrap_log_line",
        "wrap",
        ("--wrap=log_line", "which sends every call of log_line to it", "function main"),
        ("Define __wrap_log_line", "remove --wrap=log_line"),
        "undefined reference to `__wrap_log_line'",
        settings={"LIBS": "-Wl,--wrap=log_line " + _SETTINGS["LIBS"]},
        right_settings={"LIBS": _SETTINGS["LIBS"]},
    ),
    Plant(
        "soft_against_hard_float",
        "wrong_architecture",
        "scale.o",
        None,
        ("soft (core registers)", "hard (VFP registers)"),
        ("Rebuild", "-mfloat-abi"),
        "uses VFP register arguments",
        wrong={"main.cpp": _CALL_FLOAT, "scale.c": _FLOAT},
        settings={"APP": "main.cpp log.c model.c ${CMAKE_SOURCE_DIR}/scale.o"},
    ),
)


@dataclass(frozen=True)
class Project:
    """Its folders may have been another plant's: nothing of that one stays, but CMake looks for the
    compilers only once."""

    plant: Plant
    source: Path
    build: Path

    def configure_and_build(self, *, fixed: bool) -> subprocess.CompletedProcess[str]:
        plant = self.plant
        files = {**_FILES, **plant.wrong, **(plant.right if fixed else {})}
        settings = {**_SETTINGS, **plant.settings, **(plant.right_settings if fixed else {})}
        lists = _CMAKE
        for name, value in settings.items():
            lists = lists.replace("${" + name + "}", value)
        self._write({**files, "CMakeLists.txt": lists})
        self._prebuilt(fixed)
        _run(["cmake", "-G", "Ninja", "-S", str(self.source), "-B", str(self.build)], check=True)
        done = _run(["ninja", "-C", str(self.build), "-j2"], check=False)
        self._clean()
        return done

    def _write(self, files: Mapping[str, str]) -> None:
        self.source.mkdir(exist_ok=True)
        for file in self.source.iterdir():
            if file.name not in files:
                file.unlink()
        for name, text in files.items():
            file = self.source / name
            if not file.is_file() or file.read_text() != text:
                file.write_text(text)

    def _clean(self) -> None:
        """Removes what the build before made and this one does not."""
        _run(["ninja", "-C", str(self.build), "-t", "cleandead"], check=True)

    def _prebuilt(self, fixed: bool) -> None:
        """What somebody else compiled, for this target or for another."""
        directory = self.source
        arm = ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", "-Os", "-c"]
        if (directory / "vendor.c").is_file():
            compiler = arm if fixed or not self.plant.foreign else ["gcc", "-c"]
            _run([*compiler, "vendor.c", "-o", "vendor.o"], cwd=directory, check=True)
            (directory / "libvendor.a").unlink(missing_ok=True)
            _run(["ar", "rcs", "libvendor.a", "vendor.o"], cwd=directory, check=True)
        if (directory / "sealed.c").is_file():
            _run([*arm, "sealed.c", "-o", "sealed.o"], cwd=directory, check=True)
            seal = ["arm-none-eabi-objcopy", "--localize-hidden", "sealed.o"]
            _run(seal, cwd=directory, check=True)
        if (directory / "scale.c").is_file():
            abi = "hard" if fixed else "soft"
            _run(
                [*arm, f"-mfloat-abi={abi}", "scale.c", "-o", "scale.o"], cwd=directory, check=True
            )


def _run(
    argv: list[str], *, check: bool, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=check)
