"""ExecuTorch's error codes, and the registers that fault handlers print, as facts of an event."""

from __future__ import annotations

import re
from typing import Final

from harness.log.events import Kind

# ExecuTorch runtime/core/error.h; the bundled runner's is targets/runner/core/error.h.
ERROR_NAMES: Final = {
    0x00: "Ok",
    0x01: "Internal",
    0x02: "InvalidState",
    0x03: "EndOfMethod",
    0x04: "AlreadyLoaded",
    0x10: "NotSupported",
    0x11: "NotImplemented",
    0x12: "InvalidArgument",
    0x13: "InvalidType",
    0x14: "OperatorMissing",
    0x15: "RegistrationExceedingMaxKernels",
    0x16: "RegistrationAlreadyRegistered",
    0x20: "NotFound",
    0x21: "MemoryAllocationFailed",
    0x22: "AccessFailed",
    0x23: "InvalidProgram",
    0x24: "InvalidExternalData",
    0x25: "OutOfResources",
    0x30: "DelegateInvalidCompatibility",
    0x31: "DelegateMemoryAllocationFailed",
    0x32: "DelegateInvalidHandle",
}
# What a code means: in the message of a step, in any error message, in that of a step that loads.
STEP_CODES: Final = {
    0x14: Kind.OPERATOR_MISSING,
    0x21: Kind.ALLOCATION_FAILED,
    0x31: Kind.ALLOCATION_FAILED,
}
ERROR_CODES: Final = {**STEP_CODES, 0x23: Kind.BAD_PROGRAM, 0x24: Kind.BAD_PROGRAM}
LOADING_CODES: Final = {**ERROR_CODES, 0x20: Kind.BACKEND_MISSING}

# "status 0x14", "error code 20", "Error Code 32", "failed @ 0x..: 0x23", "error:0x21",
# "failed: 0x2"; hexadecimal as the runner prints it, decimal as others do.
_CODE = re.compile(
    rb"(?:\bstatus|\berror(?: code)?|\bfailed(?: @ \S+)?|\bfor(?: \w+){1,2}|\binputs|\bERROR)"
    rb"(?:\s*[:=]\s*|\s+)\(?(0x[0-9a-fA-F]+|\d+)\b",
    re.I,
)
_NAME = re.compile(rb"\(?\b(" + b"|".join(n.encode() for n in ERROR_NAMES.values()) + rb")\b\)?")


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


REGISTER_LINES: Final = 40  # lines below a fault in which its registers may stand
_REGISTER = re.compile(
    rb"\b(irq|xpsr|psr|ctrl|ipsr|apsr|msp|psp|primask|basepri|faultmask|control|exc_return|"
    rb"[cmhbua]fsr|bfar|mmfar|sfsr|sfar|pc|lr|sp|(?:elr|esr|far)(?:_el\w)?|"
    rb"r\d{1,2}(?:/(?:pc|lr|sp|ip|a\d))?)(?: Address)?"
    rb"\s*(?:\)\s*)?[:=]\s*(0x[0-9a-fA-F]{1,16}|[0-9a-fA-F]{16}\b|-?\d+\b(?![a-zA-Z])|"
    rb"[0-9a-fA-F]{8}\b)",
    re.I,
)
_ALIASES: Final = {
    "r15": "pc",
    "r15/pc": "pc",
    "r14": "lr",
    "r14/lr": "lr",
    "r13": "sp",
    "r13/sp": "sp",
    "elr_eln": "pc",
}
# Zephyr's program counter; up to 1.14 "Faulting instruction address = 0x1b6e".
_ADDRESS = re.compile(rb"nstruction address(?: \(r15/pc\))?\s*[:=]\s*(0x[0-9a-fA-F]{1,16})\b", re.I)
# The registers that Zephyr logs, before its last message of the fault.
_DUMPED = re.compile(
    rb"\s*(?:r\d{1,2}/\w\w: |xpsr: |fpscr: |s\[ ?\d+\]: |EXC_RETURN: |Faulting instruction address)"
)
# Linux prints a place as a symbol: "pc : ethosu_probe+0x24/0x180 [ethosu]".
_KERNEL_PLACE = re.compile(rb"\b(pc|lr) : ([A-Za-z_][\w.]{0,100}\+0x[0-9a-f]{1,8})/0x")


def registers(line: bytes) -> dict[str, str]:
    """The registers on a line below a fault, by name; a kernel's place as ``pc_symbol``."""
    found = {}
    for value in _ADDRESS.findall(line):
        found["pc"] = value.decode()
    for name, value in _REGISTER.findall(line):
        key = name.decode().lower()
        shown = value.decode()
        if not shown.startswith(("0x", "-")) and len(shown) in (8, 16):
            shown = f"0x{shown}"
        found[_ALIASES.get(key, key.split("/")[0])] = shown
    for name, place in _KERNEL_PLACE.findall(line):
        found[f"{name.decode()}_symbol"] = place.decode()
    return found


def dumped(message: bytes) -> bool:
    """The message is a line of the registers that Zephyr logs at a fault."""
    return _DUMPED.match(message) is not None
