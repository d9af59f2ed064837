# ruff: noqa: RUF001
"""The messages of GNU ld, gold, lld, mold and armlink: one rule each.

A rule's named groups become the failure's fields. ``at`` is text that says where; parse.py
reads it. Sources: ld/ldmain.c, ld/ldlang.c, bfd/elf32-arm.c (binutils 2.20 to 2.43),
gold/errors.cc, lld/ELF (LLVM 10 to 19), "List of the armlink error and warning messages"
(Arm DUI 0807), and what the installed linkers print.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OPEN, CLOSE = "[`'‘“\"]", "['’”\"]"


@dataclass(frozen=True)
class Rule:
    kind: str
    linker: str
    pattern: re.Pattern[str]
    needles: tuple[str, ...] = ()  # one of these must be in the line; spares the search


def _quoted(name: str) -> str:
    return f"{OPEN}(?P<{name}>.+?){CLOSE}"


def _rule(kind: str, linker: str, needles: str | tuple[str, ...], pattern: str) -> Rule:
    words = (needles,) if isinstance(needles, str) else needles
    return Rule(kind, linker, re.compile(pattern), words)


# The symbol runs to the last quote: demangled names may contain quotes themselves.
_SYMBOL = f"{OPEN}(?P<symbol>.+){CLOSE}"
_FILE = r"(?P<file>(?:[A-Za-z]:)?[^:]+?)"

UNDEFINED = (
    _rule("undefined_symbol", "gnu", "undefined reference",
          f"^(?P<at>.*?)(?:more )?undefined references? to (?:symbol )?{_SYMBOL}(?: follow)?"),
    _rule("undefined_symbol", "gnu", "undefined reference",
          r"^(?P<at>.*?)undefined reference to (?P<symbol>[A-Za-z_]\w*)$"),
    _rule("undefined_symbol", "gnu", "referenced in expression",
          f"^(?P<at>.*?)undefined symbol {_quoted('symbol')} referenced in expression"),
    _rule("undefined_symbol", "gnu", "required symbol",
          f"required symbol {_quoted('symbol')} not defined"),
    _rule("undefined_symbol", "gnu", "isn't defined",
          f"^(?P<at>.*?)(?P<binding>hidden|internal|protected) symbol {_SYMBOL} isn't defined"),
    _rule("undefined_symbol", "gold", "is not defined locally",
          f"^(?P<at>.*?)(?P<binding>hidden|internal|protected) symbol {_SYMBOL} is not defined"),
    _rule("undefined_symbol", "lld", "undefined",
          r"(?:ld|lld|mold|wasm-ld)[^:]*: (?:error: )?undefined "
          r"(?:(?P<binding>hidden|protected|internal) )?symbol: (?P<symbol>.+)$"),
    _rule("undefined_symbol", "lld", "undefined symbol: ",
          r"^(?:.*error: )undefined (?:(?P<binding>hidden|protected|internal) )?symbol: "
          r"(?P<symbol>.+)$"),
    _rule("undefined_symbol", "lld", "symbol not found: ", r"symbol not found: (?P<symbol>\S+)$"),
    _rule("undefined_symbol", "gnu", "entry symbol",
          r"cannot find entry symbol (?P<symbol>[^\s;]+)"),
    _rule("undefined_symbol", "armlink", "L6915", r"L6915E: Library reports error: "
          r"(?P<attribute>\w+ was requested), but (?P<symbol>\S+) was referenced"),
    _rule("undefined_symbol", "armlink", "L6218",
          r"L6218E: Undefined symbol (?P<symbol>.+?) \(referred from (?P<at>.+)\)\.?$"),
    _rule("undefined_symbol", "armlink", "L6218",
          r"L6218E: Undefined symbol (?P<symbol>[^(]+?)\.?$"),
)  # fmt: skip

DUPLICATES = (
    _rule("duplicate_symbol", "gnu", "multiple definition of",
          f"^(?P<at>.*?)multiple definition of {OPEN}(?P<symbol>.+?){CLOSE}"
          r"(?:; (?P<first>.+): first defined here)?$"),
    _rule("duplicate_symbol", "lld", "duplicate symbol",
          r"duplicate symbol: (?P<symbol>.+?)(?: in (?P<first>.+) and (?P<at>.+))?$"),
    _rule("duplicate_symbol", "lld", "mold", r"mold: error: duplicate symbol: (?P<at>[^:]+): "
          r"(?P<first>[^:]+): (?P<symbol>.+)$"),
    _rule("duplicate_symbol", "armlink", "L6200",
          r"L6200E: Symbol (?P<symbol>.+?) multiply defined \(by (?P<first>.+?) and (?P<at>.+)\)"),
)  # fmt: skip

OVERFLOWS = (
    _rule("region_overflow", "gnu", "will not fit in region",
          f"(?:(?P<file>[^\\s:]+) )?section {_quoted('section')} will not fit in region ?"
          f"{_quoted('region')}(?:: overflowed by (?P<bytes>\\d+) bytes?)?"),
    _rule("region_overflow", "gnu", "overflowed by",
          f"region {_quoted('region')} overflowed by (?P<bytes>\\d+) bytes?"),
    _rule("region_overflow", "gnu", "overflowed",
          r"region (?P<region>\w+) (?:is )?overflowed(?: with (?P<section>\w+))?"),
    _rule("region_overflow", "gnu", "is full",  # binutils up to 2.18
          r"region (?P<region>\S+) is full \((?P<file>\S+) section (?P<section>\S+)\)"),
    _rule("region_overflow", "gnu", "is not within region",
          f"address (?P<address>0x[0-9a-f]+) of (?P<file>\\S+) section {_quoted('section')} "
          f"is not within region {_quoted('region')}"),
    _rule("region_overflow", "gold", "overflows end of region",
          r"section (?P<section>\S+) overflows end of region (?P<region>\S+)"),
    _rule("region_overflow", "armlink", "L6220",
          r"L6220E: (?:Load|Execution) region (?P<region>\S+) size \((?P<used>\w+) bytes\) "
          r"exceeds limit \((?P<limit>\w+) bytes\)"),
    _rule("region_overflow", "armlink", "L640",
          r"L6406[EW]: No space in (?:execution )?regions? with \.ANY selector matching "
          r"(?P<section>.+?)\.?$"),
    _rule("region_overflow", "armlink", "L640",
          r"L6407[EW]: Sections of aggregate size (?P<bytes>\w+) bytes could not fit"),
    _rule("region_overflow", "armlink", "L6408", r"L6408[EW]: Output is larger than"),
    _rule("region_overflow", "armlink", "L6050", r"L6050U: The (?P<attribute>code size)"
          r" of this image \((?P<used>\w+) bytes\) exceeds the maximum allowed"),
    _rule("region_overflow", "lld", "unable to", r"unable to place section (?P<section>\S+) at "
          r"file offset .*; check your linker script for overflows"),
    _rule("region_overflow", "gnu", "not enough room for program headers",
          r"not enough room for program headers"),
)  # fmt: skip

OVERLAPS = (
    _rule("section_overlap", "gnu", "overlaps section",
          r"section (?P<section>\S+) (?:(?:loaded at|LMA|VMA) )?\[(?P<from>\w+),? ?(?:-> )?"
          r"(?P<to>\w+)\] overlaps section (?P<other>\S+)"),
    _rule("section_overlap", "lld", "range overlaps",
          r"section (?P<section>\S+) (?:virtual address|load address|file) range overlaps "
          r"with (?P<other>\S+)"),
    _rule("section_overlap", "gold", "segment overlap",
          r"load segment overlap \[(?P<from>\w+) -> \w+\] and \[\w+ -> (?P<to>\w+)\]"),
    _rule("section_overlap", "armlink", "overlaps",
          r"L6221E: (?:Execution|Load) region (?P<region>\S+) .*overlaps with .*region "
          r"(?P<other>\S+)"),
    _rule("section_overlap", "gnu", "cannot move location counter backwards",
          r"(?P<script>\S+:\d+:)?.*cannot move location counter backwards "
          r"\(from (?P<to>\w+) to (?P<from>\w+)\)"),
    _rule("section_overlap", "lld", "location counter backward",
          r"unable to move location counter (?:\((?P<to>0x\w+)\) )?backward"
          r"(?: to (?P<from>0x\w+))? for:? (?:section )?['.]?(?P<section>[^'\s]+)"),
)  # fmt: skip

ARCHITECTURES = (
    _rule("wrong_architecture", "gnu", "is not an object",
          r"member (?P<file>.+) in archive is not an object"),
    _rule("wrong_architecture", "gnu", "not recogni", r"^(?:.*\bld[^:\s]*: )?(?P<file>.+?): file "
          r"not recogni[sz]ed: (?P<attribute>[Ff]ile .+)$"),
    _rule("wrong_architecture", "gnu", ("rong format", "format not recogni"),
          r"^(?:.*\bld[^:\s]*: )?(?P<file>.+?): "
          r"(?:error adding symbols|could not read symbols): "
          r"(?P<attribute>[Ff]ile (?:in wrong format|format not recogni[sz]ed))"),
    _rule("wrong_architecture", "gnu", "architecture of input file",
          rf"(?:error: )?(?P<attribute>\S+) architecture of input file {_quoted('file')} is "
          r"incompatible with (?P<other>\S+) output"),
    _rule("wrong_architecture", "gnu", "register arguments",
          r"(?:error|ERROR): (?P<file>.+?) uses (?P<attribute>\w+) register arguments, "
          r"(?P<other>.+?) does not"),
    _rule("wrong_architecture", "gnu", "register arguments",
          r"(?P<file>\S+) uses (?P<attribute>\w+) register arguments, (?P<other>\S+) does not"),
    _rule("wrong_architecture", "gnu", "onflicting",
          r"(?P<file>\S+): [Cc]onflicting (?P<attribute>CPU architectures|architecture profiles"
          r"|definitions of TLS dialect) ?(?P<other>\S+)?"),
    _rule("wrong_architecture", "gnu", "EABI version",
          r"[Ss]ource object (?P<file>\S+) has (?P<attribute>EABI version \S+), but target "
          r"(?P<other>\S+) has EABI version"),
    _rule("wrong_architecture", "gnu", "EABI object attribute", r"(?:error: )?(?P<file>\S+): "
          r"(?P<attribute>unknown mandatory EABI object attribute \d+)"),
    _rule("wrong_architecture", "gnu", "format mismatch",
          r"(?P<attribute>fp16 format) mismatch between (?P<file>\S+) and (?P<other>\S+)"),
    _rule("wrong_architecture", "gnu", "endian",
          r"(?P<file>\S+): (?:compiled for a|endianness) .*(?P<attribute>endian\w*)"),
    _rule("wrong_architecture", "gnu", "generic ELF",
          r"(?P<file>\S+): [Rr]elocations in generic ELF \((?P<attribute>EM: \d+)\)"),
    _rule("wrong_architecture", "gnu", ("can't link", "cannot link"),
          r"(?P<file>\S+): can(?:'t|not) link (?P<attribute>(?:soft|hard|single|double|\d\d-bit)"
          r".*?)(?: with (?P<other>.+))?$"),
    _rule("wrong_architecture", "gnu", "ABI is incompatible",
          r"(?P<file>\S+): (?P<attribute>ABI) is incompatible with that of the selected emulation"),
    _rule("wrong_architecture", "lld", "Tag_",
          r"error: (?P<file>.+?): incompatible (?P<attribute>Tag_\w+)"),
    _rule("wrong_architecture", "lld", "floating-point ABI",
          r"error: (?P<file>.+?): cannot link object files with different (?P<attribute>"
          r"floating-point ABI) from (?P<other>.+)$"),
    _rule("wrong_architecture", "lld", "is incompatible with",
          r"error: (?P<file>.+?) is incompatible with (?P<other>.+)$"),
    _rule("wrong_architecture", "mold", "incompatible file type",
          r"(?P<file>\S+): incompatible file type: (?P<other>\S+ is expected but got \S+)"),
    _rule("wrong_architecture", "lld", "unknown file type",
          r"error: (?P<file>.+?): unknown file type"),
    _rule("wrong_architecture", "gold", "unsupported ELF machine",
          r"error: (?P<file>.+?): (?P<attribute>unsupported ELF machine number \d+)"),
    _rule("wrong_architecture", "gold", "incompatible target",
          r"error: (?P<file>.+?): (?P<attribute>incompatible target)"),
    _rule("wrong_architecture", "gold", "not an object or archive",
          r"error: (?P<file>.+?): (?P<attribute>not an object or archive)"),
    _rule("wrong_architecture", "armlink", "L6242",
          r"L6242E: Cannot link object (?P<file>.+?) as its attributes are incompatible"),
    _rule("wrong_architecture", "armlink", "L6238", r"L6238E: (?P<file>[^(\s]+)\([^)]*\) contains "
          r"invalid call from '~(?P<attribute>\w+).*' function to '(?P<other>\w+)"),
    _rule("wrong_architecture", "armlink", "L6366",
          r"L6366E: (?P<file>.+?) attributes are not compatible with the provided"
          r" (?P<other>.*attributes.*)"),
    _rule("wrong_architecture", "armlink", "L6007",
          r"L6007U: Could not recogni[sz]e the format of file (?P<file>.+?)\.?$"),
)  # fmt: skip

MISSING = (
    _rule("missing_library", "gnu", "cannot find -l", r"cannot find (?P<library>-l\S+?)(?::|$|\s)"),
    _rule("missing_library", "lld", "unable to find library",
          r"unable to find library (?P<library>-l\S+)"),
    _rule("missing_library", "mold", "library not found", r"library not found: (?P<library>\S+)"),
    _rule("missing_library", "armlink", "L6411",
          r"L6411E: No compatible library exists with a definition of startup symbol"
          r" (?P<symbol>\S+?)\.?$"),
    _rule("missing_library", "armlink", "L6310", r"L6310[EW]: Unable to find ARM libraries"),
    _rule("missing_file", "gnu", ("cannot open linker script", "cannot find linker script"),
          r"cannot (?:open|find) linker script(?: file)? (?P<file>[^:]+)"),
    _rule("missing_file", "gnu", ("annot find", "No such file"),
          r"\bld[^:\s]*: cannot find (?!entry symbol)(?P<file>[^:\s]+)"),
    _rule("missing_file", "gnu", "No such file", rf"\bld[^:\s]*: {_FILE}: No such file"),
    _rule("missing_file", "lld", "annot open", r"(?:error|fatal): cannot open "
          r"(?P<file>.+?): (?:No such file|no such file)"),
    _rule("missing_file", "armlink", "L6002",
          r"L6002U: Could not open file (?P<file>.+?): "),
    _rule("missing_file", "armlink", "L6031",
          r"L6031U: Could not open scatter description file (?P<file>.+?):"),
    _rule("missing_file", "driver", "o such file",
          r"(?:gcc|g\+\+|cc|clang|clang\+\+): error: (?:no such file or directory: )?"
          r"'?(?P<file>\S+?\.(?:o|obj|a|ld|lds|cmd|x))'?(?::|$)"),
    _rule("missing_file", "driver", "needed by",
          r"ninja: error: '(?P<file>[^']+\.(?:o|obj|a|ld))', needed by"),
    _rule("missing_file", "driver", "No rule to make target",
          r"No rule to make target [`'](?P<file>[^']+\.(?:o|obj|a|ld))'"),
)  # fmt: skip

OTHERS = (
    _rule("relocation_out_of_range", "gnu", "truncated to fit",
          r"^(?P<at>.*?)relocation truncated to fit: (?P<relocation>\S+) against (?:undefined )?"
          rf"(?:symbol )?{OPEN}(?P<symbol>[^'’]+){CLOSE}(?: defined in (?P<section>\S+) section in "
          r"(?P<file>.+))?"),
    _rule("relocation_out_of_range", "lld", "out of range",
          r"error: (?P<at>.*?): relocation (?P<relocation>R_\w+) out of range: .*"
          r"(?:references '?(?P<symbol>[^'\s;]+))"),
    _rule("relocation_out_of_range", "lld", "out of range",
          r"error: (?P<at>.*?): relocation (?P<relocation>R_\w+) out of range"),
    _rule("relocation_out_of_range", "gold", "relocation overflow", r"^(?P<at>.*?)error: relocation"
          r" overflow(?: in (?P<relocation>\S+))?"),
    _rule("relocation_out_of_range", "armlink", "L6286",
          r"L6286[EW]: Relocation \S+ in (?P<section>\S+) .*?with respect to (?P<symbol>\S+)"),
    _rule("discarded_section", "gnu", "defined in discarded section",
          rf"^(?P<at>.*?){OPEN}(?P<symbol>[^'’]+){CLOSE} referenced in section .* of .*: "
          rf"defined in discarded section {OPEN}(?P<section>[^'’]+){CLOSE} of (?P<file>\S+)"),
    _rule("discarded_section", "lld", "discarded section",
          r"relocation refers to (?:a symbol|a discarded section|.*in a discarded section):? ?"
          r"(?P<symbol>\S*)"),
    _rule("orphan_section", "gnu", "unplaced orphan section",
          rf"error: unplaced orphan section {_quoted('section')} from {_quoted('file')}"),
    _rule("orphan_section", "lld", "being placed in",
          r"error: (?P<file>.+?):\((?P<section>[^)]+)\) "
          r"is being placed in"),
    _rule("orphan_section", "gnu", "no memory region specified",
          rf"error: no memory region specified for (?:loadable )?section {_quoted('section')}"),
    _rule("orphan_section", "armlink", "L6224",
          r"L6224E: Could not place (?P<file>\S+?)\((?P<section>[^)]+)\) in any"),
    _rule("orphan_section", "armlink", "L6985", r"L6985E: Unable to automatically place AT section "
          r"(?P<file>\S+?)\((?P<section>[^)]+)\)"),
    _rule("orphan_section", "armlink", "L6236",
          r"L6236E: No section matches selector - no section to be (?P<attribute>\S+?)\.?$"),
    _rule("lto", "gnu", ("plugin needed", "LTO", "bytecode stream", "lto-wrapper"),
          r"(?P<file>\S+): plugin needed to handle lto object"
          r"|lto1: fatal error: (?P<attribute>.+)|lto-wrapper: fatal error: .+"
          r"|bytecode stream in file [‘'`](?P<other>[^’']+)"),
    _rule("script_error", "gnu", "syntax error",
          r"ld[^:\s]*: ?(?P<file>[^:\s]+):\d+(?::\d+)?: (?:.*)syntax error"),
    _rule("script_error", "gnu", ("undefined MEMORY region", "undefined section"),
          rf"undefined (?:MEMORY region|section) {_quoted('region')} referenced in expression"),
    _rule("script_error", "gnu", ("non constant", "nonconstant"), r"ld[^:\s]*: ?(?P<file>[^:\s]+)"
          r":\d+: non ?constant (?:expression|or forward reference)"),
    _rule("script_error", "lld", ".ld", r"error: (?P<file>[^:\s]+\.(?:ld|lds|cmd|x)):\d+: (?:.+)"),
    _rule("script_error", "armlink", ("L6228", "L6292", "L6296", "L6223", "L6384", "L6281"),
          r"L6(?:228|292|296|223|384|281)E: (?P<attribute>.+)"),
    _rule("output_error", "gnu", ("No space left", "annot open output", "ermission denied"),
          r"ld[^:]*: (?:.*)(?P<attribute>No space left on device|[Cc]annot open output file .*"
          r"|[Pp]ermission denied)"),
    _rule("missing_library", "gnu", "DSO missing", r"(?P<file>\S+): error adding symbols: "
          r"(?P<attribute>DSO missing from command line)"),
    _rule("unknown", "gnu", ("rchive has no index", "alformed archive", "file truncated"),
          r"(?P<file>\S+): (?:error adding symbols|could not read symbols|file not recogni[sz]ed): "
          r"(?P<attribute>[Aa]rchive has no index.*|[Mm]alformed archive|[Ff]ile truncated)"),
    _rule("undefined_symbol", "gnu", "TLS", r"(?P<symbol>\S+): TLS definition in \S+ section \S+ "
          r"mismatches non-TLS reference"),
)  # fmt: skip

RULES = (*UNDEFINED, *DUPLICATES, *OVERFLOWS, *OVERLAPS, *ARCHITECTURES, *MISSING, *OTHERS)

# What says that the linker gave up, without saying why.
GAVE_UP = re.compile(
    r"collect2: (?:fatal )?error: .*|\bld returned \d+ exit status|(?:linker|ld\S*) command failed"
    r"|^collect2\s?[:：] ?\S+?\s?[:：] ?.*\bld(?!\w).*[1-9]"  # in whatever language
    r"|Finished: \d+ information, \d+ warning(?:, \d+ error)? and [1-9]\d* (?:fatal )?error "
    r"messages"
)
KILLED = re.compile(
    r"(?:ld|collect2)\S* (?:.*)terminated with signal (?P<signal>\d+)"
    r"|\bld\S*: .*(?P<memory>memory exhausted|[Oo]ut of memory|Cannot allocate memory)"
    r"|L6000U: (?P<armlink>Out of memory)"
)
ASSERTION = re.compile(
    r"^(?:\S*(?:\bld\S*|gcc): )(?:error: )?(?:\S+\.(?:ld|lds|cmd|x)\S*: )?"
    r"(?P<text>(?!warning)[A-Z].{8,})$"
)
IN_FUNCTION = re.compile(
    rf"^(?P<at>.*?)(?:: |^)[Ii]n function {OPEN}(?P<function>.+){CLOSE}:(?P<rest>.*)$"
)
FIRST_HERE = re.compile(r"^(?P<at>.*?):? ?(?:first defined here|previous definition here)$")
