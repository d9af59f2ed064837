"""Failed links and builds in the shape of public reports, in words of our own: cause and fix from
the log alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.link import print_explanation
from harness.link.diagnose.explain import explain

LD = "/opt/arm/bin/../lib/gcc/arm-none-eabi/13.3.1/../../../../arm-none-eabi/bin/ld: "
FAILED = "collect2: error: ld returned 1 exit status\nmake: *** [Makefile:136: all] Error 2\n"
LOGS = {
    # pytorch/executorch issues 7455, 9636, 8196, 6593
    "an archive of another machine": (
        f"{LD}/w/libnpu.a: member /w/libnpu.a(Npu.cpp.o) in archive is not an object\n{FAILED}",
        ("was built for another machine or in another format", "Rebuild /w/libnpu.a(Npu.cpp.o)"),
    ),
    "a data loader that is not built": (
        f"{LD}CMakeFiles/app.dir/main.cpp.obj: in function `load':\nmain.cpp:(.text.load+0x1c): "
        "undefined reference to `executorch::extension::FileDataLoader::from(char const*, unsigned "
        f"int)'\n{FAILED}",
        ("ExecuTorch's data loaders", "-DEXECUTORCH_BUILD_EXTENSION_DATA_LOADER=ON builds it"),
    ),
    "the core library": (
        "/usr/bin/ld: /home/dev/lib/libextension_tensor.a(tensor_ptr.cpp.o): in function "
        "`make()':\n"
        "tensor_ptr.cpp:(.text+0x65): undefined reference to "
        f"`executorch::runtime::internal::get_log_timestamp()'\n{FAILED}",
        ("belongs to libexecutorch_core", "Put libexecutorch_core.a after"),
    ),
    "a function that the C library declares for POSIX alone": (
        "/root/app/src/path_util.cpp:41:9: error: 'realpath' was not declared in this scope; did "
        "you mean 'realloc'?\nmake: *** [path_util.cpp.o] Error 1\n",
        ("stopped before its link", "Correct /root/app/src/path_util.cpp:41"),
    ),
    # arduino/ArduinoCore-zephyr issue 302, zephyrproject-rtos/zephyr issue 71416
    "the unwinder of C++": (
        f"{LD}/sdk/picolibc/lib/libstdc++.a(eh_personality.o): in function `parse(int)':\n"
        "eh_personality.cc:(.text.parse+0xa): undefined reference to `_Unwind_GetRegionStart'\n"
        f"{LD}/sdk/libstdc++.a(eh_personality.o):(.ARM.exidx+0x0): undefined reference to "
        f"`__aeabi_unwind_cpp_pr0'\n{FAILED}",
        ("belongs to the C++ exception runtime", "-fno-exceptions", "also __aeabi_unwind_cpp_pr0"),
    ),
    "armlink and a region that comes later": (
        "Error: L6384E: No Load Execution Region of name bss seen yet at line 11.\n"
        "ninja: build stopped: subcommand failed.\n",
        ("linker script is wrong", "No Load Execution Region of name bss"),
    ),
    # embdev.net topic 235664
    "an unwinder's table far from the code": (
        "/t/thumb/v7-m/libgcc.a(unwind-arm.o):(.ARM.exidx+0x10): relocation truncated to fit: "
        f"R_ARM_PREL31 against `.text'\n{FAILED}",
        ("more than 1 GB away", "Place .ARM.exidx (and .ARM.extab)"),
    ),
    # Open-CMSIS-Pack/devtools issue 1711
    "an import library without an entry function": (
        f"{LD}secure_implib.o: no symbol found for import library\n"
        f"{LD}final link failed: no symbols\n{FAILED}",
        ("import library of secure entry functions", "cmse_nonsecure_entry"),
    ),
    # keil.com support/docs/3793
    "an object with an address of its own fills a region with padding": (
        ".\\out\\ctl.axf: Error: L6220E: Load region LR_ROM size (524308 bytes) exceeds limit "
        "(524288 bytes). Region contains 501204 bytes of padding and 0 bytes of veneers (total "
        "501204 bytes of linker generated content).\nFinished: 0 information, 0 warning and 1 "
        "error messages.\n",
        ("too small by 20 bytes, and it is padding", "End LR_ROM before the object"),
    ),
    # llvm/llvm-project issue 66836
    "lld goes back": (
        "ld.lld: error: /w/m33.ld:88: unable to move location counter (0x20500010) backward to "
        "0x20500000 for section '.pool'\nclang: error: ld.lld command failed with exit code 1\n",
        ("goes back to an address", "or move the address"),
    ),
    # tensorflow/tflite-micro issue 1757, ARM-software/Tool-Solutions issue 57, pytorch/executorch
    # issue 7465
    "a helper of GCC's in a link of armlink's": (
        ".\\kws.axf: Error: L6218E: Undefined symbol __clrsbsi2 (referred from quant.o).\n"
        "Finished: 1 information, 0 warning and 1 error messages.\n",
        ("compiler's helper library", "compile with that compiler what needs it"),
    ),
    "the NPU's driver of another version": (
        "Error: L6218E: Undefined symbol ethosu_init_v2 (referred from npu_start.o).\n"
        "Error: L6218E: Undefined symbol ETHOSU_PMU_Enable (referred from profiler.o).\n"
        "Finished: 0 information, 1 warning and 2 error messages.\n",
        ("the Ethos-U core driver", "libethosu_core_driver.a"),
    ),
    "a container's time stamps": (
        "2026-02-11 09:12:47 -0700 -- INFO: [docker] /w/engine.cpp:71: undefined reference to "
        "`executorch::extension::Module::execute(std::string const&)'\n"
        "2026-02-11 09:12:47 -0700 -- INFO: [docker] clang++: error: linker command failed with "
        "exit code 1 (use -v to see invocation)\n",
        ("ExecuTorch's Module", "-DEXECUTORCH_BUILD_EXTENSION_MODULE=ON"),
    ),
    # a log module that is only declared (Zephyr), a pointer of Git LFS
    "a log module that nobody registers": (
        f"{LD}app/libapp.a(main.c.obj): in function `main':\nsrc/main.c:14:(.text.main+0x30): "
        f"undefined reference to `log_const_probe'\n{FAILED}"
        "ld -o zephyr/zephyr_pre0.elf app/libapp.a zephyr/kernel/libkernel.a\n",
        ("declares the log module probe", "LOG_MODULE_REGISTER(probe)"),
    ),
    "a text in the place of an archive": (
        f"{LD}/w/libpre.a: file format not recognized; treating as linker script\n"
        f"{LD}/w/libpre.a:1: syntax error\n{FAILED}",
        ("is a text", "Fetch /w/libpre.a again"),
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_cause_and_fix_of_a_public_shape(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, wanted = LOGS[name]
    log = tmp_path / "build.log"
    log.write_text(text)
    print_explanation(explain(log, lambda _: None))
    said = " ".join(capsys.readouterr().out.split())
    for words in wanted:
        assert words in said
