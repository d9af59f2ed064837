"""A sentence for the cause and one for the fix, for every kind of failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.formats.linker_map import LinkMap, contributors, orphans
from harness.link.failure import Failure
from harness.link.model.index import LinkIndex, Loaded
from harness.link.why.abi import attributes, difference
from harness.link.why.undefined import unknown

_SAMPLE = 60  # objects whose ABI is looked at


def without_objects(failure: Failure, line: Sequence[str] = ()) -> Failure:
    """Cause and fix from the message alone; ``line`` is the link line, where the log shows it."""
    if failure.kind == "undefined_symbol":
        cause = unknown(failure.symbol or "", failure.places, line)
        needed = f"{failure.symbol} is needed by {failure.places[0]}. " if failure.places else ""
        return replace(failure, cause=needed + cause.cause, fix=cause.fix, cause_kind=cause.kind)
    kind, cause_text, fix = _SENTENCES[failure.kind](failure)
    return replace(failure, cause_kind=failure.cause_kind or kind, cause=cause_text, fix=fix)


def _duplicate(failure: Failure) -> tuple[str, str, str]:
    where = " and ".join(str(p) for p in failure.places[:3]) or "two of the inputs"
    return ("two_definitions", f"{failure.symbol} is defined more than once: by {where}.",
            f"Keep one definition of {failure.symbol}: drop one of the two files, make the default "
            "weak, or move a definition from a header to one source file.")  # fmt: skip


def _overflow(failure: Failure) -> tuple[str, str, str]:
    region = failure.region or "a memory region"
    much = f" by {failure.bytes} bytes" if failure.bytes else ""
    what = f"; what does not fit is {', '.join(failure.sections)}" if failure.sections else ""
    return ("too_large", f"{region} is too small{much}{what}.",
            f"Make the contents of {region} smaller, or its LENGTH larger where the hardware has "
            "more, or place the largest sections in another region.")  # fmt: skip


def _overlap(failure: Failure) -> tuple[str, str, str]:
    named = " and ".join(failure.sections) or failure.region or "two sections"
    much = f" (by {failure.bytes} bytes)" if failure.bytes else ""
    return ("addresses_collide", f"{named} want the same addresses{much}.",
            "Give one of them another address or region in the linker script.")  # fmt: skip


def _architecture(failure: Failure) -> tuple[str, str, str]:
    file = failure.files[0] if failure.files else "an input"
    other = f" and {failure.files[1]}" if len(failure.files) > 1 else ""
    what = f" ({failure.attribute})" if failure.attribute else ""
    return ("built_for_another_target",
            f"{file}{other} were built for another machine or ABI than the rest{what}." if other
            else f"{file} was built for another machine or in another format{what}.",
            f"Rebuild {file.split('(')[0]} with the compiler and the -mcpu, -mfpu and -mfloat-abi "
            "of this build, from an empty build directory.")  # fmt: skip


def _missing_library(failure: Failure) -> tuple[str, str, str]:
    name = failure.files[0] if failure.files else failure.symbol or "a library"
    if failure.attribute and "DSO" in failure.attribute:
        return ("library_not_linked", f"{name} is needed, but only another library asks for it.",
                f"Add {name} to the link line.")  # fmt: skip
    return ("not_in_search_path", f"{name} is not in any directory that the linker searches.",
            f"Build {name} first, or add its directory with -L (in CMake: link the target, not "
            "the name).")  # fmt: skip


def _missing_file(failure: Failure) -> tuple[str, str, str]:
    name = failure.files[0] if failure.files else "an input file"
    return ("not_built", f"{name} does not exist.",
            f"Build {name} before the link, or correct its path.")  # fmt: skip


def _relocation(failure: Failure) -> tuple[str, str, str]:
    place = failure.places[0] if failure.places else None
    return (
        "too_far",
        f"{failure.symbol or 'The target'} is too far away for the instruction or "
        f"word that refers to it{f' in {place}' if place else ''}.",
        "Compile the caller with -mlong-calls, or place both in regions near each other.",
    )


def _discarded(failure: Failure) -> tuple[str, str, str]:
    return (
        "discarded",
        f"{failure.symbol} is in a section that the link throws away"
        f"{' (' + failure.sections[0] + ')' if failure.sections else ''}.",
        "KEEP the section in the linker script, or compile both files with the same options.",
    )


def _orphan(failure: Failure) -> tuple[str, str, str]:
    names = ", ".join(failure.sections[:5])
    return ("no_place", f"The linker script has no place for {names}.",
            f"Add an output section for {failure.sections[0] if failure.sections else 'it'} to the "
            "linker script.")  # fmt: skip


def _script(failure: Failure) -> tuple[str, str, str]:
    what = failure.attribute or failure.region or (failure.files[0] if failure.files else "")
    return ("bad_script", f"The linker script is wrong: {failure.text.strip()}",
            f"Correct the linker script{f' ({what})' if what else ''}; a file that is no script "
            "must be an object or archive of this target.")  # fmt: skip


def _assertion(failure: Failure) -> tuple[str, str, str]:
    return (
        "assertion",
        f"The linker stopped with: {failure.attribute}",
        "Satisfy the condition that the linker script asserts (search its ASSERT lines).",
    )


def _lto(failure: Failure) -> tuple[str, str, str]:
    return (
        "lto",
        f"The link-time optimiser failed: {failure.text.strip()}",
        "Build every object with one compiler version, and use gcc-ar and gcc-ranlib.",
    )


def _output(failure: Failure) -> tuple[str, str, str]:
    return ("cannot_write", f"The output cannot be written: {failure.attribute}.",
            "Free the disk or correct the permissions, then link again.")  # fmt: skip


def _stopped(failure: Failure) -> tuple[str, str, str]:
    return ("killed", f"The linker was stopped ({failure.attribute}); memory is the usual reason.",
            "Link with fewer parallel jobs, or give the machine more memory.")  # fmt: skip


def _unknown(failure: Failure) -> tuple[str, str, str]:
    if failure.attribute and "index" in failure.attribute:
        return ("no_index", f"{failure.files[0]} has no index of its symbols.",
                f"Run this toolchain's ranlib on {failure.files[0]}.")  # fmt: skip
    if failure.attribute:
        return ("not_known", f"The linker said: {failure.attribute}.",
                "Look the message up in the linker's manual; it is none of those known here."
                )  # fmt: skip
    return ("not_said", "The link failed, and the log does not say why.",
            "Run the link again with the whole output kept.")  # fmt: skip


_SENTENCES = {
    "duplicate_symbol": _duplicate, "region_overflow": _overflow, "section_overlap": _overlap,
    "wrong_architecture": _architecture, "missing_library": _missing_library,
    "missing_file": _missing_file, "relocation_out_of_range": _relocation,
    "discarded_section": _discarded, "orphan_section": _orphan, "script_error": _script,
    "assertion": _assertion, "lto": _lto, "output_error": _output, "linker_stopped": _stopped,
    "unknown": _unknown,
}  # fmt: skip


def explain_duplicate(failure: Failure, index: LinkIndex) -> Failure:
    """With both definitions as the objects have them."""
    definitions = index.definitions.get(failure.symbol or "", [])
    strong = [d for d in definitions if d.symbol.binding == "strong"]
    if len(strong) > 1:
        places = tuple(d.place() for d in strong[:4])
        known = {p.object: p for p in failure.places}
        places = tuple(
            replace(p, source=known[p.object].source, line=known[p.object].line)
            if p.object in known else p for p in places
        )  # fmt: skip
        failure = replace(failure, definitions=places, places=places)
    else:
        failure = replace(failure, definitions=failure.places)
    return without_objects(failure)


def explain_architecture(failure: Failure, index: LinkIndex) -> Failure:
    """With the attribute that differs; the wrong ones are those that differ from most."""
    named = [u for u in index.units if _named(u.name, u.input.path, failure.files)]
    others = [u for u in index.units if u not in named][:_SAMPLE]
    for unit in named:
        mine = attributes(unit.object)
        for other in others:
            found = difference(mine, attributes(other.object))
            if found:
                return _with_attribute(failure, found[0], [*named, *others])
    return without_objects(failure)


def _with_attribute(failure: Failure, name: str, units: Sequence[Loaded]) -> Failure:
    built = [(unit.name, attributes(unit.object).get(name, "unknown")) for unit in units]
    usual = Counter(value for _, value in built).most_common(1)[0][0]
    wrong, value = next((n, v) for n, v in built if v != usual)
    right = next(n for n, v in built if v == usual)
    files = (wrong, right)
    failure = without_objects(replace(failure, files=files, attribute=f"{name}: {value}"))
    return replace(
        failure, attribute=f"{name}: {value} against {usual}",
        cause=f"{wrong} is built for {value}, {right} and most others for {usual} ({name}).",
    )  # fmt: skip


def _named(name: str, path: Path | None, files: Sequence[str]) -> bool:
    ends = {
        file.split("(")[0].rsplit("/", 1)[-1]
        for file in files
        if not file.endswith((".elf", ".out"))
    }
    return (
        path is not None
        and path.name in ends
        and any("(" not in file or name.endswith(file.rsplit("/", 1)[-1]) for file in files)
    )


def explain_overflow(failure: Failure, link_map: LinkMap, scripts: Sequence[str]) -> Failure:
    """With the largest contributors and the sections no script places."""
    largest = tuple(contributors(link_map, failure.region or ""))
    stray = tuple(
        o for o in orphans(link_map, scripts) if failure.region in (o["region"], o["load_region"])
    )
    failure = without_objects(replace(failure, contributors=largest, orphans=stray))
    big = [o for o in stray if int(o["bytes"]) * 2 >= (failure.bytes or 0)]
    if big:
        name, size = big[0]["section"], big[0]["bytes"]
        where = f" from {', '.join(big[0]['files'][:2])}" if big[0]["files"] else ""
        copy = (
            " and its copy in RAM" if big[0]["load_region"] not in (None, big[0]["region"]) else ""
        )
        return replace(
            failure, cause_kind="orphan_section",
            cause=f"{failure.cause} Section {name} ({size} bytes{where}) is not placed by the "
            f"linker script, so the linker put it there{copy}.",
            fix=f"Add an output section for {name} to the linker script, in a region that has room "
            "for it.",
        )  # fmt: skip
    if largest:
        most = ", ".join(f"{p['section']} of {p['file']} ({p['bytes']} bytes)" for p in largest[:3])
        failure = replace(failure, cause=f"{failure.cause} The largest pieces are {most}.")
    return failure
