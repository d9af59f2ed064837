"""A log to failures: which rule fits each line, and what the lines around it add."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.link.failure import Failure, Place
from harness.link.log import grammar
from harness.link.log.localised import english
from harness.link.log.merge import merged
from harness.link.log.place import parse_place, stem, without_linker
from harness.link.log.text import Line, lines_of

_REMEMBERED = 16  # "in function" lines; enough for parallel links that write over each other
_WARNING = re.compile(r"\bwarning:|\bWarning: L\d+W|^\s*(?:WARNING|note):", re.IGNORECASE)
_SKIPPING = re.compile(r"skipping incompatible (?P<file>.+) when searching for (?P<library>\S+)")
_FAILED_MERGE = re.compile(r"failed to merge target specific data of file (?P<file>.+)$")
_SAID = re.compile(r"^(?:\S*[/\\])?(?:[\w.+-]*-)?(?:ld|gold|lld|mold)(?:\.\w+)?: (?P<text>.+)$")
_MEMORY = re.compile(
    r"^\s*(?P<region>\w+):\s+(?P<used>\d+) (?P<unit>[KMG]?B)\s+"
    r"(?P<size>\d+) (?P<size_unit>[KMG]?B)\s+"
    r"(?P<percent>[\d.]+)%"
)
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_LLD_USE = re.compile(
    r"^(?:>>>\s+(?:referenced by |defined (?:at|in) )?|referenced by )(?P<at>.*)$"
)
_LLD_OBJECT = re.compile(r"^(?P<object>\S.*?):\((?P<inside>.+)\)(?: in archive (?P<archive>.+))?$")
_INTERESTING = re.compile(
    "|".join(
        re.escape(word)
        for word in dict.fromkeys(
            ("unction", "skipping incompatible", "failed to merge",
             *(needle for rule in grammar.RULES for needle in rule.needles))
        )
    )
)  # fmt: skip


@dataclass(frozen=True)
class Parsed:
    failures: tuple[Failure, ...]
    gave_up: tuple[str, ...]  # lines that say the link failed

    @property
    def failed(self) -> bool:
        return bool(self.failures or self.gave_up)


def parse(text: str) -> Parsed:
    """Every reason the log gives for a failed link."""
    lines = [Line(line.number, english(line.text)) for line in lines_of(text)]
    gave_up = tuple(line.text for line in lines if grammar.GAVE_UP.search(line.text))
    found = _Reader(lines).read()
    if not found and gave_up:
        found = _Reader(_without_warning(lines)).read()
    found = [*found, *_full_regions(lines, found, bool(gave_up))]
    return Parsed(merged(found or _last_words(lines, bool(gave_up))), gave_up)


def failed_link(said: str) -> str:
    """A linker's own output with the word of the driver that it failed."""
    return f"{said}\ncollect2: error: ld returned 1 exit status\n"


def _without_warning(lines: Sequence[Line]) -> list[Line]:
    """For --fatal-warnings: what only warned is what failed."""
    return [Line(x.number, re.sub(r"\bwarning: ", "", x.text)) for x in lines]


