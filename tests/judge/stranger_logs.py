"""Logs as strangers send them, with the verdict, the kind of the cause, and its line.

All were written for these tests, in the public formats. GOOD ones pass, COMPLETED ones ended
well and compared nothing, UNPROVEN ones prove nothing; those that failed are in
``stranger_failures``, those in the shape of published ones in ``published_logs``.
"""

from __future__ import annotations

Row = tuple[bytes, str, str | None, int | None]

BANNER = b"""telnetterminal0: Listening for serial connection on port 5000
telnetterminal1: Listening for serial connection on port 5001

    Ethos-U rev 9b1c2d3e --- Feb  3 2025 11:02:17
    (C) COPYRIGHT 2019-2025 Arm Limited
    ALL RIGHTS RESERVED

"""  # seven lines
STOPPED = b"\nInfo: /OSCI/SystemC: Simulation stopped by user.\n"
NEW = b"I [executorch:arm_executor_runner.cpp:%d %s()] "


def i(text: str, function: str = "main", line: int = 500) -> bytes:
    return f"I [executorch:arm_executor_runner.cpp:{line} {function}()] {text}\n".encode()


def e(text: str, place: str = "method.cpp:1 load()", level: str = "E") -> bytes:
    return f"{level} [executorch:{place}] {text}\n".encode()


RUNS = i("Model PTE file loaded. Size: 4096 bytes.", "runner_init") + i("Method 'forward' loaded.")
PASS = i("TEST: BundleIO index[3] Test_result: PASS", "verify_result")
END = i("Program complete, exiting.")
OK = RUNS + PASS + END
MATRIX = b"".join(b"Output[0][%d]: (float) %f\n" % (n, n / 2) for n in range(4))

POSIX = b"""I 00:00:00.001200 executorch:executor_runner.cpp:166] Model file /tmp/m.pte is loaded.
I 00:00:00.001300 executorch:executor_runner.cpp:175] Using method forward
I 00:00:00.001900 executorch:executor_runner.cpp:251] Method loaded.
"""

GOOD: dict[str, Row] = {
    "GitHub Actions, time stamps and byte order mark": (
        b"\xef\xbb\xbf"
        + b"".join(b"2026-03-04T05:06:07.1234567Z " + line + b"\n" for line in OK.splitlines()),
        "PASS",
        None,
        None,
    ),
    "Jenkins, time stamps in brackets, CRLF": (
        b"".join(b"[2026-03-04T05:06:07.123Z] " + line + b"\r\n" for line in OK.splitlines()),
        "PASS",
        None,
        None,
    ),
    "apt fails before, the run is fine": (
        b"E: Unable to locate package libpython3.9\nW: GPG error: some mirror\n" + OK,
        "PASS",
        None,
        None,
    ),
    "a licence is only talked about": (
        b"SetuptoolsDeprecationWarning: License classifiers are deprecated, not removed\n"
        b"You may not use this file except in compliance with the License.\n"
        b"Copyright: no license is granted to trademarks\n" + OK,
        "PASS",
        None,
        None,
    ),
    "the EULA was accepted": (
        b"ARM_FVP_INSTALL_I_AGREE_TO_THE_CONTAINED_EULA=True\nEULA accepted by the user\n"
        b"./FVP_Corstone_SSE-300.sh --i-agree-to-the-contained-eula --no-interactive\n" + OK,
        "PASS",
        None,
        None,
    ),
    "false friends in one row": (
        b"ExecuTorch MobileNetV2 demo\nEthos-U backend registered successfully\nError code = 0\n"
        b"Finished running job\nI: NPU has 256 MACs (ethosu_driver.c:220)\n"
        b"FVP_MPS4 was slow once last year, not today\n" + OK + b"EXITTHESIM\n",
        "PASS",
        None,
        None,
    ),
    "banner last, display noise first": (
        b"xterm: Xt error: Can't open display: \nsh: 1: xterm: not found\n" + OK + BANNER + STOPPED,
        "PASS",
        None,
        None,
    ),
    "early 2024 without the bracket, EOT raw": (
        b"I executorch:arm_executor_runner.cpp:91] Model in 0x70000000 <\n"
        b"I executorch:arm_executor_runner.cpp:133] Method loaded.\n"
        b"I executorch:arm_executor_runner.cpp:201] TEST: BundleIO index[0] Test_result: PASS\n"
        b"I executorch:arm_executor_runner.cpp:245] Program complete, exiting.\n"
        b"I executorch:arm_executor_runner.cpp:249] \x04\n",
        "PASS",
        None,
        None,
    ),
    "late 2024, EOT as a diamond on the end's own line": (
        b"I [executorch:arm_executor_runner.cpp:364] TEST: BundleIO index[0] Test_result: PASS\n"
        b"I [executorch:arm_executor_runner.cpp:400] Program complete, exiting.\xe2\x99\xa6\n",
        "PASS",
        None,
        None,
    ),
    "backslash EOT": (
        RUNS + PASS + END + b"I [executorch:arm_executor_runner.cpp:900 main()] \\x04\n",
        "PASS",
        None,
        None,
    ),
    "the limit stops a complete run": (
        OK + b"Info: Simulation is stopping. Reason: Cycle limit has been exceeded.\n",
        "PASS",
        None,
        None,
    ),
    "error statistics of a bundle that matched": (
        RUNS
        + i("=== Error stats for testset 0 ===")
        + i(" mean_absolute_error: 0.000000")
        + i(" max_relative_error:  0.000000")
        + i("Model output match expected BundleIO bpte ref data.")
        + PASS
        + END,
        "PASS",
        None,
        None,
    ),
    "two runs, and run_fvp is content": (
        OK + OK + b"[run_fvp] Simulation complete, 0\nNo problems found!\n",
        "PASS",
        None,
        None,
    ),
    "PowerShell's UTF-16": (OK.decode().encode("utf-16"), "PASS", None, None),
    "boot errors that are none": (
        b"ERROR:   BL2: no measured boot\n[ERR] Boot: no image in slot 1\n"
        b"[00:00:00.010,000] <err> smsc911x: no such device\n" + OK,
        "PASS",
        None,
        None,
    ),
    "status 0x0": (i("Loading of method forward failed with status 0x0") + OK, "PASS", None, None),
    "coloured": (
        b"".join(b"\x1b[32m" + x + b"\x1b[0m\n" for x in OK.splitlines()),
        "PASS",
        None,
        None,
    ),
}

