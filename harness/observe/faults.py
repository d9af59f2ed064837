"""What fault handlers of platforms say, and the registers they print.

Every exception has its own kind; a platform that names none in the first line may name it in
one of the next.
"""

from __future__ import annotations

import re
from typing import Final

from harness.observe.events import Kind
from harness.observe.pattern import Pattern

_CORE_PLATFORM: Final = (
    "ethos-u-core-platform targets/corstone-*/target.cpp, also TVM's corstone300 demo and the "
    "bundled runner: irq is IPSR - 16; exception numbers: Armv8-M Architecture Reference Manual"
)
_ZEPHYR: Final = "Zephyr arch/arm/core/cortex_m/fault.c"
_ZEPHYR_FATAL: Final = (
    "Zephyr kernel/fatal.c; reasons: include/zephyr/fatal_types.h, from 16 on "
    "include/zephyr/arch/arm/arch.h"
)
_OLD_ZEPHYR: Final = "Zephyr arch/*/core/fatal.c up to 1.14"
_MLEK: Final = "Arm ML embedded evaluation kit, source/hal/source/platform/*/irqs"
_MBED: Final = "Mbed OS platform/cxxsupport/TARGET_CORTEX_M/mbed_fault_handler.c"
_TFM: Final = "TF-M platform/ext/common/exception_info.c"
_TFA: Final = "TF-A bl31/aarch64/crash_reporting.S, common/aarch64/debug.S"
_LINUX: Final = "Linux arch/arm64/mm/fault.c, arch/arm64/kernel/traps.c, kernel/panic.c"
_SIGNAL: Final = "a shell, or the C library, of a process that was ended by a signal"

_ZEPHYR_STARS: Final = rb"\*{5} %s ?FAULT"
_REASON: Final = rb">>> ZEPHYR FATAL ERROR (?P<reason>%s)(?!\d)(?:: (?P<reason_text>.{1,80}))?"

