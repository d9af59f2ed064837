"""Protects the search for who else could define a symbol, in sources that are not linked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.formats import archive as ar
from harness.link.command import LinkerCall
from harness.link.diagnose.tree import SourceDefinition, Tree, conditions_around
from harness.link.diagnose.undefined import explain_undefined
from harness.link.index import LinkIndex
from tests.link.arm_object import NewSymbol, write_object
from tests.link.log.reading import only


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ("__attribute__((weak)) void hook(void *to,\n    int n) {\n}\n", True),
        ('extern "C" int hook(int a) noexcept { return a; }\n', None),
        ("ET_WEAK int hook(int a) {\n return a; }\n", True),
        ("int hook(int a)\n{\n return a; }\n", False),
        ("int hook(int a);\nint x(void) { return hook(1); }\n", None),
        ("int hook[4] = {1};\n", False),
    ],
)
def test_definitions_are_reported_from_calls(tmp_path: Path, text: str, weak: bool | None) -> None:
    (tmp_path / "a.c").write_text(text)
    found = Tree(tmp_path).in_sources("hook")
    if weak is None:
        assert all(not f.weak for f in found)
        return
    assert [f.weak for f in found] == [weak]


@pytest.mark.parametrize(
    "text",
    [
        "/* Set hook(1) or none(0) */\nif (is_hook) { x(); }\n",
        "// hook(1)\nint x(void) { return 1; }\n",
        "static const int hook = 1;\n",
        "#define send(c) \\\n\t(c->io.hook(c))\n#define id \\\n\tx\nint x(void) { return 1; }\n",
        "int x(struct s *p) { p->hook = 1; p->io.hook = 2; return 1; }\n",
        'const char *x = "// hook(1) {";\n',
    ],
)
def test_what_only_looks_like_a_definition(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.c").write_text(text)
    (tmp_path / "b.c").write_text('const char *url = "http://x"; int hook(void) { return 1; }\n')
    assert [f.path.name for f in Tree(tmp_path).in_sources("hook")] == ["b.c"]


def test_a_static_function_is_one_for_its_file_alone(tmp_path: Path) -> None:
    """Where the file has no other; a static variable may be one of a function."""
    (tmp_path / "a.c").write_text("\nstatic inline int hook(int a) { return a; }\n")
    (tmp_path / "b.c").write_text("static int hook(int);\nstatic int hook(int a) { return a; }\n")
    (tmp_path / "c.c").write_text("static int hook(int a) { return a; }\nint hook(void) {}\n")
    found = {f.path.name: (f.line, f.static) for f in Tree(tmp_path).in_sources("hook")}
    assert found == {"a.c": (2, True), "b.c": (2, True), "c.c": (2, False)}


def test_the_line_of_a_definition_behind_comments_and_directives(tmp_path: Path) -> None:
    text = "/* one\n   two */\n#define a \\\n  b /* three\n four */\n#if 1\nint hook(void) {\n"
    (tmp_path / "a.c").write_text(text)
    assert [f.line for f in Tree(tmp_path).in_sources("hook")] == [7]


def test_a_name_in_what_is_hardly_c_is_looked_up_in_no_time(tmp_path: Path) -> None:
    """A use followed by words without a body: each of them must be read once, not in every way
    that it can be cut (a driver of Zephyr's took for ever)."""
    words = " ".join(["const unsigned long"] * 2000)
    (tmp_path / "a.c").write_text(
        f"int x = wanted(1) {words} ;\nint wanted(int a) {{ return a; }}\n"
    )
    found = Tree(tmp_path).in_sources("wanted")
    assert [(f.path.name, f.line) for f in found] == [("a.c", 2)]


def test_an_object_whose_source_was_taken_out_is_not_part_of_the_build(tmp_path: Path) -> None:
    """It is still in the target's folder; to link it again is not the fix."""
    folder = tmp_path / "build" / "CMakeFiles" / "x.dir" / "lib" / "cpp"
    folder.mkdir(parents=True)
    (tmp_path / "src").mkdir()
    for name in ("kept", "left"):
        (tmp_path / "src" / f"{name}.c").write_text(f"int {name}(void) {{ return 1; }}\n")
        object_ = folder / f"{name}.c.o"
        object_.write_bytes(write_object([NewSymbol(name, "def", function=True)]))
    entry = {
        "directory": str(tmp_path / "build"),
        "file": "../src/kept.c",
        "command": "cc -c ../src/kept.c -o CMakeFiles/x.dir/lib/cpp/kept.c.o",
    }
    (tmp_path / "build" / "compile_commands.json").write_text(json.dumps([entry]))
    tree = Tree(tmp_path / "build")
    assert [f.path.name for f in tree.definers("kept", ())] == ["kept.c.o"]
    assert tree.definers("left", ()) == []
    assert [f.compiled for f in tree.in_sources("left")] == [False]


def test_an_archive_that_came_with_the_sources(tmp_path: Path) -> None:
    """Not that of another build directory next to them."""
    made = write_object([NewSymbol("scale", "def", function=True)])
    for folder in ("vendor", "other", "build"):
        (tmp_path / folder).mkdir()
    for folder in ("vendor", "other"):
        ar.write_archive(tmp_path / folder / "libscale.a", [("scale.o", made, ["scale"])])
    (tmp_path / "other" / "CMakeCache.txt").write_text("")
    cache = tmp_path / "build" / "CMakeCache.txt"
    cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path}\n")
    (found,) = Tree(tmp_path / "build").definers("scale", ())
    assert found.path == tmp_path / "vendor" / "libscale.a"


def test_a_search_that_was_cut_says_so(tmp_path: Path) -> None:
    """The bound is work, not time: a busy machine finds what a quiet one finds."""
    for number in range(4):
        (tmp_path / f"{number}.c").write_text(f"int hook{number}(void) {{ return 1; }}\n")
    tree = Tree(tmp_path)
    assert tree.cut == ""
    assert [d.path.name for d in tree.in_sources("hook3")] == ["3.c"]
    assert Tree(tmp_path, most_files=3).in_sources("hook3") == []
    assert "3 files" in Tree(tmp_path, most_files=3).cut
    assert "0 MB" in Tree(tmp_path, most_bytes=40).cut


def test_a_symbol_without_a_definition_says_that_the_search_was_cut(tmp_path: Path) -> None:
    for name in ("a.c", "b.c"):
        (tmp_path / name).write_text("int other(void) { return 1; }\n")
    failure = only("main.c:3: undefined reference to `hook'")
    index = LinkIndex(LinkerCall(("ld",), tmp_path), ())
    assert "search ended" not in explain_undefined(failure, index, Tree(tmp_path)).cause
    cut = explain_undefined(failure, index, Tree(tmp_path, most_files=1))
    assert "The search ended after 1 files" in cut.cause


def test_the_conditions_that_a_definition_stands_below(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text(
        "#ifdef DONE\n#endif\n#if defined(CONFIG_A)\n#ifndef B /* b */\n#elif C\n# if D\nint f;\n"
        "# else\nint g;\n# endif\n#endif\n#endif\n"
    )
    first, second = (SourceDefinition(source, line, False, True, None) for line in (7, 9))
    outer = [("#elif C", 5), ("#if defined(CONFIG_A)", 3)]
    assert conditions_around(first) == [("#if D", 6), *outer]
    assert conditions_around(second) == [("#else", 8), *outer]
