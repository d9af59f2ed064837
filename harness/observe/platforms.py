"""The words of platforms: hard faults, registers, simulators, Zephyr and Linux.

Fault texts: ethos-u-core-platform (Corstone-300/310/320), TVM's corstone300 demo, Arm's ML
embedded evaluation kit, Zephyr's arch/arm fatal handling, QEMU's CPU state dump.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from harness.observe.events import Kind, Stage

Pattern = re.Pattern[bytes]

# A line is compared with the faults only when one of these words is in it.
FAULT_WORD = re.compile(
    rb"Hard fault|\*{5}|xception caught|FaultType: |MbedOS Fault|ZEPHYR FATAL|ASSERTION FAIL|"
    rb"Lockup|panic|Oops|Unable to handle kernel|BUG|unhandled|Segm|Bus err|Illegal|Sanitizer|"
    rb"runtime err|Aborted|terminate called"
)


@cache
def faults() -> tuple[tuple[Pattern, Kind], ...]:
    return (
        (re.compile(rb"\bHard fault\b"), Kind.FAULT),
        (re.compile(rb"\*{5} (?:HARD|MPU|BUS|USAGE|SECURE|DEBUG) ?FAULT|\*{5} Debug monitor"),
         Kind.FAULT),
        (re.compile(rb"Exception caught by function (?P<handler>\w{1,60})"), Kind.FAULT),
        (re.compile(rb"FaultType: (?P<handler>\w{1,60})|MbedOS Fault Handler"), Kind.FAULT),
        (re.compile(rb">>> ZEPHYR FATAL ERROR (?P<reason>\d+)(?:: (?P<reason_text>.{1,80}))?"),
         Kind.ZEPHYR_FATAL),
        (re.compile(rb"ASSERTION FAIL \[(?P<assertion>[^\]]*)\] @ (?P<place>\S{1,200})"),
         Kind.ZEPHYR_FATAL),
        (re.compile(rb"^qemu(?:-system-\w+)?: fatal: ?Lockup|^Lockup: "), Kind.CPU_LOCKUP),
        (re.compile(rb"Kernel panic - not syncing|Internal error: Oops|\bOops(?: -|: )|Unable to "
                    rb"handle kernel |\bBUG: |kernel BUG at"), Kind.LINUX_OOPS),
        (re.compile(rb"\bunhandled (?:signal|level \d)|\bSegmentation fault\b|\bBus error\b|"
                    rb"\bIllegal instruction\b|\bERROR: \w+Sanitizer:|: runtime error: |"
                    rb"^Aborted\b|^terminate called after"), Kind.PROCESS_CRASH),
    )  # fmt: skip


REGISTER = re.compile(
    rb"\b(irq|xpsr|psr|ctrl|ipsr|apsr|msp|psp|primask|basepri|faultmask|control|exc_return|"
    rb"[cmhbua]fsr|bfar|mmfar|sfsr|sfar|pc|lr|sp|elr|esr|far|r\d{1,2}(?:/(?:pc|lr|sp|ip|a\d))?)"
    rb"(?: Address)?\s*(?:\)\s*)?[:=]\s*(0x[0-9a-fA-F]{1,16}|-?\d+\b(?![a-zA-Z])|[0-9a-fA-F]{8}\b)",
    re.I,
)
_ALIASES: Final = {"r15": "pc", "r15/pc": "pc", "r14": "lr", "r14/lr": "lr", "r13": "sp",
                   "r13/sp": "sp"}  # fmt: skip
REGISTER_LINES = 40  # how far below a fault its registers may stand


def registers(line: bytes) -> dict[str, str]:
    found = {}
    for name, value in REGISTER.findall(line):
        key = name.decode().lower()
        shown = value.decode()
        if not shown.startswith(("0x", "-")) and len(shown) == 8:
            shown = f"0x{shown}"
        found[_ALIASES.get(key, key.split("/")[0])] = shown
    return found


# Likewise for all that follows.
SIMULATOR_WORD = re.compile(
    rb"Reason: |stopped by|Listening for|shared libraries|ibrary not loaded|python3|executable "
    rb"stack|uncaught exc|EULA|icen[cs]e|LICENSE|FlexNet|FLEX|qemu|bwrap: |Error: |FVP_|Booting|"
    rb"Linux version|login:|root@|# |Fast Models|Ethos-U rev|ERR|timing-adapter"
)


@cache
def launch() -> tuple[tuple[Pattern, Pattern, Kind], ...]:
    return (
        (re.compile(rb"shared libraries|ibrary not loaded|python3"),
         re.compile(rb"error while loading shared libraries: (?P<library>[^:\s]{1,200})|"
                    rb"[Ll]ibrary not loaded: (?P<library2>\S{1,200})|"
                    rb"(?P<library3>python3\d+\.dll)\b.*(?:not found|missing)|"
                    rb"(?:not found|missing)\b.*(?P<library4>python3\d+\.dll)"),
         Kind.LIBRARY_MISSING),
        (re.compile(rb"executable stack"),
         re.compile(rb"(?:(?P<library>[^\s:]{1,300}): )?cannot enable executable stack"),
         Kind.EXECSTACK),
        (re.compile(rb"E549|uncaught exception"),
         re.compile(rb"uncaught exception: (?:Resource temporarily unavailable|std::bad_alloc|"
                    rb"Cannot allocate memory)"), Kind.HOST_LIMITS),
        (re.compile(rb"EULA|icense Agreement|icence agreement|icense agreement"),
         re.compile(rb"\b(?:accept|agree)", re.I), Kind.EULA),
        (re.compile(rb"icense|icence|LICENSE|FlexNet|FLEX"),
         re.compile(rb"\blicen[cs]e\b.*\b(?:fail\w*|denied|error|expired|invalid|not|cannot|"
                    rb"unable|unavailable|missing)\b|\b(?:no|fail\w*|unable|could not|"
                    rb"cannot|invalid|missing)\b.*\blicen[cs]es?\b|licen[cs]e checkout|"
                    rb"\bFlexNet\b|\bFLEXlm\b", re.I), Kind.LICENCE),
        (re.compile(rb"qemu|bwrap: |Error: "),
         re.compile(rb"^\s*(?:qemu(?:-system-\w+)?: (?!warning|info|terminating)|bwrap: |"
                    rb"Error: (?:\(E\d+\) )?\S)"), Kind.SIMULATOR_ERROR),
        (re.compile(rb"FVP_|qemu-system-"),
         re.compile(rb"(?:^|/)(?:FVP_|qemu-system-)[^:]*: (?:error|command not found|No such file|"
                    rb"cannot|not found|Permission denied)|"
                    rb"(?:not found|No such file or directory|Permission denied|Exec format "
                    rb"error)\s*$",
                    re.I), Kind.SIMULATOR_ERROR),
    )  # fmt: skip


NOISE = re.compile(rb"xterm|Can't open display|\btelnet: command not found|gtk|GTK|Warning:")

HINTS: Final = {
    Kind.LIBRARY_MISSING: "LD_LIBRARY_PATH must hold the model's own python/lib",
    Kind.EXECSTACK: "glibc 2.41 refuses this library; `execstack -c` or "
    "`patchelf --clear-execstack` on it",
    Kind.HOST_LIMITS: "the host has no threads or memory left; run fewer at a time",
    Kind.LICENCE: "this model wants a licence; an Ecosystem FVP does not",
    Kind.EULA: "the model's licence agreement was not accepted on this machine",
}

STOP = re.compile(
    rb"Simulation is stopping\. Reason: (?P<why>[^\r\n.]*)|(?P<user>Simulation stopped by user)"
)
_REASONS: Final = (("cpu time", "wall_limit"), ("simulated time", "simulated_limit"),
                   ("cycle limit", "cycle_limit"))  # fmt: skip


def stop_reason(match: re.Match[bytes]) -> str:
    said = (match["why"] or b"").decode("utf-8", "replace").lower()
    return next((name for words, name in _REASONS if words in said), "stopped")


PORT = re.compile(rb"(\S{1,100}): Listening for serial connection on port (\d+)")
VERSIONS: Final = (
    ("fast_models", b"Fast Models", re.compile(rb"Fast Models \[([0-9][^\s\]]*)")),
    ("ethos_u_model", b"Ethos-U rev", re.compile(rb"Ethos-U rev (\w+)")),
    ("zephyr", b"Booting Zephyr", re.compile(rb"\*\*\* Booting Zephyr OS build (\S+)")),
    ("linux", b"Linux version", re.compile(rb"\bLinux version (\S+)")),
)
STAGES: Final = (
    (re.compile(rb"\*\*\* Booting Zephyr OS|\bBooting Linux on|\bLinux version "), Stage.BOOTED),
    (re.compile(rb"(?:^|\s)[\w.-]{1,64} login: ?"), Stage.LOGIN),
    (re.compile(rb"^(?:root@\S+[#$]|[~/]\S{0,100} # ?|# $)"), Stage.SHELL),
)
# Words in a boot that explain a bad end, but are also said by boots that end well.
BOOT_ERROR = re.compile(rb"^(?:\[[^\]]*\] )?(?:\[ERR\]|\[ERROR\]|ERROR:)")
TIMING_ADAPTER = re.compile(rb"Failed to initialize timing-adapter")
