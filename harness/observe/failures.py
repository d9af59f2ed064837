"""The words of failures, wherever they are logged: one table of (pattern, kind).

Sources: the ExecuTorch runtime (method.cpp, operator_registry.cpp, memory_allocator.h,
arm_executor_runner.cpp), ethos-u-core-driver (LOG_ERR texts), Arm's FVP launch failures as
reported in public issues. All patterns are over bytes and bounded in length by the reader.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from harness.observe.events import Kind

Pattern = re.Pattern[bytes]

# ExecuTorch runtime/core/error.h
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
_BY_CODE: Final = {
    0x14: Kind.OPERATOR_MISSING, 0x21: Kind.ALLOCATION_FAILED,
    0x31: Kind.ALLOCATION_FAILED, 0x23: Kind.BAD_PROGRAM, 0x24: Kind.BAD_PROGRAM,
}  # fmt: skip

# "status 0x14", "error code 20", "Error Code 32", "failed @ 0x..: 0x23", "error:0x21",
# "failed: 0x2"; hexadecimal as the runner prints it, decimal as others do.
_CODE = re.compile(
    rb"(?:\bstatus|\berror(?: code)?|\bfailed(?: @ \S+)?|\bfor(?: \w+){1,2}|\binputs|\bERROR)"
    rb"(?:\s*[:=]\s*|\s+)\(?(0x[0-9a-fA-F]+|\d+)\b",
    re.I,
)
_NAME = re.compile(rb"\(?\b(" + b"|".join(n.encode() for n in ERROR_NAMES.values()) + rb")\b\)?")

# Several ways to say the same; the first that matches wins.
_RULES: Final = (
        (rb"kernel '(?P<operator>[^']*)' not found", Kind.OPERATOR_MISSING, 0),
        (rb"Missing operator: \[\d+\] (?P<operator>\S+)", Kind.OPERATOR_MISSING, 0),
        (rb"(?P<count>\d+) instructions? don't have corresponding operator",
         Kind.OPERATOR_MISSING, 0),
        (rb"(?:Memory allocation failed: )?(?P<needed>\d+) ?B requested.*?(?P<had>\d+) ?B "
         rb"available", Kind.ALLOCATION_FAILED, 0),
        (rb"(?P<pool>[A-Za-z][A-Za-z_ ]*? allocator) (?:is )?too small\b(?:[^:]*:)?.*?"
         rb"(?P<needed>\d+) ?(?:B|bytes) (?:requested|needed).*?"
         rb"(?P<had>\d+) ?(?:B|bytes )?\s*available", Kind.ALLOCATION_FAILED, 0),
        (rb"(?:could not|failed to|unable to) allocate\b.*?"
         rb"(?:\b(?:for|from) (?P<pool>[a-z_ ]*(?:allocator|buffer|evalues))?.*?)?"
         rb"(?:size:?|of)? ?(?P<needed>\d+)?(?: bytes)?(?: from (?P<pool2>\w+))?$",
         Kind.ALLOCATION_FAILED, re.I),
        (rb"\ballocator\b.*\b(?:out of memory|exhausted|too small)", Kind.ALLOCATION_FAILED, re.I),
        (rb"backend (?P<backend>\S+) is not (?:registered|available)", Kind.BACKEND_MISSING, re.I),
        (rb"(?:could not open|cannot open|failed to open)\b.*\berrno: ?0\)",
         Kind.SEMIHOSTING_OFF, re.I),
        (rb"no semihosting", Kind.SEMIHOSTING_OFF, re.I),
        (rb"BundleIO index\[(?P<index>\d+)\] Test_result: FAIL", Kind.BUNDLE_FAILED, 0),
        (rb"Model output don't match expected BundleIO", Kind.BUNDLE_FAILED, 0),
        (rb"(?:could not open|failed to (?:open|write)|cannot write)\b.*\boutput\b",
         Kind.OUTPUT_NOT_WRITTEN, re.I),
        (rb"cannot write (?!log)", Kind.OUTPUT_NOT_WRITTEN, 0),
        (rb"(?:could not|cannot|failed to) open (?:\w+ ){0,3}'?(?P<path>[^\s'():]{1,300})",
         Kind.FILE_NOT_OPENED, re.I),
)  # fmt: skip


@cache
def rules() -> tuple[tuple[Pattern, Kind], ...]:
    """Compiled when the first suspicious line comes, which in most runs is never."""
    return tuple((re.compile(pattern, flags), kind) for pattern, kind, flags in _RULES)


_OUTSIDE = re.compile(rb"^/(?!dev/)|(?:^|/)\.\.(?:/|$)")

# Ethos-U core driver LOG_ERR; some retargeted loggers drop the prefix.
NPU_WORDS: Final = (
    b"Soft reset timed", b"Failed to ", b"NPU config", b"NPU arch", b"NPU error", b"NPU inference",
    b"status=0x", b"Unexpected job", b"Inference already", b"Custom Operator", b"custom_data_size",
    b"Fast memory area", b"UNSUPPORTED", b"not aligned", b"No NPU driver", b"not been compiled",
    b"Ethos-U invocation",
)  # fmt: skip
NPU = re.compile(
    rb"Soft reset timed out|F(?:ailed to (?:switch security state|initialize (?:Ethos-U )?device|"
    rb"request power|invoke inference)|ast memory area too small)|NPU (?:config mismatch|arch "
    rb"mismatch|error\(s\) occured|inference timed out|status=0x(?!0{8})[0-9a-fA-F]+)|"
    rb"Unexpected job state|Inference already running|Custom Operator Payload:|"
    rb"custom_data_size=.*not a multiple|UNSUPPORTED driver_action|No NPU driver handle available|"
    rb"(?:Command stream|Base) addr.*not aligned|Ethos-U invocation failed|"
    rb"Driver has not been compiled for this product"
)
_NPU_FACT = re.compile(rb"(?:npu|optimizer|optimize)?\.?(\w+)=(0x[0-9a-fA-F]+|-?\d+)")

# What an error line is when no rule above knows it.
ERROR_LINES: Final[tuple[tuple[Pattern, Kind], ...]] = (
    (re.compile(rb"input size \(\d+\) and tensor size|wrong number of inputs|"
                rb"\binput\b.*\b(?:expects?|expected|needs|bytes|mismatch)\b|no inputs? |"
                rb"failed to prepare inputs|not right number of parameters", re.I),
     Kind.INPUT_REJECTED),
    (re.compile(rb"InvalidProgram|not an? (?:valid |ExecuTorch )?program|"
                rb"program (?:loading|verification) failed|program\b.*\b(?:invalid|truncated)|"
                rb"invalid (?:bundled )?program|header version mismatch|identifier|"
                rb"version\b.*\bnot supported|schema version", re.I),
     Kind.BAD_PROGRAM),
)  # fmt: skip


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


_LOADING = re.compile(rb"^(?:Loading of method|Program loading|Execution of method|Failed to "
                      rb"(?:prepare inputs|get method_meta)|load_bundled_input|get_program_data|"
                      rb"Bundle verification|Method execution|method load)\b.*\bfail|^Failed to "
                      rb"get method_meta", re.I)  # fmt: skip


_LOADS = (b"Loading", b"Program loading", b"get_program_data")


def classify(message: bytes) -> tuple[Kind, dict[str, str]] | None:
    """The failure that a message names by its words, at whatever level it was logged."""
    for pattern, kind in rules():
        if match := pattern.search(message):
            facts = {k: text(v) for k, v in match.groupdict().items() if v}
            if "pool2" in facts:
                facts["pool"] = facts.pop("pool2")
            if kind is Kind.FILE_NOT_OPENED and _OUTSIDE.search(match["path"]):
                facts["outside"] = "the guest reached for a file outside of its directory"
            return kind, facts
    if NPU.search(message):
        return Kind.NPU_ERROR, {text(k): text(v) for k, v in _NPU_FACT.findall(message)}
    if _LOADING.search(message):
        code = named_code(message)
        if code is None:
            return Kind.RUNNER_ERROR, {}
        if code[0] == 0:
            return None
        loading = message.startswith(_LOADS)
        kind = _BY_CODE.get(code[0], Kind.RUNNER_ERROR) if loading else Kind.RUNNER_ERROR
        if loading and code[0] == 0x20:
            kind = Kind.BACKEND_MISSING
        if code[0] in (0x14, 0x21, 0x31):
            kind = _BY_CODE[code[0]]
        return kind, code_facts(code)
    return None


def classify_error(message: bytes) -> tuple[Kind, dict[str, str]]:
    """What a line of level E or F says that ``classify`` has no name for."""
    code = named_code(message)
    facts = code_facts(code) if code else {}
    for pattern, kind in ERROR_LINES:
        if pattern.search(message):
            return kind, facts
    if code and code[0] in _BY_CODE:
        return _BY_CODE[code[0]], facts
    return Kind.RUNNER_ERROR, facts


def code_facts(code: tuple[int, str]) -> dict[str, str]:
    return {"code": f"0x{code[0]:02x}", "error": code[1]}


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