COMPLETED: dict[str, Row] = {
    "outputs as text, nobody compared": (RUNS + MATRIX + END, "COMPLETED", "nothing_compared", 7),
    "Linux runner that ends well": (
        POSIX + b"I 00:00:00.003000 executorch:executor_runner.cpp:284] Model executed "
        b"successfully 1 time(s) in 0.69 ms.\nOutput 0: tensor(sizes=[1], [2.])\n",
        "COMPLETED",
        "nothing_compared",
        4,
    ),
    "two runs, one compares": (OK + RUNS + END, "COMPLETED", "nothing_compared", 7),
}

UNPROVEN: dict[str, Row] = {
    "the first of two runs compares nothing, the second hangs": (
        RUNS + END + RUNS + i("Starting the model execution..."),
        "NO_VERDICT",
        "no_end_marker",
        6,
    ),
    "nothing compared, and the CI system says it failed": (
        RUNS + END + b"##[error]Process completed with exit code 1.\n",
        "NO_VERDICT",
        "job_failed",
        4,
    ),
    "the test passed, the end is missing": (RUNS + PASS, "NO_VERDICT", "no_end_marker", 3),
    "stopped by the user half way": (RUNS + STOPPED, "NO_VERDICT", "no_end_marker", 4),
    "silence after the start": (
        BANNER + RUNS + i("Starting the model execution..."),
        "NO_VERDICT",
        "no_end_marker",
        10,
    ),
    "the end marker is only quoted": (
        RUNS + PASS + i("waiting for 'Program complete, exiting.' from the target"),
        "NO_VERDICT",
        "no_end_marker",
        4,
    ),
    "pytest says what it likes": (
        b"tests/test_add.py::test_add_u55 PASSED\n=== 1 passed in 3.2s ===\n",
        "NO_VERDICT",
        "no_runner_line",
        2,
    ),
    "a PASS of something else": (
        b"Test_result: PASS\nProgram complete.\n",
        "NO_VERDICT",
        "no_runner_line",
        2,
    ),
    "reset after the end": (
        OK + b"*** Booting Zephyr OS build v4.2.0 ***\n" + RUNS,
        "NO_VERDICT",
        "no_end_marker",
        7,
    ),
    "killed by the kernel": (POSIX + b"Killed\n", "NO_VERDICT", "no_end_marker", 4),
    "Zephyr module in trouble": (
        b"*** Booting Zephyr OS build v4.2.0 ***\n[00:00:00.010,000] <err> app: out of luck\n",
        "NO_VERDICT",
        "no_end_marker",
        2,
    ),
    "two runs, the second hangs": (
        OK + RUNS + i("Starting the model execution..."),
        "NO_VERDICT",
        "no_end_marker",
        7,
    ),
    "two runs, the first hangs": (
        RUNS + i("Starting the model execution...") + OK,
        "NO_VERDICT",
        "no_end_marker",
        3,
    ),
    "the CI system says it failed": (
        OK + b"##[error]Process completed with exit code 1.\n",
        "NO_VERDICT",
        "job_failed",
        5,
    ),
    "run_fvp says a status": (
        OK + b"[run_fvp] Simulation complete, 137\n",
        "NO_VERDICT",
        "job_failed",
        5,
    ),
    "nothing but NUL and half UTF-8": (
        b"\x00\x00\xff\xfe\n\xc3\n",
        "NO_VERDICT",
        "no_runner_line",
        2,
    ),
}
