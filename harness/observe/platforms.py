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

# Words, of which one must be in the line; the pattern; what it means. In order of precedence.
_Row = tuple[tuple[bytes, ...], bytes, Kind]
_FAULTS: Final[tuple[_Row, ...]] = (
    ((b"Hard fault",), rb"\bHard fault\b", Kind.FAULT),
    ((b"*****",), rb"\*{5} (?:HARD|MPU|BUS|USAGE|SECURE|DEBUG) ?FAULT|\*{5} Debug monitor|"
     rb"\*{5} Reserved Exception", Kind.FAULT),
    ((b"xception caught",), rb"Exception caught by function (?P<handler>\w{1,60})", Kind.FAULT),
    ((b"FaultType: ", b"MbedOS Fault"), rb"FaultType: (?P<handler>\w{1,60})|MbedOS Fault Handler",
     Kind.FAULT),
    # TF-M, TF-A, U-Boot
    ((b"FATAL ERROR: ", b"PANIC", b"Unhandled Exc", b"Synchronous Abort"),
     rb"FATAL ERROR: (?P<handler>\w{0,60}Fault)\b|\bPANIC (?:at PC|in EL\d)|Unhandled Exception "
     rb"(?:in|from) EL\d|\"Synchronous Abort\" handler", Kind.FAULT),
    # Zephyr for A-profile; its registers stand before ">>> ZEPHYR FATAL ERROR"
    ((b"ELR_ELn: ",), rb"\bELR_ELn: 0x", Kind.FAULT),
    ((b"ZEPHYR FATAL",), rb">>> ZEPHYR FATAL ERROR (?P<reason>\d+)(?:: (?P<reason_text>.{1,80}))?",
     Kind.ZEPHYR_FATAL),
    ((b"ASSERTION FAIL",), rb"ASSERTION FAIL \[(?P<assertion>[^\]]*)\] @ (?P<place>\S{1,200})",
     Kind.ZEPHYR_FATAL),
    ((b"Lockup",), rb"^qemu(?:-system-\w+)?: fatal: ?Lockup|^Lockup: ", Kind.CPU_LOCKUP),
    ((b"Kernel panic", b"Oops", b"Unable to handle kernel", b"BUG"),
     rb"Kernel panic - not syncing|Internal error: Oops|\bOops(?: -|: )|Unable to handle kernel |"
     rb"\bBUG: |kernel BUG at", Kind.LINUX_OOPS),
    ((b"unhandled ", b"Segm", b"Bus err", b"Illegal ", b"Sanitizer", b"runtime err", b"Aborted",
      b"terminate called", b"smashing", b"virtual method"),
     rb"\bunhandled (?:signal|level \d)|\bSegmentation fault\b|\bBus error\b|\bIllegal instruction"
     rb"\b|\bERROR: \w+Sanitizer:|: runtime error: |^Aborted(?: \(core dumped\))?$|"
     rb"^terminate called after|stack smashing detected|pure virtual method called",
     Kind.PROCESS_CRASH),
    # newlib, then glibc
    ((b"ssertion",),
     rb"assertion \"(?P<assertion>.{0,200})\" failed: file \"(?P<place>[^\"]{1,200})"
     rb"|: Assertion [`'](?P<assertion2>.{0,200})' failed\b", Kind.ASSERTION),
)  # fmt: skip
Rule = tuple[tuple[bytes, ...], Pattern, Kind]
FAULT_WORDS: Final = tuple(word for words, _, _ in _FAULTS for word in words)


@cache
def faults() -> tuple[Rule, ...]:
    """Compiled when the first such word comes, which in most runs is never."""
    return tuple((words, re.compile(pattern), kind) for words, pattern, kind in _FAULTS)


REGISTER = re.compile(
    rb"\b(irq|xpsr|psr|ctrl|ipsr|apsr|msp|psp|primask|basepri|faultmask|control|exc_return|"
    rb"[cmhbua]fsr|bfar|mmfar|sfsr|sfar|pc|lr|sp|(?:elr|esr|far)(?:_el\w)?|"
    rb"r\d{1,2}(?:/(?:pc|lr|sp|ip|a\d))?)(?: Address)?"
    rb"\s*(?:\)\s*)?[:=]\s*(0x[0-9a-fA-F]{1,16}|-?\d+\b(?![a-zA-Z])|[0-9a-fA-F]{8}\b)",
    re.I,
)
_ALIASES: Final = {"r15": "pc", "r15/pc": "pc", "r14": "lr", "r14/lr": "lr", "r13": "sp",
                   "r13/sp": "sp", "elr_eln": "pc"}  # fmt: skip
# Linux writes where it was as a symbol: "pc : ethosu_probe+0x24/0x180 [ethosu]".
_KERNEL_PLACE = re.compile(rb"\b(pc|lr) : ([A-Za-z_][\w.]{0,100}\+0x[0-9a-f]{1,8})/0x")
REGISTER_LINES = 40  # how far below a fault its registers may stand


def registers(line: bytes) -> dict[str, str]:
    found = {}
    for name, value in REGISTER.findall(line):
        key = name.decode().lower()
        shown = value.decode()
        if not shown.startswith(("0x", "-")) and len(shown) == 8:
            shown = f"0x{shown}"
        found[_ALIASES.get(key, key.split("/")[0])] = shown
    for name, place in _KERNEL_PLACE.findall(line):
        found[f"{name.decode()}_symbol"] = place.decode()
    return found


