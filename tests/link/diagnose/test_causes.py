"""Protects the causes of failures that are not about an undefined symbol: the ABI that differs,
what fills a region, and that the facts behind a sentence are there as data."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from harness.formats.elf import read_elf
from harness.formats.linker_map import Contributor, Orphan, parse_map
from harness.link.build import failing_link
from harness.link.command import LinkerCall
from harness.link.diagnose.causes import (
    attributes,
    difference,
    explain_overflow,
)
from harness.link.diagnose.explain import diagnose, explain_failure, explain_lines
from harness.link.diagnose.tree import Tree
from harness.link.failure import Failure, FailureKind, LinkCause
from harness.link.index import LinkIndex
from harness.link.log.lines import lines_of
from harness.link.log.parse import parse

NO_FILES = LinkIndex(LinkerCall(("ld",), Path("/")), ())  # as of a log alone
needs_gcc = pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs the compiler")

MAP = """\
Memory Configuration

Name             Origin             Length             Attributes
FLASH            0x0000000000000000 0x0000000000001000 xr
RAM              0x0000000020000000 0x0000000000000100 rw
*default*        0x0000000000000000 0xffffffffffffffff

Linker script and memory map

.text           0x0000000000000000       0x40
 .text          0x0000000000000000       0x40 a.o

model_sec       0x0000000020000000      0x200 load address 0x0000000000000040
 model_sec      0x0000000020000000      0x200 model.o
"""


def test_the_float_abi_differs(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int entry(int a) { return a; }\n")
    for name in ("hard", "soft"):
        subprocess.run(
            [
                "arm-none-eabi-gcc",
                "-mcpu=cortex-m55",
                f"-mfloat-abi={name}",
                "-c",
                "a.c",
                "-o",
                f"{name}.o",
            ],
            cwd=tmp_path,
            check=True,
        )
    hard, soft = (attributes(read_elf(tmp_path / f"{n}.o")) for n in ("hard", "soft"))
    assert difference(hard, soft) == (
        "how float arguments are passed",
        "hard (VFP registers)",
        "soft (core registers)",
    )
    assert difference(hard, hard) is None


def test_of_two_that_differ_the_one_that_the_linker_names_is_wrong(tmp_path: Path) -> None:
    """And not the other one, though both values are there once."""
    (tmp_path / "a.c").write_text("int entry(int a) { return a; }\n")
    for name, compiler in (("main", "arm-none-eabi-gcc"), ("vendor", "gcc")):
        command = [compiler, "-c", "a.c", "-o", f"{name}.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
    link = ["arm-none-eabi-gcc", "-nostdlib", "main.o", "vendor.o", "-o", "x.elf"]
    done = subprocess.run(link, cwd=tmp_path, check=False, capture_output=True, text=True)
    log = lines_of(f"{' '.join(link)}\n{done.stderr}")
    (failure, *_) = explain_lines(log, tmp_path / "log", lambda _: None).failures
    assert failure.cause.startswith("vendor.o is built for x86-64")


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_has_cause_and_fix(kind: FailureKind) -> None:
    explained = explain_failure(Failure(kind, "gnu", 1, "ld: it failed"), NO_FILES)
    assert explained.cause
    assert explained.fix


def test_what_fills_a_region_is_there_as_data() -> None:
    failure = Failure(FailureKind.REGION_OVERFLOW, "gnu", 1, "", region="RAM", bytes=256)
    explained = explain_overflow(failure, parse_map(MAP), ["SECTIONS { .text : { *(.text) } }"])
    assert explained.contributors == (Contributor("model_sec", "model.o", 0x200, "model_sec"),)
    assert explained.orphans == (Orphan("model_sec", 0x200, "RAM", "FLASH", ("model.o",)),)
    assert explained.cause_kind is LinkCause.ORPHAN_SECTION
    assert "model_sec (512 bytes from model.o)" in explained.cause
    summary = json.loads(json.dumps(asdict(explained)))
    assert summary["orphans"] == [
        {
            "section": "model_sec",
            "bytes": 512,
            "region": "RAM",
            "load_region": "FLASH",
            "files": ["model.o"],
        },
    ]
    assert summary["contributors"] == [
        {"section": "model_sec", "file": "model.o", "bytes": 512, "output_section": "model_sec"},
    ]


def test_what_has_no_room_anywhere_shrinks() -> None:
    """RAM has some, but FLASH is only read: no place for what is written."""
    failure = Failure(FailureKind.REGION_OVERFLOW, "gnu", 1, "", region="RAM", bytes=256)
    explained = explain_overflow(failure, parse_map(MAP), ["SECTIONS { .x : { *(model_sec) } }"])
    assert explained.fix.startswith(
        "Make model_sec of model.o (512 bytes) smaller by 256 bytes, or the LENGTH of RAM"
    )


def _advice(text: str) -> Failure:
    """What is said of a log's only failure, without its objects."""
    (failure,) = parse(text + "\n").failures
    return explain_failure(failure, NO_FILES)


