"""C++ names, in both directions as far as that goes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable

_FILTERS = ("c++filt", "arm-none-eabi-c++filt", "llvm-cxxfilt", "aarch64-none-elf-c++filt")


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Every name with its demangled form; the name itself where there is none."""
    wanted = list(dict.fromkeys(names))
    mangled = [name for name in wanted if name.startswith(("_Z", "__Z"))]
    found = {name: name for name in wanted}
    program = next((p for p in map(shutil.which, _FILTERS) if p), None)
    if not mangled or program is None:
        return found
    done = subprocess.run([program], input="\n".join(mangled) + "\n", capture_output=True,
                          text=True, timeout=60, check=False)  # fmt: skip
    said = done.stdout.splitlines()
    if len(said) == len(mangled):
        found.update(zip(mangled, said, strict=True))
    return found


def base(name: str) -> str:
    """The name without namespaces, parameters and template arguments: "a::f(int)" is "f"."""
    without = re.sub(r"\(.*", "", name) if "(" in name else name
    without = re.sub(r"<[^<>]*>", "", without)
    return without.split("::")[-1].split(" ")[-1]


def qualified(name: str) -> str:
    """The name without its parameters: "a::f(int)" is "a::f"."""
    return name.split("(", 1)[0]


def mangled_base(symbol: str) -> str | None:
    """The last identifier of an Itanium-mangled name, cheaply: "_ZN1a1fEi" is "f"."""
    if not symbol.startswith("_Z"):
        return None
    position = 2 + (symbol[2:3] == "N")
    while symbol[position : position + 1] in "KVrL" and symbol[position : position + 1]:
        position += 1
    last = None
    while match := re.match(r"(?:St)?(\d+)", symbol[position:]):
        start = position + match.end()
        last = symbol[start : start + int(match[1])]
        position = start + int(match[1])
    return last
