"""Causes and fixes: from a message alone (``sentences.yaml``), or from the objects and the map."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.config.schema import Data
from harness.core.errors import MalformedFile
from harness.core.tables import read_table
from harness.formats.demangle import mangled_base
from harness.formats.elf import EM_ARM, ElfFile
from harness.formats.linker_map import Contributor, LinkMap, contributors, orphans
from harness.link.diagnose.symbols import reasons
from harness.link.diagnose.tree import Tree
from harness.link.diagnose.trial import Trial, told
from harness.link.diagnose.zephyr import ZephyrBuild
from harness.link.facts import read_facts
from harness.link.failure import Failure, FailureKind, LinkCause, archive_of
from harness.link.index import LinkedObject, LinkIndex

_WORD = re.compile(r"\{(?P<name>\w+)(?:\|(?P<default>[^}]*))?\}")
_OPTIONAL = re.compile(r"\[\[(?P<text>.*?)\]\]")
_OPTION = re.compile(r"\bCONFIG_[A-Z0-9_]+")
# What a linker writes: never the file that was built for another machine.
_OUTPUT = re.compile(r"(?i)\.(?:elf|axf|out|exe)$|(?:^|[/\\])[^./\\]+$")
_HEADER = re.compile(r"\.(?:h|hh|hpp|hxx|inc)$")
_OBJECT = re.compile(r"\.(?:o|obj|a|lib|lo)$|\)$")


@dataclass(frozen=True)
class _Sentences(Data):
    kind: FailureKind
    cause: str
    fix: str
    cause_kind: LinkCause | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    tries: str = ""  # words for the link that are the fix

    def fits(self, kind: FailureKind, words: Mapping[str, str]) -> bool:
        return kind is self.kind and all(
            re.search(pattern, words[name]) for name, pattern in self.where.items()
        )


def from_message(failure: Failure, trial: Trial | None = None) -> Failure:
    """Adds the cause and fix for this kind of message; no cause if only the symbol shows it."""
    words = _words(failure)
    rows = read_facts(_Sentences, Path(__file__).with_name("sentences.yaml"))
    row = next((row for row in rows if row.fits(failure.kind, words)), None)
    if row is None:
        return failure
    result = trial.result(failure, row.tries.split()) if trial is not None and row.tries else None
    return replace(
        failure,
        cause_kind=failure.cause_kind or row.cause_kind,
        cause=_filled(row.cause, words),
        fix=told(_filled(row.fix, words), result),
    )


def explained(
    failure: Failure, name: str, result: str | None = None, /, **words: object
) -> Failure:
    """Adds a reason of ``reasons.yaml``. ``result``: of its fix, where that was tried."""
    reason = reasons()[name]
    words = {"cause": failure.cause, "symbol": failure.symbol, **words}
    return replace(
        failure,
        cause_kind=reason.kind or failure.cause_kind,
        cause=reason.cause.format(**words),
        fix=told(reason.fix.format(**words), result),
    )


def _words(failure: Failure) -> dict[str, str]:
    objects = [file for file in failure.files if _OBJECT.search(file)]
    inputs = objects or [file for file in failure.files if not _OUTPUT.search(file)]
    file = failure.files[0] if failure.files else ""
    first, other = (*inputs, "", "")[:2]
    mismatch = f"{first} was built for another machine or in another format"
    if other and other in failure.text:  # else of another message about the same thing
        mismatch = f"{first} and {other} were built for different machines or ABIs"
    return {
        "symbol": failure.symbol or "",
        "region": failure.region or "",
        "bytes": str(failure.bytes or ""),
        "attribute": failure.attribute or "",
        "option": " and ".join(_OPTION.findall(failure.attribute or "")[:2]),
        "text": failure.text.strip(),
        "cause_kind": failure.cause_kind or "",
        "file": file,
        "other_file": (*failure.files, "", "")[1],
        "library": file or failure.symbol or "",
        "script": failure.attribute or failure.region or file,
        "section": failure.sections[0] if failure.sections else "",
        "sections": ", ".join(failure.sections[:5]),
        "other": failure.sections[1] if failure.sections[1:] else "",
        "overlapping": " and ".join(failure.sections) or failure.region or "",
        "place": str(failure.places[0]) if failure.places else "",
        "places": " and ".join(map(str, failure.places[:3])),
        "input": first,
        "archive": archive_of(first),
        "mismatch": mismatch,
    }


def _filled(template: str, words: Mapping[str, str]) -> str:
    def optional(match: re.Match[str]) -> str:
        return match["text"] if all(words[m["name"]] for m in _WORD.finditer(match[0])) else ""

    text = _OPTIONAL.sub(optional, template)
    return _WORD.sub(lambda match: words[match["name"]] or match["default"] or "", text)


_FLOAT_ARGUMENTS = 28


def attributes(unit: ElfFile) -> dict[str, str]:
    """The target that an object was built for, in words: machine, class, byte order, Arm build
    attributes."""
    built_for = {
        "machine": unit.machine,
        "class": f"{unit.bits} bit",
        "byte order": unit.byte_order,
    }
    values: dict[int, int | str] = {_FLOAT_ARGUMENTS: 0} if unit.machine_number == EM_ARM else {}
    with suppress(MalformedFile):
        values |= unit.attributes
    for row in read_table(__file__)["attributes"]:
        value = values.get(row["tag"])
        if isinstance(value, int):
            built_for[row["name"]] = row.get("values", {}).get(value, str(value))
    return built_for


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, str, str] | None:
    """The first attribute that differs: (name, value in one, value in the other)."""
    both = ((name, value, other[name]) for name, value in one.items() if name in other)
    return next((each for each in both if each[1] != each[2]), None)


_SAMPLE = 60  # objects whose ABI is looked at


def explain_duplicate(failure: Failure, index: LinkIndex, tree: Tree | None) -> Failure:
    """Adds both definitions, from the objects, and a header that has the only one."""
    definitions = index.definitions.get(failure.symbol or "", [])
    strong = [d for d in definitions if d.symbol.binding == "strong"]
    if len(strong) > 1 and len({(d.unit.name, d.unit.input.path) for d in strong}) == 1:
        failure = replace(failure, definitions=tuple(d.place() for d in strong[:4]))
        place, file = strong[0].place(), strong[0].unit.input
        whole = " under --whole-archive" if file.whole else ""
        return explained(failure, "linked twice", place=place, file=file.word, whole=whole)
    if len(strong) > 1:
        known = {p.object: p for p in failure.places}
        places = tuple(
            replace(p, source=known[p.object].source, line=known[p.object].line)
            if p.object in known
            else p
            for p in (d.place() for d in strong[:4])
        )
        failure = replace(failure, definitions=places, places=places)
    else:
        failure = replace(failure, definitions=failure.places)
    return _in_a_header(from_message(failure), tree)


def _in_a_header(failure: Failure, tree: Tree | None) -> Failure:
    """For two files that have the definition from the same line of a header."""
    lines = {(place.source, place.line) for place in failure.places}
    source, line = next(iter(lines), (None, None))
    symbol = mangled_base(failure.symbol or "") or failure.symbol or ""
    if tree is not None and lines <= {(None, None)} and not tree.in_sources(symbol):
        found = tree.in_headers(symbol)
        source, line = (str(found[0].path), found[0].line) if len(found) == 1 else (None, None)
    if len(lines) != 1 or len(failure.places) < 2 or not source or not _HEADER.search(source):
        return failure
    return explained(failure, "in both from a header", where=f"{source}:{line}")


def explain_architecture(failure: Failure, index: LinkIndex, trial: Trial | None) -> Failure:
    """Adds the attribute that differs. The files at fault are those that differ from most; the
    toolchain's own do not count, because the options of the link choose them."""
    libraries, call = ("libc.a", "libgcc.a"), index.call  # of the folders that the driver chose
    folders = {f.resolve() for f in call.search if any((f / n).is_file() for n in libraries)}
    paths = {each.word: each.path for each in call.inputs if each.path is not None}
    chosen = {word for word, path in paths.items() if path.resolve().parent in folders}
    own = [u for u in index.units if u.input.word not in chosen]
    named = [u for u in own if _named(u.name, u.input.path, failure.files)]
    others = [u for u in own if u not in named][:_SAMPLE]
    built = [attributes(unit.object) for unit in (*named, *others)]
    if built and all(difference(built[0], each) is None for each in built[1:]):
        return _of_the_link(failure, built[0], trial)
    for unit in named:
        mine = _concerned(unit, failure)
        for other in others:
            differs = difference(mine, _concerned(other, failure))
            if differs:
                return _with_attribute(failure, differs[0], [*named, *others])
    return from_message(failure)


