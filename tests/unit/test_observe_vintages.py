"""The grammar of every vintage: progress, figures, counters, outputs, ends, and what is noise."""

from __future__ import annotations

import base64
import random

import pytest

from harness.observe import Kind, Observation, Reader, Stage, observe

VINTAGES = {
    "early 2024": "{level} executorch:arm_executor_runner.cpp:60] {text}",
    "late 2024": "{level} [executorch:arm_executor_runner.cpp:364] {text}",
    "mid 2025": "{level} [executorch:arm_executor_runner.cpp:211 main()] {text}",
    "zephyr sample": "{level} [executorch:main.cpp] {text}",
    "host": "[method.cpp:788] {text}",
}
ENDS = {"raw": "\x04", "empty": "", "diamond": "\u2666"}


def log(vintage: str, *messages: str, level: str = "I", newline: str = "\n") -> bytes:
    lines = [VINTAGES[vintage].format(level=level, text=text) for text in messages]
    return "".join(line + newline for line in lines).encode()


@pytest.mark.parametrize("vintage", VINTAGES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_good_run(vintage: str, newline: str) -> None:
    seen = observe(
        log(
            vintage,
            "Model PTE file loaded. Size: 960 bytes.",
            "Method loaded.",
            "Input prepared.",
            "Starting the model execution...",
            "Model executed successfully.",
            "model_pte_loaded_size:     960 bytes.",
            "method_allocator_used:     1355722 / 62914560  free: 61558838 ( used: 2 % ) ",
            "TEST: BundleIO index[0] Test_result: PASS",
            "Program complete, exiting.",
            newline=newline,
        )
    )
    assert seen.failures == ()
    assert seen.bundle_passes == 1
    assert seen.complete_line == 9
    assert seen.metrics["method_allocator_used"].value == 1355722
    assert [p.stage for p in seen.progress] == [
        Stage.RUNNER, Stage.PROGRAM, Stage.METHOD, Stage.INPUTS, Stage.EXECUTING, Stage.EXECUTED,
        Stage.COMPLETE,
    ]  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_end_of_transmission_in_every_rendering(end: str) -> None:
    seen = observe(log("mid 2025", "Program complete, exiting.", ENDS[end]))
    assert (seen.complete_line, seen.eot_line) == (1, 2)
    assert seen.failures == ()


@pytest.mark.parametrize("vintage", VINTAGES)
@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("Loading of method forward failed with status 0x14", Kind.OPERATOR_MISSING, "0x14"),
        ("Loading of method forward failed with status 20", Kind.OPERATOR_MISSING, "0x14"),
        ("Loading of method forward failed with status 0x20", Kind.BACKEND_MISSING, "0x20"),
        ("Loading of method forward failed with error code 32", Kind.BACKEND_MISSING, "0x20"),
        ("Loading of method forward failed with status 0x21", Kind.ALLOCATION_FAILED, "0x21"),
        ("Loading of method forward failed with status 0x23", Kind.BAD_PROGRAM, "0x23"),
        ("Execution of method forward failed with status 0x12", Kind.RUNNER_ERROR, "0x12"),
        ("Execution of method forward failed with status 0x23", Kind.RUNNER_ERROR, "0x23"),
    ],
)
def test_both_notations_of_error_codes_at_level_i(
    vintage: str, text: str, kind: Kind, code: str
) -> None:
    """An I line, followed by "Method loaded." all the same, is the failure."""
    (failure,) = observe(log(vintage, text, "Method loaded.")).failures
    assert (failure.kind, failure.line, failure.facts["code"]) == (kind, 1, code)


