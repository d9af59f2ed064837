"""Protects the grammar of link errors: every linker's way to say it."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from tests.link.log.reading import LINK_FAILED, only

UNDEFINED = [
    ("/opt/bin/ld: main.o: in function `main':\nmain.c:3: undefined reference to `f'", "f"),
    ("/opt/bin/ld: /src/main.c:3: undefined reference to `f'", "f"),
    ("main.o: In function `main':\nmain.c:(.text+0x4): undefined reference to `f'", "f"),
    ("ld: x.a(b.o):(.data.rel+0x4): undefined reference to `vtable for n::C'", "vtable for n::C"),
    ("c:/gcc/bin/ld.exe: m.obj: in function `a': C:/p/m.c:9: undefined reference to `g'", "g"),
    ("ld: m.o: in function `k':\nsys/kernel.h:55:\nundefined reference to `z_impl_k'", "z_impl_k"),
    (
        "m.c:3: undefined reference to `ns::f(std::pair<int, char> const&)'",
        "ns::f(std::pair<int, char> const&)",
    ),
    ("exit.c:(.text.exit+0x14): undefined reference to `_exit\u2019  ", "_exit"),
    (
        "Error\t\tundefined reference to `tflite::A(B const*)'\tProject\tconv.h\t69",
        "tflite::A(B const*)",
    ),
    ("a.c:4: error: undefined reference to 'f'", "f"),
    ("ld.lld: error: undefined symbol: f(int)\n>>> referenced by a.c:4\n>>>  a.o:(main)", "f(int)"),
    ("ld.lld: error: undefined symbol: _init\nreferenced by init.c:40 (/x/init.c:40)", "_init"),
    ("error: ld.lld: undefined hidden symbol: h", "h"),
    ("Error: L6218E: Undefined symbol f (referred from y.o).", "f"),
    ("Error: Undefined symbol f (referred from y.o).", "f"),
    ("[Error] @0,0: L6218E: Undefined symbol A::A(B&, C&) (referred from a/b.o).", "A::A(B&, C&)"),
    (
        ".\\b\\x.axf: Error: L6218E: Undefined symbol __heap_base (referred from m.o).",
        "__heap_base",
    ),
    ("ld: x.ld:3: undefined symbol `_stack' referenced in expression", "_stack"),
    (
        "main.o : Dans la fonction \u00ab main \u00bb :\n"
        "main.c:(.text+0x5) : r\u00e9f\u00e9rence ind\u00e9finie vers \u00ab toto \u00bb",
        "toto",
    ),
    ("main.c:(.text+0x5): referencia a `baz' sin definir", "baz"),
    ("main.c:(.text+0x5)\uff1a\u5bf9\u2018qux\u2019\u672a\u5b9a\u4e49\u7684\u5f15\u7528", "qux"),
    ("m.o: In Funktion `main':\nm.c:(.text+0x5): Nicht definierter Verweis auf `foo'", "foo"),
    ("m.c:(.text+0x5): undefinierter Verweis auf \u00bbfoo\u00ab", "foo"),
    ("m.c:(.text+0x5): niezdefiniowane odwo\u0142anie do `foo'", "foo"),
    (
        "m.c:(.text+0x5): `foo'\uc5d0 \ub300\ud55c \uc815\uc758\ub418\uc9c0 \uc54a\uc740 "
        "\ucc38\uc870\uc785\ub2c8\ub2e4",
        "foo",
    ),
    (
        "C:/P F (x86)/GNU Arm/bin/ld.exe: C:/a b/libm.a(k.o): in function `r':\n"
        "C:/a b/k.cc:12: undefined reference to `n::R()'",
        "n::R()",
    ),
    (
        "a.cpp:(.text+0x4): undefined reference to `void f<g()::'lambda'(int)>(int)'",
        "void f<g()::'lambda'(int)>(int)",
    ),
    ("/usr/bin/ld: a.o: undefined reference to symbol 'sin@@V_2'", "sin@@V_2"),
    ("m.c:3: undefined reference to `foo'make[2]: *** [build.make:9: x] Fehler 1", "foo"),
    ("m.c:3: undefined reference to `foo'[13/20] Building C object `b'", "foo"),
    (
        "Error: L6915E: Library reports error: __use_no_semihosting was requested, but "
        "_sys_exit was"
        " referenced\nFinished: 1 information, 0 warning and 1 error messages.",
        "_sys_exit",
    ),
    ('Error[Li005]: no definition for "f" [referenced from main.o]', "f"),
    ('Error[e46]: Undefined external "f" referred in app ( C:\\p\\app.r43 )', "f"),
    (
        'Undefined symbols for architecture arm64:\n  "n::f(int)", referenced from:\n'
        "      _main in m.o\nld: symbol(s) not found for architecture arm64",
        "n::f(int)",
    ),
    # all of the IDE's output pasted as one line
    (
        "linking... .\\out\\p.axf: Error: L6218E: Undefined symbol led_set (referred from io.o). "
        "Not enough information to list image symbols.",
        "led_set",
    ),
    # broken by a terminal of 80 columns
    (
        "Error: L6218E: Undefined symbol dsp::Filter::Filter(float, int) (referred from filt\n"
        "er.o).",
        "dsp::Filter::Filter(float, int)",
    ),
    # pasted as Markdown, which takes quotes away and adds stars
    ("ld: a.a(b.o): in function _g': b.c:3:(.text+0x1): undefined reference to f_'", "f_"),
    ("undefined reference to n::F::make(char const*, int)", "n::F::make(char const*, int)"),
    ("main.c:3: **undefined reference to `f(char**)'**", "f(char**)"),
    ("(.text.boot+0x26): undefined reference to`clock_init'", "clock_init"),
    ("boot.c:(.text+0xc): undefined reference to `_write`", "_write"),
    ("e.c:(.text+0x4): undefined reference to `_exit' collect2: error: see 'e.c'", "_exit"),
    ("  = note: rust-lld: error: undefined symbol: f", "f"),
    (
        "ld.lld: error: undefined symbol: one\n>>> referenced by a.c:1\n>>>       a.o:(f)\n"
        ">>> did you mean: two\n>>> defined in: b.o",
        "one",
    ),
]


@pytest.mark.parametrize(("text", "symbol"), UNDEFINED)
def test_an_undefined_symbol_is_found(text: str, symbol: str) -> None:
    failure = only(text)
    assert (failure.kind, failure.symbol) == ("undefined_symbol", symbol)


OVERFLOWS = [
    (
        "ld: a.elf section `.text' will not fit in region `FLASH'\n"
        "ld: region `FLASH' overflowed by 12 bytes",
        "FLASH",
        12,
    ),
    (
        "ld: region `RAM' overflowed by 7 bytes\n"
        "ld: a.elf section `.bss' will not fit in region `RAM'",
        "RAM",
        7,
    ),
    (
        "ld.exe: f.elf section `.usb' will not fit in region`usb'\n"
        "ld.exe: region `usb' overflowed by 9 bytes",
        "usb",
        9,
    ),
    (
        "rust-lld: error: section '.d' will not fit in region 'ROM': overflowed by 3 bytes\n"
        "rust-lld: error: section '.e' will not fit in region 'ROM': overflowed by 8 bytes",
        "ROM",
        8,
    ),
    ("/x/ld: region DTCM overflowed with stack", "DTCM", None),
    ("/x/ld: region DTCM overflowed by 70 `bytes_", "DTCM", 70),
    (  # as a CI system prints it, with the branch in front and wrapped
        "10:11:12 [board A] Error[Lp011]: section placement failed\n"
        "10:11:12 [board A]       unable to "
        "allocate space, total estimated\n10:11:12 [board A]        minimum size of 0x30 bytes in <"
        "[0x10-0x2f], [0x40-0x4f]>\n10:11:12 [board A]         (total uncommitted space 0x2c).",
        "0x10-0x2f, 0x40-0x4f",
        4,
    ),
    ("/x/ld: region RAM is full (a.elf section .bss)", "RAM", None),
    (
        "ld: region FLASH overflowed with .data and user data\n"
        "ld: region `FLASH' overflowed by 9 bytes",
        "FLASH",
        9,
    ),
    ("ld: address 0x2001 of a.elf section `.bss' is not within region `RAM'", "RAM", None),
    ("Error: L6220E: Load region LR size (110 bytes) exceeds limit (100 bytes).", "LR", 10),
    ("Error: Load region LR size (110 bytes) exceeds limit (100 bytes).", "LR", 10),
    (
        "Error: L6406E: No space in execution regions with .ANY selector matching m.o(.bss).\n"
        "Error: L6407E: Sections of aggregate size 0x10 bytes could not fit into .ANY selector(s).",
        None,
        None,
    ),
    (
        "ld: warning: x\nMemory region  Used Size  Region Size  %age Used\n"
        "  FLASH:  1100 B  1 KB  107.42%\n" + LINK_FAILED,
        "FLASH",
        76,
    ),
]


@pytest.mark.parametrize(("text", "region", "size"), OVERFLOWS)
def test_an_overflow_has_its_region_and_size(
    text: str, region: str | None, size: int | None
) -> None:
    failure = only(text)
    assert (failure.kind, failure.region, failure.bytes) == ("region_overflow", region, size)


DUPLICATES = [
    "ld: b.o:b.c:1: multiple definition of `x'; a.o:a.c:2: first defined here",
    "ld: b.o: in function `x':\nb.c:(.text+0x0): multiple definition of `x'; a.o:a.c:(.text+0x0): first defined here",  # noqa: E501
    # wrapped behind its semicolon, and elsewhere, as terminals and issues do
    "ld: b.o:b.c:1: multiple definition of `x';\n a.o:a.c:2: first defined here\n" + LINK_FAILED,
    "ld: b.o:b.c:1: multiple definition of\n`x'; a.o:a.c:2:\nfirst defined here\n" + LINK_FAILED,
    "ld: b.o:b.c:1: multiple definition of `x'; a.o:a.c:2: first\ndefined here\n" + LINK_FAILED,
    'Error[Li006]: duplicate definitions for "x"; in "a.o", and "b.o"',
    'Error[Li006]: duplicate definitions for "x"; in "a\n          .o"\n          , and "b.o"',
    "b.o: In function `x':\nb.c:(.text+0x0): multiple definition of `x'\na.o:a.c:(.text+0x0): first defined here",  # noqa: E501
    # pasted as Markdown
    "b.o:b.c:(.text.x+0x0): multiple definition of x'\na.o:a.c:(.text+0x0): first defined here",
    "ld.lld: error: duplicate symbol: x\n>>> defined at a.c:2\n>>>      a.o:(x)\n"
    ">>> defined at b.c:1\n>>>      b.o:(.bss+0x0)",
    "Error: L6200E: Symbol x multiply defined (by a.o and b.o).",
    "Error: Symbol x multiply defined (by a.o and b.o).",
]


@pytest.mark.parametrize("text", DUPLICATES)
def test_a_duplicate_has_both_definitions(text: str) -> None:
    failure = only(text)
    assert (failure.kind, failure.symbol) == ("duplicate_symbol", "x")
    assert [place.object for place in failure.places] == ["a.o", "b.o"]


ARCHITECTURES = [
    "ld: libx.a: member libx.a(y.o) in archive is not an object",
    "libx.a: file not recognized: file format not recognized",
    "ld: libx.a: error adding symbols: file in wrong format",
    "libx.a: could not read symbols: File in wrong format",
    "ld: error: libx.a(y.o) uses VFP register arguments, a.elf does not\n"
    "ld: failed to merge target specific data of file libx.a(y.o)",
    "ld: i386 architecture of input file `libx.a(y.o)' is incompatible with arm output",
    "ld: libx.a: error: conflicting CPU architectures 2/13".replace("error: c", "C"),
    "ld.lld: error: libx.a(y.o) is incompatible with main.o",
    "ld.lld: error: libx.a: incompatible Tag_ABI_VFP_args",
    "ld: skipping incompatible ./libx.a when searching for -lx\nld: cannot find -lx",
    "Error: L6242E: Cannot link object libx.a as its attributes are incompatible with the image "
    "attributes.\n... 4-byte enums clashes with packed enums.",
]


@pytest.mark.parametrize("text", ARCHITECTURES)
def test_another_architecture_names_the_file(text: str) -> None:
    failure = only(text)
    assert failure.kind == "wrong_architecture"
    assert "libx.a" in failure.files[0]


OTHERS = [
    ("ld.gold: fatal error: m.o: unsupported ELF machine number 40", "wrong_architecture", "m.o"),
    ("mold: error: m.o:(.text): unknown relocation: R_X", "unknown", "unknown relocation"),
    ('Fatal Error[Li001]: could not open file "out/libdsp.a"', "missing_library", "libdsp.a"),
    ('"x.icf",31  Error[Lc003]: expected ";"', "script_error", "31"),
    (
        "Error[Lp049]: there was no reference to __iar_copy, but it is needed to initialize section"
        " .fast (a.o #2)",
        "script_error",
        "__iar_copy",
    ),
    (
        'Error[Lp021]: the destination for compressed initializer batch "P1" is placed at an',
        "script_error",
        "P1",
    ),
    (
        '"x.icf",9  Error[Lp022]: absolute placement (in [0x10-0x1f]) overlaps with previous '
        "absolute placement .vec (in [0x10-0x2f]), at line 7",
        "section_overlap",
        ".vec",
    ),
    (
        "ld: start.o(tick): unknown destination type (ARM/Thumb) in main.o",
        "wrong_architecture",
        "tick",
    ),
    (
        "Error[Li009]: runtime model conflict: Module lib.o(dsp.a) specifies that\n"
        "          '__fpu' must be 'VFPv4', but module main.o has the value 'none'",
        "wrong_architecture",
        "__fpu",
    ),
    (
        "aarch64-none-elf-ld: libcore.a(y.o)\uff1aRelocations in generic ELF (EM: 62)",
        "wrong_architecture",
        "libcore.a(y.o)",
    ),
    ("ld: unrecognized option '--gc'\n" + LINK_FAILED, "bad_option", "--gc"),
    ("Error: L3903U: Argument 'x.sct' not permitted for option 'scatter'.", "bad_option", "x.sct"),
    (
        "ld: BFD (GNU Binutils) 2.40 assertion fail elf32-arm.c:9",
        "linker_stopped",
        "assertion fail elf32-arm.c:9",
    ),
    (
        "  = note: app.x:7 cannot move location counter backwards (from 00000300 to \n00000200)",
        "section_overlap",
        "256",
    ),
    (
        "ld: The pool of the model\n'CONFIG_POOL' is\ntoo small.\n" + LINK_FAILED,
        "unknown",
        "The pool of the model 'CONFIG_POOL' is too small.",
    ),
    ("ld: cannot find -lcmsis_nn: No such file or directory", "missing_library", "-lcmsis_nn"),
    ("ld.lld: error: unable to find library -lcmsis_nn", "missing_library", "-lcmsis_nn"),
    ("ld: cannot find build/libcore.a: No such file or directory", "missing_library", "libcore.a"),
    ("ld: cannot find a.o: No such file or directory", "missing_file", "a.o"),
    ("ld.lld: error: cannot open a.o: No such file or directory", "missing_file", "a.o"),
    ("arm-none-eabi-gcc.exe: error: a.o: No such file or directory", "missing_file", "a.o"),
    ("ld: cannot open linker script file C:/q/a.ld: Invalid argument", "missing_file", "C:/q/a.ld"),
    ("Error: L6002U: Could not open file a.o: No such file or directory", "missing_file", "a.o"),
    (
        "ninja: error: 'core/libcore.a', needed by 'x.elf', missing and no known rule to make it",
        "missing_library",
        "libcore.a",
    ),
    ("ld: section .data LMA [10,2f] overlaps section .text LMA [0,1f]", "section_overlap", ".data"),
    (
        "ld.lld: error: section .data virtual address range overlaps with .text",
        "section_overlap",
        ".data",
    ),
    (
        "ld: x.ld:43 cannot move location counter backwards (from 20000d5c to 20000c00)",
        "section_overlap",
        "348",
    ),
    (
        "m.o: relocation truncated to fit: R_ARM_THM_JUMP11 against symbol `far' defined in .text "
        "section in f.o",
        "relocation_out_of_range",
        "far",
    ),
    ("ld: error: unplaced orphan section `.pte' from `m.o'", "orphan_section", ".pte"),
    ("ld:x.ld:1: syntax error", "script_error", "x.ld"),
    ("ld:x.ld:20: nonconstant expression for region length", "script_error", "x.ld"),
    ("x.ld:20: nonconstant expression for length\n" + LINK_FAILED, "script_error", "x.ld:20"),
    (
        "Error: L6985E: Unable to automatically place AT section m.o(.ARM.__at_0x31) with required "
        "base address 0x31.",
        "orphan_section",
        ".ARM.__at_0x31",
    ),
    (
        "ld: entry function `f' disappeared from secure code\n" + LINK_FAILED,
        "unknown",
        "disappeared",
    ),
    (
        "ld: warning: cannot find entry symbol\nld: internal error x.c 4\n" + LINK_FAILED,
        "linker_stopped",
        "internal error",
    ),
    (
        "ld: warning: cannot find entry symbol go; not setting start address\n" + LINK_FAILED,
        "undefined_symbol",
        "go",
    ),
    (
        "`f' referenced in section `.text' of a.o: defined in discarded section `.text.f' of b.o",
        "discarded_section",
        "f",
    ),
    ("ld: final link failed: No space left on device", "output_error", "No space left"),
    (
        "ld: cannot open output file out/x.elf: No such file or directory",
        "output_error",
        "out/x.elf",
    ),
    ("note: /x/ld: cannot find crt0.o: No such file or directory", "missing_file", "crt0.o"),
    (
        "rust-lld: error: \n  ERROR(rt): The stack is\n  too small",
        "unknown",
        "The stack is too small",
    ),
    (
        "ld.lld: error: relocation R_ARM_ABS32 cannot be used against symbol 'x'; "
        "recompile with -fPIC\n"
        ">>> defined in board.lds:137\n>>> referenced by boot.o:(.text+0x158) in archive "
        "built-in.a",
        "unknown",
        "built-in.a(boot.o)",
    ),
    ("collect2: fatal error: ld terminated with signal 9 [Killed]", "linker_stopped", "signal 9"),
    (
        "lib.a: error adding symbols: archive has no index; run ranlib to add one",
        "bad_archive",
        "has no index",
    ),
    (
        "ld: the heap does not fit: ASSERT of the script\n".replace("the", "The", 1) + LINK_FAILED,
        "unknown",
        "The heap does not fit",
    ),
    (LINK_FAILED, "unknown", "collect2"),
    (
        "Error[Lp011]: section placement failed\n   unable to allocate space for "
        "sections/blocks with "
        "a total estimated\n    minimum size of 0x3f55c bytes (max align 0x20)\nError while "
        "running "
        "Linker",
        "region_overflow",
        "section placement failed",
    ),
    # errors that no rule knows: they are told as they are
    (
        "x.axf: Error: L6216E: Cannot use base/limit symbols for non-contiguous section "
        ".init_array\n"
        '"x.axf" - 1 Error(s), 0 Warning(s).',
        "script_error",
        "L6216E: Cannot use base",
    ),
    (
        "Error: L6788E: Scatter-loading of execution region A will cause the contents of execution "
        "region B to be corrupted at run-time.",
        "script_error",
        "L6788E: Scatter-loading",
    ),
    (
        "Error: L6261E: Multiple load regions with same name (LR1) are not allowed.\n"
        "Finished: 0 information, 0 warning and 1 error messages.",
        "unknown",
        "L6261E",
    ),
    ("Fatal error: L6899U: Existing lib is not suitable", "unknown", "L6899U"),
    ("ld.lld: error: unknown argument '--foo'", "bad_option", "--foo"),
    ("arm-none-eabi-ld: Error: unable to disambiguate: -nostdli", "bad_option", "-nostdli"),
    ("/x/bin/ld.lld-14: error: unable to parse", "unknown", "unable to parse"),
    ("rust-lld: error: out of luck", "unknown", "out of luck"),
    (
        'Fatal Error[Lc002]: could not open file "x.icf"'.replace("Error", "error"),
        "unknown",
        "Lc002",
    ),
    ("LINK : fatal error LNK1104: cannot open file 'x.lib'", "unknown", "LNK1104"),
    (
        "error #10099-D: program will not fit into available memory",
        "region_overflow",
        "#10099-D",
    ),
    (
        "/usr/bin/ld: unrecognized option '--foo'\n/usr/bin/ld: use the --help option for usage "
        "information",
        "bad_option",
        "--foo",
    ),
]


@pytest.mark.parametrize(("text", "kind", "mentions"), OTHERS)
def test_other_failures_have_their_kind(text: str, kind: str, mentions: str) -> None:
    failure = only(text)
    assert failure.kind == kind
    assert mentions in str(asdict(failure))


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (
            "ld.exe: error: z\\pre.elf uses VFP register arguments, c:/p f (x86)/7.0 "
            "q4/c.a(m.o) does"
            " not\nld.exe: failed to merge target specific data of file c:/p f (x86)/7.0 "
            "q4/c.a(m.o)",
            "c:/p f (x86)/7.0 q4/c.a(m.o)",
        ),
        ("ld: error: a.o: unknown mandatory EABI object attribute 44", "a.o"),
        (
            "Error: L6238E: start.o(.text) contains invalid call from '~PRES8 (The user did not "
            "require it)' function to 'REQ8 (Code was permitted)' function Init.",
            "start.o",
        ),
    ],
)
def test_files_of_another_abi(text: str, file: str) -> None:
    failure = only(text)
    assert failure.kind == "wrong_architecture"
    assert file in failure.files