RELOCATION = "a.o: relocation truncated to fit: %s against symbol `far' defined in .text in f.o"
# Logs whose published kin got advice that was wrong: what is said now, and what no more.
ADVICE = {
    "the size of all that found no place is not what is missing": (
        "Error: L6407E: Sections of aggregate size 0x10 bytes could not fit into .ANY selector(s).",
        "16 bytes of sections fit into no",
        "by 16 bytes",
    ),
    "armlink has no -lgcc": (
        "Error: L6218E: Undefined symbol __aeabi_uldivmod (referred from a.o).",
        "the compiler's helper library",
        "-lgcc",
    ),
    "nobody builds libgcc_s": (
        "ld: cannot find -lgcc_s",
        "none for the options that it was called with",
        "Build -lgcc_s",
    ),
    "a versioned symbol lacks no source": (
        "ld: libfoo.so: undefined reference to `__isoc23_strtol@GLIBC_2.38'",
        "GLIBC 2.38, which its user was linked against",
        "Find the source",
    ),
    "the output is not rebuilt": (
        "ld: error: x.elf uses VFP register arguments, libvendor.a(y.o) does not",
        "Rebuild libvendor.a",
        "Rebuild x.elf",
    ),
    "the output is not rebuilt, whatever its name": (
        "ld: error: .fw.stage1 uses VFP register arguments, libvendor.a(y.o) does not",
        "Rebuild libvendor.a",
        "Rebuild .fw",
    ),
    "nobody rebuilds the compiler's libraries": (
        "ld: error: /opt/lib/libgcc.a(y.o) uses VFP register arguments, x.elf does not",
        "picks the library that fits",
        "Rebuild",
    ),
    "x86-64 has no -mlong-calls": (RELOCATION % "R_X86_64_PC32", "-mcmodel=medium", "long-calls"),
    "RISC-V has no -mlong-calls": (RELOCATION % "R_RISCV_HI20", "-mcmodel=medany", "long-calls"),
    "AArch64 has no -mlong-calls": (
        RELOCATION % "R_AARCH64_CALL26",
        "near each other",
        "long-calls",
    ),
    "Arm has": (RELOCATION % "R_ARM_THM_CALL", "-mlong-calls", "mcmodel"),
    "a 16-bit branch has none": (RELOCATION % "R_ARM_THM_JUMP11", "16-bit branch", "long-calls"),
    "the link may lack the options": (
        "ld: error: y.o uses VFP register arguments, x.elf does not\n"
        "ld: error: z.o uses VFP register arguments, x.elf does not",
        "Give the link the -mcpu, -mfpu and -mfloat-abi that y.o was compiled with",
        "z.o",
    ),
    "a merge that failed says no more": (
        "ld: failed to merge target specific data of file y.o",
        "call the link with the same -mcpu",
        "Rebuild y.o",
    ),
    "the size of enums has its own options": (
        "Error: L6242E: Cannot link object y.o as its attributes are incompatible with the image "
        "attributes.\n   ... packed-enum clashes with enum_is_int.\n"
        "Not enough information to list it.",
        "-fshort-enums",
        "Not enough information",
    ),
    "nobody builds crt0.o": (
        "ld: cannot find crt0.o: No such file or directory",
        "Install the C library",
        "Build crt0.o",
    ),
    "a folder in the way is no full disk": (
        "ld: cannot open output file app: Is a directory",
        "another name than app",
        "Free the disk",
    ),
    "a folder that is not there either": (
        "ld: cannot open output file out/x.elf: No such file or directory",
        "mkdir -p",
        "Free the disk",
    ),
    "the copy of .data begins behind": (
        "section .ARM.exidx LMA [0801a0f4,0801a0fb] overlaps section .data LMA [0801a0f4,0801a153]",
        "before the symbol that .data is loaded at",
        "another address",
    ),
    "one section grew into another": (
        "ld: section .info LMA [00001ff0,00001fff] overlaps section .data LMA [00001e60,0000202b]",
        "grown into the other",
        "loaded at (AT",
    ),
    "a location counter that goes back": (
        "ld: x.ld:4 cannot move location counter backwards (from 200012e0 to 20001000)",
        "smaller by 736 bytes",
        "another address or region",
    ),
    "a script is not built": (
        "ld: cannot open linker script file boards/mine.ld: No such file or directory",
        "Correct the path of boards/mine.ld",
        "Build",
    ),
    "a distance is no size": (
        "ld: a.elf section `.frames' will not fit in region `AXI'\n"
        "ld: region `AXI' overflowed by 402653184 bytes",
        "Place .frames at an address inside AXI",
        "-Os",
    ),
    "a licence has its limit": (
        "error: L6047U: The size of this image (47216 bytes) exceeds the maximum allowed for this "
        "version of the linker",
        "than the licence allows",
        "manual",
    ),
    "an old linker takes numbers": (
        "x.ld:25: nonconstant expression for length",
        "Write a number in x.ld:25",
        "must be an object",
    ),
    "regions that overlap are two": (
        "Error: L6221E: Execution region A with Execution range [0x1,0x20) overlaps with Execution "
        "region B with Execution range [0x10,0x30).",
        "A and B want the same addresses",
        "manual",
    ),
    "gold has its own words for the output": (
        "ld: error: y.a(z.o) uses VFP register arguments, output does not",
        "Give the link the -mcpu",
        "Rebuild y.a",
    ),
    "the index of unwinding stands alone": (
        "ld: .ARM.exidx has both ordered and unordered sections",
        "an output section of its own",
        "manual",
    ),
    "an object for one address": (
        "ld: a.o: relocation R_ARM_MOVW_ABS_NC against `x' can not be used when making a "
        "shared object; "
        "recompile with -fPIC",
        "-no-pie",
        "manual",
    ),
    "the archiver has no plugin": (
        "arm-none-eabi-ar: a.o: plugin needed to handle lto object",
        "gcc-ar and gcc-ranlib",
        "not ld",
    ),
    "no room, as a script's author says it": (
        "rust-lld: error: ERROR(rt): The .text section must be placed inside the FLASH memory.",
        "make the program smaller",
        "Satisfy",
    ),
    "a file is built, not searched": (
        "ninja: error: 'libcore.a', needed by 'app.elf', missing and no known rule to make it",
        "libcore.a does not exist",
        "-L",
    ),
    "semihosting, whatever the function": (
        "Error: L6915E: Library reports error: __use_no_semihosting was requested, but clock was "
        "referenced",
        "Define clock for this board",
        "Find the source",
    ),
    "a known driver": (
        "a.o: undefined reference to `ETHOSU_PMU_Enable'",
        "libethosu_core_driver",
        "Find the",
    ),
    "another known driver": (
        "a.o: undefined reference to `HAL_UART_Transmit'",
        "stm32",
        "Find the source",
    ),
    "a number with something in front is a symbol to --defsym": (
        "ld:--defsym:1: undefined symbol `_0x8000' referenced in expression",
        "--defsym=NAME=EXPRESSION",
        "Find the source",
    ),
    "a script calculates with symbols": (
        "ld:board.ld:12: undefined symbol `pool_size' referenced in expression",
        "Define pool_size in the linker script",
        "Find the source",
    ),
    "a linker that crashes is not short of memory": (
        "collect2: fatal error: ld terminated with signal 11 [Segmentation fault]",
        "another version of the toolchain",
        "memory",
    ),
    "a static data member is no library": (
        "Error: L6218E: Undefined symbol audio::Mixer::RATE (referred from mixer.o).",
        "compiled as C++17",
        "Find the source",
    ),
    "IAR's library writes by way of the board": (
        'Error[Li005]: no definition for "__write" [referenced from putchar.o(dl7M_tln.a)]',
        "--semihosting",
        "Find the source",
    ),
    "__write of another linker is no IAR's": (
        "a.o: undefined reference to `__write'",
        "Find the source",
        "IAR",
    ),
    "a function of assembler has a type": (
        "ld: start.o(tick): Unknown destination type (ARM/Thumb) in main.o",
        "Write .thumb_func (or .type tick, %function)",
        "Rebuild",
    ),
    "IAR's start-up code is missing": (
        "Error[Lp049]: there was no reference to __iar_copy, but it is needed to initialize section"
        " .fast (a.o #2)",
        "do not initialize { section .fast }",
        "manual",
    ),
    "what a script asks of the configuration": (
        "ld: CONFIG_POOL must be larger than the model\ncollect2: error: ld returned 1 exit status",
        "Change CONFIG_POOL in prj.conf",
        "Search",
    ),
    "a linker that fails by itself": (
        "ld: BFD (GNU Binutils) 2.40 assertion fail elf32-arm.c:9",
        "another version of the toolchain",
        "memory",
    ),
    "a damaged archive is built again": (
        "ld: libx.a: error adding symbols: malformed archive",
        "Build libx.a again",
        "manual",
    ),
    "an option that the linker does not know": (
        "ld.lld: error: unknown argument '--foo'",
        "-Wl,OPTION",
        "manual",
    ),
    "the kernel of a bootloader has no threads": (
        "a.o: undefined reference to `z_impl_k_sem_take'",
        "CONFIG_MULTITHREADING=y",
        "the subsystem",
    ),
    "an option for the machine that CMake runs on": (
        "ld: unrecognized option '--out-implib'",
        "CMAKE_SYSTEM_NAME Generic",
        "misspelt",
    ),
    "a linker of another machine": (
        "ld.gold: fatal error: m.o: unsupported ELF machine number 40",
        "-fuse-ld=lld",
        "Rebuild",
    ),
    "the library of Android is no libstdc++": (
        "libx.so: undefined reference to `std::__ndk1::mutex::lock()'",
        "NDK's clang++",
        "-lstdc++",
    ),
    "order means nothing to armlink": (
        "Error: L6218E: Undefined symbol frob (referred from a.o).",
        "link it, or",
        "after a.o",
    ),
}