@pytest.mark.parametrize("vintage", VINTAGES)
@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("kernel 'aten::exp.out' not found.", {"operator": "aten::exp.out"}),
        ("Missing operator: [29] aten::linear.out", {"operator": "aten::linear.out"}),
        ("There are 6 instructions don't have corresponding operator registered. See logs",
         {"count": "6"}),
    ],
)  # fmt: skip
def test_missing_operators_in_all_forms(vintage: str, text: str, facts: dict[str, str]) -> None:
    (failure,) = observe(log(vintage, text, level="E")).failures
    assert failure.kind is Kind.OPERATOR_MISSING
    assert facts.items() <= failure.facts.items()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Memory allocation failed: 6144000B requested (adjusted for alignment), 2000B available",
         {"needed": "6144000", "had": "2000"}),
        ("Failed to allocate scratch buffer of 8197520 bytes from temp_allocator",
         {"needed": "8197520", "pool": "temp_allocator"}),
        ("method allocator too small: 5000 bytes needed, 4096 available; build with a larger "
         "HIL_METHOD_POOL_BYTES", {"pool": "method allocator", "needed": "5000", "had": "4096"}),
        ("input file allocator too small for input 's0i0.bin': 5000 bytes needed, 4096 available; "
         "build with a larger HIL_FILE_POOL_BYTES",
         {"pool": "input file allocator", "needed": "5000", "had": "4096"}),
        ("In function main(), assert failed (buffer != nullptr): Could not allocate memory for "
         "memory planned buffer size 6144000", {"needed": "6144000"}),
    ],
)  # fmt: skip
def test_allocations_with_pool_needed_and_had(text: str, facts: dict[str, str]) -> None:
    (failure,) = observe(log("mid 2025", text, level="E")).failures
    assert failure.kind is Kind.ALLOCATION_FAILED
    assert facts.items() <= failure.facts.items()


def test_fopen_with_errno_0_is_semihosting_switched_off() -> None:
    text = "Could not open file s0i0.bin (errno: 0) for reading, exiting!"
    (failure,) = observe(log("mid 2025", text, level="F")).failures
    assert failure.kind is Kind.SEMIHOSTING_OFF


DRIVER = (
    "Soft reset timed out",
    "Failed to switch security state and privilege level",
    "NPU config mismatch. npu.product=1, npu.macs_per_cc=6, optimizer.macs_per_cc=8",
    "NPU status=0x00000104, qread=12, cmd_end_reached=0",
    "NPU error(s) occured during inference.",
    "NPU inference timed out",
    "Fast memory area too small. fast_memory_area=0, base_addr_size=4",
    "Base addr 2: 0x31000001 not aligned to 16 bytes",
    "Failed to invoke inference.",
)


@pytest.mark.parametrize("text", DRIVER)
@pytest.mark.parametrize("form", ["E: {} (ethosu_driver.c:411)", "{}", "\x1b[31mE: {}\x1b[0m"])
def test_npu_driver_errors_with_and_without_prefix(text: str, form: str) -> None:
    (failure,) = observe(form.format(text).encode() + b"\n").failures
    assert failure.kind is Kind.NPU_ERROR


def test_npu_mismatch_tells_the_figures() -> None:
    (failure,) = observe(f"E: {DRIVER[2]} (ethosu_driver.c:411)\n".encode()).failures
    assert failure.facts["macs_per_cc"] == "8"


@pytest.mark.parametrize(
    "line",
    [
        "Failed to initialize timing-adapter #0",
        "Failed to initialize timing-adapter 1 for NPU 0",
        "I: Initializing NPU: base_address=0x58102000, fast_memory=0x0, secure=1, privileged=1",
        "W: something to note",
        "xterm: Xt error: Can't open display: ",
        "sh: 1: xterm: command not found",
        "Warning: FVP_Corstone: visualisation is disabled",
        "qemu-system-arm: warning: nic lan9118.0 has no peer",
        "[run_fvp] Simulation complete, 0",
        "Ethos-U backend registered successfully",
    ],
)
def test_noise_is_no_failure(line: str) -> None:
    assert observe(line.encode() + b"\n").failures == ()


def test_noise_that_runs_into_a_line_of_the_runner() -> None:
    """Host and UART share one pipe; the runner's line still counts."""
    data = (
        b"sh: 1: xterm: not foundI [executorch:m.cpp:1 main()] Method loaded.\n"
        b"I [executorch:m.cpp:2 main()] Program complete, exiting.Info: /OSCI/SystemC: "
        b"Simulation stopped by user.\n"
    )
    seen = observe(data)
    assert [p.stage for p in seen.progress if p.line == 1][-1] is Stage.METHOD
    assert seen.complete_line == 2
    assert seen.stop is not None
    assert seen.stop.reason == "stopped"


