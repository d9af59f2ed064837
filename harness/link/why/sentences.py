"""A sentence for the cause and one for the fix of every kind of failure, from its message alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from harness.link.failure import Failure, FailureKind, LinkCause, archive_of
from harness.link.log.messages import AGGREGATE
from harness.link.stop.kconfig import NotTaken
from harness.link.why.known import in_zephyr, unknown
from harness.link.why.options import blamed_on_options

_Said = tuple[LinkCause, str, str]  # kind, cause, fix


def without_objects(
    failure: Failure, line: Sequence[str] = (), refused: Sequence[NotTaken] = ()
) -> Failure:
    """Cause and fix from the message alone; ``line`` is the link line, where the log shows it, and
    ``refused`` are the options that Kconfig said before did not get their value."""
    if failure.kind is FailureKind.UNDEFINED_SYMBOL:
        zephyr = any(word.endswith("zephyr/kernel/libkernel.a") for word in line)
        known = in_zephyr(failure.symbol or "") if zephyr else None
        cause = known or unknown(failure.symbol or "", failure.places, line, failure.linker)
        cause = blamed_on_options(cause, refused)
        needed = f"{failure.symbol} is needed by {failure.places[0]}. " if failure.places else ""
        return replace(failure, cause=needed + cause.cause, fix=cause.fix, cause_kind=cause.kind)
    kind, cause_text, fix = _SENTENCES[failure.kind](failure)
    return replace(failure, cause_kind=failure.cause_kind or kind, cause=cause_text, fix=fix)


def _duplicate(failure: Failure) -> _Said:
    where = " and ".join(str(p) for p in failure.places[:3]) or "two of the inputs"
    return (LinkCause.TWO_DEFINITIONS, f"{failure.symbol} is defined more than once: by {where}.",
            f"Keep one definition of {failure.symbol}: drop one of the two files, make the default "
            "weak, or move a definition from a header to one source file.")  # fmt: skip


def _overflow(failure: Failure) -> _Said:
    if failure.attribute and failure.attribute.endswith(AGGREGATE):
        return (LinkCause.TOO_LARGE, f"{failure.attribute} found no place in any execution region "
                "that takes them; how much is missing is not said.",
                "Make them or what is beside them smaller, or a region of the scatter file larger "
                "where the hardware has more.")  # fmt: skip
    region = failure.region or "a memory region"
    much = f" by {failure.bytes} bytes" if failure.bytes else ""
    what = f"; what does not fit is {', '.join(failure.sections)}" if failure.sections else ""
    return (LinkCause.TOO_LARGE, f"{region} is too small{much}{what}.",
            f"Make the contents of {region} smaller, or its LENGTH larger where the hardware has "
            "more, or place the largest sections in another region.")  # fmt: skip


def _overlap(failure: Failure) -> _Said:
    named = " and ".join(failure.sections) or failure.region or "two sections"
    much = f" (by {failure.bytes} bytes)" if failure.bytes else ""
    return (LinkCause.ADDRESSES_COLLIDE, f"{named} want the same addresses{much}.",
            "Give one of them another address or region in the linker script.")  # fmt: skip


# What a linker makes; it cannot be what is built for something else.
_OUTPUT = re.compile(r"(?i)\.(?:elf|axf|out|exe)$|(?:^|[/\\])[^./\\]+$")
# Of the compiler's own libraries: nobody rebuilds them, their driver picks them.
_TOOLCHAINS = re.compile(
    r"(?:^|[/\\])(?:lib(?:gcc|gcc_eh|gcc_s|c|c_nano|g|g_nano|m|nosys|rdimon|stdc\+\+|stdc\+\+_nano"
    r"|supc\+\+|supc\+\+_nano|gloss\w*)\.(?:a|so)|crt\w*\.o)(?:$|\()"
)
_TOOLCHAINS_OPTION = re.compile(
    r"^-l(?:gcc|gcc_eh|gcc_s|c|c_nano|g|g_nano|m|nosys|rdimon|stdc\+\+|stdc\+\+_nano|supc\+\+"
    r"|supc\+\+_nano|gloss\w*|clang_rt\S*)$"
)


def _architecture(failure: Failure) -> _Said:
    """Of two files that do not fit, the one that the linker makes is never the one to rebuild."""
    inputs = [f for f in failure.files if not _OUTPUT.search(f)]
    what = f" ({failure.attribute})" if failure.attribute else ""
    kind = LinkCause.BUILT_FOR_ANOTHER_TARGET
    if not inputs:
        return (kind, f"The inputs were built for different machines or ABIs{what}.",
                "Build all of them for one machine, with the same -mcpu, -mfpu and -mfloat-abi."
                )  # fmt: skip
    file, *others = inputs
    cause = f"{file} was built for another machine or in another format{what}."
    if others:
        cause = f"{file} and {others[0]} were built for different machines or ABIs{what}."
    if _TOOLCHAINS.search(file):
        return (kind, cause, "Link with the compiler's driver and the -mcpu, -mfpu and "
                "-mfloat-abi that the objects were compiled with, so that it picks the library "
                "that fits.")  # fmt: skip
    return (kind, cause, f"Rebuild {archive_of(file)} with the compiler and the -mcpu, -mfpu and "
            "-mfloat-abi of this build, from an empty build directory.")  # fmt: skip


def _missing_library(failure: Failure) -> _Said:
    name = failure.files[0] if failure.files else failure.symbol or "a library"
    if failure.cause_kind is LinkCause.LIBRARY_NOT_LINKED:
        return (LinkCause.LIBRARY_NOT_LINKED,
                f"{name} is needed, but only another library asks for it.",
                f"Add {name} to the link line.")  # fmt: skip
    if _TOOLCHAINS_OPTION.match(name):
        return (LinkCause.NOT_OF_THIS_TOOLCHAIN,
                f"{name} comes with a toolchain, and this one has none for the options that it was "
                "called with.",
                "Look at the driver's options that choose its libraries (--target, --sysroot, "
                "-static, -mcpu, -mfpu, -mfloat-abi), or install the toolchain's library for them."
                )  # fmt: skip
    return (LinkCause.NOT_IN_SEARCH_PATH,
            f"{name} is not in any directory that the linker searches.",
            f"Build {name} first, or add its directory with -L (in CMake: link the target, not "
            "the name).")  # fmt: skip


def _missing_file(failure: Failure) -> _Said:
    name = failure.files[0] if failure.files else "an input file"
    return (LinkCause.NOT_BUILT, f"{name} does not exist.",
            f"Build {name} before the link, or correct its path.")  # fmt: skip


def _relocation(failure: Failure) -> _Said:
    place = failure.places[0] if failure.places else None
    return (
        LinkCause.TOO_FAR,
        f"{failure.symbol or 'The target'} is too far away for the instruction or "
        f"word that refers to it{f' in {place}' if place else ''}.",
        _NEARER.get(_relocated(failure), "Place both in regions near each other."),
    )


# By the beginning of the relocation's name: what else helps than to move things.
_NEARER = {
    "R_ARM": "Compile the caller with -mlong-calls, or place both in regions near each other.",
    "R_X86_64": "Compile with -mcmodel=medium or large, or make the data smaller; what goes into a "
    "shared object or a PIE needs -fPIC or -fPIE.",
    "R_RISCV": "Compile with -mcmodel=medany, or place both in regions near each other.",
}
_RELOCATION = re.compile(r"\b(R_ARM|R_X86_64|R_RISCV|R_AARCH64)_\w+")


def _relocated(failure: Failure) -> str:
    """The machine of the relocation that the message names."""
    named = _RELOCATION.search(failure.text)
    return named[1] if named else ""


def _discarded(failure: Failure) -> _Said:
    return (
        LinkCause.DISCARDED,
        f"{failure.symbol} is in a section that the link throws away"
        f"{' (' + failure.sections[0] + ')' if failure.sections else ''}.",
        "KEEP the section in the linker script, or compile both files with the same options.",
    )


def _orphan(failure: Failure) -> _Said:
    names = ", ".join(failure.sections[:5])
    return (LinkCause.NO_PLACE, f"The linker script has no place for {names}.",
            f"Add an output section for {failure.sections[0] if failure.sections else 'it'} to the "
            "linker script.")  # fmt: skip


def _script(failure: Failure) -> _Said:
    what = failure.attribute or failure.region or (failure.files[0] if failure.files else "")
    return (LinkCause.BAD_SCRIPT, f"The linker script is wrong: {failure.text.strip()}",
            f"Correct the linker script{f' ({what})' if what else ''}; a file that is no script "
            "must be an object or archive of this target.")  # fmt: skip


def _assertion(failure: Failure) -> _Said:
    return (
        LinkCause.ASSERTION,
        f"The linker stopped with: {failure.attribute}",
        "Satisfy the condition that the linker script asserts (search its ASSERT lines).",
    )


def _lto(failure: Failure) -> _Said:
    return (
        LinkCause.LTO,
        f"The link-time optimiser failed: {failure.text.strip()}",
        "Build every object with one compiler version, and use gcc-ar and gcc-ranlib.",
    )


def _output(failure: Failure) -> _Said:
    return (LinkCause.CANNOT_WRITE, f"The output cannot be written: {failure.attribute}.",
            "Free the disk or correct the permissions, then link again.")  # fmt: skip


def _stopped(failure: Failure) -> _Said:
    return (LinkCause.KILLED,
            f"The linker was stopped ({failure.attribute}); memory is the usual reason.",
            "Link with fewer parallel jobs, or give the machine more memory.")  # fmt: skip


def _unknown(failure: Failure) -> _Said:
    if failure.cause_kind is LinkCause.NO_INDEX:
        return (LinkCause.NO_INDEX, f"{failure.files[0]} has no index of its symbols.",
                f"Run this toolchain's ranlib on {failure.files[0]}.")  # fmt: skip
    if failure.attribute:
        return (LinkCause.NOT_KNOWN, f"The linker said: {failure.attribute}.",
                "Look the message up in the linker's manual; it is none of those known here."
                )  # fmt: skip
    return (LinkCause.NOT_SAID, "The link failed, and the log does not say why.",
            "Run the link again with the whole output kept.")  # fmt: skip


_SENTENCES = {
    FailureKind.DUPLICATE_SYMBOL: _duplicate,
    FailureKind.REGION_OVERFLOW: _overflow,
    FailureKind.SECTION_OVERLAP: _overlap,
    FailureKind.WRONG_ARCHITECTURE: _architecture,
    FailureKind.MISSING_LIBRARY: _missing_library,
    FailureKind.MISSING_FILE: _missing_file,
    FailureKind.RELOCATION_OUT_OF_RANGE: _relocation,
    FailureKind.DISCARDED_SECTION: _discarded,
    FailureKind.ORPHAN_SECTION: _orphan,
    FailureKind.SCRIPT_ERROR: _script,
    FailureKind.ASSERTION: _assertion,
    FailureKind.LTO: _lto,
    FailureKind.OUTPUT_ERROR: _output,
    FailureKind.LINKER_STOPPED: _stopped,
    FailureKind.UNKNOWN: _unknown,
}