@pytest.mark.parametrize("name", ADVICE)
def test_advice_is_right_or_is_not_given(name: str) -> None:
    text, said, not_said = ADVICE[name]
    failure = _advice(text)
    assert said in f"{failure.cause} {failure.fix}"
    assert not_said not in f"{failure.cause} {failure.fix}"


# What armlink, IAR and LTO say, as they print it.
_SAID = {
    "L6235E": (
        "Error: L6235E: More than one section matches selector - cannot all be FIRST/LAST.",
        "script_error",
        "Keep one start-up file in the link, or name its object too (startup.o (RESET, +FIRST))",
    ),
    "L6236E": (
        "Error: L6236E: No section matches selector - no section to be FIRST/LAST.",
        "orphan_section",
        "start-up file",
    ),
    "L6238E": (
        "Error: L6238E: boot.o(.text) contains invalid call from '~PRES8 (The user did not require "
        "code to preserve 8-byte alignment of 8-byte data objects)' function to 'REQ8 (x)' "
        "function f.",
        "wrong_architecture",
        "PRESERVE8",
    ),
    "L6216E": (
        "Error: L6216E: Cannot use base/limit symbols for non-contiguous section .init_array.",
        "script_error",
        "Image$$REGION$$Base",
    ),
    "L6788E": (
        "Error: L6788E: Scatter-loading of execution region ER_RW will cause the contents of "
        "execution region ER_RO to be corrupted at run-time.",
        "script_error",
        "do not overlap",
    ),
    "the plugin": ("ld: a.o: plugin needed to handle lto object", "lto", "gcc, not ld"),
    "another compiler": (
        "lto1: fatal error: bytecode stream in file 'a.o' generated with LTO version 11.3 instead "
        "of the expected 12.0",
        "lto",
        "without -flto",
    ),
}


