"""Logs of runs that failed, as strangers send them; the columns are those of ``stranger_logs``."""

from __future__ import annotations

from tests.judge.stranger_logs import BANNER, END, OK, PASS, POSIX, RUNS, Row, e, i

ZEPHYR_AARCH64 = b"""*** Booting Zephyr OS build v4.1.0-rc2 ***
[00:00:00.120,000] <err> os: ELR_ELn: 0x0000000040001f4c
[00:00:00.120,000] <err> os: ESR_ELn: 0x0000000096000046
[00:00:00.120,000] <err> os:   EC:  0x25 (Data Abort taken without a change in Exception level)
[00:00:00.120,000] <err> os: x0:  0x0000000000000000  x1:  0x0000000000000008
[00:00:00.130,000] <err> os: >>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0
[00:00:00.130,000] <err> os: Current thread: 0x40012340 (main)
[00:00:00.140,000] <err> os: Halting system
"""
LINUX_OOPS = b"""[   12.000001] ethosu 1a050000.npu: registered
[   14.500000] Unable to handle kernel NULL pointer dereference at virtual address 0000000000000018
[   14.500100] Mem abort info:
[   14.500200]   ESR = 0x0000000096000004
[   14.500300] Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP
[   14.500400] CPU: 0 PID: 214 Comm: executor_runner Not tainted 6.12.30-yocto-standard #1
[   14.500500] pc : ethosu_job_submit+0x44/0x210 [arm_npu_ethosu]
[   14.500600] lr : ethosu_ioctl+0x90/0x158 [arm_npu_ethosu]
[   14.500700] ---[ end trace 0000000000000000 ]---
Segmentation fault
"""

