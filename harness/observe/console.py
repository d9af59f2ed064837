"""What the simulator, the boot and the shell say on lines that no runner wrote."""

from __future__ import annotations

import re
from typing import Any, Final

from harness.observe.events import Kind, ModelStop, Stage, StopReason
from harness.observe.failures import TIMING_ADAPTER
from harness.observe.figures import Figures
from harness.observe.findings import Findings
from harness.observe.pattern import Pattern, facts, gate, table, text

_FVP: Final = "Arm FVP, Fast Models 11.1x to 11.31"
_GLIBC: Final = "glibc's loader"
_LAUNCHED: Final = "an FVP that did not start, as public issues quote it"
_SHELL: Final = "a shell or `which` that was to start a simulator"

# Why a model says it stopped. "Simulation stopped by user" may follow the reason (11.2x).
STOPS: Final[tuple[Pattern[StopReason], ...]] = (
    *(Pattern(reason, (b"is stopping. Reason: ",),
            rb"Simulation is stopping\. Reason: [^\r\n.]*(?i:" + words + rb")",
            b"Info: Simulation is stopping. Reason: " + example, _FVP)
    for reason, words, example in (
        (StopReason.WALL_LIMIT, b"cpu time", b"CPU time has been exceeded."),
        (StopReason.SIMULATED_LIMIT, b"simulated time", b"Simulated time has been exceeded."),
        (StopReason.CYCLE_LIMIT, b"cycle limit", b"Cycle limit has been exceeded."),
    )),
    Pattern(StopReason.STOPPED, (b"is stopping. Reason: ", b"Simulation stopped by"),
            rb"Simulation is stopping\. Reason: |Simulation stopped by user",
            b"Info: /OSCI/SystemC: Simulation stopped by user.", _FVP),
)  # fmt: skip
PORT: Final = Pattern(
    "ports", (b"Listening for serial",),
    rb"(\S{1,100}): Listening for serial connection on port (\d+)",
    b"telnetterminal0: Listening for serial connection on port 5000", _FVP,
)  # fmt: skip
# What the console says ran.
VERSIONS: Final[tuple[Pattern[str], ...]] = (
    Pattern("fast_models", (b"Fast Models [",), rb"Fast Models \[([0-9][^\s\]]*)",
            b"Fast Models [11.27.42 (Dec  9 2024)]", _FVP),
    Pattern("ethos_u_model", (b"Ethos-U rev",), rb"Ethos-U rev (\w+)",
            b"    Ethos-U rev 136b7d75 --- Apr 12 2023 13:44:01", _FVP),
    Pattern("zephyr", (b"*** Booting Zephyr",), rb"\*\*\* Booting Zephyr OS build (\S+)",
            b"*** Booting Zephyr OS build v4.2.0 ***", "Zephyr kernel/banner.c"),
    Pattern("linux", (b"Linux version ",), rb"\bLinux version (\S+)",
            b"[    0.000000] Linux version 6.12.0-yocto (oe@host)", "Linux init/version.c"),
)  # fmt: skip
STAGES: Final[tuple[Pattern[Stage], ...]] = (
    Pattern(Stage.BOOTED, (b"*** Booting Zephyr",), rb"\*\*\* Booting Zephyr OS",
            b"*** Booting Zephyr OS build v4.2.0 ***", "Zephyr kernel/banner.c"),
    Pattern(Stage.BOOTED, (b"Booting Linux on",), rb"\bBooting Linux on",
            b"[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x411fd040]",
            "Linux arch/arm64/kernel/setup.c"),
    Pattern(Stage.BOOTED, (b"Linux version ",), rb"\bLinux version ",
            b"[    0.000000] Linux version 6.12.0-yocto (oe@host)", "Linux init/version.c"),
    Pattern(Stage.LOGIN, (b" login:",), rb"(?:^|\s)[\w.-]{1,64} login: ?",
            b"corstone1000-fvp login: root", "getty, on meta-arm's corstone1000 image"),
    Pattern(Stage.SHELL, (b"#", b"$"),
            rb"^(?:root@\S+[#$]|[~/]\S{0,100} # ?|# $)", b"root@corstone1000-fvp:~# ls",
            "busybox ash and bash"),
)  # fmt: skip

