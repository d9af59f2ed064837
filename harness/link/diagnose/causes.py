"""Causes of duplicates, overflows and mixed architectures, from the objects and the map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.formats.linker_map import Contributor, LinkMap, contributors, orphans
from harness.link.diagnose.abi import attributes, difference
from harness.link.diagnose.sentences import without_objects
from harness.link.failure import Failure, LinkCause, archive_of
from harness.link.index import Definition, LinkedObject, LinkIndex

_SAMPLE = 60  # objects whose ABI is looked at


def explain_duplicate(failure: Failure, index: LinkIndex) -> Failure:
    """With both definitions as the objects have them."""
    definitions = index.definitions.get(failure.symbol or "", [])
    strong = [d for d in definitions if d.symbol.binding == "strong"]
    if len(strong) > 1 and len({(d.unit.name, d.unit.input.path) for d in strong}) == 1:
        return _linked_twice(failure, strong)
    if len(strong) > 1:
        places = tuple(d.place() for d in strong[:4])
        known = {p.object: p for p in failure.places}
        places = tuple(
            replace(p, source=known[p.object].source, line=known[p.object].line)
            if p.object in known
            else p
            for p in places
        )
        failure = replace(failure, definitions=places, places=places)
    else:
        failure = replace(failure, definitions=failure.places)
    return without_objects(failure)


def _linked_twice(failure: Failure, strong: Sequence[Definition]) -> Failure:
    """One object that is on the line more than once, by its own name each time."""
    place, file = strong[0].place(), strong[0].unit.input.word
    whole = " under --whole-archive" if strong[0].unit.input.whole else ""
    return replace(
        failure,
        definitions=tuple(d.place() for d in strong[:4]),
        cause_kind=LinkCause.LINKED_TWICE,
        cause=f"{failure.symbol} is defined once, by {place}, and {file} is on the link line twice"
        f"{whole}.",
        fix=f"Link {file} once: take out the second place that names it (in CMake a target or a "
        "path in target_link_libraries; Zephyr links the libraries that zephyr_library() makes "
        "under --whole-archive by itself).",
    )


def explain_architecture(failure: Failure, index: LinkIndex) -> Failure:
    """With the attribute that differs. The files at fault are those that differ from most."""
    named = [u for u in index.units if _named(u.name, u.input.path, failure.files)]
    others = [u for u in index.units if u not in named][:_SAMPLE]
    for unit in named:
        mine = attributes(unit.object)
        for other in others:
            differs = difference(mine, attributes(other.object))
            if differs:
                return _with_attribute(failure, differs[0], [*named, *others])
    return without_objects(failure)


def _with_attribute(failure: Failure, name: str, units: Sequence[LinkedObject]) -> Failure:
    built = [(unit.name, attributes(unit.object).get(name, "unknown")) for unit in units]
    usual = Counter(value for _, value in built).most_common(1)[0][0]
    wrong, value = next((n, v) for n, v in built if v != usual)
    right = next(n for n, v in built if v == usual)
    files = (wrong, right)
    failure = without_objects(replace(failure, files=files, attribute=f"{name}: {value}"))
    return replace(
        failure,
        attribute=f"{name}: {value} against {usual}",
        cause=f"{wrong} is built for {value}, {right} and most others for {usual} ({name}).",
    )


def _named(name: str, path: Path | None, files: Sequence[str]) -> bool:
    ends = {
        archive_of(file).rsplit("/", 1)[-1] for file in files if not file.endswith((".elf", ".out"))
    }
    return (
        path is not None
        and path.name in ends
        and any("(" not in file or name.endswith(file.rsplit("/", 1)[-1]) for file in files)
    )


def explain_overflow(failure: Failure, link_map: LinkMap, scripts: Sequence[str]) -> Failure:
    """With the largest contributors and the sections that no script places."""
    largest = contributors(link_map, failure.region or "")
    stray = tuple(
        o for o in orphans(link_map, scripts) if failure.region in (o.region, o.load_region)
    )
    failure = without_objects(replace(failure, contributors=largest, orphans=stray))
    big = next((o for o in stray if o.bytes * 2 >= (failure.bytes or 0)), None)
    if big is not None:
        where = f" from {', '.join(big.files[:2])}" if big.files else ""
        copy = " and its copy in RAM" if big.load_region not in (None, big.region) else ""
        return replace(
            failure,
            cause_kind=LinkCause.ORPHAN_SECTION,
            cause=f"{failure.cause} Section {big.section} ({big.bytes} bytes{where}) is not placed "
            f"by the linker script, so the linker put it there{copy}.",
            fix=f"Add an output section for {big.section} to the linker script, in a region that "
            "has room for it.",
        )
    if largest:
        most = ", ".join(f"{p.section} of {p.file} ({p.bytes} bytes)" for p in largest[:3])
        cause = f"{failure.cause} The largest pieces are {most}."
        failure = replace(failure, cause=cause, fix=_moved(failure, link_map) or failure.fix)
    return failure


def _moved(failure: Failure, link_map: LinkMap) -> str:
    """The pieces that make enough room if they move, and the regions that have room for them; ""
    where no region has."""
    chosen: list[Contributor] = []
    for piece in failure.contributors:
        chosen.append(piece)
        if sum(p.bytes for p in chosen) >= (failure.bytes or 0):
            break
    moved = sum(piece.bytes for piece in chosen)
    room = [
        f"{r.name} has {n} bytes free"
        for r, n in link_map.room_beside(failure.region or "")
        if n >= moved
    ][:3]
    if not room or moved < (failure.bytes or 0):
        return ""
    what = ", ".join(f"{p.section} of {p.file}" for p in chosen)
    return (
        f"Move {what} ({moved} bytes) to another region: {'; '.join(room)}. A variable goes by "
        "its section, which the linker script must place there (in Zephyr the region's name: "
        f'__attribute__((section("{room[0].split()[0]}"))), or zephyr_code_relocate()). Or make it '
        f"smaller, or the LENGTH of {failure.region} larger where the hardware has more."
    )
