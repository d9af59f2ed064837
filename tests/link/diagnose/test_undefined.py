"""Protects what is said of a symbol when a log comes without its objects: whose it is, and what to
do, for the symbols that ExecuTorch, Zephyr, TFLite Micro and the ML evaluation kit miss."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.link.diagnose.explain import explain_lines
from harness.link.diagnose.symbols import known_fact
from harness.link.log.lines import lines_of


def _explained(text: str, tmp_path: Path) -> tuple[str | None, str, str]:
    (failure,) = explain_lines(lines_of(text), tmp_path / "log", lambda _m: None).failures
    return failure.cause_kind, failure.cause, failure.fix


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs the compiler")
def test_a_label_of_an_assembler_file_is_not_static_but_not_global(tmp_path: Path) -> None:
    (tmp_path / "fast.S").write_text(".syntax unified\n.thumb\n.thumb_func\nfast:\n bx lr\n")
    (tmp_path / "main.c").write_text("int fast(void); int main(void) { return fast(); }\n")
    gcc = ["arm-none-eabi-gcc", "-mcpu=cortex-m55", "-nostdlib"]
    for name in ("fast.S", "main.c"):
        subprocess.run([*gcc, "-c", name, "-o", f"{name}.obj"], cwd=tmp_path, check=True)
    link = [*gcc, "main.c.obj", "fast.S.obj", "-o", "x.elf"]
    done = subprocess.run(link, cwd=tmp_path, capture_output=True, text=True, check=False)
    _, cause, fix = _explained(f"{' '.join(link)}\n{done.stderr}", tmp_path)
    assert "fast.S.obj defines it for that file only: it is not declared .global." in cause
    assert fix == "Add `.global fast` to that file."


@pytest.mark.parametrize(
    ("symbol", "kind", "home"),
    [
        ("arm_ethos_io_memcpy", "weak_default_not_compiled", "copy hook"),
        ("et_pal_init", "library_not_linked", "platform layer"),
        ("executorch::runtime::Method::execute()", "library_not_linked", "libexecutorch_core"),
        ("arm_convolve_wrapper_s8", "library_not_linked", "CMSIS-NN"),
        ("ethosu_init", "library_not_linked", "Ethos-U core driver"),
        ("ethosu_target_init", "library_not_linked", "core platform"),
        ("__device_dts_ord_28", "no_definition", "Zephyr device"),
        ("z_impl_zephyr_read_stdin", "no_definition", "system call"),
        ("k_malloc", "no_definition", "system heap"),
        ("_sbrk", "library_not_linked", "system calls"),
        ("_sys_exit", "no_definition", "semihosting"),
        ("__initial_sp", "no_definition", "linker script"),
        ("_estack", "no_definition", "linker script"),
        ("__bss_start__", "no_definition", "linker script"),
        ("__heap_base", "no_definition", "linker script"),
        ("_image_ram_start", "no_definition", "linker script"),
        ("roundf", "library_not_linked", "mathematics"),
        ("__atomic_fetch_add_8", "library_not_linked", "libatomic"),
        ("vtable for app::Model", "no_definition", "key function"),
        ("typeinfo for app::Model", "no_definition", "run-time type information"),
        ("__cxa_guard_acquire", "library_not_linked", "static variable"),
        ("__udivmoddi4", "library_not_linked", "helper library"),
        ("__aeabi_ldivmod", "library_not_linked", "helper library"),
        ("__ctzsi2", "library_not_linked", "helper library"),
        ("raise", "library_not_linked", "signals"),
        ("pthread_create", "library_not_linked", "POSIX threads"),
        ("__gcov_init", "library_not_linked", "coverage"),
        ("__ubsan_handle_add_overflow", "library_not_linked", "sanitizer"),
        ("arm_rfft_fast_f32", "library_not_linked", "CMSIS-DSP"),
        ("arm_mat_mult_q15", "library_not_linked", "CMSIS-DSP"),
        ("arm_fully_connected_s8", "library_not_linked", "CMSIS-NN"),
        ("executorch::extension::BufferDataLoader::load()", "library_not_linked", "data loaders"),
        ("executorch::extension::Module::load()", "library_not_linked", "Module"),
        ("__builtin_clzll", "no_definition", "the compiler itself"),
        ("__uxtb16", "no_definition", "an intrinsic"),
        ("_fini", "no_definition", "crti.o"),
        ("__exidx_end", "no_definition", "for the unwinder"),
        ("__retarget_lock_acquire", "library_not_linked", "newlib's locks"),
        ("__aeabi_assert", "no_definition", "assert()"),
        ("Image$$ARENA$$ZI$$Limit", "no_definition", "the scatter file has a region ARENA"),
        ("g_pfnVectors", "no_definition", "vector table"),
        ("sys_csrand_get", "no_definition", "random generator"),
        ("_impure_ptr", "no_definition", "newlib, with whose headers"),
        ("sensor_read_end_marker", "no_definition", "No file that could be searched"),
    ],
)
def test_whose_symbol_it_is(symbol: str, kind: str, home: str, tmp_path: Path) -> None:
    found, cause, fix = _explained(f"ld: m.o: m.c:3: undefined reference to `{symbol}'\n", tmp_path)
    assert found == kind
    assert home in cause
    assert fix


def test_the_fix_for_armlinks_semihosting(tmp_path: Path) -> None:
    text = (
        "Error: L6915E: Library reports error: __use_no_semihosting was requested, but "
        "_sys_exit was referenced\n"
    )
    _, cause, fix = _explained(text, tmp_path)
    assert "_sys_exit is needed" in cause or "semihosting" in cause
    assert "retarget" in fix


def test_an_entry_function_of_secure_code(tmp_path: Path) -> None:
    text = (
        "/x/ld: entry function `f' disappeared from secure code\n"
        "collect2: error: ld returned 1 exit status\n"
    )
    kind, cause, _ = _explained(text, tmp_path)
    assert kind == "secure_entry"
    assert "disappeared from secure code" in cause


def test_an_archive_of_the_line_that_came_too_early(tmp_path: Path) -> None:
    text = (
        "arm-none-eabi-g++ main.o libcmsis-nn.a libkernels.a -o x.elf\n"
        "ld: libkernels.a(k.o): k.c:3: undefined reference to `arm_softmax_s8'\n"
    )
    kind, cause, _ = _explained(text, tmp_path)
    assert kind == "archive_order"
    assert "libcmsis-nn.a" in cause


@pytest.mark.parametrize(
    ("symbol", "options", "fix"),
    [
        ("operator new(unsigned int)", {}, "CONFIG_CPP=y"),
        ("operator new(unsigned int)", {"CPP": "y"}, "Set CONFIG_REQUIRES_FULL_LIBCPP=y"),
        ("__cxa_guard_acquire", {"CPP": "y"}, "-fno-threadsafe-statics"),
        ("sinf", {"MINIMAL_LIBC": "y"}, "CONFIG_REQUIRES_FULL_LIBC=y"),
        ("fopen", {"MINIMAL_LIBC": "y"}, "CONFIG_REQUIRES_FULL_LIBC=y"),
        ("__cxa_throw", {"CPP": "y"}, "CONFIG_CPP_EXCEPTIONS=y"),
        ("__gxx_personality_v0", {"CPP": "y"}, "-fno-exceptions"),
        ("typeinfo for app::Model", {"CPP": "y"}, "CONFIG_CPP_RTTI=y"),
        ("vtable for __cxxabiv1::__class_type_info", {"CPP": "y"}, "-fno-rtti"),
        ("std::__throw_length_error(char const*)", {"CPP": "y"}, "CONFIG_REQUIRES_FULL_LIBCPP=y"),
    ],
)
def test_no_option_of_zephyrs_is_proposed_that_is_set(
    symbol: str, options: dict[str, str], fix: str
) -> None:
    found = known_fact(symbol, "", options)
    assert found is not None
    assert fix in found.fix
    assert not [name for name in options if f"CONFIG_{name}=y " in f"{found.fix} "]


def test_a_symbol_that_full_cpp_has_is_not_blamed_on_options_that_are_set() -> None:
    options = dict.fromkeys(("CPP", "CPP_RTTI", "CPP_EXCEPTIONS", "REQUIRES_FULL_LIBCPP"), "y")
    assert known_fact("operator new(unsigned int)", "", options) is None
