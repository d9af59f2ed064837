"""Mangled C++ names to scopes and a name: ``hil::core::load(int)`` -> (hil, core, load(int))."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable

_MANGLED = re.compile(r"^_Z[\w.$]+$")
_ABOUT = re.compile(
    r"^(vtable for|VTT for|typeinfo for|typeinfo name for|guard variable for|"
    r"construction vtable for|non-virtual thunk to|virtual thunk to) "
)
_ANONYMOUS, _SAFE = "(anonymous namespace)", "{anonymous}"
_LONGEST = 160


def demangle(names: Iterable[str]) -> tuple[dict[str, str], str | None]:
    """Demangled by mangled name, in one call of c++filt; and why not, when it cannot be run."""
    mangled = sorted({n for n in names if _MANGLED.match(n)})
    if not mangled:
        return {}, None
    tool = shutil.which("c++filt") or shutil.which("arm-none-eabi-c++filt")
    if tool is None:
        return {}, "names are mangled: c++filt (binutils) is not installed"
    try:
        done = subprocess.run(
            [tool], input="\n".join(mangled) + "\n", capture_output=True, text=True, timeout=60,
            check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return {}, f"names are mangled: {tool}: {error}"
    plain = done.stdout.splitlines()
    if len(plain) != len(mangled):
        return {}, f"names are mangled: {tool} answered {len(plain)} of {len(mangled)}"
    return dict(zip(mangled, plain, strict=True)), None


def scopes(name: str) -> tuple[str, ...]:
    """Namespaces and classes from outside in, and the name with its parameters last."""
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
