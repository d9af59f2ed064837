"""C++ names: demangled by binutils for many at once, cut short without it for one.

Mangling: Itanium C++ ABI, section 5.1. A demangled name can be split into its scopes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable

_FILTERS = ("c++filt", "arm-none-eabi-c++filt", "llvm-cxxfilt", "aarch64-none-elf-c++filt")
_MANGLED = re.compile(r"_Z\S+")
_PREFIX = re.compile(r"_ZN?[KVrRO]*")
_IDENTIFIER = re.compile(r"(St)?L?(\d{1,6})(?!\d)")
_ABOUT = re.compile(
    r"^(vtable for|VTT for|typeinfo for|typeinfo name for|guard variable for|"
    r"construction vtable for|non-virtual thunk to|virtual thunk to) "
)
_ANONYMOUS, _SAFE = "(anonymous namespace)", "{anonymous}"
_LONGEST = 160


def demangle(names: Iterable[str]) -> tuple[dict[str, str], str | None]:
    """Demangled by mangled name, in one call of c++filt; and why not, when it cannot be run."""
    mangled = sorted({n for n in names if _MANGLED.fullmatch(n)})
    if not mangled:
        return {}, None
    tool = next((found for found in map(shutil.which, _FILTERS) if found), None)
    if tool is None:
        return {}, "names are mangled: c++filt (binutils) is not installed"
    try:
        done = subprocess.run(
            [tool],
            input="\n".join(mangled) + "\n",
            capture_output=True,
            timeout=60,
            check=True,
            encoding="utf-8",
            errors="backslashreplace",
        )
    except (OSError, subprocess.SubprocessError) as error:
        return {}, f"names are mangled: {tool}: {error}"
    said = done.stdout.splitlines()
    if len(said) != len(mangled):
        return {}, f"names are mangled: {tool} answered {len(said)} of {len(mangled)}"
    return dict(zip(mangled, said, strict=True)), None


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Every name with its demangled form; the name itself where there is none."""
    wanted = list(names)
    return {name: name for name in wanted} | demangle(wanted)[0]


def plain(symbol: str) -> str:
    """A mangled name without its argument types, cheaply: "_ZN3hil6Method3runEv" is
    "hil::Method::run". Others, and what is in ``std``, stay as they are."""
    parts = _identifiers(symbol)
    if not parts or parts[0] == "std":
        return symbol
    return "::".join("(anonymous)" if p.startswith("_GLOBAL__N") else p for p in parts)


def mangled_base(symbol: str) -> str | None:
    """The last identifier of a mangled name, cheaply: "_ZN1a1fEi" is "f"."""
    parts = _identifiers(symbol)
    return parts[-1] if parts else None


def _identifiers(symbol: str) -> list[str]:
    """The identifiers a mangled name begins with, each stored as its length and its letters."""
    prefix = _PREFIX.match(symbol)
    at, parts = prefix.end() if prefix else len(symbol), []
    while found := _IDENTIFIER.match(symbol, at):
        at = found.end() + int(found[2])
        parts += ["std"] * bool(found[1]) + [symbol[found.end() : at]]
    return parts


def base(name: str) -> str:
    """The demangled name without scopes, parameters and template arguments: "a::f(int)" is "f"."""
    without = re.sub(r"\(.*", "", name) if "(" in name else name
    without = re.sub(r"<[^<>]*>", "", without)
    return without.split("::")[-1].split(" ")[-1]


def qualified(name: str) -> str:
    """The demangled name without its parameters: "a::f(int)" is "a::f"."""
    return name.split("(", 1)[0]


def scopes(name: str) -> tuple[str, ...]:
    """Namespaces and classes of a demangled name from outside in, then the name with its
    parameters: ``hil::core::load(int)`` is (hil, core, load(int))."""
    about = _ABOUT.match(name)
    rest = (name[about.end() :] if about else name).replace(_ANONYMOUS, _SAFE)
    parts = _split(_without_return_type(rest))
    parts[-1] = (about[0] if about else "") + parts[-1]
    return tuple(_short(p.replace(_SAFE, _ANONYMOUS)) for p in parts)


def _split(name: str) -> list[str]:
    """At each ``::`` that is outside of brackets; an operator's own brackets end the search."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(name):
        if depth == 0 and name.startswith("operator", at) and not name[at + 8 : at + 9].isalnum():
            break
        if name[at] in "(<[":
            depth += 1
        elif name[at] in ")>]":
            depth = max(0, depth - 1)
        elif depth == 0 and name.startswith("::", at):
            parts.append(name[start:at])
            at += 1
            start = at + 1
        at += 1
    parts.append(name[start:])
    return [p for p in parts if p] or [name]


def _without_return_type(name: str) -> str:
    """``void f<int>(int)`` to ``f<int>(int)``: only templates are demangled with one."""
    depth = 0
    for at, letter in enumerate(name):
        if letter in "<[":
            depth += 1
        elif letter in ">]":
            depth -= 1
        elif letter == "(" and depth == 0:
            return name
        elif letter == " " and depth == 0 and not name[:at].endswith("operator"):
            after = name[at + 1 :]
            return after if "(" in after and not after.startswith(("(", "[")) else name
    return name


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..."
