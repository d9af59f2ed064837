"""Protects names: demangled, without parameters, and split into their scopes."""

from __future__ import annotations

import pytest

from harness.formats.demangle import (
    base,
    demangle,
    demangled,
    mangled_base,
    plain,
    qualified,
    scopes,
)


def test_names_in_both_directions() -> None:
    assert demangled(["_ZN2ns1fEi", "plain"]) == {"_ZN2ns1fEi": "ns::f(int)", "plain": "plain"}
    assert [mangled_base(n) for n in ("_ZN2ns1fEi", "_Z4loadv", "plain")] == ["f", "load", None]
    assert qualified("a::f(int)") == "a::f"
    assert base("std::vector<int>::push_back(int const&)") == "push_back"


@pytest.mark.parametrize(
    ("mangled", "shown"),
    [
        ("_ZN3hil6Method8run_jumpERKNS_11InstructionEPj", "hil::Method::run_jump"),
        ("_ZN3hil12_GLOBAL__N_19all_boundENS_4SpanE", "hil::(anonymous namespace)::all_bound"),
        ("_ZNK3hil6Method3runEv", "hil::Method::run"),
        ("_Z4workv", "work"),
        ("main", "main"),
        ("_Zweird", "_Zweird"),
    ],
)
def test_names_without_mangling(mangled: str, shown: str) -> None:
    assert plain(mangled) == shown


def test_names_in_unnamed_namespaces_and_of_the_library() -> None:
    assert mangled_base("_ZN12_GLOBAL__N_14workEv") == "work"
    assert plain("_ZNSt6vectorIiSaIiEE9push_backEOi").startswith("std::vector<int")
    assert plain("_ZTVN3hil6MethodE") == "hil::vtable for Method"
    assert mangled_base("_ZTVN3hil6MethodE") is None
    assert base("a::operator<<(b, c::d)") == "operator<<"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("main", ("main",)),
        ("a::b(int)", ("a", "b(int)")),
        ("a::(anonymous namespace)::c", ("a", "(anonymous namespace)", "c")),
        ("std::map<a::b, c>::at(x::y)", ("std", "map<a::b, c>", "at(x::y)")),
        ("void a::f<int>(int)", ("a", "f<int>(int)")),
        ("a::f(int)::words", ("a", "f(int)", "words")),
        ("vtable for a::B", ("a", "vtable for B")),
        ("a::operator<<(b, c::d)", ("a", "operator<<(b, c::d)")),
        ("a::B::operator()(int) const", ("a", "B", "operator()(int) const")),
    ],
)
def test_scopes(name: str, parts: tuple[str, ...]) -> None:
    assert scopes(name) == parts


def test_names_of_damaged_tables_stay_as_they_are() -> None:
    for name in ("_Z1fv\n_Z1gv", "_Z1\u2028fv", "_ZN3hil99run", "_Z" + "9" * 5000 + "x", "_Z"):
        assert demangle(name) == name
