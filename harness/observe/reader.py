"""The reader itself: bytes in whatever pieces they come, lines, prefixes, events.

The runner's prefix is ``I [executorch:file.cpp:211 main()]`` since mid-2025, without the function
before, without the opening bracket in early 2024, without a line number in Zephyr samples. On
Linux the time stands behind the level. The bundled runner speaks the newest of them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from harness.observe import console, failures, faults, figures, tensors
from harness.observe.console import Console
from harness.observe.events import Kind, Observation, Progress, Stage
from harness.observe.failures import Excuse, Failures, Said
from harness.observe.figures import Figures
from harness.observe.findings import Findings
from harness.observe.pattern import Pattern, gate, text
from harness.observe.tensors import OutputLines

# Who speaks; behind it stands the message.
RUNNER: Final = Pattern(
    "runner", (b"executorch:",),
    rb"(?<![A-Z])([DIWEF]) (?:\d\d:\d\d:\d\d\.\d{1,9} )?\[?executorch:(?:[^\]\s:]+)(?::\d+)?"
    rb"(?: [^\]\n]*?)?\] ?",
    b"E [executorch:arm_executor_runner.cpp:211 main()] broken",
    "ExecuTorch runtime/platform/log.cpp",
)  # fmt: skip
HOST: Final = Pattern(
    "host", (b".cpp:", b".h:", b".c:", b".cc:"),
    rb"^\[[\w./-]+\.(?:cpp|h|c|cc):\d+(?: [^\]\n]*?)?\] ?()",
    b"[method.cpp:788] Missing operator: [7] aten::native_layer_norm.out",
    "ExecuTorch's host and pybind builds, which say no level",
)  # fmt: skip
# Of three levels only errors are worth to stop for; other levels are read where a row fits them.
DRIVER: Final = Pattern(
    "driver", (b"E: ", b"W: ", b"I: "), rb"(?:^|[>\s])([EWI]): (.*)$",
    b"E: something broke (ethosu_driver.c:411)",
    "ethos-u-core-driver; Zephyr's minimal logging",
)  # fmt: skip
# "[00:00:00.010,000] <err> module: text"; Zephyr's own fault handler is "os".
ZEPHYR: Final = Pattern(
    "zephyr", (b"<err> ",), rb"<err> (?!os:)[\w.-]{1,60}: (.*)$",
    b"[00:00:00.010,000] <err> app: out of luck", "Zephyr subsys/logging",
)  # fmt: skip
# An "E: " of the package manager, in the log of a CI system.
APT: Final = Pattern(
    None, (b"E: ",),
    rb"^E: (?:Unable to|Could not get lock|Package |Failed to fetch|Unmet |Version |"
    rb"Sub-process|The repository |Some index files)",
    b"E: Unable to locate package libpython3.9", "apt",
)  # fmt: skip
# What Zephyr says after a fault, whoever wrote between the two.
AFTER_FAULT: Final = Pattern(
    None, (b"E: ",), rb"^E: (?:Current thread: |Halting system|Resetting system|Fault during )",
    b"E: Current thread: 0x20000020 (main)", "Zephyr kernel/fatal.c, minimal logging",
)  # fmt: skip
_ZEPHYR_OS: Final = b"<err> os: "
_SUCCESS: Final = (Stage.EXECUTED, Stage.COMPLETE, Stage.ENDED)
_BEFORE_NAME = len(b"I 00:00:00.000000000 [")
_ERROR_LEVEL: Final = b"E: "
# Control sequences, as ``errors.plain`` has them for text.
_ANSI = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[P\]X^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
)
# What CI systems put in front of every line: GitHub "2026-01-01T00:00:00.0000000Z ", Jenkins the
# same in brackets.
_TIMESTAMP = re.compile(rb"\[?20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]? ")
_BOM = b"\xef\xbb\xbf"
# A message of Linux, which comes when it likes, also in the middle of somebody else's line
# (Linux kernel/printk/printk.c, print_time).
_KERNEL = re.compile(rb"\[ {0,4}\d{1,7}\.\d{6}\] ")
_MOST_TEXT = 4096  # of a line that is looked at; outputs and base64 excepted
_MOST_LINE = 32 << 20  # beyond it a line without an end is cut
_MOST_OTHER = 64 << 10  # the same, of a line that does not begin as printed outputs do
_BEGINNING = 128  # bytes in which it is seen how a line begins, behind a CI system's time stamp


def rows_anywhere() -> tuple[Pattern[Any], ...]:
    """Every row for lines that no runner wrote; a line that none can fit is only counted."""
    errors = replace(DRIVER, needles=(_ERROR_LEVEL,))
    return (
        HOST, errors, ZEPHYR, *tensors.ROWS, *faults.FAULTS, *failures.ANYWHERE, *failures.NPU,
        *figures.INSIDE, *figures.ANYWHERE, *console.ROWS,
    )  # fmt: skip


class Reader:
    """Accumulates events while bytes go by; a line may come in any number of pieces.

    ``lines_before``: the lines of the console that somebody else's output takes up.
    """

    def __init__(self, lines_before: int = 0) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._printed = False  # what is held begins as printed outputs do
        self._number = lines_before
        self._last = b""
        self._linux = False  # it is a Linux's console
        self._begun = b""  # of a line that a message of Linux came into
        self._wide: bool | None = None  # UTF-16, as PowerShell writes; None: nothing read yet
        self._runner: int | None = None
        self._outputs = OutputLines()
        self._figures = Figures(self._outputs.tensors)
        self._failures = Failures()
        self._findings = Findings()
        self._console = Console(self._figures, self._findings)
        self._may_matter = gate(rows_anywhere())
        self._may_be_trouble = gate((*faults.FAULTS, *failures.NPU))

    @property
    def final_failure(self) -> bool:
        """A failure was read after which nothing worth waiting for comes."""
        return self._findings.final

    def feed(self, data: bytes) -> None:
        if self._wide is not False:
            data = self._narrow(data)
        if b"\n" not in data:
            self._hold(data)
            return
        if self._parts:
            data = b"".join([*self._parts, data])
            self._parts, self._held = [], 0
        self._linux = self._linux or b"Linux version " in data
        lines = data.split(b"\n")
        rest = lines.pop()
        self._lines(lines)
        self._hold(rest)

    def _narrow(self, data: bytes) -> bytes:
        """A log in UTF-16 is read as the ASCII that it is but for its zeros."""
        if self._wide is None and data:
            self._wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
            data = data[2:] if self._wide else data
        return data.replace(b"\x00", b"") if self._wide else data

    def _lines(self, lines: list[bytes]) -> None:
        """Most of a long log goes no further than this loop."""
        findings, outputs, may_matter = self._findings, self._outputs, self._may_matter
        element = outputs.tensors.element
        number, last = self._number, b""
        if self._linux:
            lines = self._untangled(lines)
        for line in lines:
            number += 1
            if not line:
                continue
            if len(line) > _MOST_OTHER and not self._may_be_printed(line):
                line = line[:_MOST_OTHER]
            last = line
            if line.startswith(b"Output[") and element(number, line):
                continue
            if (
                b"executorch:" in line
                or number <= findings.registers_until
                or may_matter(line)
                or outputs.attentive
            ):
                self._line(number, line)
        self._number = number
        self._last = last if last.strip() else self._last_said(lines)

    def _untangled(self, lines: list[bytes]) -> list[bytes]:
        """As many lines: a message of Linux for itself, and what it came into with its rest."""
        found = []
        for line in lines:
            match = _KERNEL.search(line)
            if match is None:
                found.append(self._begun + line)
                self._begun = b""
                continue
            before = line[: match.start()]
            found.append(line[match.start() :])
            self._begun += _TIMESTAMP.sub(b"", before)
        return found

    def finish(self) -> Observation:
        """The rest, a last line without an end included."""
        cut = bool(self._held)
        if cut:
            self.feed(b"\n")
        if self._begun:
            self._line(self._number, self._begun)
        figures, findings, console = self._figures, self._findings, self._console
        self._settle()
        return Observation(
            lines=self._number,
            failures=tuple(findings.failures),
            metrics=figures.metrics,
            op_ticks=tuple(figures.op_ticks),
            build_id=figures.build_id,
            bundle_passes=len(figures.passes),
            completed=(figures.complete_line,),
            last_line=text(self._last.strip(b"\r\n")[:400]),
            suspects=tuple(findings.suspects),
            failures_dropped=findings.dropped,
            progress=tuple(figures.progress),
            pmu=figures.pmu,
            tensors=self._outputs.tensors.finish(),
            output_files=tuple(figures.output_files),
            blocks=tuple(self._outputs.blocks.found),
            stop=console.stop,
            bundle_lines=tuple(figures.passes),
            runner_line=self._runner,
            ports=console.ports,
            versions=console.versions,
            cut=cut,
            ended_line=figures.ended_line,
        )

    def _settle(self) -> None:
        """What only the end tells: whether all jobs went well, and which failures mattered."""
        figures = self._figures
        if (line := figures.jobs.well_line) is not None:
            figures.ended_line = max(line, figures.ended_line or 0)
            figures.progress.append(Progress(Stage.ENDED, line, "every job ended with status 0"))
            figures.progress.sort(key=lambda step: step.line)
        well = [step.line for step in figures.progress if step.stage in _SUCCESS]
        self._findings.settle(max(well, default=0), figures.jobs.well_line is not None)

    def _hold(self, part: bytes) -> None:
        if not part or self._held >= (_MOST_LINE if self._printed else _MOST_OTHER):
            return
        self._parts.append(part)
        self._held += len(part)
        self._printed = self._held >= _MOST_OTHER and (
            self._printed or self._may_be_printed(b"".join(self._parts))
        )

    def _may_be_printed(self, line: bytes) -> bool:
        """Only outputs are long, and worth to be read to their end."""
        beginning = line[:_BEGINNING]
        return self._outputs.attentive or any(word in beginning for word in tensors.BEGINNINGS)

    def _last_said(self, lines: list[bytes]) -> bytes:
        return next((line for line in reversed(lines) if line.strip()), self._last)

    def _line(self, number: int, line: bytes) -> None:
        line = _plain(number, line)
        ours = line.startswith((b"Output", b'echo "')) or self._outputs.attentive
        if ours and self._outputs.line(number, line):
            return
        line = line[:_MOST_TEXT]
        at = line.find(b"executorch:")
        if at >= 0:
            prefix = RUNNER.compiled.search(line, max(0, at - _BEFORE_NAME))
        else:
            prefix = HOST.search(line) if line.startswith(b"[") else None
        if prefix is None:
            self._bare(number, line)
            return
        if prefix.start():
            self._bare(number, line[: prefix.start()])
        while prefix is not None:  # two lines may have run into one
            again = line.find(b"executorch:", prefix.end()) > 0
            following = RUNNER.compiled.search(line, prefix.end()) if again else None
            end = following.start() if following else len(line)
            self._message(number, prefix[1], line[prefix.end() : end])
            prefix = following

    def _message(self, number: int, level: bytes, message: bytes) -> None:
        if self._runner is None:
            self._runner = number
            self._figures.reached(Stage.RUNNER, number, message)
        serious = level in (b"E", b"F")
        if serious and self._findings.full:
            self._findings.dropped += 1
            return
        if serious:
            self._said(number, message, self._failures.error(message))
            return
        if said := self._failures.message(message):
            self._said(number, message, said)
            return
        self._figures.message(number, message)
        if b"Info: " in message:  # the simulator's words on the same line
            self._console.line(number, message[message.index(b"Info: ") :], True)

    def _said(self, number: int, line: bytes, said: Said) -> None:
        if said.excuse is Excuse.ALWAYS:
            self._findings.suspect(said.kind, number, line)
        elif said.excuse is None:
            self._findings.fail(said.kind, number, line, said.facts)
        else:
            self._findings.doubt(said.kind, number, line, said.facts, said.excuse)

    def _bare(self, number: int, line: bytes) -> None:
        """A line without a runner's prefix: faults, registers, the simulator's own words."""
        findings = self._findings
        trouble = self._may_be_trouble(line)
        if trouble and findings.fault(number, line):
            return
        if number <= findings.registers_until and findings.registers(number, line):
            return
        if self._outputs.line(number, line):
            return
        if findings.full:
            findings.dropped += _ERROR_LEVEL in line
            return
        if trouble and (said := self._failures.npu(line)):
            self._said(number, line, said)
        elif b": " in line and (match := DRIVER.search(line)):
            self._driver(number, match[1], match[2], line)
        elif said := self._failures.anywhere(line):
            self._said(number, line, said)
        elif b"<err>" in line and (match := ZEPHYR.search(line)):
            self._zephyr_error(number, match[1])
        elif _ZEPHYR_OS in line:
            self._findings.dump(number, line.partition(_ZEPHYR_OS)[2])
        elif not self._console.line(number, line, self._runner is not None):
            self._figures.bare(number, line)

    def _zephyr_error(self, number: int, message: bytes) -> None:
        """Boots that end well also have errors of some module, so only known words are a cause."""
        said = self._failures.message(message)
        self._said(number, message, said or Said(Kind.RUNNER_ERROR, {}, Excuse.ALWAYS))

    def _driver(self, number: int, level: bytes, message: bytes, line: bytes) -> None:
        """Ethos-U driver and Zephyr's minimal logging: ``E: text (file.c:12)``."""
        if level != b"E":
            self._figures.bare(number, message)
        elif not (
            self._findings.dump(number, message) or APT.search(line) or AFTER_FAULT.search(line)
        ):
            self._said(number, message, self._failures.error(message))


def _plain(number: int, line: bytes) -> bytes:
    """A line without colours, its end, and what a CI system put in front."""
    line = line.rstrip(b"\r")
    if b"\x1b" in line:
        line = _ANSI.sub(b"", line)
    if number == 1:
        line = line.removeprefix(_BOM)
    if line.startswith((b"20", b"[20")) and (stamp := _TIMESTAMP.match(line)):
        line = line[stamp.end() :]
    return line
