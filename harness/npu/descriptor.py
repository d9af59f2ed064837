"""The structures and enumerations of ``kernel/jobs.h`` for Python, read from that file.

A field of a C++ structure gets the value of the attribute that has its name. So a new field is
one line there and one in the dataclass that has the value.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_HEADER = Path(__file__).parent / "kernel" / "jobs.h"
_CONSTANT = re.compile(r"constexpr int (\w+) = (\d+);")
_ENUM = re.compile(r"enum class (\w+) : int64_t \{([^}]*)\}")
_STRUCT = re.compile(r"struct (\w+) \{([^}]*)\};")
_FIELD = re.compile(r"(?:(?:mutable|const|class) )*(\w+)(\*?) (.+)", re.DOTALL)
_NAME = re.compile(r"(\w+)(?:\[(\w+)\])?")
# attributes that are tuples, by the names of their elements
_ELEMENTS = {"height": ("shape", 0), "width": ("shape", 1), "depth": ("shape", 2)}
_AXES = {"_y": 0, "_x": 1, "_c": 2}


@dataclass(frozen=True)
class Layouts:
    """``enumerations``: the numbers of the enumerators by their names, ``structures``: ctypes."""

    enumerations: dict[str, dict[str, int]]
    structures: dict[str, Any]
    types: dict[str, dict[str, str]]  # of the fields of a structure, as they are named in C++

    def fill(self, kind: str, target: Any, value: object) -> None:
        """Writes ``value`` to a structure that is all 0. What is None stays 0."""
        for name, field in self.types[kind].items():
            content = _content(value, name)
            if content is None:
                continue
            if field in self.structures and isinstance(content, tuple):
                for place, item in zip(getattr(target, name), content, strict=False):
                    self.fill(field, place, item)
            elif field in self.structures:
                self.fill(field, getattr(target, name), content)
            elif isinstance(content, tuple):
                getattr(target, name)[:] = content
            elif isinstance(content, str):
                setattr(target, name, self.enumerations[field][content])
            else:
                setattr(target, name, int(content))

    def name_of(self, enumeration: str, number: int) -> str:
        return list(self.enumerations[enumeration])[number]


def _content(value: object, name: str) -> Any:
    if hasattr(value, name):
        return getattr(value, name)
    attribute, index = _ELEMENTS.get(name) or (name[:-2], _AXES.get(name[-2:], 0))
    elements = getattr(value, attribute, None)
    return elements[index] if isinstance(elements, tuple) else None


@lru_cache(maxsize=1)
def layouts() -> Layouts:
    text = re.sub(r"//[^\n]*", "", _HEADER.read_text("utf-8"))
    constants = {name: int(value) for name, value in _CONSTANT.findall(text)}
    enumerations = {}
    for name, body in _ENUM.findall(text):
        enumerators = [word.strip() for word in body.split(",") if word.strip()]
        enumerations[name] = {word: number for number, word in enumerate(enumerators)}
    structures: dict[str, Any] = {}
    types: dict[str, dict[str, str]] = {}
    for name, body in _STRUCT.findall(text):
        fields, types[name] = [], {}
        for line in body.split(";"):
            if not line.strip():
                continue
            kind, pointer, names = _match(_FIELD, line.strip())
            plain = ctypes.c_void_p if pointer else structures.get(kind, ctypes.c_int64)
            for field, size in _NAME.findall(names):
                count = constants.get(size) or int(size or 0)
                fields.append((field, plain * count if count else plain))
                types[name][field] = "pointer" if pointer else kind
        structures[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return Layouts(enumerations, structures, types)


def _match(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    found = pattern.fullmatch(text)
    assert found is not None, f"not a field of a structure: {text}"
    return found.groups()


def enumerator(name: str) -> str:
    """As the C++ has it: CMP_EQ of the registers is kCmpEq."""
    return "k" + "".join(word.capitalize() for word in name.split("_"))