class _Reader:
    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.headers: list[Place] = []
        self.skipped: dict[str, list[str]] = {}
        self.found: list[Failure] = []

    def read(self) -> list[Failure]:
        for index, line in enumerate(self.lines):
            if _INTERESTING.search(line.text):
                self._line(index, line)
        return self.found

    def _line(self, index: int, line: Line) -> None:
        if skipped := _SKIPPING.search(line.text):
            self.skipped.setdefault(skipped["library"], []).append(skipped["file"])
            return
        header = grammar.IN_FUNCTION.match(line.text)
        if header:
            place = replace(parse_place(header["at"] + ":"), function=header["function"])
            self.headers = [*self.headers[-_REMEMBERED:], place]
            if not header["rest"].strip():
                return
            line = Line(line.number, header["rest"].strip())
        if _WARNING.search(line.text):
            return
        text = self._joined(index, line)
        for rule in grammar.RULES:
            if any(needle in text for needle in rule.needles) and (
                match := rule.pattern.search(text)
            ):
                self.found.append(self._failure(rule, match, index, line))
                return
        if failed := _FAILED_MERGE.search(text):
            self.found.append(
                Failure("wrong_architecture", "gnu", line.number, line.text,
                        files=(failed["file"],), attribute="object attributes")
            )  # fmt: skip

    def _joined(self, index: int, line: Line) -> str:
        """A message that somebody wrapped: what precedes and follows it on other lines."""
        text = line.text
        if text.startswith("undefined reference") and index:
            before = self.lines[index - 1].text
            if before.endswith(":") and not grammar.IN_FUNCTION.match(before):
                text = f"{before} {text}"
        if text.endswith(("undefined reference to", "multiple definition of")):
            text = " ".join([text, *(x.text.strip() for x in self.lines[index + 1 : index + 2])])
        return text

    def _failure(self, rule: grammar.Rule, match: re.Match[str], index: int, line: Line) -> Failure:
        groups = {name: value for name, value in match.groupdict().items() if value}
        kind, files = rule.kind, tuple(groups[k] for k in ("file", "library") if k in groups)
        attribute = groups.get("attribute")
        if "library" in groups and (wrong := self.skipped.get(groups["library"])):
            kind, files = "wrong_architecture", tuple(dict.fromkeys(wrong))
            attribute = f"no file for {groups['library']} has the right architecture"
        if kind == "missing_file" and re.search(r"\.(?:a|so|lib)$", groups["file"]):
            kind = "missing_library"
        if "other" in groups and kind == "wrong_architecture":
            files = (*files, groups["other"])
        if rule.linker == "armlink" and kind == "wrong_architecture":
            attribute = self._armlink_attribute(index) or attribute
        return Failure(
            kind,
            _linker(rule.linker, line.text),
            line.number,
            line.text,
            symbol=groups.get("symbol") or groups.get("library"),
            region=groups.get("region"),
            bytes=_bytes(groups),
            sections=tuple(groups[k] for k in ("section",) if k in groups)
            + ((groups["other"],) if kind == "section_overlap" and "other" in groups else ()),
            files=files,
            places=self._places(groups, index),
            attribute=attribute,
            binding=groups.get("binding"),
        )

    def _places(self, groups: dict[str, str], index: int) -> tuple[Place, ...]:
        continued = self._continuation(index)
        if continued:
            return continued
        places = []
        if "first" in groups:
            places.append(parse_place(groups["first"]))
        if "at" in groups:
            places.append(self._with_header(parse_place(groups["at"])))
        elif "first" not in groups and "symbol" in groups and self.headers:
            places.append(self.headers[-1])
        if "first" not in groups and index + 1 < len(self.lines):
            first = grammar.FIRST_HERE.match(self.lines[index + 1].text)
            if first:
                places.insert(0, parse_place(first["at"]))
        return tuple(place for place in places if place != Place())

    def _with_header(self, place: Place) -> Place:
        """The place with object and function of the "in function" line it belongs to."""
        if place.object or not self.headers:
            return place
        header = self.headers[-1]
        if place.source:
            mine = (h for h in reversed(self.headers) if stem(h.object or "") == stem(place.source))
            header = next(mine, header)
        return replace(place, object=header.object, function=place.function or header.function)

    def _continuation(self, index: int) -> tuple[Place, ...]:
        """lld and mold say where on lines of their own that begin with ``>>>``."""
        places: list[Place] = []
        for line in self.lines[index + 1 : index + 40]:
            use = _LLD_USE.match(line.text)
            if not use:
                break
            if use["at"].startswith("did you mean"):
                break  # what follows is about another symbol
            if re.match(r"(?:referenced \d+ more|the vtable)", use["at"]):
                continue
            where = _LLD_OBJECT.match(use["at"])
            starts = re.match(r"(?:>>> )?(?:referenced|defined)", line.text)
            if where:
                place = _lld_place(where)
                if not starts and places:
                    place = replace(place, source=places[-1].source, line=places[-1].line)
                    places.pop()
                places.append(place)
            elif starts:
                places.append(parse_place(use["at"].split(" (")[0] + ":"))
        return tuple(places)

    def _armlink_attribute(self, index: int) -> str | None:
        """The lines below L6242E, as in "... require A clashes with require B"."""
        said = []
        for line in self.lines[index + 1 : index + 6]:
            if re.search(r"(?:Error|Warning|Finished|Fatal)\b.*:", line.text):
                break
            said.append(line.text.strip(" ."))
        return "; ".join(said) or None


