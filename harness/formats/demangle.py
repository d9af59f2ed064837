"""Demangles C++ names with libstdc++, and splits them into scopes.

The harness's packages need libstdc++. Mangling: Itanium C++ ABI, section 5.1."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from functools import lru_cache

_MANGLED = re.compile(r"_Z\S+")
_PREFIX = re.compile(
    r"^(vtable for|VTT for|typeinfo for|typeinfo name for|guard variable for|"
    r"construction vtable for|non-virtual thunk to|virtual thunk to) "
)
_ANONYMOUS, _SAFE = "(anonymous namespace)", "{anonymous}"
_NAME = re.compile(r"operator(?:\(\)|\[\]|[^\w\s(]+)|~?[\w.$@]+")
_LONGEST = 160


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Map every name to its demangled form, or to itself."""
    return {name: demangle(name) for name in names}


def demangle(name: str) -> str:
    """ "_ZN1a1fEi" is "a::f(int)"; a name that is not mangled is returned unchanged."""
    if not _MANGLED.fullmatch(name):
        return name
    status = ctypes.c_int()
    text = _library().__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    plain_name = ctypes.string_at(text).decode("utf-8", "backslashreplace")
    _library().free(text)
    return plain_name


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    """``__cxa_demangle`` of the C++ ABI, and the ``free`` that belongs to it."""
    library = ctypes.CDLL("libstdc++.so.6")
    library.__cxa_demangle.restype = library.free.restype = ctypes.c_void_p
    library.free.argtypes = (ctypes.c_void_p,)
    return library


def plain(symbol: str) -> str:
    """Return a name without argument types: "_ZN3hil6Method3runEv" gives "hil::Method::run"."""
    return qualified(demangle(symbol))


def mangled_base(symbol: str) -> str | None:
    """Return the last identifier of a mangled name: "_ZN1a1fEi" is "f".

    None unless it is a function."""
    name = demangle(symbol)
    return None if name == symbol or _PREFIX.match(name) else base(name)


def base(name: str) -> str:
    """Return a demangled name without scopes, parameters, template arguments: "f"."""
    match = _NAME.match(_PREFIX.sub("", scopes(name)[-1]))
    return name if match is None else match[0]


def qualified(name: str) -> str:
    """Return the demangled name without its parameters: "a::f(int)" is "a::f"."""
    *around, last = scopes(name)
    prefix = _PREFIX.match(last)
    return "::".join((*around, (prefix[0] if prefix else "") + base(last)))


def scopes(name: str) -> tuple[str, ...]:
    """Split a demangled name into namespaces and classes, outermost first, then its name.

    The name has its parameters: ``hil::core::load(int)`` is (hil, core, load(int))."""
    prefix = _PREFIX.match(name)
    rest = (name[prefix.end() :] if prefix else name).replace(_ANONYMOUS, _SAFE)
    parts = _split(_without_return_type(rest))
    parts[-1] = (prefix[0] if prefix else "") + parts[-1]
    return tuple(_short(p.replace(_SAFE, _ANONYMOUS)) for p in parts)


def _split(name: str) -> list[str]:
    """Split at each ``::`` outside of brackets; an operator's own brackets end the search."""
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
    """``void f<int>(int)`` to ``f<int>(int)``: only templates are demangled with a return type."""
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
