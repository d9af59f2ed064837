# ruff: noqa: RUF001
"""The messages of GNU ld, gold, lld, mold, armlink, IAR's ilink and Apple's ld, one rule each, and
how they say where.

A rule's named groups become the failure's fields; ``at`` is text for ``parse_place``. Sources:
ld/ldmain.c, ld/ldlang.c, bfd/elf32-arm.c (binutils 2.20 to 2.43), gold/errors.cc, lld/ELF (LLVM 10
to 19), "List of the armlink error and warning messages" (Arm DUI 0807), and what the installed
linkers print; for IAR and Apple what people quote of them.

What a linker calls an error and no rule knows is UNKNOWN, with its text: the last rules, and
``COMPLAINT`` for those that only print their name in front.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.link.failure import CodePlace, FailureKind, LinkCause

OPEN, CLOSE = "[`'‘“\"]", "['’”\"]"


@dataclass(frozen=True)
class Rule:
    kind: FailureKind
    linker: str
    needles: tuple[str, ...]  # one of these must be in the line; spares the search
    pattern: re.Pattern[str]
    cause_kind: LinkCause | None = None  # where the message says it


_Row = tuple[str, "str | tuple[str, ...]", str]  # linker, needles, pattern


def _rules(kind: FailureKind, *rows: _Row, cause_kind: LinkCause | None = None) -> tuple[Rule, ...]:
    return tuple(
        Rule(kind, linker, (words,) if isinstance(words, str) else words, re.compile(pattern),
             cause_kind)
        for linker, words, pattern in rows
    )  # fmt: skip


def _quoted(name: str) -> str:
    return f"{OPEN}(?P<{name}>.+?){CLOSE}"


# The symbol runs to the last quote: demangled names may contain quotes themselves.
_SYMBOL = f"{OPEN}(?P<symbol>.+){CLOSE}"
_FILE = r"(?P<file>(?:[A-Za-z]:)?[^:]+?)"
_UNREADABLE = (
    r"(?P<file>\S+): (?:error adding symbols|could not read symbols|file not recogni[sz]ed): "
)

RULES = (
    *_rules(FailureKind.UNDEFINED_SYMBOL,
        ("gnu", "undefined reference",
         f"^(?P<at>.*?)(?:more )?undefined references? to (?:symbol )?{_SYMBOL}(?: follow)?"),
        ("gnu", "undefined reference",
         r"^(?P<at>.*?)undefined reference to (?P<symbol>[A-Za-z_]\w*)$"),
        ("gnu", "referenced in expression",
         f"^(?P<at>.*?)undefined symbol {_quoted('symbol')} referenced in expression"),
        ("gnu", "required symbol",
         f"required symbol {_quoted('symbol')} not defined"),
        ("gnu", "isn't defined",
         f"^(?P<at>.*?)(?P<binding>hidden|internal|protected) symbol {_SYMBOL} isn't defined"),
        ("gold", "is not defined locally",
         f"^(?P<at>.*?)(?P<binding>hidden|internal|protected) symbol {_SYMBOL} is not defined"),
        ("lld", "undefined",
         r"(?:ld|lld|mold|wasm-ld)[^:]*: (?:error: )?undefined "
         r"(?:(?P<binding>hidden|protected|internal) )?symbol: (?P<symbol>.+)$"),
        ("lld", "undefined symbol: ",
         r"^(?:.*error: )undefined (?:(?P<binding>hidden|protected|internal) )?symbol: "
         r"(?P<symbol>.+)$"),
        ("lld", "symbol not found: ", r"symbol not found: (?P<symbol>\S+)$"),
        ("gnu", "entry symbol",
         r"cannot find entry symbol (?P<symbol>[^\s;]+)"),
        ("armlink", "L6915", r"L6915E: Library reports error: "
         r"(?P<attribute>\w+ was requested), but (?P<symbol>\S+) was referenced"),
        ("armlink", "L6218",
         r"L6218E: Undefined symbol (?P<symbol>.+?) \(referred from (?P<at>.+)\)\.?$"),
        ("armlink", "L6218",
         r"L6218E: Undefined symbol (?P<symbol>[^(]+?)\.?$"),
        ("iar", "Error[Li005]", r"Error\[Li005\]: no definition for \"(?P<symbol>.+?)\""
         r"(?: \[referenced from (?P<at>[^\]]+)\])?"),
        ("apple", "referenced from:", r"^\s*\"(?P<symbol>.+)\", referenced from:$")),
    *_rules(FailureKind.DUPLICATE_SYMBOL,
        ("gnu", "multiple definition of",
         f"^(?P<at>.*?)multiple definition of {OPEN}(?P<symbol>.+?){CLOSE}"
         r"(?:; (?P<first>.+): first defined here|;.*)?$"),
        ("lld", "duplicate symbol",
         r"duplicate symbol: (?P<symbol>.+?)(?: in (?P<first>.+) and (?P<at>.+))?$"),
        ("lld", "mold", r"mold: error: duplicate symbol: (?P<at>[^:]+): "
         r"(?P<first>[^:]+): (?P<symbol>.+)$"),
        ("armlink", "L6200",
         r"L6200E: Symbol (?P<symbol>.+?) multiply defined \(by (?P<first>.+?) and (?P<at>.+)\)"),
        ("iar", "Error[Li006]",
         r"Error\[Li006\]: duplicate definitions for \"(?P<symbol>.+?)\"; in \"(?P<first>.+?)\", "
         r"and \"(?P<at>.+?)\""),
        ("apple", "duplicate symbol '", r"^duplicate symbol '(?P<symbol>.+)' in:$")),
    *_rules(FailureKind.REGION_OVERFLOW,
        ("gnu", "will not fit in region",
         f"(?:(?P<file>[^\\s:]+) )?section {_quoted('section')} will not fit in region ?"
         f"{_quoted('region')}(?:: overflowed by (?P<bytes>\\d+) bytes?)?"),
        ("gnu", "overflowed by",
         f"region {_quoted('region')} overflowed by (?P<bytes>\\d+) bytes?"),
        ("gnu", "overflowed",
         r"region (?P<region>\w+) (?:is )?overflowed(?: with (?P<section>\w+))?"),
        ("gnu", "is full",  # binutils up to 2.18
         r"region (?P<region>\S+) is full \((?P<file>\S+) section (?P<section>\S+)\)"),
        ("gnu", "is not within region",
         f"address (?P<address>0x[0-9a-f]+) of (?P<file>\\S+) section {_quoted('section')} "
         f"is not within region {_quoted('region')}"),
        ("gold", "overflows end of region",
         r"section (?P<section>\S+) overflows end of region (?P<region>\S+)"),
        ("armlink", "L6220",
         r"L6220E: (?:Load|Execution) region (?P<region>\S+) size \((?P<used>\w+) bytes\) "
         r"exceeds limit \((?P<limit>\w+) bytes\)"),
        ("armlink", "L640",
         r"L6406[EW]: No space in (?:execution )?regions? with \.ANY selector matching "
         r"(?P<section>.+?)\.?$"),
        ("armlink", "L640",
         r"L6407[EW]: Sections of aggregate size (?P<aggregate>\w+) bytes could not fit"),
        ("iar", "Error[Lp011]", r"Error\[Lp011\]: (?P<attribute>section placement failed)"),
        ("armlink", "L6408", r"L6408[EW]: Output is larger than"),
        ("armlink", "L6050", r"L6050U: The (?P<attribute>code size)"
         r" of this image \((?P<used>\w+) bytes\) exceeds the maximum allowed"),
        ("lld", "unable to", r"unable to place section (?P<section>\S+) at "
         r"file offset .*; check your linker script for overflows"),
        ("gnu", "not enough room for program headers",
         r"not enough room for program headers")),
    *_rules(FailureKind.SECTION_OVERLAP,
        ("gnu", "overlaps section",
         r"section (?P<section>\S+) (?:(?:loaded at|LMA|VMA) )?\[(?P<from>\w+),? ?(?:-> )?"
         r"(?P<to>\w+)\] overlaps section (?P<other>\S+)"),
        ("lld", "range overlaps",
         r"section (?P<section>\S+) (?:virtual address|load address|file) range overlaps "
         r"with (?P<other>\S+)"),
        ("gold", "segment overlap",
         r"load segment overlap \[(?P<from>\w+) -> \w+\] and \[\w+ -> (?P<to>\w+)\]"),
        ("armlink", "overlaps",
         r"L6221E: (?:Execution|Load) region (?P<region>\S+) .*overlaps with .*region "
         r"(?P<other>\S+)"),
        ("gnu", "cannot move location counter backwards",
         r"(?P<script>\S+:\d+:)?.*cannot move location counter backwards "
         r"\(from (?P<to>\w+) to (?P<from>\w+)\)"),
        ("lld", "location counter backward",
         r"unable to move location counter (?:\((?P<to>0x\w+)\) )?backward"
         r"(?: to (?P<from>0x\w+))? for:? (?:section )?['.]?(?P<section>[^'\s]+)")),
    *_rules(FailureKind.WRONG_ARCHITECTURE,
        ("gnu", "is not an object",
         r"member (?P<file>.+) in archive is not an object"),
        ("gnu", "not recogni", r"^(?:.*\bld[^:\s]*: )?(?P<file>.+?): file "
         r"not recogni[sz]ed: (?P<attribute>[Ff]ile .+)$"),
        ("gnu", ("rong format", "format not recogni"),
         r"^(?:.*\bld[^:\s]*: )?(?P<file>.+?): "
         r"(?:error adding symbols|could not read symbols): "
         r"(?P<attribute>[Ff]ile (?:in wrong format|format not recogni[sz]ed))"),
        ("gnu", "architecture of input file",
         rf"(?:error: )?(?P<attribute>\S+) architecture of input file {_quoted('file')} is "
         r"incompatible with (?P<other>\S+) output"),
        ("gnu", "register arguments",
         r"(?:error|ERROR): (?P<file>.+?) uses (?P<attribute>\w+) register arguments, "
         r"(?P<other>.+?) does not"),
        ("gnu", "register arguments",
         r"(?P<file>\S+) uses (?P<attribute>\w+) register arguments, (?P<other>\S+) does not"),
        ("gnu", "onflicting",
         r"(?P<file>\S+): [Cc]onflicting (?P<attribute>CPU architectures|architecture profiles"
         r"|definitions of TLS dialect) ?(?P<other>\S+)?"),
        ("gnu", "EABI version",
         r"[Ss]ource object (?P<file>\S+) has (?P<attribute>EABI version \S+), but target "
         r"(?P<other>\S+) has EABI version"),
        ("gnu", "EABI object attribute", r"(?:error: )?(?P<file>\S+): "
         r"(?P<attribute>unknown mandatory EABI object attribute \d+)"),
        ("gnu", "format mismatch",
         r"(?P<attribute>fp16 format) mismatch between (?P<file>\S+) and (?P<other>\S+)"),
        ("gnu", "endian",
         r"(?P<file>\S+): (?:compiled for a|endianness) .*(?P<attribute>endian\w*)"),
        ("gnu", "generic ELF",
         r"(?P<file>\S+): [Rr]elocations in generic ELF \((?P<attribute>EM: \d+)\)"),
        ("gnu", ("can't link", "cannot link"),
         r"(?P<file>\S+): can(?:'t|not) link (?P<attribute>(?:soft|hard|single|double|\d\d-bit)"
         r".*?)(?: with (?P<other>.+))?$"),
        ("gnu", "ABI is incompatible",
         r"(?P<file>\S+): (?P<attribute>ABI) is incompatible with that of the selected emulation"),
        ("lld", "Tag_",
         r"error: (?P<file>.+?): incompatible (?P<attribute>Tag_\w+)"),
        ("lld", "floating-point ABI",
         r"error: (?P<file>.+?): cannot link object files with different (?P<attribute>"
         r"floating-point ABI) from (?P<other>.+)$"),
        ("lld", "is incompatible with",
         r"error: (?P<file>.+?) is incompatible with (?P<other>.+)$"),
        ("mold", "incompatible file type",
         r"(?P<file>\S+): incompatible file type: (?P<other>\S+ is expected but got \S+)"),
        ("lld", "unknown file type",
         r"error: (?P<file>.+?): unknown file type"),
        ("gold", "unsupported ELF machine",
         r"error: (?P<file>.+?): (?P<attribute>unsupported ELF machine number \d+)"),
        ("gold", "incompatible target",
         r"error: (?P<file>.+?): (?P<attribute>incompatible target)"),
        ("gold", "not an object or archive",
         r"error: (?P<file>.+?): (?P<attribute>not an object or archive)"),
        ("armlink", "L6242",
         r"L6242E: Cannot link object (?P<file>.+?) as its attributes are incompatible"),
        ("armlink", "L6238", r"L6238E: (?P<file>[^(\s]+)\([^)]*\) contains "
         r"invalid call from '~(?P<attribute>\w+).*' function to '(?P<other>\w+)"),
        ("armlink", "L6366",
         r"L6366E: (?P<file>.+?) attributes are not compatible with the provided"
         r" (?P<other>.*attributes.*)"),
        ("armlink", "L6007",
         r"L6007U: Could not recogni[sz]e the format of file (?P<file>.+?)\.?$")),
    *_rules(FailureKind.MISSING_LIBRARY,
        ("gnu", "cannot find -l", r"cannot find (?P<library>-l\S+?)(?::|$|\s)"),
        ("lld", "unable to find library",
         r"unable to find library (?P<library>-l\S+)"),
        ("mold", "library not found", r"library not found: (?P<library>\S+)"),
        ("armlink", "L6411",
         r"L6411E: No compatible library exists with a definition of startup symbol"
         r" (?P<symbol>\S+?)\.?$"),
        ("armlink", "L6310", r"L6310[EW]: Unable to find ARM libraries"),
        ("apple", "ld: library not found for", r"\bld: library not found for (?P<library>-l\S+)"),
        ("apple", "ld: library '", r"\bld: library '(?P<library>[^']+)' not found")),
    *_rules(FailureKind.MISSING_FILE,
        ("gnu", ("cannot open linker script", "cannot find linker script"),
         r"cannot (?:open|find) linker script(?: file)? (?P<file>[^:]+)"),
        ("gnu", ("annot find", "No such file"),
         r"\bld[^:\s]*: cannot find (?!entry symbol)(?P<file>[^:\s]+)"),
        ("gnu", "No such file", rf"\bld[^:\s]*: {_FILE}: No such file"),
        ("lld", "annot open", r"(?:error|fatal): cannot open "
         r"(?P<file>.+?): (?:No such file|no such file)"),
        ("armlink", "L6002",
         r"L6002U: Could not open file (?P<file>.+?): "),
        ("armlink", "L6031",
         r"L6031U: Could not open scatter description file (?P<file>.+?):"),
        ("driver", "o such file",
         r"(?:gcc|g\+\+|cc|clang|clang\+\+): error: (?:no such file or directory: )?"
         r"'?(?P<file>\S+?\.(?:o|obj|a|ld|lds|cmd|x))'?(?::|$)"),
        ("driver", "needed by",
         r"ninja: error: '(?P<file>[^']+\.(?:o|obj|a|ld))', needed by"),
        ("driver", "No rule to make target",
         r"No rule to make target [`'](?P<file>[^']+\.(?:o|obj|a|ld))'")),
    *_rules(FailureKind.RELOCATION_OUT_OF_RANGE,
        ("gnu", "truncated to fit",
         r"^(?P<at>.*?)relocation truncated to fit: (?P<relocation>\S+) against (?:undefined )?"
         rf"(?:symbol )?{OPEN}(?P<symbol>[^'’]+){CLOSE}(?: defined in (?P<section>\S+) section in "
         r"(?P<file>.+))?"),
        ("lld", "out of range",
         r"error: (?P<at>.*?): relocation (?P<relocation>R_\w+) out of range: .*"
         r"(?:references '?(?P<symbol>[^'\s;]+))"),
        ("lld", "out of range",
         r"error: (?P<at>.*?): relocation (?P<relocation>R_\w+) out of range"),
        ("gold", "relocation overflow", r"^(?P<at>.*?)error: relocation"
         r" overflow(?: in (?P<relocation>\S+))?"),
        ("armlink", "L6286",
         r"L6286[EW]: Relocation \S+ in (?P<section>\S+) .*?with respect to (?P<symbol>\S+)")),
    *_rules(FailureKind.DISCARDED_SECTION,
        ("gnu", "defined in discarded section",
         rf"^(?P<at>.*?){OPEN}(?P<symbol>[^'’]+){CLOSE} referenced in section .* of .*: "
         rf"defined in discarded section {OPEN}(?P<section>[^'’]+){CLOSE} of (?P<file>\S+)"),
        ("lld", "discarded section",
         r"relocation refers to (?:a symbol|a discarded section|.*in a discarded section):? ?"
         r"(?P<symbol>\S*)")),
    *_rules(FailureKind.ORPHAN_SECTION,
        ("gnu", "unplaced orphan section",
         rf"error: unplaced orphan section {_quoted('section')} from {_quoted('file')}"),
        ("lld", "being placed in",
         r"error: (?P<file>.+?):\((?P<section>[^)]+)\) "
         r"is being placed in"),
        ("gnu", "no memory region specified",
         rf"error: no memory region specified for (?:loadable )?section {_quoted('section')}"),
        ("armlink", "L6224",
         r"L6224E: Could not place (?P<file>\S+?)\((?P<section>[^)]+)\) in any"),
        ("armlink", "L6985", r"L6985E: Unable to automatically place AT section "
         r"(?P<file>\S+?)\((?P<section>[^)]+)\)"),
        ("armlink", "L6236",
         r"L6236E: No section matches selector - no section to be (?P<attribute>\S+?)\.?$")),
    *_rules(FailureKind.LTO,
        ("gnu", ("plugin needed", "LTO", "bytecode stream", "lto-wrapper"),
         r"(?P<file>\S+): plugin needed to handle lto object"
         r"|lto1: fatal error: (?P<attribute>.+)|lto-wrapper: fatal error: .+"
         r"|bytecode stream in file [‘'`](?P<other>[^’']+)")),
    *_rules(FailureKind.SCRIPT_ERROR,
        ("gnu", "syntax error",
         r"ld[^:\s]*: ?(?P<file>[^:\s]+):\d+(?::\d+)?: (?:.*)syntax error"),
        ("gnu", ("undefined MEMORY region", "undefined section"),
         rf"undefined (?:MEMORY region|section) {_quoted('region')} referenced in expression"),
        ("gnu", ("non constant", "nonconstant"), r"ld[^:\s]*: ?(?P<file>[^:\s]+)"
         r":\d+: non ?constant (?:expression|or forward reference)"),
        ("lld", ".ld", r"error: (?P<file>[^:\s]+\.(?:ld|lds|cmd|x)):\d+: (?:.+)"),
        ("armlink", ("L6228", "L6292", "L6296", "L6223", "L6384", "L6281"),
         r"L6(?:228|292|296|223|384|281)E: (?P<attribute>.+)")),
    *_rules(FailureKind.OUTPUT_ERROR,
        ("gnu", ("No space left", "annot open output", "ermission denied"),
         r"ld[^:]*: (?:.*)(?P<attribute>No space left on device|[Cc]annot open output file .*"
         r"|[Pp]ermission denied)")),
    *_rules(FailureKind.MISSING_LIBRARY,
        ("gnu", "DSO missing", r"(?P<file>\S+): error adding symbols: "
         r"(?P<attribute>DSO missing from command line)"),
        cause_kind=LinkCause.LIBRARY_NOT_LINKED),
    *_rules(FailureKind.UNKNOWN,
        ("gnu", "rchive has no index", _UNREADABLE + r"(?P<attribute>[Aa]rchive has no index.*)"),
        cause_kind=LinkCause.NO_INDEX),
    *_rules(FailureKind.UNKNOWN,
        ("gnu", ("alformed archive", "file truncated"),
         _UNREADABLE + r"(?P<attribute>[Mm]alformed archive|[Ff]ile truncated)")),
    *_rules(FailureKind.UNDEFINED_SYMBOL,
        ("gnu", "TLS", r"(?P<symbol>\S+): TLS definition in \S+ section \S+ "
         r"mismatches non-TLS reference")),
    *_rules(FailureKind.UNKNOWN,
        ("armlink", ("E: ", "U: "), r"\b(?P<attribute>L\d{4}[EU]: .+)"),
        ("iar", "rror[", r"[Ee]rror\[(?P<attribute>(?:L[a-z]\d{3}|e\d{1,3})\]: .+)"),
        ("lld", "error: ", r"^(?:\S*[/\\])?(?:[\w.+-]*-)?(?:ld\.lld|ld64\.lld|rust-lld|wasm-ld|lld"
         r"|lld-link|mold|ld\.mold|gold|ld\.gold|ld)(?:-\d+)?(?:\.exe)?: (?:fatal )?error: "
         r"(?P<attribute>.+)"),
        ("msvc", "error LNK", r"error (?P<attribute>LNK\d{4}: .+)"),
        ("ti", "error #", r"error (?P<attribute>#1\d{4}(?:-D)?: .+)")),
)  # fmt: skip

# What says that the linker gave up, without saying why.
GAVE_UP = re.compile(
    r"collect2: (?:fatal )?error: .*|\bld returned \d+ exit status|(?:linker|ld\S*) command failed"
    r"|^collect2\s?[:：] ?\S+?\s?[:：] ?.*\bld(?!\w).*[1-9]"  # in whatever language
    r"|Finished: \d+ information, \d+ warning(?:, \d+ error)? and [1-9]\d* (?:fatal )?error "
    r"messages"
    r"|\bld: symbol\(s\) not found for architecture|\bld: \d+ duplicate symbols? for architecture"
)
# A line of a linker that prints its name alone in front of an error.
COMPLAINT = re.compile(
    r"^(?:\S*[/\\])?(?:[\w.+-]*-)?(?:ld|gold|lld|mold)(?:\.\w+)?: (?P<text>.*\b(?i:errors?|fatal|"
    r"cannot|can't|could not|unrecogni[sz]ed|unknown|undefined|failed|invalid|unable to|not found|"
    r"no such|missing|unsupported|illegal|bad|malformed)\b.*)$"
)
# What shows that a link was done, whoever tells it: a build system, a linker's own summary, or the
# command itself.
LINKED = re.compile(
    r"\bLinking (?:\w+ )*(?:executable|shared library|shared module|static library)\b"
    r"|^\s*(?:\[\s*\d+/\d+\] )?(?:LD|LINK|CXXLD|CCLD|Link(?:ing)?:?)\s+\S|^linking\.\.\.$"
    r"|\bBuilt target\b|^Memory region\s+Used Size|^Program Size: Code=|- 0 Error\(s\)"
    r"|Finished: \d+ information, \d+ warning(?:, 0 error)? and 0 (?:fatal )?error messages"
    r"|\bIAR ELF Linker\b|^Total number of errors: 0$|^ninja: no work to do"
    r"|(?:^|[\s/\\])(?:[\w.+-]*-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|ld\.\w+|armclang|"
    r"armlink|ilinkarm|mold)(?:-\d+)?(?:\.exe)? (?!(?:.* )?-[cSE] )(?:.* )?-o "
)
# What shows that a build did not get to its end, for whatever reason.
STOPPED = re.compile(
    r"\*\*\* .*\b(?:Error|Fehler|Erreur|Errore?) \d+|\bmake(?:\[\d+\])?: \*\*\* |^ninja: "
    r"(?:error|fatal|build stopped)|^FAILED: |: (?:fatal )?error(?: [A-Z]\d+)?: |^CMake Error\b"
    r"|- [1-9]\d* Error\(s\)|^FATAL ERROR: command exited with status [1-9]"
    r"|^Error while running Linker|^Total number of errors: [1-9]|\bTarget not created\b"
    r"|Error\[Pe\d+\]|^(?:error|ERROR): (?!.*\bwarning\b)"
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
AGGREGATE = "bytes of sections"  # of armlink: what found no place, in all
FIRST_DEFINED = "first defined here"
FIRST_HERE = re.compile(r"^(?P<at>.*?):? ?(?:first defined here|previous definition here)$")

# Of what precedes a message.
_LINKER = re.compile(
    r"^(?:.*?[\s/\\]|)(?:[\w.+-]*-)?(?:ld|gold|lld|mold)(?:\.(?:bfd|gold|lld|classic))?(?:-\d+)?"
    r"(?:\.exe)?: ?(?=\S|$)"
)
_NOISE = re.compile(r"^(?:error|fatal error|ERROR): ")
_OBJECT = re.compile(
    r"(?P<object>(?:[A-Za-z]:[\\/])?[^:\n]*?(?:\.(?:o|obj|a|lib|elf|lo|out|axf)|\.so[.\d]*)"
    r"(?:\([^()]*(?:\([^()]*\))?[^()]*\))?)(?=[:\s(]|$)"
)
_SOURCE = re.compile(
    r"(?P<source>(?:[A-Za-z]:[\\/])?[^:()\n]+?\.(?:c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|inc|ipp|tcc|S|s|asm"
    r"|cu|rs|f90)):(?P<line>\d+)?"
)
_SECTION = re.compile(
    r"\((?P<section>[^()\s]+(?:\([^()]*\)[^()\s]*)*?)\+(?P<offset>0x[0-9a-fA-F]+)\)"
)
_FUNCTION = re.compile(r"function (?P<function>.+?)(?::? ?(?:error)?:? ?)$")


def without_linker(text: str) -> str:
    """The message without the linker's own name in front."""
    return _NOISE.sub("", _LINKER.sub("", text, count=1)).strip()


def parse_place(text: str) -> CodePlace:
    """What is known from ``lib.a(x.o):src/x.c:12:``, ``x.o:(.text+0x8):`` and their like."""
    rest = without_linker(text)
    function = _FUNCTION.search(rest)
    section = _SECTION.search(rest)
    found = _OBJECT.match(rest)
    if found:
        rest = rest[found.end() :].lstrip(":")
    source = _SOURCE.search(rest)
    return CodePlace(
        object=found["object"].strip() if found else None,
        function=_unquoted(function["function"]) if function else None,
        source=source["source"].strip() if source else None,
        line=int(source["line"]) if source and source["line"] else None,
        section=section["section"] if section else None,
        offset=int(section["offset"], 16) if section else None,
    )


def _unquoted(name: str) -> str:
    return name.strip("`'‘’ ")
