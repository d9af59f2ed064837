"""Logs in the shape of published ones that were once misread; the columns are those of
``stranger_logs``. They were written for these tests; what each is like is noted beside it.
"""

from __future__ import annotations

from tests.judge.stranger_logs import BANNER, END, OK, POSIX, RUNS, Row, e, i

ZEPHYR = b"*** Booting Zephyr OS build v4.1.0 ***\n"
LIMIT = b"Info: Simulation is stopping. Reason: CPU time has been exceeded.\n"
ENDED = b"Application exit code: 0.\n\x04\nEXITTHESIM\n"
# Zephyr's minimal logging (CONFIG_LOG_MODE_MINIMAL): the level, a colon, the text.
OVERFLOW = (
    b"E: ***** USAGE FAULT *****\nE:   Stack overflow (context area not valid)\n"
    b"E: r0/a1:  0x00000000  r1/a2:  0x00000001  r2/a3:  0x00000002\n"
    b"E: r3/a4:  0x00000003 r12/ip:  0x0000000c r14/lr:  0x1000456d\n"
    b"E:  xpsr:  0x01000000\nE: Faulting instruction address (r15/pc): 0x1000123c\n"
    b"E: >>> ZEPHYR FATAL ERROR 2: Stack overflow on CPU 0\n"
    b"E: Current thread: 0x20000020 (main)\nE: Halting system\n"
)
# A stack guard: no name of an exception, the registers first.
GUARDED = (
    b"[00:00:16.167,000] <err> os: r0/a1:  0x00000002  r1/a2:  0x20000c68  r2/a3:  0xf0f0f0f0\n"
    b"[00:00:16.167,000] <err> os: r3/a4:  0x20001f48 r12/ip:  0x00000003 r14/lr:  0x08006239\n"
    b"[00:00:16.167,000] <err> os:  xpsr:  0x41000036\n"
    b"[00:00:16.167,000] <err> os: Faulting instruction address (r15/pc): 0x080136dc\n"
    b"[00:00:16.167,000] <err> os: >>> ZEPHYR FATAL ERROR 2: Stack overflow on CPU 0\n"
    b"[00:00:16.167,000] <err> os: Fault during interrupt handling\n"
)
# Zephyr 1.12
OLD = (
    b"***** MPU FAULT *****\n  Instruction Access Violation\n***** Hardware exception *****\n"
    b"Current thread ID = 0x20000074\nFaulting instruction address = 0xe0000000\n"
    b"Fatal fault in thread 0x20000074! Aborting.\n"
)
ESCALATED = (
    b"[00:00:00.010,000] <err> os: ***** HARD FAULT *****\n"
    b"[00:00:00.010,000] <err> os:   Fault escalation (see below)\n"
    b"[00:00:00.010,000] <err> os: ***** BUS FAULT *****\n"
    b"[00:00:00.010,000] <err> os:   Precise data bus error\n"
    b"[00:00:00.010,000] <err> os:   BFAR Address: 0x24060000\n"
)
NO_SECOND = (
    b"E: Failed to switch security state and privilege level (ethosu_device_u55_u65.c:244)\n\n"
    b"E: Failed to initialize Ethos-U device (ethosu_driver.c:418)\n\n"
)
OVERRIDING = b"".join(
    b"E 00:00:00.21410%d executorch:method.cpp:939] Overriding output data pointer allocated by "
    b"memory plan is not allowed.\nI 00:00:00.21414%d executorch:qnn_executor_runner.cpp:263] "
    b"ignoring error from set_output_data_ptr(): 0x2\n" % (n, n)
    for n in range(2)
)
QNN = (
    b"I 00:00:00.217469 executorch:qnn_executor_runner.cpp:415] Model executed successfully.\n"
    b"I 00:00:01.835706 executorch:qnn_executor_runner.cpp:298] 100 inference took 1096.626000 ms, "
    b"avg 10.966260 ms\n"
)

