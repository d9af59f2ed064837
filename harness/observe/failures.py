"""What ExecuTorch's runtime, its runners and the Ethos-U driver say when something fails.

Tables over messages: what a line says behind its prefix. A message is bounded in length by the
reader.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from harness.errors.verdict import Word
from harness.observe.events import Kind
from harness.observe.pattern import Match, Pattern, facts, gate, table, text

# ExecuTorch runtime/core/error.h; the bundled runner's is targets/runner/core/error.h.
ERROR_NAMES: Final = {
    0x00: "Ok", 0x01: "Internal", 0x02: "InvalidState", 0x03: "EndOfMethod",
    0x04: "AlreadyLoaded", 0x10: "NotSupported", 0x11: "NotImplemented",
    0x12: "InvalidArgument", 0x13: "InvalidType", 0x14: "OperatorMissing",
    0x15: "RegistrationExceedingMaxKernels", 0x16: "RegistrationAlreadyRegistered",
    0x20: "NotFound", 0x21: "MemoryAllocationFailed", 0x22: "AccessFailed",
    0x23: "InvalidProgram", 0x24: "InvalidExternalData", 0x25: "OutOfResources",
    0x30: "DelegateInvalidCompatibility", 0x31: "DelegateMemoryAllocationFailed",
    0x32: "DelegateInvalidHandle",
}  # fmt: skip
# What a code tells of a step, and what of any error line or of a step that loads.
_STEP_CODES: Final = {
    0x14: Kind.OPERATOR_MISSING, 0x21: Kind.ALLOCATION_FAILED, 0x31: Kind.ALLOCATION_FAILED,
}  # fmt: skip
_ERROR_CODES: Final = {**_STEP_CODES, 0x23: Kind.BAD_PROGRAM, 0x24: Kind.BAD_PROGRAM}
_LOADING_CODES: Final = {**_ERROR_CODES, 0x20: Kind.BACKEND_MISSING}

# "status 0x14", "error code 20", "Error Code 32", "failed @ 0x..: 0x23", "error:0x21",
# "failed: 0x2"; hexadecimal as the runner prints it, decimal as others do.
_CODE = re.compile(
    rb"(?:\bstatus|\berror(?: code)?|\bfailed(?: @ \S+)?|\bfor(?: \w+){1,2}|\binputs|\bERROR)"
    rb"(?:\s*[:=]\s*|\s+)\(?(0x[0-9a-fA-F]+|\d+)\b",
    re.I,
)
_NAME = re.compile(rb"\(?\b(" + b"|".join(n.encode() for n in ERROR_NAMES.values()) + rb")\b\)?")

_Rows = tuple[Pattern[Kind], ...]
_OPERATORS: Final = "ExecuTorch runtime/executor/method.cpp, runtime/kernel/operator_registry.cpp"
_MEMORY: Final = "ExecuTorch runtime/core/memory_allocator.h and its arm_memory_allocator.cpp"
_RUNNER: Final = "ExecuTorch examples/arm/executor_runner/arm_executor_runner.cpp"
_BUNDLED: Final = "targets/runner"
_TFLM: Final = "TensorFlow Lite Micro, micro/micro_interpreter*.cc and micro/arena_allocator"
_JOBS: Final = "Zephyr samples/modules/tflite-micro/tflm_ethosu; core-platform applications"
_SAMPLE: Final = "a vendor's ExecuTorch sample for Zephyr, which checks its own sum"
_LINUX_BACKEND: Final = "ExecuTorch backends/arm/runtime/EthosUBackend_Cortex_A.cpp"
_DRIVER: Final = "ethos-u-core-driver src (LOG_ERR); some retargeted loggers drop the prefix"

# Also on a line that no runner wrote: in the log of some other module, behind a torn prefix.
ANYWHERE: Final[_Rows] = (
    Pattern(Kind.OPERATOR_MISSING, (b"kernel '",),
            rb"operator.*kernel '(?P<operator>[^']*)' not found",
            b"operator_registry.cpp:256 get_op()] kernel 'aten::exp.out' not found.", _OPERATORS),
    Pattern(Kind.OPERATOR_MISSING, (b"Missing operator: [",),
            rb"Missing operator: \[\d+\]\s+(?P<operator>\S+)",
            b"Missing operator: [29] aten::linear.out", _OPERATORS),
    Pattern(Kind.OPERATOR_MISSING, (b"don't have corresponding op",),
            rb"(?P<count>\d+) instructions? don't have corresponding operator",
            b"There are 6 instructions don't have corresponding operator registered. See logs",
            _OPERATORS),
    Pattern(Kind.BUNDLE_FAILED, (b"Test_result: FAIL",),
            rb"BundleIO index\[(?P<index>\d+)\] Test_result: FAIL",
            b"TEST: BundleIO index[1] Test_result: FAIL", _RUNNER),
    Pattern(Kind.TEST_FAILED, (b"AssertionError: O",),
            rb"^(?:E +|FAILED \S+ - )?AssertionError: Output \d+ does not match reference output",
            b"E       AssertionError: Output 0 does not match reference output.",
            "ExecuTorch backends/test/harness/tester.py, as Python and pytest show it"),
    Pattern(Kind.TEST_FAILED, (b" Failures ",),
            rb"^\s*\d+ Tests (?P<failures>[1-9]\d*) Failures \d+ Ignored",
            b"3 Tests 1 Failures 0 Ignored ", "Unity src/unity.c, UnityEnd"),
    Pattern(Kind.TEST_FAILED, (b"Test FAILED: ",),
            rb"(?:<err> [\w.-]{1,60}: |^E: |^)(?:\S{1,4} )?Test FAILED: ",
            b"[00:00:00.020,000] <err> main: \xe2\x9c\x97 Test FAILED: Expected 5.0, got 4.0",
            _SAMPLE),
    Pattern(Kind.EXIT_STATUS, (b"Application exit code: ",),
            rb"^\s*Application exit code: (?P<status>-?[1-9]\d*)",
            b"Application exit code: 1.", "ethos-u-core-platform targets/*/retarget.c, _exit"),
    Pattern(Kind.RUNNER_ERROR, (b"Received job resp",),
            rb"Received job response\. job=\S+ status=(?P<status>[1-9]\d*)",
            b"sender 0: Received job response. job=0x205d340, status=1", _JOBS),
    Pattern(Kind.RUNNER_ERROR, (b"TVMPlatformAbort",), rb"^\s*TVMPlatformAbort: ",
            b"TVMPlatformAbort: -1", "TVM apps/microtvm, platform.cc, before its EXITTHESIM"),
    Pattern(Kind.OPERATOR_MISSING, (b"Didn't find op",),
            rb"Didn't find op for builtin opcode '(?P<operator>[^']{1,80})'",
            b"Didn't find op for builtin opcode 'SHAPE'", _TFLM),
    Pattern(Kind.ALLOCATION_FAILED, (b". Requested: ",),
            rb"Failed to (?:resize buffer|allocate (?:\w+ )?memory)\. Requested: (?P<needed>\d+), "
            rb"available (?P<had>\d+)",
            b"Failed to resize buffer. Requested: 52224, available 49024, missing: 3200", _TFLM),
    Pattern(Kind.ALLOCATION_FAILED, (b"AllocateTensors()",), rb"\bAllocateTensors\(\) failed",
            b"AllocateTensors() failed", _TFLM),
    Pattern(Kind.RUNNER_ERROR, (b" (number ",),
            rb"^Node (?P<operator>\S{1,80}) \(number \d+\) failed to (?:invoke|prepare) with "
            rb"status (?P<status>\d+)", b"Node ethos-u (number 0) failed to invoke with status 1",
            _TFLM),
)  # fmt: skip
# At whatever level they are logged; in order of precedence.
MESSAGES: Final[_Rows] = (
    Pattern(Kind.OPERATOR_MISSING, (b"kernel '",), rb"kernel '(?P<operator>[^']*)' not found",
            b"kernel 'aten::exp.out' not found.", _OPERATORS),
    Pattern(Kind.RUNNER_ERROR, (b"stand-in does not support: ",),
            rb"the NPU stand-in does not support: (?P<unsupported>.+)",
            b"the NPU stand-in does not support: DIV = 1",
            "targets/runner/ethosu/doorbell_device.cpp"),
    Pattern(Kind.ALLOCATION_FAILED, (b"B requested",),
            rb"(?:Memory allocation failed: )?(?P<needed>\d+) ?B requested.*?"
            rb"(?P<had>\d+) ?B available",
            b"Memory allocation failed: 52224B requested (adjusted for alignment), 49024B "
            b"available", _MEMORY),
    Pattern(Kind.SCRATCH_MISMATCH, (b"scratch buffer size incorrect",),
            rb"(?P<kernel>\w+): (?P<pool>[a-z ]*scratch buffer) size incorrect - "
            rb"actual: \((?P<had>\d+)\) needed: \((?P<needed>-?\d+)\)",
            b"quantized_conv2d_out: scratch buffer size incorrect - actual: (0) needed: (2752)",
            "ExecuTorch backends/cortex_m/ops, with CORTEX_M_ENABLE_RUNTIME_CHECKS"),
    Pattern(Kind.SCRATCH_MISMATCH, (b"planned scratch ",),
            rb"(?:(?P<kernel>[\w:.]+): )?planned scratch (?P<had>\d+) bytes, kernel needs "
            rb"(?P<needed>\d+)",
            b"cortex_m::quantized_conv2d.out: planned scratch 0 bytes, kernel needs 2752",
            _BUNDLED),
    # newlib-nano, which ExecuTorch's runner is linked with, prints "zu" for the C library's %zu
    Pattern(Kind.ALLOCATION_FAILED, (b"emory allocation failed: zuB",),
            rb"[Mm]emory allocation failed: zuB requested",
            b"Memory allocation failed: zuB requested (adjusted for alignment), zuB available",
            _MEMORY),
    Pattern(Kind.ALLOCATION_FAILED, (b"scratch buffer (",),
            rb"(?P<kernel>\w+): failed to allocate (?P<pool>[a-z ]*scratch buffer) "
            rb"\((?P<needed>\d+) bytes",
            b"quantized_conv2d_out: failed to allocate scratch buffer (4608 bytes, error 33)",
            "ExecuTorch backends/cortex_m/ops"),
    Pattern(Kind.ALLOCATION_FAILED, (b"too small",),
            rb"(?P<pool>[A-Za-z][A-Za-z_ ]*? allocator) (?:is )?too small\b(?:[^:]*:)?.*?"
            rb"(?P<needed>\d+) ?(?:B|bytes) (?:requested|needed).*?"
            rb"(?P<had>\d+) ?(?:B|bytes )?\s*available",
            b"method allocator too small: 5000 bytes needed, 4096 bytes available", _BUNDLED),
    Pattern(Kind.ALLOCATION_FAILED, (b"llocate", b"ALLOCATE"),
            rb"(?i:could not|failed to|unable to) (?:[Aa]llocate|ALLOCATE)\b.*?"
            rb"(?i:\b(?:for|from) (?P<pool>[a-z_ ]*(?:allocator|buffer|evalues))?.*?)?"
            rb"(?i:size:?|of)? ?(?P<needed>\d+)?(?i: bytes)?(?i: from (?P<pool2>\w+))?$",
            b"Failed to allocate scratch buffer of 8197520 bytes from temp_allocator", _RUNNER),
    Pattern(Kind.ALLOCATION_FAILED, (b"ut of memory", b"exhausted", b"too small"),
            rb"\b(?i:allocator)\b.*\b(?:[Oo]ut of memory|exhausted|too small)",
            b"temp allocator exhausted", _BUNDLED),
    Pattern(Kind.BACKEND_MISSING, (b"is not registered", b"is not available"),
            rb"(?i:backend) (?P<backend>\S+) is not (?:registered|available)",
            b"Backend EthosUBackend is not registered.", _OPERATORS),
    Pattern(Kind.SEMIHOSTING_OFF, (b"errno:",),
            rb"(?i:could not open|cannot open|failed to open)\b.*\berrno: ?0\)",
            b"Could not open file s0i0.bin (errno: 0) for reading, exiting!", _RUNNER),
    Pattern(Kind.SEMIHOSTING_OFF, (b"o semihosting",), rb"[Nn]o semihosting",
            b"no semihosting: start the simulator with it enabled", _BUNDLED),
    Pattern(Kind.BUNDLE_FAILED, (b"don't match expected B",),
            rb"Model output don't match expected BundleIO",
            b"Model output don't match expected BundleIO bpte ref data. rtol=0.001000", _RUNNER),
    Pattern(Kind.DISK_FULL, (b"o space left on ",),
            rb"(?:(?P<path>[^\s:]{1,300}): )?[Nn]o space left on (?:the )?device",
            b"s0-0.bin: no space left on the device",
            "targets/runner/ports/posix.cpp; strerror of the C library"),
    Pattern(Kind.OUTPUT_NOT_WRITTEN,
            (b"ould not open", b"ailed to open", b"ailed to write", b"annot write"),
            rb"(?:[Cc]ould not open|[Ff]ailed to (?:open|write)|[Cc]annot write)\b.*"
            rb"\b(?i:output)\b", b"Failed to write output to out-0.bin", _RUNNER),
    Pattern(Kind.OUTPUT_NOT_WRITTEN, (b"cannot write ",), rb"cannot write (?!log)",
            b"cannot write out-0.bin", _BUNDLED),
    # Not of a CPU's description, which few machines have and nobody needs
    # (ExecuTorch extension/threadpool/cpuinfo_utils.cpp).
    Pattern(Kind.FILE_NOT_OPENED, (b"ould not open ", b"annot open ", b"ailed to open "),
            rb"(?:[Cc]ould not|[Cc]annot|[Ff]ailed to) open (?!midr file )(?:\w+ ){0,3}'?"
            rb"(?P<path>[^\s'():]{1,300})",
            b"Could not open file i0.bin (errno: 2) for reading, exiting!", _RUNNER),
)  # fmt: skip
# An NPU does not start; a board may have another one that does.
NPU_STARTS: Final[_Rows] = tuple(
    Pattern(Kind.NPU_ERROR, (needle,), regex, example, _DRIVER)
    for needle, regex, example in (
        (b"Soft reset timed out", rb"Soft reset timed out", b"Soft reset timed out"),
        (
            b"switch security state",
            rb"Failed to switch security state",
            b"Failed to switch security state and privilege level",
        ),
        (
            b"Failed to initialize ",
            rb"Failed to initialize (?:Ethos-U\d* ?)?(?:device|driver|NPU)\b",
            b"Failed to initialize Ethos-U device",
        ),
        (
            b"not been compiled",
            rb"Driver has not been compiled for this product",
            b"Failed to initialize device. Driver has not been compiled for this product",
        ),
    )
)
# Their facts are the figures they name: "npu.macs_per_cc=8". Also on lines without a prefix.
NPU: Final[_Rows] = (
    *NPU_STARTS,
    *(Pattern(Kind.NPU_ERROR, (needle,), regex, example, _DRIVER)
    for needle, regex, example in (
        (b"Failed to request power", rb"Failed to request power", b"Failed to request power"),
        (b"Failed to invoke inf", rb"Failed to invoke inference", b"Failed to invoke inference."),
        (b"Fast memory area", rb"Fast memory area too small",
         b"Fast memory area too small. fast_memory_area=0, base_addr_size=4"),
        (b"NPU config", rb"NPU config mismatch",
         b"NPU config mismatch. npu.macs_per_cc=6, optimizer.macs_per_cc=8"),
        (b"NPU arch", rb"NPU arch mismatch", b"NPU arch mismatch. npu.arch=1.1.0"),
        (b"NPU error(s)", rb"NPU error\(s\) occured", b"NPU error(s) occured during inference."),
        (b"NPU inference", rb"NPU inference timed out", b"NPU inference timed out"),
        (b"NPU status=0x", rb"NPU status=0x(?!0{8})[0-9a-fA-F]+",
         b"NPU status=0x00000104, qread=12, cmd_end_reached=0"),
        (b"Unexpected job", rb"Unexpected job state", b"Unexpected job state"),
        (b"Inference already", rb"Inference already running", b"Inference already running"),
        (b"Custom Operator P", rb"Custom Operator Payload:",
         b"Custom Operator Payload: the magic is wrong"),
        (b"custom_data_size=", rb"custom_data_size=.*not a multiple",
         b"custom_data_size=0x13 not a multiple of 4"),
        (b"UNSUPPORTED driver", rb"UNSUPPORTED driver_action",
         b"UNSUPPORTED driver_action_command: 9"),
        (b"No NPU driver", rb"No NPU driver handle available",
         b"No NPU driver handle available, but semaphore taken"),
        (b"not aligned", rb"(?:Command stream|Base) addr.*not aligned",
         b"Base addr 2: 0x31000001 not aligned to 16 bytes"),
        (b"received but qread", rb"IRQ received but qread \(\d+\) not at end of stream",
         b"W: Failure: IRQ received but qread (128) not at end of stream (512)."),
    )),
    Pattern(Kind.NPU_ERROR, (b"Ethos-U invocation",), rb"Ethos-U invocation failed",
            b"Ethos-U invocation failed error (-1)",
            "ExecuTorch backends/arm/runtime/EthosUBackend_Cortex_M.cpp"),
    *(Pattern(Kind.NPU_ERROR, (needle,), regex, example, _LINUX_BACKEND)
    for needle, regex, example in (
        (b"Ethos-U inference t", rb"Ethos-U inference timed out after \d+ ns",
         b"Ethos-U inference timed out after 60000000000 ns"),
        (b"Ethos-U inference f", rb"Ethos-U inference failed with status (?P<state>\w+)",
         b"Ethos-U inference failed with status ABORTED"),
        (b"Ethos-U Linux dr", rb"Ethos-U Linux driver invocation failed: ",
         b"Ethos-U Linux driver invocation failed: creating a network: Invalid argument"),
    )),
    Pattern(Kind.NPU_ERROR, (b"Ethos-U inputs an",), rb"Ethos-U inputs and outputs lie in ",
            b"Ethos-U inputs and outputs lie in scratch, as bare metal takes them", _BUNDLED),
    *(Pattern(Kind.NPU_ERROR, (needle,), rb"\bethosu\d+: " + said, example,
              "targets/linux/ethosu; Arm's driver says it in its own words")
    for needle, said, example in (
        (b": network refused", rb"network refused: ",
         b"misc ethosu0: network refused: no COP2 container (for CONFIG 00000000 ID 00000000)"),
        (b": inference ", rb"inference (?:stopped|refused): ",
         b"misc ethosu0: inference stopped: region 1 (scratch) ends at 0x40"),
        (b": the NPU does", rb"the NPU does not answer", b"misc ethosu0: the NPU does not answer"),
    )),
)  # fmt: skip
# Lines at any level, "I" included, that carry a code or a name: the code says what went wrong.
LOADING: Final[_Rows] = tuple(
    Pattern(Kind.RUNNER_ERROR, (needle,), rb"^" + needle + rb"\b.*\b(?i:fail)", example, _RUNNER)
    for needle, example in (
        (b"Loading of method", b"Loading of method forward failed with status 0x1"),
        (b"Program loading", b"Program loading failed @ 0x70000000: 0x1"),
        (b"get_program_data", b"get_program_data() from bundle PTE failed: 0x1"),
    )
)
STEPS: Final[_Rows] = (
    *(Pattern(Kind.RUNNER_ERROR, (needle,), rb"^" + needle + rb"\b.*\b(?i:fail)", example, _RUNNER)
    for needle, example in (
        (b"Execution of method", b"Execution of method forward failed with status 0x12"),
        (b"Failed to prepare inputs", b"Failed to prepare inputs, which failed with status 0x12"),
        (b"load_bundled_input", b"load_bundled_input failed for BundleIO: 0x12"),
        (b"Bundle verification", b"Bundle verification failed with status 0x10"),
        (b"Method execution", b"Method execution failed with status 0x12"),
        (b"method load", b"method load failed with status 0x12"),
    )),
    Pattern(Kind.RUNNER_ERROR, (b"Failed to get method_meta",), rb"^Failed to get method_meta",
            b"Failed to get method_meta from program: 0x12", _RUNNER),
)  # fmt: skip
# Only on lines of level E or F, and only when no row above knows them.
ERRORS: Final[_Rows] = (
    Pattern(Kind.INPUT_REJECTED, (b"and tensor size",),
            rb"(?i:input) size \(\d+\) and tensor size",
            b"input size (150528) and tensor size (602112) missmatch!", _RUNNER),
    Pattern(Kind.INPUT_REJECTED, (b"rong number of inputs",), rb"[Ww]rong number of inputs",
            b"wrong number of inputs: 1, the method takes 2", _BUNDLED),
    Pattern(Kind.INPUT_REJECTED, (b"nput", b"INPUT"),
            rb"\b(?:[Ii]nput|INPUT)\b.*\b(?i:expects?|expected|needs|bytes|mismatch)\b",
            b"input 0 of the method needs 4 bytes", _BUNDLED),
    Pattern(Kind.INPUT_REJECTED, (b"o input",), rb"[Nn]o inputs? ",
            b"no input 1 was given", _BUNDLED),
    Pattern(Kind.INPUT_REJECTED, (b"ailed to prepare inputs",), rb"[Ff]ailed to prepare inputs",
            b"Failed to prepare inputs", _RUNNER),
    Pattern(Kind.INPUT_REJECTED, (b"ot right number of par",),
            rb"[Nn]ot right number of parameters", b"Not right number of parameters!", _RUNNER),
    Pattern(Kind.BAD_PROGRAM, (b"nvalidProgram",), rb"[Ii]nvalidProgram",
            b"the delegate answered InvalidProgram", _OPERATORS),
    Pattern(Kind.BAD_PROGRAM, (b"rogram", b"PROGRAM"),
            rb"(?i:not an? (?:valid |ExecuTorch )?)(?:[Pp]rogram|PROGRAM)",
            b"m.pte is not an ExecuTorch program", _BUNDLED),
    Pattern(Kind.BAD_PROGRAM, (b"rogram loading", b"rogram verification"),
            rb"[Pp]rogram (?:loading|verification) (?i:failed)",
            b"the bundle's program verification failed", _RUNNER),
    Pattern(Kind.BAD_PROGRAM, (b"rogram",), rb"[Pp]rogram\b.*\b(?i:invalid|truncated)",
            b"Program data is truncated", "ExecuTorch runtime/executor/program.cpp"),
    Pattern(Kind.BAD_PROGRAM, (b"nvalid ",), rb"[Ii]nvalid (?:bundled )?program",
            b"invalid bundled program", _BUNDLED),
    Pattern(Kind.BAD_PROGRAM, (b"eader version mismatch",), rb"[Hh]eader version mismatch",
            b"header version mismatch", "ExecuTorch extended_header.cpp"),
    Pattern(Kind.BAD_PROGRAM, (b"dentifier",), rb"[Ii]dentifier",
            b"Program identifier 'ETxx' != expected 'ET12'",
            "ExecuTorch runtime/executor/program.cpp"),
    Pattern(Kind.BAD_PROGRAM, (b"not supported",), rb"(?i:version)\b.*\bnot supported",
            b"COP version 3 is not supported", _BUNDLED),
    Pattern(Kind.BAD_PROGRAM, (b"chema version",), rb"[Ss]chema version",
            b"unknown schema version 4", _BUNDLED),
)  # fmt: skip
# Runs that end well also say this.
TIMING_ADAPTER: Final = Pattern(
    Kind.NPU_ERROR, (b"timing-adapter",), rb"Failed to initialize timing-adapter",
    b"Failed to initialize timing-adapter #0", "ethos-u-core-platform targets/*/target.cpp",
)  # fmt: skip
# What failed just before does not matter to who says this, if it goes on to succeed.
IGNORED: Final = Pattern(
    Kind.RUNNER_ERROR, (b"ignoring error",), rb"\bignoring error\b",
    b"ignoring error from set_output_data_ptr(): 0x2",
    "ExecuTorch examples/qualcomm/executor_runner/qnn_executor_runner.cpp",
)  # fmt: skip

_OUTSIDE = re.compile(rb"^/(?!dev/)|(?:^|/)\.\.(?:/|$)")
_FIGURE = re.compile(rb"(?:npu|optimizer|optimize)?\.?(\w+)=(0x[0-9a-fA-F]+|-?\d+)")


class Excuse(Word):
    """What makes a failure one that only may explain a bad end."""

    ALWAYS = "always"
    SUCCESS = "success"  # the run goes on and succeeds
    JOBS = "jobs"  # every job for the NPUs ends well


class Said(NamedTuple):
    kind: Kind
    facts: dict[str, str]
    excuse: Excuse | None = None


class Failures:
    """The tables of this module, asked in their order."""

    def __init__(self) -> None:
        self._messages = table((*ANYWHERE, *MESSAGES))
        self._anywhere = table(ANYWHERE)
        self._npu, self._npu_starts = table(NPU), table(NPU_STARTS)
        self._loading = table(LOADING)
        self._steps = table(STEPS)
        self._errors = table(ERRORS)
        every = (*ANYWHERE, *MESSAGES, *NPU, *LOADING, *STEPS, TIMING_ADAPTER, IGNORED)
        self._may_have = gate(every)  # most messages tell of no failure

    def message(self, message: bytes) -> Said | None:
        """The failure that a message names by its words, at whatever level it was logged."""
        if not self._may_have(message):
            return None
        if TIMING_ADAPTER.needles[0] in message and TIMING_ADAPTER.search(message):
            return Said(TIMING_ADAPTER.kind, {}, Excuse.ALWAYS)
        if IGNORED.needles[0] in message and IGNORED.search(message):
            return Said(IGNORED.kind, {}, Excuse.SUCCESS)
        if found := self._messages.first(message):
            return Said(found[0], _facts(*found))
        if npu := self.npu(message):
            return npu
        if self._loading.first(message):
            return _by_code(message, _LOADING_CODES)
        if self._steps.first(message):
            return _by_code(message, _STEP_CODES)
        return None

    def npu(self, line: bytes) -> Said | None:
        """What the NPU driver says, with the figures it names."""
        found = self._npu.first(line)
        if found is None:
            return None
        excuse = Excuse.JOBS if self._npu_starts.first(line) else None
        return Said(found[0], {text(k): text(v) for k, v in _FIGURE.findall(line)}, excuse)

    def anywhere(self, line: bytes) -> Said | None:
        """What a line says that has no prefix at all."""
        found = self._anywhere.first(line)
        return Said(found[0], _facts(*found)) if found else None

    def error(self, message: bytes) -> Said:
        """What a line of level E or F says, whether or not a row knows it."""
        if said := self.message(message):
            return said
        code = named_code(message)
        known = code_facts(code) if code else {}
        if found := self._errors.first(message):
            return Said(found[0], known)
        kind = _ERROR_CODES.get(code[0]) if code else None
        return Said(kind or Kind.RUNNER_ERROR, known)


def _facts(kind: Kind, match: Match) -> dict[str, str]:
    said = facts(match)
    if kind is Kind.FILE_NOT_OPENED and _OUTSIDE.search(match["path"]):
        said["outside"] = "the guest reached for a file outside of its directory"
    return said


def _by_code(message: bytes, kinds: dict[int, Kind]) -> Said | None:
    code = named_code(message)
    if code is None:
        return Said(Kind.RUNNER_ERROR, {})
    if code[0] == 0:
        return None
    return Said(kinds.get(code[0], Kind.RUNNER_ERROR), code_facts(code))


def named_code(message: bytes) -> tuple[int, str] | None:
    """The ExecuTorch error a message carries, by number in either notation or by name."""
    for match in _CODE.finditer(message):
        value = int(match[1], 16 if match[1][:2].lower() == b"0x" else 10)
        if value in ERROR_NAMES:
            return value, ERROR_NAMES[value]
    if named := _NAME.search(message):
        name = named[1].decode()
        return next(c for c, n in ERROR_NAMES.items() if n == name), name
    return None


def code_facts(code: tuple[int, str]) -> dict[str, str]:
    return {"code": f"0x{code[0]:02x}", "error": code[1]}