@pytest.mark.parametrize("name", _SAID)
def test_a_message_has_its_own_cause_and_fix(name: str) -> None:
    text, kind, fix = _SAID[name]
    failures = [explain_failure(f, NO_FILES) for f in parse(text, failed=True).failures]
    assert [(f.kind, fix in f.fix) for f in failures] == [(kind, True)], failures


@pytest.mark.parametrize(
    ("text", "region", "missing"),
    [
        ("ld: region `FLASH' overflowed by 1,234,567 bytes", "FLASH", 1_234_567),
        (
            "Error[Lp011]: section placement failed\n            unable to allocate space for "
            "sections/blocks with a total estimated minimum size of 0x1'7c58 bytes (max align 0x8) "
            "in <[0x2000'0000-0x2001'7fff]> (total uncommitted space 0x1'6f00).\n",
            "0x2000'0000-0x2001'7fff",
            0xD58,
        ),
    ],
)
def test_separators_of_thousands(text: str, region: str, missing: int) -> None:
    (failure,) = parse(text, failed=True).failures
    assert (failure.region, failure.bytes) == (region, missing)


def _application(tmp_path: Path, **sources: str) -> Path:
    """A build directory with a failed link of libapp.a, as CMake's Makefiles leave one."""
    gcc = "arm-none-eabi-gcc -mcpu=cortex-m55"
    for name, text in sources.items():
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run([*gcc.split(), "-g", "-Os", "-c", f"{name}.c"], cwd=tmp_path, check=True)
    objects = [f"{name}.o" for name in sources]
    subprocess.run(["arm-none-eabi-ar", "rcs", "libapp.a", *objects], cwd=tmp_path, check=True)
    link = tmp_path / "CMakeFiles" / "app.dir" / "link.txt"
    link.parent.mkdir(parents=True)
    whole = "-Wl,--whole-archive libapp.a -Wl,--no-whole-archive"
    link.write_text(f"{gcc} -nostdlib -Wl,-emain {whole} -o app.elf\n")
    entries = [{"directory": str(tmp_path), "file": f"{n}.c", "command": "cc"} for n in sources]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    return tmp_path