# In order of precedence.
FAULTS: Final[tuple[Pattern[Kind], ...]] = (
    Pattern(Kind.MPU_FAULT, (b"Hard fault. irq=-12",), rb"\bHard fault\. irq=-12\b",
            b"Hard fault. irq=-12, pc=0x1000, lr=0x1, xpsr=0x1, sp=0x3007ff00", _CORE_PLATFORM),
    Pattern(Kind.BUS_FAULT, (b"Hard fault. irq=-11",), rb"\bHard fault\. irq=-11\b",
            b"Hard fault. irq=-11, pc=0x1000, lr=0x1, xpsr=0x1, sp=0x3007ff00", _CORE_PLATFORM),
    Pattern(Kind.USAGE_FAULT, (b"Hard fault. irq=-10",), rb"\bHard fault\. irq=-10\b",
            b"Hard fault. irq=-10, pc=0x1000, lr=0x1, xpsr=0x1, sp=0x3007ff00", _CORE_PLATFORM),
    Pattern(Kind.SECURE_FAULT, (b"Hard fault. irq=-9",), rb"\bHard fault\. irq=-9\b",
            b"Hard fault. irq=-9, pc=0x1000, lr=0x1, xpsr=0x1, sp=0x3007ff00", _CORE_PLATFORM),
    Pattern(Kind.HARD_FAULT, (b"Hard fault",), rb"\bHard fault\b",
            b"Hard fault. irq=-13, pc=0x10000abc, lr=0x10000def, xpsr=0x61000003, sp=0x3007ff00",
            _CORE_PLATFORM + "; Armv6-M builds print the two words alone"),
    Pattern(Kind.HARD_FAULT, (b"***** HARD",), _ZEPHYR_STARS % b"HARD",
            b"***** HARD FAULT *****", _ZEPHYR),
    Pattern(Kind.MPU_FAULT, (b"***** MPU",), _ZEPHYR_STARS % b"MPU",
            b"***** MPU FAULT *****", _ZEPHYR),
    Pattern(Kind.BUS_FAULT, (b"***** BUS",), _ZEPHYR_STARS % b"BUS",
            b"***** BUS FAULT *****", _ZEPHYR),
    Pattern(Kind.USAGE_FAULT, (b"***** USAGE",), _ZEPHYR_STARS % b"USAGE",
            b"***** USAGE FAULT *****", _ZEPHYR),
    Pattern(Kind.SECURE_FAULT, (b"***** SECURE",), _ZEPHYR_STARS % b"SECURE",
            b"***** SECURE FAULT *****", _ZEPHYR),
    Pattern(Kind.DEBUG_FAULT, (b"***** DEBUG", b"***** Debug monitor"),
            rb"\*{5} (?:DEBUG ?FAULT|Debug monitor)", b"***** Debug monitor exception *****",
            _ZEPHYR),
    Pattern(Kind.CPU_EXCEPTION, (b"***** Reserved Exc",), rb"\*{5} Reserved Exception",
            b"***** Reserved Exception ( 0x1) *****", _ZEPHYR),
    Pattern(Kind.HARD_FAULT, (b"xception caught by function HardF",),
            rb"Exception caught by function (?P<handler>HardFault_Handler)",
            b"Exception caught by function HardFault_Handler", _MLEK),
    Pattern(Kind.MPU_FAULT, (b"xception caught by function MemM",),
            rb"Exception caught by function (?P<handler>MemManage_Handler)",
            b"Exception caught by function MemManage_Handler", _MLEK),
    Pattern(Kind.BUS_FAULT, (b"xception caught by function BusF",),
            rb"Exception caught by function (?P<handler>BusFault_Handler)",
            b"Exception caught by function BusFault_Handler", _MLEK),
    Pattern(Kind.USAGE_FAULT, (b"xception caught by function Usage",),
            rb"Exception caught by function (?P<handler>UsageFault_Handler)",
            b"Exception caught by function UsageFault_Handler", _MLEK),
    Pattern(Kind.SECURE_FAULT, (b"xception caught by function Secure",),
            rb"Exception caught by function (?P<handler>SecureFault_Handler)",
            b"Exception caught by function SecureFault_Handler", _MLEK),
    Pattern(Kind.CPU_EXCEPTION, (b"xception caught by function ",),
            rb"Exception caught by function (?P<handler>\w{1,60})",
            b"Exception caught by function NMI_Handler", _MLEK),
    Pattern(Kind.HARD_FAULT, (b"FaultType: HardF",), rb"FaultType: (?P<handler>HardFault)\b",
            b"FaultType: HardFault", _MBED),
    Pattern(Kind.MPU_FAULT, (b"FaultType: MemM",), rb"FaultType: (?P<handler>MemManageFault)\b",
            b"FaultType: MemManageFault", _MBED),
    Pattern(Kind.BUS_FAULT, (b"FaultType: BusF",), rb"FaultType: (?P<handler>BusFault)\b",
            b"FaultType: BusFault", _MBED),
    Pattern(Kind.USAGE_FAULT, (b"FaultType: Usage",), rb"FaultType: (?P<handler>UsageFault)\b",
            b"FaultType: UsageFault", _MBED),
    Pattern(Kind.CPU_EXCEPTION, (b"FaultType: ", b"MbedOS Fault"),
            rb"FaultType: (?P<handler>\w{1,60})|MbedOS Fault Handler",
            b"++ MbedOS Fault Handler ++", _MBED),
    Pattern(Kind.HARD_FAULT, (b"FATAL ERROR: HardF",), rb"FATAL ERROR: (?P<handler>HardFault)\b",
            b"FATAL ERROR: HardFault", _TFM),
    Pattern(Kind.MPU_FAULT, (b"FATAL ERROR: MemM",),
            rb"FATAL ERROR: (?P<handler>MemManage ?[Ff]ault)\b", b"FATAL ERROR: MemManage fault",
            _TFM),
    Pattern(Kind.BUS_FAULT, (b"FATAL ERROR: BusF",), rb"FATAL ERROR: (?P<handler>BusFault)\b",
            b"FATAL ERROR: BusFault", _TFM),
    Pattern(Kind.USAGE_FAULT, (b"FATAL ERROR: Usage",),
            rb"FATAL ERROR: (?P<handler>UsageFault)\b", b"FATAL ERROR: UsageFault", _TFM),
    Pattern(Kind.SECURE_FAULT, (b"FATAL ERROR: Secure",),
            rb"FATAL ERROR: (?P<handler>SecureFault)\b", b"FATAL ERROR: SecureFault", _TFM),
    Pattern(Kind.CPU_EXCEPTION, (b"FATAL ERROR: ",), rb"FATAL ERROR: (?P<handler>\w{0,60}Fault)\b",
            b"FATAL ERROR: SomeNewFault", _TFM),
    Pattern(Kind.BOOT_PANIC, (b"PANIC at PC", b"PANIC in EL"), rb"\bPANIC (?:at PC|in EL\d)",
            b"PANIC at PC : 0x0000000002003a4c", _TFA),
    Pattern(Kind.BOOT_PANIC, (b"Unhandled Exception ",), rb"Unhandled Exception (?:in|from) EL\d",
            b"Unhandled Exception in EL3.", _TFA),
    Pattern(Kind.BOOT_PANIC, (b'"Synchronous Abort" h',), rb'"Synchronous Abort" handler',
            b'"Synchronous Abort" handler, esr 0x96000010, far 0x1a050000',
            "U-Boot arch/arm/lib/interrupts_64.c"),
    Pattern(Kind.CPU_EXCEPTION, (b"ELR_ELn: 0x",), rb"\bELR_ELn: 0x",
            b"[00:00:00.120,000] <err> os: ELR_ELn: 0x0000000040001f4c",
            'Zephyr arch/arm64/core/fatal.c, before its ">>> ZEPHYR FATAL ERROR"'),
    Pattern(Kind.STACK_OVERFLOW, (b">>> ZEPHYR FATAL ERROR ",), _REASON % b"2",
            b">>> ZEPHYR FATAL ERROR 2: Stack overflow on CPU 0", _ZEPHYR_FATAL),
    Pattern(Kind.ZEPHYR_FATAL, (b">>> ZEPHYR FATAL ERROR ",), _REASON % b"[34]",
            b">>> ZEPHYR FATAL ERROR 4: Kernel panic on CPU 0",
            _ZEPHYR_FATAL + "; kernel oops, kernel panic"),
    Pattern(Kind.MPU_FAULT, (b">>> ZEPHYR FATAL ERROR ",), _REASON % rb"1[6-9]|2[01]",
            b">>> ZEPHYR FATAL ERROR 19: Unknown error on CPU 0", _ZEPHYR_FATAL),
    Pattern(Kind.BUS_FAULT, (b">>> ZEPHYR FATAL ERROR ",), _REASON % rb"2[2-8]",
            b">>> ZEPHYR FATAL ERROR 25: Unknown error on CPU 0", _ZEPHYR_FATAL),
    Pattern(Kind.USAGE_FAULT, (b">>> ZEPHYR FATAL ERROR ",), _REASON % rb"29|3[0-6]",
            b">>> ZEPHYR FATAL ERROR 36: Unknown error on CPU 0", _ZEPHYR_FATAL),
    Pattern(Kind.SECURE_FAULT, (b">>> ZEPHYR FATAL ERROR ",), _REASON % rb"3[7-9]|4[0-4]",
            b">>> ZEPHYR FATAL ERROR 41: Unknown error on CPU 0", _ZEPHYR_FATAL),
    Pattern(Kind.CPU_EXCEPTION, (b">>> ZEPHYR FATAL ERROR ",), _REASON % rb"\d+",
            b">>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0", _ZEPHYR_FATAL),
    Pattern(Kind.STACK_OVERFLOW, (b"***** Stack Check",), rb"\*{5} Stack Check Fail",
            b"***** Stack Check Fail! *****", _OLD_ZEPHYR),
    Pattern(Kind.ZEPHYR_FATAL, (b"***** Kernel ", b"**** Kernel "),
            rb"\*{4} Kernel (?:OOPS|Panic|Allocation Failure)", b"***** Kernel OOPS! *****",
            _OLD_ZEPHYR),
    Pattern(Kind.CPU_EXCEPTION, (b"***** Hardware exc",), rb"\*{5} Hardware exception",
            b"***** Hardware exception *****", _OLD_ZEPHYR),
    Pattern(Kind.ZEPHYR_FATAL, (b"ASSERTION FAIL [",),
            rb"ASSERTION FAIL \[(?P<assertion>[^\]]*)\] @ (?P<place>\S{1,200})",
            b"ASSERTION FAIL [ptr != NULL] @ WEST_TOPDIR/zephyr/kernel/mempool.c:44",
            "Zephyr include/zephyr/sys/__assert.h"),
    Pattern(Kind.CPU_LOCKUP, (b"Lockup",),
            rb"^qemu(?:-system-\w+)?: fatal: ?Lockup|^Lockup: ",
            b"qemu: fatal: Lockup: can't escalate 3 to HardFault (current priority -1)",
            "QEMU hw/intc/armv7m_nvic.c"),
    Pattern(Kind.NO_ROOT, (b"VFS: ", b"Kernel panic - "),
            rb"VFS: (?:Unable to mount root fs|Cannot open root device)|"
            rb"Kernel panic - not syncing: (?:No working init found|Requested init)",
            b"[    2.1] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block",
            "Linux init/do_mounts.c, init/main.c"),
    Pattern(Kind.OUT_OF_MEMORY, (b"emory: Killed process ", b"deadlocked on memory"),
            rb"(?:Out of memory|Memory cgroup out of memory): Killed process (?P<process>\d+) "
            rb"\((?P<program>[^)]{1,16})\)|System is deadlocked on memory",
            b"[   20.1] Out of memory: Killed process 99 (executor_runner) total-vm:300000kB",
            "Linux mm/oom_kill.c"),
    Pattern(Kind.HUNG_TASK, (b" blocked for more than ",),
            rb"INFO: task (?P<program>.{1,16}):(?P<process>\d+) blocked for more than "
            rb"(?P<seconds>\d+) seconds",
            b"[   33.1] INFO: task sync:99 blocked for more than 10 seconds.",
            "Linux kernel/hung_task.c"),
    Pattern(Kind.LINUX_PANIC, (b"Kernel panic - ",), rb"Kernel panic - not syncing",
            b"[    2.1] Kernel panic - not syncing: sysrq triggered crash", _LINUX),
    Pattern(Kind.LINUX_OOPS, (b"Oops",), rb"Internal error: Oops|\bOops(?: -|: )",
            b"[   14.500300] Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP", _LINUX),
    Pattern(Kind.LINUX_OOPS, (b"Unable to handle kernel ",), rb"Unable to handle kernel ",
            b"[   14.5] Unable to handle kernel NULL pointer dereference at 0000000000000018",
            _LINUX),
    Pattern(Kind.LINUX_OOPS, (b"BUG: ", b"kernel BUG at"), rb"\bBUG: |kernel BUG at",
            b"[    9.1] kernel BUG at drivers/accel/ethosu/ethosu_job.c:77!", _LINUX),
    Pattern(Kind.PROCESS_CRASH, (b"unhandled signal", b"unhandled level"),
            rb"\bunhandled (?:signal|level \d)",
            b"[   30.1] executor_runner[214]: unhandled level 3 translation fault (11) at 0x18",
            "Linux arch/arm64/kernel/traps.c, with print-fatal-signals"),
    Pattern(Kind.PROCESS_CRASH, (b"unhandled exception: ",), rb"\]: unhandled exception: ",
            b"[   30.1] executor_runner[214]: unhandled exception: DABT (lower EL), ESR 0x92000004",
            "Linux arch/arm64/kernel/traps.c, with debug.exception-trace"),
    Pattern(Kind.PROCESS_CRASH, (b"Fatal signal ",),
            rb"\bFatal signal (?P<signal>\d+) \((?P<name>SIG\w+)\)\. ",
            b"Fatal signal 11 (SIGSEGV). pc=0x401abc, lr=0x401a00, sp=0x7ffd0, far=0x0",
            "targets/runner/ports/linux/signals.cpp"),
    Pattern(Kind.PROCESS_CRASH, (b"Segmentation fault",), rb"\bSegmentation fault\b",
            b"Segmentation fault (core dumped)", _SIGNAL),
    Pattern(Kind.PROCESS_CRASH, (b"Bus error",), rb"\bBus error\b", b"Bus error", _SIGNAL),
    Pattern(Kind.PROCESS_CRASH, (b"Illegal instr",), rb"\bIllegal instruction\b",
            b"Illegal instruction (core dumped)", _SIGNAL),
    Pattern(Kind.PROCESS_CRASH, (b"Aborted",), rb"^Aborted(?: \(core dumped\))?$",
            b"Aborted (core dumped)", _SIGNAL),
    Pattern(Kind.PROCESS_CRASH, (b"Sanitizer:",), rb"\bERROR: \w+Sanitizer:",
            b"==214==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000014",
            "LLVM compiler-rt/lib/sanitizer_common"),
    Pattern(Kind.PROCESS_CRASH, (b": runtime error: ",), rb": runtime error: ",
            b"a.cpp:12:3: runtime error: signed integer overflow", "LLVM compiler-rt/lib/ubsan"),
    Pattern(Kind.PROCESS_CRASH, (b"terminate called after",), rb"^terminate called after",
            b"terminate called after throwing an instance of 'std::bad_alloc'",
            "libstdc++ libsupc++/vterminate.cc"),
    Pattern(Kind.PROCESS_CRASH, (b"stack smashing",), rb"stack smashing detected",
            b"*** stack smashing detected ***: terminated", "glibc debug/stack_chk_fail.c"),
    Pattern(Kind.PROCESS_CRASH, (b"pure virtual method",), rb"pure virtual method called",
            b"pure virtual method called", "libstdc++ libsupc++/pure.cc"),
    Pattern(Kind.ASSERTION, (b'" failed: file "',),
            rb'assertion "(?P<assertion>.{0,200})" failed: file "(?P<place>[^"]{1,200})',
            b'assertion "drv->state == IDLE" failed: file "ethosu_driver.c", line 512',
            "newlib libc/stdlib/assert.c"),
    Pattern(Kind.ASSERTION, (b": Assertion ",),
            rb": Assertion [`'](?P<assertion>.{0,200})' failed\b",
            b"runner: main.cpp:12: int main(): Assertion `ok' failed.", "glibc assert/assert.c"),
)  # fmt: skip

