"""The part of GNU ld's map file that says what fills a memory region."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_REGION = re.compile(r"^(\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?:\s+\S+)?$")
_OUTPUT = re.compile(
    r"^(?P<name>[^\s(*]\S*)\s+0x(?P<address>[0-9a-f]+)\s+0x(?P<size>[0-9a-f]+)"
    r"(?: load address 0x(?P<load>[0-9a-f]+))?$"
)
_INPUT = re.compile(r"^ (?P<name>\S+)\s+0x[0-9a-f]+\s+0x(?P<size>[0-9a-f]+) (?P<file>\S.*)$")
_NAME_ONLY = re.compile(r"^ ?[^\s(*]\S*$")


@dataclass(frozen=True)
class Region:
    name: str
    origin: int
    length: int


@dataclass(frozen=True)
class OutputSection:
    name: str
    address: int
    size: int
    load: int | None
    inputs: tuple[tuple[str, str, int], ...]  # section, file, bytes


@dataclass(frozen=True)
class LinkMap:
    regions: tuple[Region, ...]
    sections: tuple[OutputSection, ...]

    def region_of(self, address: int) -> Region | None:
        """The region with the highest origin below: what overflows still belongs to it."""
        below = [r for r in self.regions if r.origin <= address]
        return max(below, key=lambda r: r.origin, default=None)

    def in_region(self, name: str) -> list[OutputSection]:
        """Sections that take room there, at run time or as the image of initialised data."""
        found = []
        for section in self.sections:
            places = {section.address, section.load if section.load is not None else -1}
            regions = {r.name for r in map(self.region_of, places - {-1}) if r}
            if name in regions and section.size:
                found.append(section)
        return found


def parse_map(text: str) -> LinkMap:
    head, _, body = text.partition("Linker script and memory map")
    regions = []
    for line in head.partition("Memory Configuration")[2].splitlines():
        if (match := _REGION.match(line.strip())) and match[1] != "*default*":
            regions.append(Region(match[1], int(match[2], 16), int(match[3], 16)))
    sections: list[OutputSection] = []
    for line in _joined(body):
        if match := _OUTPUT.match(line):
            load = int(match["load"], 16) if match["load"] else None
            if match["name"].startswith((".debug", ".comment", ".ARM.attributes", ".note")):
                continue
            sections.append(
                OutputSection(match["name"], int(match["address"], 16), int(match["size"], 16),
                              load, ())
            )  # fmt: skip
        elif sections and (match := _INPUT.match(line)) and int(match["size"], 16):
            last = sections[-1]
            piece = (match["name"], match["file"], int(match["size"], 16))
            sections[-1] = replace(last, inputs=(*last.inputs, piece))
    return LinkMap(tuple(regions), tuple(sections))


def _joined(body: str) -> list[str]:
    """A name too long for its column has its numbers on the next line."""
    lines: list[str] = []
    for line in body.splitlines():
        if lines and _NAME_ONLY.match(lines[-1]) and line.startswith("    "):
            lines[-1] = f"{lines[-1]} {line.strip()}"
        else:
            lines.append(line)
    return lines


def contributors(link_map: LinkMap, region: str, most: int = 5) -> Sequence[Mapping[str, Any]]:
    """The largest pieces in a region."""
    pieces = [
        {"section": name, "file": file, "bytes": size, "output_section": section.name}
        for section in link_map.in_region(region)
        for name, file, size in section.inputs
    ]
    return sorted(pieces, key=lambda p: -int(str(p["bytes"])))[:most]


def orphans(link_map: LinkMap, scripts: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """Output sections that no linker script names, and where the linker put them."""
    text = "\n".join(re.sub(r"/\*.*?\*/", "", s, flags=re.DOTALL) for s in scripts)
    found = []
    for section in link_map.sections:
        if section.size and not re.search(rf"(?<![\w.]){re.escape(section.name)}(?![\w.])", text):
            region = link_map.region_of(section.address)
            load = link_map.region_of(section.load) if section.load is not None else None
            found.append({
                "section": section.name, "bytes": section.size,
                "region": region.name if region else None,
                "load_region": load.name if load else None,
                "files": sorted({file for _, file, _ in section.inputs}),
            })  # fmt: skip
    return found