_LICENCE: Final = (b"icense", b"icence", b"LICENSE", b"FlexNet", b"FLEX")
_LAUNCH: Final[tuple[_Row, ...]] = (
    ((b"shared libraries", b"ibrary not loaded", b"python3", b"GLIBC", b"ld-linux"),
     rb"error while loading shared libraries: (?P<library>[^:\s]{1,200})|[Ll]ibrary not loaded: "
     rb"(?P<library2>\S{1,200})|(?P<library3>python3\d+\.dll)\b.*(?:not found|missing)|"
     rb"(?:not found|missing)\b.*(?P<library4>python3\d+\.dll)|"
     rb"(?P<library6>\S{0,200}ld-linux\S{0,50}): No such file|"
     rb"version [`'](?P<library5>GLIBC\w*_[\d.]{1,20})' not found", Kind.LIBRARY_MISSING),
    ((b"executable stack",),
     rb"(?:(?P<library>[^\s:]{1,300}): )?cannot enable executable stack", Kind.EXECSTACK),
    ((b"uncaught exc",),
     rb"uncaught exception: (?:Resource temporarily unavailable|std::bad_alloc|"
     rb"Cannot allocate memory)", Kind.HOST_LIMITS),
    ((b"EULA", b"icense Agreement", b"icence agreement", b"icense agreement"),
     rb"(?i)\b(?:must|have to|needs?|required?|please|not|without|unless|until|do you|pass)\b.*"
     rb"\b(?:accept|agree)|\b(?:accept|agree)\w*\b.*\b(?:first|before|required|"
     rb"to (?:continue|proceed))\b", Kind.EULA),
    (_LICENCE,
     rb"(?i)\blicen[cs]e\b.*\b(?:fail\w*|denied|error|expired|invalid|not|cannot|unable|"
     rb"unavailable|missing)\b|\b(?:no|fail\w*|unable|could not|cannot|invalid|missing)\b.*"
     rb"\blicen[cs]es?\b|licen[cs]e checkout|\bFlexNet\b|\bFLEXlm\b", Kind.LICENCE),
    ((b"qemu", b"bwrap: ", b"Error: "),
     rb"^\s*(?:qemu(?:-system-\w+)?: (?!warning|info|terminating)|bwrap: |Error: (?:\(E\d+\) )?\S)",
     Kind.SIMULATOR_ERROR),
    ((b"FVP_", b"qemu-system-"),
     rb"(?i)(?:^|/)(?:FVP_|qemu-system-)[^:]*: (?:error|command not found|No such file|cannot|"
     rb"not found|Permission denied|symbol lookup error|unrecogni[sz]ed|unknown)|"
     rb"\bno FVP_\S+ in \(|(?:not found|No such file or directory|Permission denied|Exec format "
     rb"error)\s*$|(?:could not|cannot|can't|unable to) find\b.*\bFVP_", Kind.SIMULATOR_ERROR),
)  # fmt: skip
# What a simulator, a boot or a shell says has one of these words.
SIMULATOR_WORDS: Final = tuple(
    dict.fromkeys(
        (*(word for words, _, _ in _LAUNCH for word in words), b"Reason: ", b"stopped by",
         b"Listening for", b"Booting", b"Linux version", b"login:", b"root@", b"# ",
         b"Fast Models", b"Ethos-U rev", b"ERR", b"timing-adapter", b"exit code ",
         b"Simulation complete, ", b"Killed")
    )
)  # fmt: skip


@cache
def launch() -> tuple[Rule, ...]:
    return tuple((words, re.compile(pattern), kind) for words, pattern, kind in _LAUNCH)


# Talk about the licence of some software, which is no licence of a model.
LEGAL_TALK = re.compile(rb"deprecat|classifier|setuptools|spdx|copyright|warrant", re.I)
# After a runner has spoken, an "Error:" that does not name a component of the model is
# somebody else's: the runner's program, a script, the CI system.
NOT_A_COMPONENT = re.compile(rb"\s*Error: (?!\(E\d|FVP_|[\w.-]{1,100}: [\w.-]{1,100}: )")
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
STAGE_WORD = re.compile(rb"Booting|Linux version|login:|root@|# ")
STAGES: Final = (
    (re.compile(rb"\*\*\* Booting Zephyr OS|\bBooting Linux on|\bLinux version "), Stage.BOOTED),
    (re.compile(rb"(?:^|\s)[\w.-]{1,64} login: ?"), Stage.LOGIN),
    (re.compile(rb"^(?:root@\S+[#$]|[~/]\S{0,100} # ?|# $)"), Stage.SHELL),
)
# Words in a boot that explain a bad end, but are also said by boots that end well.
BOOT_ERROR = re.compile(rb"^(?:\[[^\]]*\] )?(?:\[ERR\]|\[ERROR\]|ERROR:)")
# GitHub, GitLab, ExecuTorch's run_fvp.sh (which says 0 whatever happened), a shell, QEMU.
EXIT_STATUS = re.compile(
    rb"Process completed with exit code [1-9]|Job failed: exit code [1-9]|"
    rb"^\[run_fvp\] Simulation complete, [1-9]|^Killed$|qemu-system-\w+: terminating on signal"
)
TIMING_ADAPTER = re.compile(rb"Failed to initialize timing-adapter")