REGISTER_LINES: Final = 40  # how far below a fault its registers may stand
_REGISTER = re.compile(
    rb"\b(irq|xpsr|psr|ctrl|ipsr|apsr|msp|psp|primask|basepri|faultmask|control|exc_return|"
    rb"[cmhbua]fsr|bfar|mmfar|sfsr|sfar|pc|lr|sp|(?:elr|esr|far)(?:_el\w)?|"
    rb"r\d{1,2}(?:/(?:pc|lr|sp|ip|a\d))?)(?: Address)?"
    rb"\s*(?:\)\s*)?[:=]\s*(0x[0-9a-fA-F]{1,16}|[0-9a-fA-F]{16}\b|-?\d+\b(?![a-zA-Z])|"
    rb"[0-9a-fA-F]{8}\b)",
    re.I,
)
_ALIASES: Final = {"r15": "pc", "r15/pc": "pc", "r14": "lr", "r14/lr": "lr", "r13": "sp",
                   "r13/sp": "sp", "elr_eln": "pc"}  # fmt: skip
# Zephyr's words for it; up to 1.14 "Faulting instruction address = 0x1b6e".
_ADDRESS = re.compile(rb"nstruction address(?: \(r15/pc\))?\s*[:=]\s*(0x[0-9a-fA-F]{1,16})\b", re.I)
# What Zephyr logs of registers, which stands in front of what it says last.
_DUMPED = re.compile(
    rb"\s*(?:r\d{1,2}/\w\w: |xpsr: |fpscr: |s\[ ?\d+\]: |EXC_RETURN: |Faulting instruction address)"
)
# Linux writes where it was as a symbol: "pc : ethosu_probe+0x24/0x180 [ethosu]".
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
