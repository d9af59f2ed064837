"""What a linker script asserts, throws away and does not keep."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.link.command import LinkerCall
from harness.link.diagnose.explain import explain
from harness.link.diagnose.script import explain_assertion
from harness.link.index import LinkIndex
from harness.link.log.parse import parse
from tests.link.diagnose.test_causes import needs_gcc
from tests.link.diagnose.test_trial import CMAKE, MACHINE


def test_an_assertion_is_reported_with_its_condition(tmp_path: Path) -> None:
    script = tmp_path / "board.ld"
    script.write_text(
        'SECTIONS {\n .text : { *(.text) }\n}\nASSERT(SIZEOF(.text) < 0x10, "text is too large")\n'
    )
    text = "arm-none-eabi-ld: text is too large"
    (failure,) = parse(f"{text}\ncollect2: error: ld returned 1 exit status\n").failures
    assert failure.kind == "unknown"  # until the script is read: ld prints the text alone
    call = LinkerCall(("ld", "-T", str(script)), tmp_path)
    explained = explain_assertion(failure, LinkIndex(call, ()))
    assert explained.kind == "assertion"
    assert f"{script}:4 asserts `SIZEOF(.text) < 0x10`" in explained.cause
    assert f"{script}:4" in explained.fix


@needs_gcc
def test_an_assertion_of_ones_own_is_found_in_its_fragment(tmp_path: Path) -> None:
    """Not in the linker script that Zephyr makes of it in the build directory."""
    zephyr, build = tmp_path / "ws" / "zephyr", tmp_path / "build"
    generated = build / "zephyr" / "include" / "generated"
    generated.mkdir(parents=True)
    (zephyr / "include").mkdir(parents=True)
    statement = 'ASSERT(SIZEOF(.text) < 1, "too large")'
    (tmp_path / "meter.ld").write_text(f"\n{statement}\n")
    (generated / "snippets-sections.ld").write_text(
        '/* Sort key: "default" */#include "../../../meter.ld"\n'
    )
    (build / "zephyr" / ".config").write_text("CONFIG_X=y\n")
    (build / "CMakeCache.txt").write_text(
        f"Zephyr_DIR:PATH={zephyr}/share/zephyr-package/cmake\n"
        f"CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path}\n"
    )
    script = build / "zephyr" / "linker.cmd"
    script.write_text(f"SECTIONS {{}}\n\n{statement}\n")
    (failure,) = parse("ld: too large\ncollect2: error: ld returned 1 exit status\n").failures
    explained = explain_assertion(
        failure, LinkIndex(LinkerCall(("ld", "-T", str(script)), build), ())
    )
    assert f"{tmp_path}/meter.ld:2 asserts" in explained.cause
    (tmp_path / "meter.ld").write_text("")
    assert (
        f"{script}:3"
        in explain_assertion(
            failure, LinkIndex(LinkerCall(("ld", "-T", str(script)), build), ())
        ).fix
    )


@needs_gcc
@pytest.mark.parametrize("kept", [False, True])
def test_constructors_that_a_link_throws_away(kept: bool, tmp_path: Path) -> None:
    """The link succeeds, and what they register is missing at run time."""
    source, build = tmp_path / "source", tmp_path / "source" / "build"
    source.mkdir()
    taken = "*(SORT_BY_INIT_PRIORITY(.init_array.*) .init_array)"
    files = {
        "main.cpp": "int main() { return 0; }\n",
        "k.cpp": "extern int *volatile registered;\nint *volatile registered;\n"
        "struct R { R() { registered = nullptr; } };\nstatic R r;\n",
        "app.ld": "SECTIONS { .text : { *(.text*) *(.data*) *(.bss*) }\n"
        f"  .init : {{ {f'KEEP({taken})' if kept else taken} }} }}\n",
    }
    options = f"{MACHINE} -nostdlib -Wl,--gc-sections -T ${{CMAKE_SOURCE_DIR}}/app.ld"
    words = {"sources": "main.cpp k.cpp", "machine": MACHINE, "libraries": ""}
    files["CMakeLists.txt"] = CMAKE.format(**words, options=options)
    for name, content in files.items():
        (source / name).write_text(content)
    subprocess.run(
        ["cmake", "-G", "Ninja", "-S", source, "-B", build], check=True, capture_output=True
    )
    subprocess.run(["cmake", "--build", build], capture_output=True, check=True)
    explanation = explain(build, lambda _: None)
    assert explanation.well == kept
    if kept:
        return
    (failure,) = explanation.failures
    assert "throws away the static constructors (.init_array) of " in failure.cause
    assert "k.cpp.obj" in failure.cause
    assert f"Write KEEP({taken}) at {source}/app.ld:2. Tried: none is thrown" in failure.fix


@pytest.mark.parametrize("whole", [False, True])
def test_a_registration_that_nothing_pulls_into_the_program(whole: bool, tmp_path: Path) -> None:
    """ExecuTorch's kernels in an archive that is not linked whole: the link succeeds."""
    source, build = tmp_path / "source", tmp_path / "source" / "build"
    source.mkdir()
    libraries = "-Wl,--whole-archive ops -Wl,--no-whole-archive" if whole else "ops"
    files = {
        "core.cpp": "int count;\nint register_kernels(int n) { return count += n; }\n",
        "ops.cpp": "int register_kernels(int);\nstatic int done = register_kernels(1);\n",
        "main.cpp": "extern int count;\nint main() { return count; }\n",
        "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(p CXX)\n"
        "add_library(core STATIC core.cpp)\nadd_library(ops STATIC ops.cpp)\n"
        f"add_executable(app main.cpp)\ntarget_link_libraries(app {libraries} core)\n",
    }
    for name, content in files.items():
        (source / name).write_text(content)
    configure = ["cmake", "-G", "Ninja", "-S", source, "-B", build]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], capture_output=True, check=True)
    explanation = explain(build, lambda _: None)
    assert explanation.well == whole
    if not whole:
        (failure,) = explanation.failures
        assert "libops.a(ops.cpp.o) registers kernels" in failure.cause
        assert "Link libops.a whole" in failure.fix
        assert "Tried: the program has it then." in failure.fix