def test_two_lines_that_ran_into_one() -> None:
    data = b"I [executorch:m.cpp:1 f()] Method loaded.E [executorch:m.cpp:2 f()] broken\n"
    (failure,) = observe(data).failures
    assert (failure.kind, failure.text) == (Kind.RUNNER_ERROR, "broken")


OUTPUTS = {
    "2024": ("Output[0][{i}]: {v}", "", [0.5, -1.25], [0.5, -1.25]),
    "float": ("Output[0][{i}]: (float) {v}", "float", [0.5, 2e-05], [0.5, 2e-05]),
    "int": ("Output[0][{i}]: (int) {v}", "int", [7, -8], [7, -8]),
    "char": ("Output[0][{i}]: (char) {v}", "char", [-128, 127], [-128, 127]),
    "bool": ("Output[0][{i}]: (bool) {v}", "bool", ["true  (0x1)", "false (0x0)"], [1, 0]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_printed_as_text(name: str) -> None:
    form, dtype, values, expected = OUTPUTS[name]
    lines = "".join(form.format(i=i, v=v) + "\n" for i, v in enumerate(values))
    (tensor,) = observe(lines.encode() + b"Output[1]: Not Tensor\n").tensors
    assert (tensor.dtype, list(tensor.values), tensor.whole) == (dtype, expected, True)


def test_an_output_with_a_hole_is_not_whole() -> None:
    (tensor,) = observe(b"Output[0][0]: (int) 1\nOutput[0][2]: (int) 3\n").tensors
    assert not tensor.whole


def test_outputs_of_the_zephyr_sample() -> None:
    (tensor,) = observe(log("zephyr sample", "[0] = 4.000000", "[1] = 5.000000")).tensors
    assert tensor.values == (4.0, 5.0)


def test_output_files() -> None:
    assert observe(log("mid 2025", "Writing output to file: out-0.bin")).output_files == (
        "out-0.bin",
    )


def test_pmu_counters_with_and_without_a_readable_index() -> None:
    """newlib-nano prints "%zd" as it stands; the order then tells the counter."""
    garbled = "ethosu_pmu_cntr%zd : {}"
    seen = observe(
        log(
            "mid 2025", "Ethos-U PMU report:", "ethosu_pmu_cycle_cntr : 5920305 (9 per inference)",
            garbled.format(11), garbled.format(22), "ethosu_pmu_cntr2 : 33",
            "NPU delegations: 3", "ethos-u : cycle_cnt : 0 cycles",
        )
    )  # fmt: skip
    values = {name: metric.value for name, metric in seen.pmu.items()}
    assert values["ethosu_pmu_cycle_cntr"] == 5920305
    assert [values[f"ethosu_pmu_cntr{i}"] for i in range(3)] == [11, 22, 33]
    assert values["npu_delegations"] == 3
    assert values["ethosu_cycle_cnt"] == 0


def test_etdump_is_decoded_and_never_run() -> None:
    payload = bytes(range(256)) * 100
    text = base64.b64encode(payload).decode()
    data = (
        "#[RUN THIS]\n# Writing debug_buffer.bin [base64]\n"
        f'echo "{text}" | base64 -d >debug_buffer.bin\n'
        '# Writing etdump.bin [base64]\necho "$(touch pwned)" | base64 -d >etdump.bin\n#[END]\n'
    )
    (block,) = observe(data.encode()).blocks
    assert (block.name, block.data) == ("debug_buffer.bin", payload)


STOPS = {
    "CPU time has been exceeded.": "wall_limit",
    "Simulated time has been exceeded.": "simulated_limit",
    "Cycle limit has been exceeded.": "cycle_limit",
}


@pytest.mark.parametrize("text", STOPS)
def test_model_stop_reasons(text: str) -> None:
    """The limit is the reason, also when "stopped by user" follows as it does in 11.2x."""
    data = (
        f"Info: Simulation is stopping. Reason: {text}\n\n"
        "Info: /OSCI/SystemC: Simulation stopped by user.\n"
        "[warning ][main@0][1300 ns] Simulation stopped by user\n"
    )
    seen = observe(data.encode())
    assert seen.stop is not None
    assert (seen.stop.reason, seen.stop.line) == (STOPS[text], 1)


def test_boot_banners_may_come_last() -> None:
    data = log("mid 2025", "Method loaded.", "Program complete, exiting.") + (
        b"*** Booting Zephyr OS build v4.2.0 ***\n    Ethos-U rev 136b7d75 --- Apr 12 2023\n"
        b"telnetterminal5: Listening for serial connection on port 5003\n"
        b"Fast Models [11.27.42 (Dec  9 2024)]\n"
    )
    seen = observe(data)
    assert seen.complete_line == 2
    assert seen.versions["zephyr"] == "v4.2.0"
    assert seen.versions["fast_models"] == "11.27.42"
    assert seen.ports == {"telnetterminal5": 5003}
    assert seen.failures == ()


def test_linux_boot_login_and_shell() -> None:
    data = (
        b"[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x411fd040]\n"
        b"[    0.000000] Linux version 6.12.0-yocto (oe@host)\n"
        b"[    0.1] psci: failed to boot CPU1 (-95)\n"
        b"[    0.2] ARM FF-A: Notification setup failed -95, not enabled\n"
        b"corstone1000-fvp login: root\nroot@corstone1000-fvp:~# ls\n"
    )
    seen = observe(data)
    assert [p.stage for p in seen.progress] == [
        Stage.BOOTED, Stage.BOOTED, Stage.LOGIN, Stage.SHELL,
    ]  # fmt: skip
    assert seen.failures == ()
    oops = observe(data + b"[ 9.1] Internal error: Oops: 0000000096000004 [#1] SMP\n")
    assert oops.failures[0].kind is Kind.LINUX_OOPS


LAUNCHES = {
    "./FVP_X: error while loading shared libraries: libpython3.9.so.1.0: cannot open shared "
    "object file: No such file or directory": Kind.LIBRARY_MISSING,
    "Error: (E549) uncaught exception: /f/libarmctmodel.so: cannot enable executable stack as "
    "shared object requires: Invalid argument": Kind.EXECSTACK,
    "Error: (E549) uncaught exception: Resource temporarily unavailable": Kind.HOST_LIMITS,
    "Error: License checkout failed for feature FM_Simulator": Kind.LICENCE,
    "FlexNet Licensing error:-1,359": Kind.LICENCE,
    "You have to accept the EULA before the model can be used": Kind.EULA,
    "Error: FVP_MPS3: mps3_board.uart0: cannot open file": Kind.SIMULATOR_ERROR,
    "/opt/FVP_Corstone_SSE-300_Ethos-U55: error: something": Kind.SIMULATOR_ERROR,
    "qemu-system-arm: unsupported machine type": Kind.SIMULATOR_ERROR,
}


@pytest.mark.parametrize("line", LAUNCHES)
def test_launch_failures(line: str) -> None:
    (failure,) = observe(line.encode() + b"\n").failures
    assert failure.kind is LAUNCHES[line]


def test_a_line_cut_anywhere_gives_the_same() -> None:
    """However the bytes are cut into reads, the observation is the same (seed 1)."""
    data = (
        log("mid 2025", "build id 0011223344556677", "Method loaded.", newline="\r\n")
        + b"Hard fault. irq=-13, pc=0x10000abc, lr=0x1, xpsr=0x2, sp=0x3\n cfsr=0x00008200\n"
        + "\u00e9\u2666\n".encode()
        + b"Output[0][0]: (float) 0.5\nInfo: Simulation is stopping. Reason: CPU time has been"
        + b" exceeded.\n\xff\xfe\x00half a lin"
    )
    whole = observe(data)
    rng = random.Random(1)
    for _ in range(50):
        cuts = sorted(rng.sample(range(1, len(data)), 8))
        assert _in_pieces(data, cuts) == whole
    assert _in_pieces(data, list(range(1, len(data)))) == whole
    assert whole.cut


def _in_pieces(data: bytes, cuts: list[int]) -> Observation:
    reader = Reader()
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        reader.feed(data[start:end])
    return reader.finish()


def test_random_bytes_are_survived() -> None:
    """Nothing that a console can hold raises (seed 2)."""
    rng = random.Random(2)
    words = [b"E [executorch:", b"Hard fault", b"Output[", b"0x14", b"\n", b"\r", b"\x04", b"] ",
             b'echo "', b": ", b"Test_result: ", b"status ", b"pc=", b"[0] = ", b"%"]  # fmt: skip
    for _ in range(300):
        observe(b"".join(rng.choice([*words, rng.randbytes(3)]) for _ in range(200)))


def test_failures_are_counted_beyond_what_is_kept() -> None:
    """100 MB of error lines must not become 100 MB of events."""
    seen = observe(log("mid 2025", "broken", level="E") * 5000)
    assert len(seen.failures) == 1000
    assert seen.failures_dropped == 4000


def test_a_huge_line_is_read() -> None:
    seen = observe(b"x" * (8 << 20) + b"\nE [executorch:m.cpp:1 f()] broken\n")
    assert (seen.lines, seen.failures[0].line) == (2, 2)


ZEPHYR = b"""[00:00:00.010,000] <err> os: ***** MPU FAULT *****
[00:00:00.010,000] <err> os:   Data Access Violation
[00:00:00.010,000] <err> os:   MMFAR Address: 0x4
[00:00:00.010,000] <err> os: r3/a4:  0x00000000 r12/ip:  0x00000001 r14/lr:  0x10000def
[00:00:00.010,000] <err> os: Faulting instruction address (r15/pc): 0x10000abc
[00:00:00.010,000] <err> os: >>> ZEPHYR FATAL ERROR 19: Unknown error on CPU 0
[00:00:00.010,000] <err> os: Halting system
"""
MLEK = b"""Exception caught by function BusFault_Handler
CTRL    : 0x00000000
IPSR    : 0x00000005
LR      : 0x10000def
PC      : 0x10000abc
"""
LOCKUP = b"""qemu: fatal: Lockup: can't escalate 3 to HardFault (current priority -1)

R00=00000000 R01=00000000 R02=00000000 R03=00000000
R12=00000000 R13=3007ff00 R14=10000def R15=10000abc
XPSR=61000003 -ZC- T S handler
"""
CORSTONE = (
    b"Hard fault. irq=-13, pc=0x10000abc, lr=0x10000def, xpsr=0x61000003, sp=0x3007ff00\n"
    b"            cfsr=0x00008200 bfar=0x00000004 mmfar=0x00000000\n"
)
FAULTS = {
    "corstone": CORSTONE,
    "tvm": CORSTONE.replace(b" mmfar=0x00000000", b"") + b"EXITTHESIM\n",
    "zephyr": ZEPHYR,
    "zephyr minimal": b"E: ***** HARD FAULT *****\n" + ZEPHYR.partition(b"\n")[2],
    "mlek": MLEK,
    "qemu lock-up": LOCKUP,
}


@pytest.mark.parametrize("platform", FAULTS)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_faults_of_every_platform_with_their_registers(platform: str, newline: bytes) -> None:
    """One event, with pc and lr, however many lines the platform spends on it."""
    (fault,) = observe(FAULTS[platform].replace(b"\n", newline)).failures
    assert fault.kind is (Kind.CPU_LOCKUP if platform == "qemu lock-up" else Kind.FAULT)
    assert (fault.facts["pc"], fault.facts["lr"]) == ("0x10000abc", "0x10000def")


def test_armv6_m_says_only_hard_fault() -> None:
    assert observe(b"Hard fault\n").failures[0].kind is Kind.FAULT


@pytest.mark.parametrize("reason", ["2: Stack overflow", "3: Kernel oops", "4: Kernel panic"])
def test_zephyr_fatal_errors_that_are_no_exception(reason: str) -> None:
    (failure,) = observe(f">>> ZEPHYR FATAL ERROR {reason} on CPU 0\n".encode()).failures
    assert failure.kind is Kind.ZEPHYR_FATAL
    assert failure.facts["reason"] == reason[0]
