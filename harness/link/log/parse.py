"""From a log to link failures: the rule for each line, the details on the lines around it, and
which messages are about one thing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from typing import TypeVar

from harness.link.failure import (
    CodePlace,
    Failure,
    FailureKind,
    LinkCause,
    archive_of,
    file_name,
    member_of,
)
from harness.link.log import messages
from harness.link.log.lines import Line, LinePattern, Lines, lines_of
from harness.link.log.messages import Rule, parse_place, without_linker

_T = TypeVar("_T")

_WRAPPED = 3  # lines that a wrapped message goes on for
_MOST_MESSAGES = 20_000  # Python takes 2 KB for each; nobody reads more
_REMEMBERED = 16  # "in function" lines; enough for parallel links that write over each other
_WARNING = re.compile(r"\bwarning:|: note: |\bWarning: L\d+W|^\s*(?:WARNING|note):", re.IGNORECASE)
_SKIPPING = re.compile(r"skipping incompatible (?P<file>.+) when searching for (?P<library>\S+)")
_LINKER_LINE = LinePattern(
    ("ld: ", "ld."), re.compile(r"^(?:\S*[/\\])?(?:[\w.+-]*-)?(?:ld|lld)(?:\.\w+)?: .+$")
)
_MEMORY = re.compile(
    r"^\s*(?P<region>\w+):\s+(?P<used>\d+) (?P<unit>[KMG]?B)\s+"
    r"(?P<size>\d+) (?P<size_unit>[KMG]?B)\s+"
    r"(?P<percent>[\d.]+)%"
)
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_LLD_REFERENCE = re.compile(
    r"^\s*(?:>>>\s+(?:referenced by |defined (?:at|in) )?|referenced by )(?P<at>.*)$"
)
_IAR_ERROR = re.compile(r"Error\[(?P<topic>Li|Lp)\d{3}\]:")
_SPEAKS = re.compile(r"^\S*(?:ld\S*|gcc|make|ninja)\S*: ")
# Messages that are broken: how many lines they go on for, and what was where they were broken.
_GO_ON = (
    (re.compile(r"undefined reference to$|multiple definition of$"), 1, " "),
    (re.compile(r"location counter backwards \(.*[^)]$"), 1, " "),
    (re.compile(r"L6218E: .{40,}[^).]$"), 1, ""),  # by a terminal, anywhere
    (re.compile(r"\blld: error:$"), 2, " "),  # the text of an ASSERT begins on a line of its own
)
_LLD_OBJECT = re.compile(r"^(?P<object>\S.*?):\((?P<inside>.+)\)(?: in archive (?P<archive>.+))?$")


@cache
def _needles() -> tuple[str, ...]:
    """Words of which a line must have one for any rule to match."""
    needles = [needle for rule in messages.rules() for needle in rule.needles]
    return tuple(dict.fromkeys(("n function ", "skipping incompatible", *needles)))


@dataclass(frozen=True)
class Parsed:
    """``failed``: the link failed, whether or not the log says why. ``linked``: there is a link.
    ``more``: the log has more messages than were read."""

    failures: tuple[Failure, ...]
    failed: bool
    linked: bool = False
    more: bool = False


def parse(text: str, *, failed: bool = False) -> Parsed:
    """``parse_lines`` of a text."""
    return parse_lines(lines_of(text), failed=failed)


def parse_lines(lines: Lines, *, failed: bool = False) -> Parsed:
    """Every reason the log gives for a failed link. ``failed``: the linker's exit status is known
    to be that of a failure."""
    failed = failed or any(messages.signs()["link_failed"].found_in(lines))
    reader = _Reader(lines)
    found = reader.read()
    if found or failed:  # what was warned of before is their cause
        found = [*reader.warnings, *found]
    if not found and failed:  # --fatal-warnings: the warnings are the failures
        plain = (Line(line.number, re.sub(r"\bwarning: ", "", line.text)) for line in lines)
        found = _Reader(Lines(plain)).read()
    failures = [*found, *_overflowed_regions(lines, found, failed)]
    # Many messages about one thing are one failure; in order of first mention.
    merged: dict[tuple[object, ...], Failure] = {}
    for failure in _without_repeats(failures or _unexplained(lines, failed)):
        about = _merge_key(failure)
        merged[about] = _merge_pair(merged[about], failure) if about in merged else failure
    if merged:
        shown = tuple(merged.values())
        return Parsed(shown, True, True, len(reader.failures) == _MOST_MESSAGES)
    return Parsed((), failed, any(messages.signs()["linked"].found_in(lines)))


class _Reader:
    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.failures: list[Failure] = []
        self.warnings: list[Failure] = []
        self._headers: list[CodePlace] = []
        self._skipped: dict[str, list[str]] = {}

    def read(self) -> list[Failure]:
        for index, line in self.lines.having(_needles()):
            self._line(index, line)
            if len(self.failures) == _MOST_MESSAGES:
                break
        return self.failures

    def _line(self, index: int, line: Line) -> None:
        if skipped := _SKIPPING.search(line.text):
            self._skipped.setdefault(skipped["library"], []).append(skipped["file"])
            return
        if header := messages.IN_FUNCTION.match(line.text):
            place = replace(parse_place(header["at"] + ":"), function=header["function"])
            self._headers = [*self._headers[-_REMEMBERED:], place]
            if not header["rest"].strip():
                return
            line = Line(line.number, header["rest"].strip())
        warning = _WARNING.search(line.text) is not None
        # A message that somebody wrapped: what precedes and follows it on other lines.
        text = line.text
        if text.startswith("undefined reference") and index:
            before = self.lines[index - 1].text
            if before.endswith(":") and not messages.IN_FUNCTION.match(before):
                text = f"{before} {text}"
        if iar := _IAR_ERROR.search(text):  # wraps at spaces, and a path in the middle
            rest = takewhile(lambda x: x.text.startswith("   "), self.lines[index + 1 : index + 10])
            gap = " " if iar["topic"] == "Lp" else ""
            text = gap.join([text, *(x.text.strip() for x in rest)])
        for pattern, count, gap in _GO_ON:
            if pattern.search(text):
                following = (x.text for x in self.lines[index + 1 : index + 1 + count])
                text = gap.join([text, *(map(str.strip, following) if gap else following)])
        if "multiple definition of" in text and ";" in text:
            whole = text  # "...; a.o:(.bss+0x0): first defined here" may follow on several lines
            for after in self.lines[index + 1 : index + 1 + _WRAPPED]:
                if not whole.endswith(messages.FIRST_DEFINED):
                    whole = f"{whole} {after.text.strip()}"
            text = whole if whole.endswith(messages.FIRST_DEFINED) else text
        for rule in messages.rules():
            if (rule.warns or not warning) and (match := rule.search(text)):
                kept = self.warnings if warning else self.failures
                kept.append(self._failure(rule, match, index, line))
                return

    def _failure(self, rule: Rule, match: re.Match[str], index: int, line: Line) -> Failure:
        groups = {name: value for name, value in match.groupdict().items() if value}
        kind, files = rule.kind, tuple(groups[k] for k in ("file", "library") if k in groups)
        attribute = groups.get("attribute", rule.attribute)
        if "library" in groups and (wrong := self._skipped.get(groups["library"])):
            kind, files = FailureKind.WRONG_ARCHITECTURE, tuple(dict.fromkeys(wrong))
            attribute = f"no file for {groups['library']} has the right architecture"
        if kind is FailureKind.MISSING_FILE and re.search(r"\.(?:a|so|lib)$", groups["file"]):
            kind = FailureKind.MISSING_LIBRARY
        if "other" in groups and ("file" in groups or kind is FailureKind.WRONG_ARCHITECTURE):
            files = (*files, groups["other"])
        if rule.linker == "armlink" and kind is FailureKind.WRONG_ARCHITECTURE:
            # The lines below L6242E, as in "... require A clashes with require B".
            ends = re.compile(r"(?:Error|Warning|Finished|Fatal)\b.*:|^Not enough")
            below = (x.text for x in self.lines[index + 1 : index + 6])
            clashes = takewhile(lambda text: not ends.search(text), below)
            attribute = "; ".join(text.strip(" .") for text in clashes) or attribute
        if "aggregate" in groups:  # of what found no place, which is more than what is missing
            attribute = f"{int(groups['aggregate'], 0)} {messages.AGGREGATE}"
        named: tuple[str, ...] = ("section",)
        if kind is FailureKind.SECTION_OVERLAP:  # armlink's are of regions
            named = ("section", "region", "other")
        return Failure(
            kind,
            _linker(rule.linker, line.text),
            line.number,
            line.text,
            symbol=groups.get("symbol") or groups.get("library"),
            region=groups["region"].replace("], [", ", ") if "region" in groups else None,
            bytes=_bytes(groups),
            sections=tuple(groups[k] for k in named if k in groups),
            files=files,
            places=self._places(groups, index),
            attribute=attribute,
            binding=groups.get("binding"),
            cause_kind=rule.cause,
        )

    def _places(self, groups: dict[str, str], index: int) -> tuple[CodePlace, ...]:
        if continued := self._continuation(index):
            return continued
        places = []
        if "first" in groups:
            places.append(parse_place(groups["first"]))
        if "at" in groups:
            places.append(self._with_header(parse_place(groups["at"])))
        elif "first" not in groups and "symbol" in groups and self._headers:
            places.append(self._headers[-1])
        if "first" not in groups and index + 1 < len(self.lines):
            first = messages.FIRST_HERE.match(self.lines[index + 1].text)
            if first:
                places.insert(0, parse_place(first["at"]))
        return tuple(place for place in places if place != CodePlace())

    def _with_header(self, place: CodePlace) -> CodePlace:
        """The place with object and function of the "in function" line it belongs to."""
        if place.object or not self._headers:
            return place
        header = self._headers[-1]
        if place.source:
            mine = (
                h for h in reversed(self._headers) if _stem(h.object or "") == _stem(place.source)
            )
            header = next(mine, header)
        return replace(place, object=header.object, function=place.function or header.function)

    def _continuation(self, index: int) -> tuple[CodePlace, ...]:
        """lld prints the places on lines of their own that begin with ``>>>``."""
        places: list[CodePlace] = []
        is_duplicate = "duplicate symbol" in self.lines[index].text
        for line in self.lines[index + 1 : index + 40]:
            use = _LLD_REFERENCE.match(line.text)
            if not use:
                break
            if not is_duplicate and re.match(r"\s*>>> defined in ", line.text):
                continue
            if use["at"].startswith("did you mean"):
                break  # what follows is about another symbol
            if re.match(r"(?:referenced \d+ more|the vtable)", use["at"]):
                continue
            where = _LLD_OBJECT.match(use["at"])
            starts = re.match(r"\s*(?:>>> )?(?:referenced|defined)", line.text)
            if where:
                name, inside = where["object"], where["inside"]
                name = f"{where['archive']}({name})" if where["archive"] else name
                place = CodePlace(object=name, function=inside)
                if section := re.match(r"(\S+)\+(0x[0-9a-fA-F]+)$", inside):
                    place = CodePlace(name, section=section[1], offset=int(section[2], 16))
                if not starts and places:
                    place = replace(place, source=places[-1].source, line=places[-1].line)
                    places.pop()
                places.append(place)
            elif starts:
                places.append(parse_place(use["at"].split(" (")[0] + ":"))
        return tuple(places)


def _linker(linker: str, text: str) -> str:
    """lld where its name is in a message that GNU ld prints too."""
    is_lld = linker in ("gnu", "driver") and re.search(r"\blld\b|ld-lld", text)
    return "lld" if is_lld else linker


def _bytes(groups: dict[str, str]) -> int | None:
    """How much does not fit, where the message says so."""
    sizes = {
        name: int(re.sub(r"[,.']", "", groups[name]), 0)  # with separators of thousands
        for name in ("bytes", "used", "limit")
        if name in groups
    }
    if "bytes" in sizes:
        return sizes["bytes"]
    if "used" in sizes and "limit" in sizes:
        return sizes["used"] - sizes["limit"]
    if "from" in groups and "to" in groups and "section" not in groups:
        return abs(int(groups["from"], 16) - int(groups["to"], 16))
    return None


def _overflowed_regions(lines: Lines, found: Sequence[Failure], failed: bool) -> list[Failure]:
    """Regions above 100 % in the table of --print-memory-usage that no message names."""
    named = {f.region for f in found if f.bytes is not None}
    more = []
    for _, line in lines.having(("%",)):
        table = _MEMORY.match(line.text)
        if failed and table and float(table["percent"]) > 100 and table["region"] not in named:
            used = int(table["used"]) * _UNITS[table["unit"]]
            over = used - int(table["size"]) * _UNITS[table["size_unit"]]
            kind, region = FailureKind.REGION_OVERFLOW, table["region"]
            more.append(Failure(kind, "gnu", line.number, line.text, region=region, bytes=over))
    return more


def _unexplained(lines: Lines, failed: bool) -> list[Failure]:
    """A link that failed for a reason without a rule; an ASSERT of the script is one, too."""
    if killed := next(messages.signs()["killed"].found_in(lines), None):
        reason = f"signal {killed.match['signal']}" if killed.match["signal"] else "out of memory"
        return [_by_driver(FailureKind.LINKER_STOPPED, killed.line, reason)]
    complaint = _LINKER_LINE if failed else messages.signs()["complaint"]
    said = (found for found in complaint.found_in(lines) if not _WARNING.search(found.line.text))
    if first := next((x for x in said if not messages.IN_FUNCTION.match(x.line.text)), None):
        # A message, which its author may have broken into lines, up to what the driver says of it.
        texts = [line.text for line in lines[first.index : first.index + 10]]
        driver = messages.signs()["link_failed"]
        ends = (n for n, x in enumerate(texts) if n and (driver.search(x) or _SPEAKS.search(x)))
        text = " ".join(text.strip() for text in texts[: next(ends, 1)])
        return [_by_linker(FailureKind.UNKNOWN, Line(first.line.number, text))]
    if not failed:
        return []
    warnings = (line for _, line in lines.having(("warning: ",)))
    warned = next((x for x in warnings if _LINKER_LINE.search(x.text) or "(." in x.text), None)
    if warned is not None:  # --fatal-warnings
        failure = _by_linker(FailureKind.UNKNOWN, warned)
        return [replace(failure, cause_kind=LinkCause.FATAL_WARNING)]
    silent = Line(lines[-1].number + 1 if lines else 1, "the linker failed and said nothing")
    gave_up = [found.line for found in messages.signs()["link_failed"].found_in(lines)]
    return [_by_driver(FailureKind.UNKNOWN, gave_up[-1] if gave_up else silent)]


def _by_linker(kind: FailureKind, line: Line) -> Failure:
    linker = _linker("gnu", line.text)
    return Failure(kind, linker, line.number, line.text, attribute=without_linker(line.text))


def _by_driver(kind: FailureKind, line: Line, attribute: str | None = None) -> Failure:
    return Failure(kind, "driver", line.number, line.text, attribute=attribute)


def _stem(path: str) -> str:
    """The name by which an object and its source know each other: "lib.a(io.c.obj)" is "io"."""
    return file_name(member_of(path)).split(".", 1)[0]


def _without_repeats(failures: Sequence[Failure]) -> list[Failure]:
    """Without what only repeats another message about the same file in other words; messages
    without a reason go last."""

    def repeats(failure: Failure) -> bool:
        is_merge = failure.attribute == messages.MERGED
        return is_merge or failure.kind is FailureKind.SCRIPT_ERROR

    wrong = [f for f in failures if f.kind is FailureKind.WRONG_ARCHITECTURE and not repeats(f)]
    explained = {name for f in wrong for name in f.files}
    left = [f for f in failures if not (repeats(f) and explained & set(f.files))]
    return sorted(left, key=lambda failure: failure.attribute == messages.MERGED)


# The fields that say what a failure of a kind is about.
_IDENTITY: Mapping[FailureKind, tuple[str, ...]] = {
    FailureKind.REGION_OVERFLOW: ("region",),
    FailureKind.UNDEFINED_SYMBOL: ("symbol",),
    FailureKind.DUPLICATE_SYMBOL: ("symbol",),
    FailureKind.DISCARDED_SECTION: ("symbol",),
    FailureKind.RELOCATION_OUT_OF_RANGE: ("symbol", "attribute"),
    FailureKind.ORPHAN_SECTION: (),
}


def _merge_key(failure: Failure) -> tuple[object, ...]:
    if failure.kind is FailureKind.WRONG_ARCHITECTURE:
        archives = tuple(map(archive_of, failure.files[:1]))
        others = failure.files[1:] if failure.attribute else archives
        return (failure.kind, failure.attribute, others)
    every = ("symbol", "region", "sections", "files", "attribute")
    names = _IDENTITY.get(failure.kind, every)
    return (failure.kind, *(getattr(failure, name) for name in names))


def _merge_pair(one: Failure, other: Failure) -> Failure:
    return replace(
        one,
        bytes=max((n for n in (one.bytes, other.bytes) if n is not None), default=None),
        sections=_union(one.sections, other.sections),
        files=_union(one.files, other.files),
        places=_union(one.places, other.places),
        attribute=one.attribute or other.attribute,
    )


def _union(one: Iterable[_T], other: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys((*one, *other)))