# Talk about a licence that is none of a model, and licences that are.
_LICENCE: Final = (b"icense", b"icence", b"LICENSE", b"FlexNet", b"FLEX")
_ABOUT_A_LICENCE: Final = rb"^(?=.*(?:icen[cs]e|LICENSE|FlexNet|FLEX))"
_NO_LICENCE: Final = (
    rb"(?i:\blicen[cs]e\b.*\b(?:fail\w*|denied|error|expired|invalid|not|cannot|unable|"
    rb"unavailable|missing)\b|\b(?:no|fail\w*|unable|could not|cannot|invalid|missing)\b.*"
    rb"\blicen[cs]es?\b|licen[cs]e checkout|\bFlexNet\b|\bFLEXlm\b)"
)
_SIMULATOR_NAMED: Final = rb"^(?=.*(?:FVP_|qemu-system-)).*"
_SIMULATOR: Final = (b"FVP_", b"qemu-system-")
# A simulator that did not start, in order of precedence. None: what only looks like it.
LAUNCHES: Final[tuple[Pattern[Kind | None], ...]] = (
    Pattern(None, (b"xterm", b"Can't open display", b"telnet: c", b"gtk", b"GTK", b"Warning:"),
            rb"^(?!.*(?i:licen)).*(?:xterm|Can't open display|\btelnet: command not found|gtk|GTK|"
            rb"Warning:)", b"FVP_MPS3: error: Can't open display", "an FVP that opens terminals"),
    Pattern(Kind.LIBRARY_MISSING, (b"loading shared libraries: ",),
            rb"error while loading shared libraries: (?P<library>[^:\s]{1,200})",
            b"./FVP_X: error while loading shared libraries: libpython3.9.so.1.0: cannot open "
            b"shared object file: No such file or directory", _GLIBC),
    Pattern(Kind.LIBRARY_MISSING, (b"ibrary not loaded: ",),
            rb"[Ll]ibrary not loaded: (?P<library>\S{1,200})",
            b"dyld[77]: Library not loaded: @rpath/libpython3.9.dylib", "macOS dyld"),
    Pattern(Kind.LIBRARY_MISSING, (b"python3",),
            rb"(?P<library>python3\d+\.dll)\b.*(?:not found|missing)|"
            rb"(?:not found|missing)\b.*(?P<library2>python3\d+\.dll)",
            b"python39.dll was not found", "Windows"),
    Pattern(Kind.LIBRARY_MISSING, (b"ld-linux",),
            rb"(?P<library>\S{0,200}ld-linux\S{0,50}): No such file",
            b"/lib/ld-linux-aarch64.so.1: No such file or directory", "qemu-user, a foreign FVP"),
    Pattern(Kind.LIBRARY_MISSING, (b"GLIBC",),
            rb"version [`'](?P<library>GLIBC\w*_[\d.]{1,20})' not found",
            b"./FVP_X: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./FVP_X)",
            _GLIBC),
    Pattern(Kind.EXECSTACK, (b"enable executable stack",),
            rb"(?:(?P<library>[^\s:]{1,300}): )?cannot enable executable stack",
            b"Error: (E549) uncaught exception: /f/libarmctmodel.so: cannot enable executable "
            b"stack as shared object requires: Invalid argument", "glibc >= 2.41"),
    Pattern(Kind.HOST_LIMITS, (b"uncaught exception: ",),
            rb"uncaught exception: (?:Resource temporarily unavailable|std::bad_alloc|"
            rb"Cannot allocate memory)",
            b"Error: (E549) uncaught exception: Resource temporarily unavailable", _LAUNCHED),
    Pattern(Kind.EULA, (b"EULA", b"icense Agreement", b"icence agreement", b"icense agreement"),
            rb"^(?=.*(?:EULA|icense [Aa]greement|icence agreement)).*"
            rb"(?i:\b(?:must|have to|needs?|required?|please|not|without|unless|until|do you|pass)"
            rb"\b.*\b(?:accept|agree)|\b(?:accept|agree)\w*\b.*\b(?:first|before|required|"
            rb"to (?:continue|proceed))\b)",
            b"You have to accept the EULA before the model can be used", _LAUNCHED),
    Pattern(None, _LICENCE,
            _ABOUT_A_LICENCE
            + rb"(?=.*(?i:deprecat|classifier|setuptools|spdx|copyright|warrant)).*" + _NO_LICENCE,
            b"SetuptoolsDeprecationWarning: License classifiers are deprecated, not removed",
            "setuptools, licence texts"),
    Pattern(Kind.LICENCE, _LICENCE, _ABOUT_A_LICENCE + rb".*" + _NO_LICENCE,
            b"License check out failed for 'SystemC_Cortex-M55'", _LAUNCHED),
    Pattern(Kind.SIMULATOR_ERROR, (b"qemu",),
            rb"^\s*qemu(?:-system-\w+)?: (?!warning|info|terminating)",
            b"qemu-system-arm: unsupported machine type", "QEMU"),
    Pattern(Kind.SIMULATOR_ERROR, (b"bwrap: ",), rb"^\s*bwrap: ",
            b"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "bubblewrap"),
    Pattern(Kind.SIMULATOR_ERROR, (b"Error: ",), rb"^\s*Error: (?:\(E\d+\) )?\S",
            b"Error: FVP_MPS3: mps3_board.uart0: cannot open file", _FVP),
    Pattern(Kind.SIMULATOR_ERROR, _SIMULATOR,
            rb"^(?=.*(?:FVP_|qemu-system-))(?:.*/)?(?i:FVP_|qemu-system-)[^:]*: "
            rb"(?i:error|command not found|No such file|cannot|not found|Permission denied|"
            rb"symbol lookup error|unrecogni[sz]ed|unknown)",
            b"/opt/FVP_Corstone_SSE-300_Ethos-U55: error: something", _FVP),
    Pattern(Kind.SIMULATOR_ERROR, _SIMULATOR, rb"\b[Nn]o FVP_\S+ in \(",
            b"which: no FVP_Corstone_SSE-320 in (/usr/bin:/bin)", _SHELL),
    Pattern(Kind.SIMULATOR_ERROR, _SIMULATOR,
            _SIMULATOR_NAMED + rb"(?i:not found|No such file or directory|Permission denied|"
            rb"Exec format error)\s*$",
            b"run_fvp.sh: line 81: FVP_Corstone_SSE-320: command not found", _SHELL),
    Pattern(Kind.SIMULATOR_ERROR, _SIMULATOR, rb"(?i:could not|cannot|can't|unable to) "
            rb"(?i:find)\b.*\bFVP_", b"could not find FVP_Corstone_SSE-320", _SHELL),
)  # fmt: skip
# What the talk on a Linux guest's console came to.
_TALK: Final = "harness/guest/console.py"
TALK: Final[tuple[Pattern[Kind], ...]] = (
    Pattern(Kind.LOGIN_REFUSED, (b"Login incorrect",), rb"^Login incorrect\b", b"Login incorrect",
            "login(1), of busybox too"),
    Pattern(Kind.LOGIN_REFUSED, (b"hil: the guest",),
            rb"^hil: the guest refuses the login of (?P<user>\S+)",
            b"hil: the guest refuses the login of root", _TALK),
    Pattern(Kind.NO_ROOT, (b"hil: the guest",), rb"^hil: the guest has no directory (?P<path>\S+)",
            b"hil: the guest has no directory /work", _TALK),
    Pattern(Kind.GUEST_SILENT, (b"hil: the guest",),
            rb"^hil: the guest did not (?:come to (?P<awaited>.+)|power off) within",
            b"hil: the guest did not come to its login prompt within 60 s", _TALK),
)  # fmt: skip
# Words that explain a bad end, but are also said where all is well.
SUSPECTS: Final[tuple[Pattern[Kind], ...]] = (
    TIMING_ADAPTER,
    Pattern(Kind.EXIT_STATUS, (b"completed with exit code",),
            rb"Process completed with exit code [1-9]",
            b"##[error]Process completed with exit code 1.", "GitHub Actions"),
    Pattern(Kind.EXIT_STATUS, (b"failed: exit code",), rb"Job failed: exit code [1-9]",
            b"ERROR: Job failed: exit code 1", "GitLab CI"),
    Pattern(Kind.EXIT_STATUS, (b"Simulation complete, ",),
            rb"^\[run_fvp\] Simulation complete, [1-9]",
            b"[run_fvp] Simulation complete, 137",
            "ExecuTorch backends/arm/scripts/run_fvp.sh, which says 0 whatever happened"),
    Pattern(Kind.IMAGE_NOT_LOADED, (b"Failed to write bytes",),
            rb"^Warning: Failed to write bytes at address range \[",
            b"Warning: Failed to write bytes at address range [0x00080000..0x002B2B07] when "
            b'loading image "app.axf".', _FVP + "; also of runs that go well"),
    Pattern(Kind.EXIT_STATUS, (b"Killed",), rb"^Killed$", b"Killed", "a shell"),
    Pattern(Kind.EXIT_STATUS, (b": terminating on signal",),
            rb"qemu-system-\w+: terminating on signal",
            b"qemu-system-arm: terminating on signal 15", "QEMU"),
    Pattern(Kind.SIMULATOR_ERROR, (b"[ERR]", b"[ERROR]", b"ERROR:"),
            rb"^(?:\[[^\]]*\] )?(?:\[ERR\]|\[ERROR\]|ERROR:)", b"[ERR] Boot: no image in slot 1",
            "boot loaders and secure firmware; meta-arm looks for the same"),
)  # fmt: skip
ROWS: Final[tuple[Pattern[Any], ...]] = (
    *STOPS, PORT, *VERSIONS, *STAGES, *LAUNCHES, *TALK, *SUSPECTS,
)  # fmt: skip

# After a runner has spoken, an "Error:" that does not name a component of the model is
# somebody else's: the runner's program, a script, the CI system.
_NOT_A_COMPONENT = re.compile(rb"\s*Error: (?!\(E\d|FVP_|[\w.-]{1,100}: [\w.-]{1,100}: )")
_HINTS: Final = {
    Kind.LIBRARY_MISSING: "LD_LIBRARY_PATH must hold the model's own python/lib",
    Kind.EXECSTACK: "glibc 2.41 refuses this library; `execstack -c` or "
    "`patchelf --clear-execstack` on it",
    Kind.HOST_LIMITS: "the host has no threads or memory left; run fewer at a time",
    Kind.LICENCE: "this model wants a licence; an Ecosystem FVP does not",
    Kind.EULA: "the model's licence agreement was not accepted on this machine",
}
_MOST_NAMES = 100


class Console:
    def __init__(self, figures: Figures, findings: Findings) -> None:
        self.stop: ModelStop | None = None
        self.ports: dict[str, int] = {}  # terminal -> telnet port
        self.versions: dict[str, str] = {}
        self._figures = figures
        self._findings = findings
        self._may_have = gate(ROWS)
        self._stops, self._versions, self._stages = table(STOPS), table(VERSIONS), table(STAGES)
        self._launches, self._suspects = table(LAUNCHES), table(SUSPECTS)
        self._talk = table(TALK)

    def line(self, number: int, line: bytes, after_runner: bool) -> bool:
        """True when the line is somebody else's than the runner's.

        ``after_runner``: a runner has spoken, so the simulator is known to have started.
        """
        if not self._may_have(line):
            return False
        if stop := self._stops.first(line):
            if self.stop is None or not self.stop.reason.is_limit:
                self.stop = ModelStop(stop[0], number, text(line.strip()))
            return True
        self._names(line)
        if stage := self._stages.first(line):
            self._figures.reached(stage[0], number, line)
        if self._launch_failed(number, line, after_runner):
            return True
        if said := self._talk.first(line):
            self._findings.fail(said[0], number, line, facts(said[1]))
            return True
        if suspect := self._suspects.first(line):
            self._findings.suspect(suspect[0], number, line)
            return True
        return b"executorch:" in line

    def _names(self, line: bytes) -> None:
        """Ports and versions, which the console says once."""
        if PORT.needles[0] in line and (match := PORT.search(line)):
            if len(self.ports) < _MOST_NAMES:
                self.ports[text(match[1])] = int(match[2])
        elif found := self._versions.first(line):
            self.versions.setdefault(found[0], text(found[1][1]))

    def _launch_failed(self, number: int, line: bytes, after_runner: bool) -> bool:
        found = self._launches.first(line)
        if found is None or found[0] is None:
            return False
        kind, match = found
        if after_runner and _NOT_A_COMPONENT.match(line):
            self._findings.suspect(kind, number, line)
            return True
        said = facts(match)
        if hint := _HINTS.get(kind):
            said["hint"] = hint
        self._findings.fail(kind, number, line, said)
        return True