def _lld_place(where: re.Match[str]) -> Place:
    name, inside = where["object"], where["inside"]
    if where["archive"]:
        name = f"{where['archive']}({name})"
    section = re.match(r"(\S+)\+(0x[0-9a-fA-F]+)$", inside)
    if section:
        return Place(object=name, section=section[1], offset=int(section[2], 16))
    return Place(object=name, function=inside)


def _linker(said: str, text: str) -> str:
    if said == "gnu" and re.search(r"\bgold\b|ld\.gold", text):
        return "gold"
    if said in ("gnu", "driver") and re.search(r"\blld\b|ld\.lld|ld-lld", text):
        return "lld"
    return "gold" if said == "gnu" and "error: undefined reference" in text else said


def _bytes(groups: dict[str, str]) -> int | None:
    """How much does not fit, where the message says so."""
    if "bytes" in groups:
        return int(groups["bytes"], 0)
    if "used" in groups and "limit" in groups:
        return int(groups["used"], 0) - int(groups["limit"], 0)
    if "from" in groups and "to" in groups and "section" not in groups:
        return abs(int(groups["from"], 16) - int(groups["to"], 16))
    return None


def _full_regions(lines: Sequence[Line], found: Sequence[Failure], failed: bool) -> list[Failure]:
    """Regions above 100 % in the table of --print-memory-usage that no message names."""
    named = {f.region for f in found if f.bytes is not None}
    more = []
    for line in lines:
        table = _MEMORY.match(line.text)
        if failed and table and float(table["percent"]) > 100 and table["region"] not in named:
            used = int(table["used"]) * _UNITS[table["unit"]]
            over = used - int(table["size"]) * _UNITS[table["size_unit"]]
            more.append(Failure("region_overflow", "gnu", line.number, line.text,
                                region=table["region"], bytes=over))  # fmt: skip
    return more


def _last_words(lines: Sequence[Line], failed: bool) -> list[Failure]:
    """A link that failed for a reason without a rule: an ASSERT of the script, a killed linker."""
    for line in lines:
        if killed := grammar.KILLED.search(line.text):
            said = f"signal {killed['signal']}" if killed["signal"] else "out of memory"
            return [Failure("linker_stopped", "driver", line.number, line.text, attribute=said)]
    said_by_linker = [
        Failure("assertion", "gnu", line.number, line.text, attribute=without_linker(line.text))
        for line in lines
        if (failed or "ASSERT" in line.text)
        and not _WARNING.search(line.text)
        and not grammar.GAVE_UP.search(line.text)
        and grammar.ASSERTION.match(line.text)
    ]
    if said_by_linker or not failed:
        return said_by_linker
    words = [x for x in lines if _SAID.match(x.text) and not _WARNING.search(x.text)]
    if words:
        first = words[0]
        return [Failure("unknown", "gnu", first.number, first.text,
                        attribute=without_linker(first.text))]  # fmt: skip
    last = next(x for x in reversed(lines) if grammar.GAVE_UP.search(x.text))
    return [Failure("unknown", "driver", last.number, last.text)]