# The attribute that a message is about, by its word for it.
_ABOUT = {"VFP": "how float arguments are passed"}


def _concerned(unit: LinkedObject, failure: Failure) -> dict[str, str]:
    built = attributes(unit.object)
    name = _ABOUT.get(failure.attribute or "")
    return {name: built[name]} if name in built else built


def _of_the_link(failure: Failure, built: Mapping[str, str], trial: Trial | None) -> Failure:
    """For objects that agree with each other: what does not fit them is what the options of the
    link chose."""
    failure = from_message(failure)
    words = trial.machine if trial is not None else ()
    result = trial.result(failure, words) if trial is not None and words else None
    if result is None:
        return failure
    machine = ", ".join(value for value in built.values() if not value.isdigit())
    about = {"machine": machine, "options": " ".join(words)}
    return explained(failure, "link for another machine", result, **about)


def _with_attribute(failure: Failure, name: str, units: Sequence[LinkedObject]) -> Failure:
    built = [(unit.name, attributes(unit.object).get(name, "unknown")) for unit in units]
    usual = Counter(value for _, value in reversed(built)).most_common(1)[0][0]
    wrong, value = next((n, v) for n, v in built if v != usual)
    right = next(n for n, v in built if v == usual)
    files = (wrong, right)
    failure = from_message(replace(failure, files=files, attribute=f"{name}: {value}"))
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