BAD: dict[str, Row] = {
    "CTRL+C of a hanging CI": (
        BANNER + RUNS + b"Info: Simulation is stopping. Reason: CPU time has been exceeded.\n",
        "HANG",
        "wall_limit",
        10,
    ),
    "simulated time is up": (
        RUNS + b"\nInfo: Simulation is stopping. Reason: Simulated time has been exceeded.\n"
        b"[warning ][main@0][20000000000 ns] Simulation stopped by user\n",
        "HANG",
        "simulated_limit",
        4,
    ),
    "Armv6-M says two words, run_fvp says all is well": (
        RUNS + b"Hard fault\n[run_fvp] Simulation complete, 0\nNo problems found!\n",
        "FAULT",
        "hard_fault",
        3,
    ),
    "Corstone fault after the test passed": (
        RUNS + PASS + b"Hard fault. irq=-10, pc=0x1000123c, lr=0x1000456d, xpsr=0x21000006, "
        b"sp=0x3007fe40\n             cfsr=0x01000000 bfar=0xdfdfdfcf mmfar=0xcfdfdfdf\n" + END,
        "FAULT",
        "usage_fault",
        4,
    ),
    "MLEK": (
        b"INFO - Ethos-U device initialised\nException caught by function HardFault_Handler\n"
        b"CTRL    : 0x00000004\nIPSR    : 0x00000003\nPC      : 0x01001234\n",
        "FAULT",
        "hard_fault",
        2,
    ),
    "TF-M": (
        b"FATAL ERROR: SecureFault\nHere is some context for the exception:\n",
        "FAULT",
        "secure_fault",
        1,
    ),
    "Zephyr on A-profile": (ZEPHYR_AARCH64, "FAULT", "cpu_exception", 2),
    "Zephyr secure fault, minimal log": (
        b"*** Booting Zephyr OS build v3.7.0 ***\nE: ***** SECURE FAULT *****\n"
        b"E:   Address: 0x50004000\nE:   Attribution unit violation\n"
        b"E: r0/a1:  0x00000001  r1/a2:  0x00000002  r2/a3:  0x00000003\n"
        b"E: >>> ZEPHYR FATAL ERROR 41: Unknown error on CPU 0\n",
        "FAULT",
        "secure_fault",
        2,
    ),
    "Zephyr stack overflow": (
        b"*** Booting Zephyr OS build v4.2.0 ***\n[00:00:01.000,000] <err> os: >>> ZEPHYR FATAL "
        b"ERROR 2: Stack overflow on CPU 0\n",
        "FAULT",
        "stack_overflow",
        2,
    ),
    "Zephyr assertion": (
        b"ASSERTION FAIL [ptr != NULL] @ WEST_TOPDIR/zephyr/kernel/mempool.c:44\n\tbad pointer\n"
        b">>> ZEPHYR FATAL ERROR 4: Kernel panic on CPU 0\n",
        "FAULT",
        "zephyr_fatal",
        1,
    ),
    "Linux oops": (LINUX_OOPS, "FAULT", "linux_oops", 2),
    "kernel panic": (
        b"[    0.0] Booting Linux on physical CPU 0x0000000000 [0x411fd040]\n[    2.1] Kernel panic"
        b" - not syncing: Attempted to kill init! exitcode=0x0000000b\n",
        "FAULT",
        "linux_panic",
        2,
    ),
    "no root file system": (
        b"[    0.0] Booting Linux on physical CPU 0x0000000000 [0x411fd040]\n[    2.1] VFS: Cannot "
        b'open root device "vda" or unknown-block(0,0): error -6\n[    2.2] Kernel panic'
        b" - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n",
        "INFRA",
        "no_root_file_system",
        2,
    ),
    "the OOM killer": (
        POSIX + b"[   20.1] Out of memory: Killed process 99 (executor_runner) total-vm:300000kB, "
        b"anon-rss:180000kB\nKilled\n",
        "FAULT",
        "out_of_memory",
        4,
    ),
    "a task that hangs": (
        POSIX + b"[  245.1] INFO: task executor_runner:99 blocked for more than 120 seconds.\n",
        "HANG",
        "hung_task",
        4,
    ),
    "U-Boot": (
        b'U-Boot 2026.01\n"Synchronous Abort" handler, esr 0x96000010, far 0x1a050000\n',
        "FAULT",
        "boot_panic",
        2,
    ),
    "the Linux runner dies": (
        POSIX + b"Segmentation fault (core dumped)\n",
        "FAULT",
        "process_crash",
        4,
    ),
    "newlib assertion": (
        RUNS + b'assertion "drv->job.state == ETHOSU_JOB_IDLE" failed: file "ethosu_driver.c", '
        b"line 512, function: ethosu_invoke_async\n",
        "FAULT",
        "assertion_failed",
        3,
    ),
    "operator missing, both grammars and what follows": (
        RUNS
        + e(
            "kernel 'quantized_decomposed::quantize_per_tensor.out' not found.",
            "operator_registry.cpp:256 get_op_function_from_registry()",
        )
        + b"I [executorch:operator_registry.cpp:257] dtype: 6 | dim order: [\n"
        + b"I [executorch:operator_registry.cpp:258] 0, 1, 2, 3]\n"
        + e("Missing operator: [2] quantized_decomposed::quantize_per_tensor.out")
        + e("There are 1 instructions don't have corresponding operator registered. See logs")
        + i("Loading of method forward failed with status 0x14")
        + i("Method loaded.")
        + e("In function operator*(), assert failed (hasValue_)", "result.h:165 operator*()", "F"),
        "FAULT",
        "operator_missing",
        3,
    ),
    "host runner, operator missing, code in decimal": (
        b"[method.cpp:788] Missing operator: [7] aten::native_layer_norm.out\n"
        b"[method.cpp:992] There are 2 instructions don't have corresponding operator registered\n"
        b"Error: ExecuTorch forward() failed with error code 20\n",
        "FAULT",
        "operator_missing",
        1,
    ),
    "only the status says it, at level I": (
        i("Loading of method forward failed with status 0x14") + i("Method loaded.") + END,
        "FAULT",
        "operator_missing",
        1,
    ),
    "backend missing, decimal": (
        b"E 00:00:00.001 executorch:method.cpp:76] Backend EthosUBackend is not registered.\n"
        b"E 00:00:00.002 executorch:executor_runner.cpp:9] Loading of method forward failed, "
        b"Error Code 32\n",
        "FAULT",
        "backend_missing",
        1,
    ),
    "allocation": (
        BANNER
        + e(
            "Memory allocation failed: 1204224B requested (adjusted for alignment), "
            "1048576B available",
            "arm_memory_allocator.cpp:41 allocate()",
        )
        + e(
            "assert failed (buffer != nullptr): Could not allocate memory for memory planned "
            "buffer size 1204224",
            "arm_executor_runner.cpp:512 runner_init()",
            "F",
        ),
        "FAULT",
        "allocation_failed",
        8,
    ),
    "the input does not fit into its pool": (
        e("Failed to allocate input file size:602112", "r.cpp:1 read_binary_file()", "F")
        + e("Reading input tensor 1 from file i0.bin ERROR Out of memory"),
        "FAULT",
        "allocation_failed",
        1,
    ),
    "delegate cannot allocate": (
        e(
            "Failed to allocate scratch buffer of 2097152 bytes from temp_allocator",
            "EthosUBackend.cpp:190 execute()",
        )
        + i("Execution of method forward failed with status 0x21"),
        "FAULT",
        "allocation_failed",
        1,
    ),
    "semihosting is off": (
        e("Could not open file model.pte (errno: 0) for reading, exiting!", "r.cpp:1 f()", "F"),
        "FAULT",
        "semihosting_off",
        1,
    ),
    "input is not there": (
        e("Could not open file i0.bin (errno: 2) for reading, exiting!", "r.cpp:1 f()", "F"),
        "FAULT",
        "file_not_opened",
        1,
    ),
    "wrong parameters": (
        e("Not right number of parameters!", "r.cpp:1 main()", "F"),
        "FAULT",
        "input_rejected",
        1,
    ),
    "input of the wrong size": (
        RUNS + e("input size (150528) and tensor size (602112) missmatch!", "r.cpp:9 prepare()"),
        "FAULT",
        "input_rejected",
        3,
    ),
    "not a program": (
        e("Program identifier 'ETxx' != expected 'ET12'", "program.cpp:120 Load()")
        + i("Program loading failed @ 0x70000000: 0x23"),
        "FAULT",
        "bad_program",
        1,
    ),
    "BundleIO says FAIL": (
        RUNS
        + e("Model output don't match expected BundleIO bpte ref data. rtol=0.001000 atol=0.001000")
        + e("TEST: BundleIO index[1] Test_result: FAIL")
        + e("Bundle verification failed with status 0x10")
        + e("assert failed (model_ok == true): Problem running model", "r.cpp:1 main()", "F"),
        "MISMATCH",
        "bundled_test_failed",
        3,
    ),
    "one of two test sets fails": (
        RUNS + PASS + i("TEST: BundleIO index[4] Test_result: FAIL") + END,
        "MISMATCH",
        "bundled_test_failed",
        4,
    ),
    "NPU of another size": (
        RUNS + b"E: NPU config mismatch. npu.product=1, optimizer.product=1 (ethosu_u85.c:40)"
        b"\nE: NPU config mismatch. npu.macs_per_cc=8, optimizer.macs_per_cc=11 (ethosu_device.c:4)"
        b"\n" + e("Ethos-U invocation failed error (-1)", "EthosUBackend.cpp:300 execute()"),
        "FAULT",
        "npu_driver_error",
        3,
    ),
    "no NPU in there": (
        b"E: Failed to initialize device. Driver has not been compiled for this product "
        b"(ethosu_device_u85.c:77)\nE: Failed to initialize Ethos-U device (ethosu_driver.c:402)\n",
        "FAULT",
        "npu_driver_error",
        1,
    ),
    "NPU errors without a prefix, and run together": (
        RUNS + b"NPU status=0x0000030c, qread=0, cmd_end_reached=0NPU error(s) occured during "
        b"inference.\n" + END,
        "FAULT",
        "npu_driver_error",
        3,
    ),
    "NPU runs into its time limit": (
        RUNS + b"[00:00:05.000,000] <err> ethosu: NPU inference timed out\n",
        "FAULT",
        "npu_driver_error",
        3,
    ),
    "timing adapter fails, and all is well": (
        b"E: Failed to initialize timing-adapter #0 (target.cpp:88)\n" + OK,
        "PASS",
        None,
        None,
    ),
    "libpython": (
        b"+ /ci/fvp/models/Linux64_GCC-9.3/FVP_Corstone_SSE-320 -C x=1\n/ci/fvp/models/Linux64_GCC"
        b"-9.3/FVP_Corstone_SSE-320: error while loading shared libraries: libpython3.9.so.1.0: "
        b"cannot open shared object file: No such file or directory\n[run_fvp] Simulation complete,"
        b" 127\nNo problems found!\n",
        "INFRA",
        "library_missing",
        2,
    ),
    "old glibc": (
        b"./FVP_Corstone_SSE-320: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by "
        b"./FVP_Corstone_SSE-320)\n",
        "INFRA",
        "library_missing",
        1,
    ),
    "execstack": (
        b"Error: (E549) uncaught exception: /x/libarmctmodel.so: cannot enable executable stack as "
        b"shared object requires: Invalid argument\n",
        "INFRA",
        "executable_stack",
        1,
    ),
    "no threads left": (
        b"Error: (E549) uncaught exception: Resource temporarily unavailable\n",
        "INFRA",
        "host_limits",
        1,
    ),
    "licence server": (
        b"License check out failed for 'SystemC_Cortex-M55'\nFeature has expired\n",
        "INFRA",
        "licence",
        1,
    ),
    "EULA": (b"Please read and accept the EULA before using this model.\n", "INFRA", "eula", 1),
    "FVP is not there": (
        b"run_fvp.sh: line 81: FVP_Corstone_SSE-320: command not found\n",
        "INFRA",
        "simulator_error",
        1,
    ),
    "wrong parameter names": (
        b"Error: FVP_MPS4_Corstone_SSE_320: mps3_board.uart0.out_file: no such parameter\n"
        b"In process: main @ 0 ns\n",
        "INFRA",
        "simulator_error",
        1,
    ),
    "only the backend says it": (
        RUNS + e("Ethos-U invocation failed error (-1)", "EthosUBackend.cpp:297 execute()"),
        "FAULT",
        "npu_driver_error",
        3,
    ),
    "the delegate does not take its data": (
        e("Init failed for backend EthosUBackend: 0x23"),
        "FAULT",
        "bad_program",
        1,
    ),
    "a bundle that is none": (
        e("get_program_data() from bundle PTE failed: 0x23", level="F"),
        "FAULT",
        "bad_program",
        1,
    ),
    "FVP does not know an option": (
        b"FVP_Corstone_SSE-320: unrecognised option '--foo'\n",
        "INFRA",
        "simulator_error",
        1,
    ),
    "which finds no FVP": (
        b"which: no FVP_Corstone_SSE-320 in (/usr/bin:/bin)\n",
        "INFRA",
        "simulator_error",
        1,
    ),
    "the other machine's loader": (
        b"/lib/ld-linux-aarch64.so.1: No such file or directory\n",
        "INFRA",
        "library_missing",
        1,
    ),
    "Zephyr log with an operator missing": (
        b"*** Booting Zephyr OS build v4.2.0 ***\n[00:00:00.010,000] <err> app: Missing operator: "
        b"[3] aten::tanh.out\n",
        "FAULT",
        "operator_missing",
        2,
    ),
    "killed in mid line": (
        RUNS + b"I [executorch:arm_executor_runner.cpp:480 ru",
        "NO_VERDICT",
        "no_end_marker",
        3,
    ),
    "fault line torn in two by noise": (
        RUNS + b"xterm: Xt error: Can't open display: Hard fault. irq=-13, pc=0x0, lr=0x1, xpsr="
        b"0x60000003, sp=0x20001000\n",
        "FAULT",
        "hard_fault",
        3,
    ),
    "garbage inside of the message": (
        e("kernel '\x00\x7fat\x1b[0men::exp.out' not found.") + b"\xff\xfe\x80\n" + END,
        "FAULT",
        "operator_missing",
        1,
    ),
}
