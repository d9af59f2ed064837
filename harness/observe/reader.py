"""The reader itself: bytes in whatever pieces they come, lines, prefixes, events.

Prefix grammars of ExecuTorch's ``arm_executor_runner``: ``I [executorch:file.cpp:211 main()]``
since mid-2025, without the function before, without the opening bracket in early 2024, without
a line number in Zephyr samples. On Linux the time stands behind the level; host and pybind builds
say ``[method.cpp:788]`` and no level. The bundled runner speaks the newest of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.observe import platforms
from harness.observe.console import Console
from harness.observe.events import Kind, Observation, Stage
from harness.observe.failures import NPU, NPU_WORDS, classify, classify_error, text
from harness.observe.figures import Figures
from harness.observe.findings import Findings
from harness.observe.words import Words

_PREFIX = re.compile(
    rb"(?<![A-Z])([DIWEF]) (?:\d\d:\d\d:\d\d\.\d{1,9} )?\[?executorch:(?:[^\]\s:]+)(?::\d+)?"
    rb"(?: [^\]\n]*?)?\] ?"
)
_BEFORE_NAME = len(b"I 00:00:00.000000000 [")
_HOST_PREFIX = re.compile(rb"\[[\w./-]+\.(?:cpp|h|c|cc):\d+(?: [^\]\n]*?)?\] ?()")
_DRIVER = re.compile(rb"(?:^|[>\s])([EWI]): (.*)$")
_APT = re.compile(rb"^E: (?:Unable to|Could not get lock|Package |Failed to fetch|Unmet |Version |"
                  rb"Sub-process|The repository |Some index files)")  # fmt: skip
# Zephyr's log: "[00:00:00.010,000] <err> module: text"; its own fault handler is "os".
_ZEPHYR_ERROR = re.compile(rb"<err> (?!os:)[\w.-]{1,60}: (.*)$")
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
# What CI systems put in front of every line: GitHub "2026-01-01T00:00:00.0000000Z ", Jenkins the
# same in brackets.
_TIMESTAMP = re.compile(rb"\[?20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]? ")
_BOM = b"\xef\xbb\xbf"
# Lines without any of these are only counted: most of a long log. The alternatives begin with
# letters that are rare in prose, which makes the search several times faster.
_HINT: Callable[[bytes], object] = re.compile(
    rb"xecutorch:|fau|FAULT|Fau|Output|\.(?:cpp|h|cc|c):\d|Error|ERR|FATAL|fatal|Reason: |"
    rb"pped by|cens|cenc|CENS|CENC|EULA|FLEX|Flex|gin:|Oops|panic|PANIC|BUG|Z[Ee][Pp][Hh]|ASSERT|"
    rb"NPU|_pmu|_cnt|#[ \[]|\| base64|L[io][snc][tuk][eux]|Fast [Mm]|Ethos-U|qemu|bwrap|xception|"
    rb"Test_res|Missing op|kernel|Failed |Soft res|Command s|Base a|Unexp|Inference|Custom|"
    rb"_data_size|UNSUPP|E: |@[a-z]|Illegal|Abort|Bus err|Segm|Sanitizer|unhandled|called|FVP_|"
    rb"GLIBC|brary|braries|ython3|cann|found|No such|Permis|Unable|Program complete|complete,|"
    rb"corresponding|: eula|licen|ssertion|smash|virtual m|Fast mem|compiled for|"
    rb"cho \"|ELR_|xit code|Killed|ld-linux|<err>"
).search
_SUSPICIOUS = (b"ail", b"FAIL", b"not ", b"rror", b"issing", b"small", b"too ", b"NPU", b"addr",
               b"requested", b"corresponding", b"ERROR", b"n\'t ")  # fmt: skip
_MOST_TEXT = 4096  # of a line that is looked at; outputs and base64 excepted
_MOST_LINE = 64 << 20  # beyond it a line without an end is cut


class Reader:
    """Accumulates events while bytes go by; a line may come in any number of pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._number = 0
        self._last = b""
        self._wide: bool | None = None  # UTF-16, as PowerShell writes; None: nothing read yet
        self._eot: int | None = None
        self._runner: int | None = None
        self._figures = Figures()
        self._findings = Findings()
        self._console = Console(self._figures, self._findings)
        self._fault_words = Words(platforms.FAULT_WORDS)
        self._npu_words = Words(NPU_WORDS)
        self._driver_words = Words((b"E: ", b"W: ", b"I: "))
        self._suspicious = Words(_SUSPICIOUS)
        self._words = (self._fault_words, self._npu_words, self._driver_words, self._suspicious,
                       self._console.words)  # fmt: skip

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
        for words in self._words:
            words.look_at(data)
        lines = data.split(b"\n")
        rest = lines.pop()
        raw = None  # the line of a bare EOT; an EOT in words is found with the rest
        if self._eot is None and b"\x04" in data:
            held = next((n for n, line in enumerate(lines, 1) if b"\x04" in line), None)
            raw = None if held is None else self._number + held
        self._lines(lines)
        if raw is not None:
            self._eot = min(raw, self._eot or raw)
        self._hold(rest)

    def _narrow(self, data: bytes) -> bytes:
        """A log in UTF-16 is read as the ASCII that it is but for its zeros."""
        if self._wide is None and data:
            self._wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
            data = data[2:] if self._wide else data
        return data.replace(b"\x00", b"") if self._wide else data

    def _lines(self, lines: list[bytes]) -> None:
        """Most of a long log goes no further than this loop."""
        figures, findings = self._figures, self._findings
        element = figures.tensors.element
        number, last = self._number, b""
        for line in lines:
            number += 1
            if not line:
                continue
            last = line
            if line.startswith(b"Output[") and element(number, line):
                continue
            if (
                b"executorch:" in line
                or number <= findings.registers_until
                or _HINT(line)
                or figures.attentive
            ):
                self._line(number, line)
        self._number = number
        self._last = last if last.strip() else self._last_said(lines)

    def finish(self) -> Observation:
        """The rest, a last line without an end included."""
        cut = bool(self._held)
        if cut:
            self.feed(b"\n")
        figures, findings, console = self._figures, self._findings, self._console
        return Observation(
            lines=self._number,
            failures=tuple(findings.failures),
            metrics=figures.metrics,
            op_ticks=tuple(figures.op_ticks),
            build_id=figures.build_id,
            bundle_passes=len(figures.passes),
            complete_line=figures.complete_line,
            last_line=text(self._last.strip(b"\r\n")[:400]),
            suspects=tuple(findings.suspects),
            failures_dropped=findings.dropped,
            progress=tuple(figures.progress),
            pmu=figures.pmu,
            tensors=figures.tensors.finish(),
            output_files=tuple(figures.output_files),
            blocks=tuple(figures.blocks.found),
            stop=console.stop,
            eot_line=self._eot,
            bundle_lines=tuple(figures.passes),
            runner_line=self._runner,
            ports=console.ports,
            versions=console.versions,
            cut=cut,
        )

    def _hold(self, part: bytes) -> None:
        if part and self._held < _MOST_LINE:
            self._parts.append(part)
            self._held += len(part)

    def _last_said(self, lines: list[bytes]) -> bytes:
        return next((line for line in reversed(lines) if line.strip()), self._last)

    def _line(self, number: int, line: bytes) -> None:
        line = _plain(number, line)
        ours = line.startswith((b"Output", b'echo "')) or self._figures.attentive
        if ours and self._figures.bare(number, line):
            return
        line = line[:_MOST_TEXT]
        at = line.find(b"executorch:")
        if at >= 0:
            prefix = _PREFIX.search(line, max(0, at - _BEFORE_NAME))
        else:
            prefix = _HOST_PREFIX.match(line) if line.startswith(b"[") else None
        if prefix is None:
            self._bare(number, line)
            return
        if prefix.start():
            self._bare(number, line[: prefix.start()])
        while prefix is not None:  # two lines may have run into one
            again = line.find(b"executorch:", prefix.end()) > 0
            following = _PREFIX.search(line, prefix.end()) if again else None
            end = following.start() if following else len(line)
            self._message(number, prefix[1], line[prefix.end() : end])
            prefix = following

    def _message(self, number: int, level: bytes, message: bytes) -> None:
        if self._runner is None:
            self._runner = number
            self._figures.reached(Stage.RUNNER, number, message)
        serious = level in (b"E", b"F")
        findings = self._findings
        if serious and findings.full:
            findings.dropped += 1
            return
        if serious or self._suspicious.are_in(message):
            if b"timing-adapter" in message and platforms.TIMING_ADAPTER.search(message):
                findings.suspect(Kind.NPU_ERROR, number, message)
                return
            found = classify(message) or (classify_error(message) if serious else None)
            if found is not None:
                findings.fail(found[0], number, message, found[1])
                return
        if len(message) < 8 and (not message.strip(b"\x04\r \\x04") or message == b"\xe2\x99\xa6"):
            if self._figures.complete_line is not None:
                self._eot = self._eot or number
            return
        self._figures.message(number, message)
        if b"Info: " in message:  # the simulator's words on the same line
            self._console.line(number, message[message.index(b"Info: ") :], True)

    def _bare(self, number: int, line: bytes) -> None:
        """A line without a runner's prefix: faults, registers, the simulator's own words."""
        findings = self._findings
        if self._fault_words.are_in(line) and findings.fault(number, line):
            return
        if number <= findings.registers_until and findings.registers(number, line):
            return
        if self._figures.bare(number, line):
            return
        if findings.full:
            findings.dropped += b"E: " in line
            return
        if self._npu_words.are_in(line) and NPU.search(line) and (found := classify(line)):
            findings.fail(found[0], number, line, found[1])
        elif self._driver_words.are_in(line) and (match := _DRIVER.search(line)):
            self._driver(number, match[1], match[2], line)
        elif (b"operator" in line or b"Test_result" in line) and (found := classify(line)):
            findings.fail(found[0], number, line, found[1])
        elif b"<err>" in line and (match := _ZEPHYR_ERROR.search(line)):
            self._zephyr_error(number, match[1])
        elif not self._console.line(number, line, self._runner is not None):
            self._figures.message(number, line)

    def _zephyr_error(self, number: int, message: bytes) -> None:
        """Boots that end well also have errors of some module, so only known words are a cause."""
        if found := classify(message):
            self._findings.fail(found[0], number, message, found[1])
        else:
            self._findings.suspect(Kind.RUNNER_ERROR, number, message)

    def _driver(self, number: int, level: bytes, message: bytes, line: bytes) -> None:
        """Ethos-U driver and Zephyr's minimal logging: ``E: text (file.c:12)``."""
        if level != b"E":
            self._figures.message(number, message)
        elif platforms.TIMING_ADAPTER.search(message):
            self._findings.suspect(Kind.NPU_ERROR, number, message)
        elif not _APT.match(line):
            kind, facts = classify(message) or classify_error(message)
            self._findings.fail(kind, number, message, facts)


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