PUBLISHED: dict[str, Row] = {
    # ethos-u-core-platform's _exit, in CI logs of CMSIS-NN and of TVM
    "core platform, exit code 0, then the limit": (
        BANNER + RUNS + ENDED + LIMIT,
        "COMPLETED",
        "nothing_compared",
        10,
    ),
    "core platform, exit code 1": (RUNS + ENDED.replace(b"0", b"1"), "FAULT", "exit_status", 3),
    "TVM's demo ends by its tag": (
        BANNER
        + b"Running inference\nThe image has been classified as 'tabby'\nEXITTHESIM\n"
        + LIMIT,
        "COMPLETED",
        "nothing_compared",
        10,
    ),
    "TVM aborts before its tag": (
        BANNER + b"Running inference\nTVMPlatformAbort: -1\nEXITTHESIM\n",
        "FAULT",
        "runner_error",
        9,
    ),
    "the tag on a command line ends nothing": (
        b'+ FVP_X -C mps3_board.uart0.shutdown_tag="EXITTHESIM"\n' + RUNS + LIMIT,
        "HANG",
        "wall_limit",
        4,
    ),
    # zephyrproject-rtos/zephyr issues 46049, 28724, 7706; twister's handler.log
    "Zephyr minimal log, stack overflow": (ZEPHYR + OVERFLOW, "FAULT", "stack_overflow", 8),
    "Zephyr minimal log, an empty line behind every line": (
        ZEPHYR + OVERFLOW.replace(b"\n", b"\n\n"),
        "FAULT",
        "stack_overflow",
        14,
    ),
    "Zephyr stack guard, registers first": (ZEPHYR + GUARDED, "FAULT", "stack_overflow", 6),
    "Zephyr 1.12": (b"***** Booting Zephyr OS v1.12.0 *****\n" + OLD, "FAULT", "mpu_fault", 2),
    "Zephyr, a hard fault that was a bus fault": (ZEPHYR + ESCALATED, "FAULT", "bus_fault", 2),
    "Zephyr minimal log, MPU fault": (
        ZEPHYR + b"E: ***** MPU FAULT *****\nE:   Data Access Violation\nE:   MMFAR Address: 0x4\n"
        b"E: >>> ZEPHYR FATAL ERROR 19: Unknown error on CPU 0\nE: Halting system\n",
        "FAULT",
        "mpu_fault",
        2,
    ),
    "Zephyr minimal log, registers and then silence": (
        ZEPHYR + b"E: r0/a1:  0x00000000  r1/a2:  0x00000001  r2/a3:  0x00000002\n",
        "FAULT",
        "cpu_exception",
        2,
    ),
    # SEGGER and Alif boards
    "an NPU does not start": (NO_SECOND + ZEPHYR, "FAULT", "npu_driver_error", 1),
    "an NPU that stops before the end of its commands": (
        RUNS + b"W: Failure: IRQ received but qread (128) not at end of stream (512).\n",
        "FAULT",
        "npu_driver_error",
        3,
    ),
    # pytorch/executorch issue 3528
    "what is ignored does not matter": (
        POSIX + OVERRIDING + QNN,
        "COMPLETED",
        "nothing_compared",
        9,
    ),
    "what is ignored matters where nothing follows": (
        POSIX + OVERRIDING,
        "FAULT",
        "runner_error",
        4,
    ),
    "another error stays one": (
        POSIX + e("out of luck") + i("still here") + OVERRIDING + QNN,
        "FAULT",
        "runner_error",
        4,
    ),
    # results that the audiomark benchmark publishes; a build for another board
    "image not loaded, and silence": (
        BANNER + b"Warning: Failed to write bytes at address range [0x00008000..0x0006DC4B] when "
        b'loading image "build/bin/runner.axf".\n' + LIMIT,
        "FAULT",
        "image_not_loaded",
        8,
    ),
    "an alias of the image is not written, and all is well": (
        BANNER + b"Warning: Failed to write bytes at address range [0x00080000..0x002B2B07] when "
        b'loading image "a.axf".\n' + OK,
        "PASS",
        None,
        None,
    ),
    # pytest over ExecuTorch's backends/arm
    "the host compared": (
        RUNS + END + b"E       AssertionError: Output 0 does not match reference output.\n",
        "MISMATCH",
        "test_failed",
        4,
    ),
    "a failure that is expected is only told": (
        OK + b"XFAIL tests/test_rsqrt.py::test_u55 - MLETORCH-707: AssertionError: Output 0 does "
        b"not match reference output.\n",
        "PASS",
        None,
        None,
    ),
    "operator missing, two spaces": (
        b"[method.cpp:788] Missing operator: [7]  aten::native_layer_norm.out\n",
        "FAULT",
        "operator_missing",
        1,
    ),
    # Unity, as the unit tests of CMSIS-NN print it on an FVP
    "Unity, all is well": (
        b"t.c:23:test_add:PASS\n\n-----------------------\n3 Tests 0 Failures 0 Ignored \nOK\n",
        "COMPLETED",
        "nothing_compared",
        4,
    ),
    "Unity, one fails": (
        b"t.c:23:test_add:FAIL\n-----------------------\n3 Tests 1 Failures 0 Ignored \nFAIL\n"
        + ENDED,
        "MISMATCH",
        "test_failed",
        3,
    ),
    "Unity, no test": (b"0 Tests 0 Failures 0 Ignored \nOK\n", "NO_VERDICT", "no_runner_line", 2),
    # ExecuTorch's zephyr/samples/mv2-ethosu, and a vendor's hello world
    "MobileNetV2 demo": (
        ZEPHYR + b"I [executorch:main.cpp] Model data loaded. Size: 3000 bytes.\n"
        b"I [executorch:main.cpp] Method 'forward' loaded successfully\n"
        b"I [executorch:main.cpp] Inference completed in 12 ms\n"
        b"I [executorch:main.cpp] MobileNetV2 Demo Complete\n",
        "COMPLETED",
        "nothing_compared",
        5,
    ),
    "hello world checks its sum": (
        ZEPHYR + b"[00:00:00.010,000] <inf> main: Program loaded successfully\n"
        b"[00:00:00.020,000] <inf> main: \xe2\x9c\x93 Test PASSED: Addition worked correctly!\n",
        "COMPLETED",
        "nothing_compared",
        3,
    ),
    "hello world's sum is wrong": (
        ZEPHYR + b"[00:00:00.010,000] <inf> main: Program loaded successfully\n"
        b"[00:00:00.020,000] <err> main: \xe2\x9c\x97 Test FAILED: Expected 5.0, got 4.0\n",
        "MISMATCH",
        "test_failed",
        3,
    ),
    # pytorch/executorch issues 2533, 1287, 7568; ultralytics pull request 24171
    "what is in memory is no program": (
        b"I executorch:main.cpp:68] Model PTE file loaded. Size: 960 bytes.\n"
        b"E executorch:program.cpp:108] Program identifier 'Xyz0' != expected 'ET12'\n"
        b"F executorch:result.h:165] In function CheckOk(), assert failed: hasValue_\n",
        "FAULT",
        "bad_program",
        2,
    ),
    "an operator is missing on Android": (
        b"11-24 09:35:11.099: I/ETLOG(3388): Missing operator: [4] aten::native_dropout.out\n"
        b"11-24 09:35:11.101: F/ETLOG(3388): Loading of method forward failed with status 0x14\n",
        "FAULT",
        "operator_missing",
        1,
    ),
    "an FVP without a word of the program": (
        b"telnetterminal0: Listening for serial connection on port 5000\n\n"
        b"    Ethos-U rev 136b7d75 --- Apr 12 2023 13:44:01\n" + LIMIT,
        "HANG",
        "wall_limit",
        4,
    ),
    "a planned buffer beyond the pool of Zephyr's sample": (
        ZEPHYR
        + b"E [executorch:memory_allocator.h:105 allocate()] Memory allocation failed: 6144000B "
        b"requested (adjusted for alignment), 2000B available\nF [executorch:main.cpp:219 main()] "
        b"In function main(), assert failed (buffer != nullptr): Could not allocate memory\n",
        "FAULT",
        "allocation_failed",
        2,
    ),
}
