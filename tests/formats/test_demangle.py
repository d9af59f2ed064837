"""Protects names: demangled, cut short, and split into their scopes."""

from __future__ import annotations

from pathlib import Path

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
        ("_ZN3hil12_GLOBAL__N_19all_boundENS_4SpanE", "hil::(anonymous)::all_bound"),
        ("_ZNK3hil6Method3runEv", "hil::Method::run"),
        ("_Z4workv", "work"),
        ("main", "main"),
        ("_Zweird", "_Zweird"),
    ],
)
def test_names_without_mangling(mangled: str, shown: str) -> None:
    assert plain(mangled) == shown


def test_cut_short_where_lengths_lead_astray() -> None:
    assert plain("_ZN3hil99run") == "hil::run"
    assert plain("_Z" + "9" * 5000 + "x") == "_Z" + "9" * 5000 + "x"
    assert plain("_ZNSt6vectorIiE9push_backEi") == "_ZNSt6vectorIiE9push_backEi"
    assert mangled_base("_ZN12_GLOBAL__N_1L4workEv") == "work"


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


def test_demangle_without_the_tool_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names stay mangled, and a note says why."""
    monkeypatch.setenv("PATH", "/nowhere")
    plain, note = demangle(["_Z1fv"])
    assert plain == {}
    assert note is not None
    assert "c++filt" in note


def test_a_tool_that_loses_a_name_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line less would give every name the meaning of its neighbour."""
    tool = tmp_path / "c++filt"
    monkeypatch.setenv("PATH", str(tmp_path))
    tool.write_text("#!/bin/sh\necho one\n")
    tool.chmod(0o755)
    found, note = demangle(["_Z1fv", "_Z1gv"])
    assert (found, note) == ({}, f"names are mangled: {tool} answered 1 of 2")
    assert demangled(["_Z1fv", "_Z1gv"]) == {"_Z1fv": "_Z1fv", "_Z1gv": "_Z1gv"}
    tool.write_text("#!/bin/sh\nexit 3\n")
    found, note = demangle(["_Z1fv"])
    assert found == {}
    assert note is not None
    assert "exit status 3" in note


def test_names_with_line_ends_are_not_asked_for() -> None:
    """They are from damaged tables, and would be two names to the tool."""
    assert demangle(["_Z1fv\n_Z1gv", "_Z1\u2028fv"]) == ({}, None)