def _explained(build: Path) -> Failure:
    again = failing_link(build)
    assert again is not None
    (failure,) = parse(again.text, failed=True).failures
    return diagnose((failure,), again.call, Tree(build), again.command)[0]


@needs_gcc
def test_a_static_function_that_the_compiler_inlined(tmp_path: Path) -> None:
    """No object has it; its source does."""
    caller = "int helper(int);\nint main(void) { return helper(1); }\n"
    part = "static int helper(int x) { return x; }\nint part(int x) { return helper(x); }\n"
    failure = _explained(_application(tmp_path, caller=caller, part=part))
    assert failure.cause_kind == "static"
    assert failure.fix.startswith(f"Remove `static` in {tmp_path}/part.c:1")


@needs_gcc
def test_a_name_that_is_spelt_almost_as_one_next_to_it(tmp_path: Path) -> None:
    caller = "int scalled(int);\nint main(void) { return scalled(1); }\n"
    part = "int scaled(int x) { return x; }\n"
    failure = _explained(_application(tmp_path, caller=caller, part=part))
    assert failure.cause_kind == "no_definition"
    assert failure.fix.startswith("Write scaled instead of scalled if that is meant")


@needs_gcc
def test_a_variable_of_a_header_is_reported_with_the_header(tmp_path: Path) -> None:
    (tmp_path / "state.h").write_text("\nint state = 1;\n")
    caller = '#include "state.h"\nint main(void) { return state; }\n'
    failure = _explained(
        _application(
            tmp_path, caller=caller, part='#include "state.h"\nint* p(void) { return &state; }\n'
        )
    )
    assert failure.fix.startswith(f"In {tmp_path}/state.h:2 only declare state")


@needs_gcc
def test_two_sources_that_define_one_function_are_no_header(tmp_path: Path) -> None:
    both = "int main(void) { return 1; }\n"
    failure = _explained(_application(tmp_path, one=both, two=both))
    assert failure.fix.startswith("Keep one definition of main")


@needs_gcc
def test_an_initialisation_level_that_is_none_is_reported_with_its_object(tmp_path: Path) -> None:
    """Zephyr's own assertion names neither object nor level (include/zephyr/init.h, 4.1.0)."""
    (tmp_path / "script.ld").write_text(
        "SECTIONS {\n .text : { *(.text*) }\n .bad : { KEEP(*(.z_init_[A-Z]*)) }\n"
        ' ASSERT(SIZEOF(.bad) == 0, "Undefined initialization levels used.")\n}\n'
    )
    entry = '__attribute__((section(".z_init_{}"), used)) static const int entry = 1;\n'
    build = _application(
        tmp_path,
        good=entry.format("POST_KERNEL40_0_"),
        main=entry.format("APPLICATIONMETER_PRIO_0_") + "int main(void) { return 1; }\n",
    )
    link = build / "CMakeFiles" / "app.dir" / "link.txt"
    link.write_text(link.read_text().replace(" -o ", " -T script.ld -o "))
    failure = _explained(build)
    assert "(APPLICATIONMETER_PRIO) of the SYS_INIT or DEVICE_DT_DEFINE in" in failure.fix
    assert "libapp.a(main.o)" in failure.fix
