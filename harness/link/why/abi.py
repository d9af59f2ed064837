"""What an object says of the machine and the ABI it was built for, and where two differ."""

from __future__ import annotations

import io
from collections.abc import Mapping

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from harness.formats.elf_object import ElfObject

# Tags of the build attributes that decide whether objects fit together
# ("Addenda to, and Errata in, the ABI for the Arm Architecture", section 3.3).
_TAGS = {
    "TAG_CPU_ARCH": "CPU architecture",
    "TAG_CPU_ARCH_PROFILE": "architecture profile",
    "TAG_ABI_VFP_ARGS": "how float arguments are passed",
    "TAG_ABI_ENUM_SIZE": "size of enums",
    "TAG_ABI_PCS_WCHAR_T": "size of wchar_t",
    "TAG_ABI_ALIGN_PRESERVED": "stack alignment",
}
_VFP_ARGS = {0: "soft (core registers)", 1: "hard (VFP registers)", 2: "toolchain's own", 3: "any"}
_ARCHITECTURES = {
    0: "pre-v4", 6: "v6", 9: "v6K", 10: "v7", 11: "v6-M", 12: "v6S-M", 13: "v7E-M", 14: "v8-A",
    15: "v8-R", 16: "v8-M Baseline", 17: "v8-M Mainline", 21: "v8.1-M Mainline", 22: "v9-A",
}  # fmt: skip


def attributes(unit: ElfObject) -> dict[str, str]:
    """Machine, class, byte order and Arm build attributes, in words."""
    found = {
        "machine": unit.machine,
        "class": f"{unit.elf_class} bit",
        "byte order": "little" if unit.data[5] == 1 else "big",
    }
    for tag, value in _arm_attributes(unit).items():
        found[_TAGS[tag]] = _in_words(tag, value)
    if unit.machine == "Arm (32 bit)":
        found.setdefault(_TAGS["TAG_ABI_VFP_ARGS"], _VFP_ARGS[0])
    return found


def _arm_attributes(unit: ElfObject) -> dict[str, int]:
    if b".ARM.attributes" not in unit.data:
        return {}
    found = {}
    try:
        section = ELFFile(io.BytesIO(unit.data)).get_section_by_name(".ARM.attributes")
        for part in section.iter_subsections() if section is not None else ():
            for scope in part.iter_subsubsections():
                for attribute in scope.iter_attributes():
                    if attribute.tag in _TAGS and isinstance(attribute.value, int):
                        found[attribute.tag] = attribute.value
    except ELFError:
        return {}
    return found


def _in_words(tag: str, value: int) -> str:
    if tag == "TAG_ABI_VFP_ARGS":
        return _VFP_ARGS.get(value, str(value))
    if tag == "TAG_CPU_ARCH":
        return _ARCHITECTURES.get(value, f"architecture {value}")
    if tag == "TAG_CPU_ARCH_PROFILE":
        return {0: "none", ord("A"): "A", ord("R"): "R", ord("M"): "M"}.get(value, str(value))
    return str(value)


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, str, str] | None:
    """(attribute, in one, in the other) for the first that matters."""
    for name in ("machine", "class", "byte order", *_TAGS.values()):
        mine, theirs = one.get(name), other.get(name)
        if mine is not None and theirs is not None and mine != theirs:
            return name, mine, theirs
    return None
