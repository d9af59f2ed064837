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