def explain_overflow(
    failure: Failure,
    link_map: LinkMap,
    scripts: Sequence[str],
    zephyr: ZephyrBuild | None = None,
) -> Failure:
    """Adds the largest contributors, the sections that no script places, and what sets the size of
    the region: in Zephyr a devicetree node."""
    largest = contributors(link_map, failure.region or "")
    stray = tuple(
        o for o in orphans(link_map, scripts) if failure.region in (o.region, o.load_region)
    )
    failure = from_message(replace(failure, contributors=largest, orphans=stray))
    big = next((o for o in stray if o.bytes * 2 >= (failure.bytes or 0)), None)
    if big is not None:
        files = f" from {', '.join(big.files[:2])}" if big.files else ""
        copy = " and its copy in RAM" if big.load_region not in (None, big.region) else ""
        about = {"section": big.section, "bytes": big.bytes, "files": files, "copy": copy}
        return explained(failure, "section not placed", **about)
    if largest:
        most = ", ".join(f"{p.section} of {p.file} ({p.bytes} bytes)" for p in largest[:3])
        failure = replace(failure, cause=f"{failure.cause} The largest pieces are {most}.")
        failure = _room_for(failure, link_map)
    node = zephyr.memory_node(failure.region or "") if zephyr is not None else None
    if node is not None:
        length = re.compile(rf"(?:the|its) LENGTH(?: of {failure.region})? larger")
        overlay = f"`reg` of the devicetree node {node} larger in an overlay"
        failure = replace(failure, fix=length.sub(overlay, failure.fix))
    return failure


def _room_for(failure: Failure, link_map: LinkMap) -> Failure:
    """Adds the pieces that make enough room if they move or shrink, and the regions that can take
    them, unless the largest pieces are not enough."""
    missing = failure.bytes or 0
    chosen: list[Contributor] = []
    for piece in failure.contributors:
        chosen.append(piece)
        if sum(p.bytes for p in chosen) >= missing:
            break
    moved = sum(piece.bytes for piece in chosen)
    if moved < missing:
        return failure
    what = ", ".join(f"{p.section} of {p.file}" for p in chosen)
    larger = f"or the LENGTH of {failure.region} larger where the hardware has more."
    beside = link_map.room_beside(failure.region or "")
    room = {
        region.name: f"{region.name} has {free} bytes free"
        for region, free in beside
        if free >= moved
    }
    if not room:
        return replace(
            failure, fix=f"Make {what} ({moved} bytes) smaller by {missing} bytes, {larger}"
        )
    about = {"what": what, "moved": moved, "larger": larger, "first": next(iter(room))}
    return explained(failure, "room elsewhere", room="; ".join([*room.values()][:3]), **about)
