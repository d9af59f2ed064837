"""What an object was built for, and how two objects differ in that."""

from __future__ import annotations

from collections.abc import Mapping

from harness.formats.damage import DamagedFile
from harness.formats.elf import EM_ARM, ElfFile

# Tags of the build attributes that decide whether objects fit together
# ("Addenda to, and Errata in, the ABI for the Arm Architecture", section 3.3).
_CPU_ARCH, _CPU_ARCH_PROFILE, _ABI_VFP_ARGS = 6, 7, 28
_TAGS = {
    _CPU_ARCH: "CPU architecture",
    _CPU_ARCH_PROFILE: "architecture profile",
    _ABI_VFP_ARGS: "how float arguments are passed",
    26: "size of enums",
    18: "size of wchar_t",
    25: "stack alignment",
}
_VFP_ARGS = {0: "soft (core registers)", 1: "hard (VFP registers)", 2: "toolchain's own", 3: "any"}
_ARCHITECTURES = {
    0: "pre-v4",
    6: "v6",
    9: "v6K",
    10: "v7",
    11: "v6-M",
    12: "v6S-M",
    13: "v7E-M",
    14: "v8-A",
    15: "v8-R",
    16: "v8-M Baseline",
    17: "v8-M Mainline",
    21: "v8.1-M Mainline",
    22: "v9-A",
}


def attributes(unit: ElfFile) -> dict[str, str]:
    """What an object was built for: machine, class, byte order, Arm build attributes, in words."""
    built_for = {
        "machine": unit.machine,
        "class": f"{unit.bits} bit",
        "byte order": unit.byte_order,
    }
    for tag, value in _arm_attributes(unit).items():
        built_for[_TAGS[tag]] = _in_words(tag, value)
    if unit.machine_number == EM_ARM:
        built_for.setdefault(_TAGS[_ABI_VFP_ARGS], _VFP_ARGS[0])
    return built_for


def _arm_attributes(unit: ElfFile) -> dict[int, int]:
    try:
        attributes = unit.attributes
    except DamagedFile:
        return {}
    return {
        tag: value for tag, value in attributes.items() if tag in _TAGS and isinstance(value, int)
    }


def _in_words(tag: int, value: int) -> str:
    if tag == _ABI_VFP_ARGS:
        return _VFP_ARGS.get(value, str(value))
    if tag == _CPU_ARCH:
        return _ARCHITECTURES.get(value, f"architecture {value}")
    if tag == _CPU_ARCH_PROFILE:
        return {0: "none", ord("A"): "A", ord("R"): "R", ord("M"): "M"}.get(value, str(value))
    return str(value)


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, str, str] | None:
    """(attribute, in one, in the other) for the first that matters."""
    for name in ("machine", "class", "byte order", *_TAGS.values()):
        mine, theirs = one.get(name), other.get(name)
        if mine is not None and theirs is not None and mine != theirs:
            return name, mine, theirs
    return None
